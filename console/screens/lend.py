"""The terminal, lent to another program: an editor, or git with somebody to ask."""

from __future__ import annotations

import contextlib
import signal
import sys
import termios
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from textual.app import App

T = TypeVar("T")


def lend(app: App[Any], work: Callable[[], T]) -> T:
    """Do ``work`` while the terminal is not ours. Whatever it raises, we have the terminal back before it leaves here.

    Raises SuspendNotSupported, and what ``work`` raises. (Textual does not resume after an exception by itself.)
    """
    failed: BaseException | None = None
    with app.suspend(), _keys_of_the_borrower(), _settings_kept():
        try:
            return work()
        except BaseException as error:  # noqa: BLE001 - raised again below, once the screen is ours
            failed = error
    raise failed


@contextlib.contextmanager
def _keys_of_the_borrower() -> Iterator[None]:
    """Ctrl+C and ctrl+\\ go to every process of the terminal; here they are meant for the borrower alone.

    Handlers of our own and not SIG_IGN, which the borrower would inherit.
    """
    before = {one: signal.signal(one, lambda *_: None) for one in (signal.SIGINT, signal.SIGQUIT)}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


@contextlib.contextmanager
def _settings_kept() -> Iterator[None]:
    """A borrower that dies leaves the terminal as it was using it, and it would stay so after we have ended."""
    try:
        settings = termios.tcgetattr(sys.__stdin__)  # type: ignore[arg-type]
    except (termios.error, ValueError, TypeError):
        yield
        return
    try:
        yield
    finally:
        with contextlib.suppress(termios.error, ValueError):
            termios.tcsetattr(sys.__stdin__, termios.TCSANOW, settings)  # type: ignore[arg-type]
