"""The one way to leave the event loop: a thread that cannot take the console down, whatever it raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from textual.app import App
from textual.worker import get_current_worker

T = TypeVar("T")


def in_background(
    app: App[Any],
    work: Callable[[], T],
    *,
    then: Callable[[T], object],
    failed: Callable[[BaseException], object],
    group: str = "default",
    exclusive: bool = False,
) -> None:
    """Run ``work`` in a thread, then ``then`` or ``failed`` on the event loop.

    The thread belongs to the app, not to a screen, so that leaving a screen loses no result. ``exclusive`` drops the
    result of an older thread of the same group. SystemExit and KeyboardInterrupt of foreign code reach ``failed``,
    too: neither may end the console.
    """

    def body() -> None:
        worker = get_current_worker()
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 - reported below, in words
            if not worker.is_cancelled:
                _tell(app, failed, error)
        else:
            if not worker.is_cancelled:
                _tell(app, then, result)

    app.run_worker(body, thread=True, exit_on_error=False, group=group, exclusive=exclusive)


def _tell(app: App[Any], callback: Callable[[Any], object], value: object) -> None:
    # A callback that comes after the app has ended has nobody to tell.
    if app.is_running:
        app.call_later(callback, value)
