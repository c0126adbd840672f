"""The console: opens the screens on an exchange and gives the terminal back when they are done."""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import signal
import sys
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING

from console.errors import EnvironmentFault, Exit

if TYPE_CHECKING:
    from console.config import Config
    from console.exchange import Exchange
    from console.exchange.model import Snapshot
    from console.runs import Runs


def require_terminal() -> None:
    """Raises EnvironmentFault, in words, where no screen can be shown."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise EnvironmentFault("the console needs a terminal; `kernel-review list` and the other verbs do not")
    if os.environ.get("TERM", "") in ("", "dumb"):
        raise EnvironmentFault(
            f"TERM={os.environ.get('TERM', '')!r} cannot show the console; set TERM, or use the verbs: "
            "`kernel-review list`, `run`, `diff`, `review`"
        )


_TEXTUAL = ("textual.app", "textual.scroll_view", "textual.worker", "textual.drivers.linux_driver")


def _import_textual() -> None:
    """Nothing of the console is loaded here: two threads in one package could meet half-made modules."""
    with contextlib.suppress(ImportError):  # said where it is imported again
        for name in _TEXTUAL:
            importlib.import_module(name)


@functools.cache
def load_textual() -> threading.Thread:
    """Begin, once, to import Textual: half of the start, and meanwhile git opens the exchange in its own processes.

    Whoever needs it joins the thread.
    """
    import console.widgets  # noqa: F401 - sets what Textual reads from the environment

    thread = threading.Thread(target=_import_textual, name="load-textual", daemon=True)
    thread.start()
    return thread


def run(exchange: Exchange, config: Config, runs: Runs) -> int:
    """Show the console until the grader leaves; the exit code. Raises EnvironmentFault without a usable terminal.

    The exchange is read while Textual is imported: git works in its own process, and neither waits for the other.
    """
    require_terminal()
    textual = load_textual()
    first: Future[Snapshot] = Future()

    def read() -> None:
        try:
            _ = exchange.grader  # asked of git here, and then known to the screen
            first.set_result(exchange.snapshot())
        except BaseException as error:  # noqa: BLE001 - the screen says it
            first.set_exception(error)

    threading.Thread(target=read, name="first-snapshot", daemon=True).start()
    from console.drafts import Drafts

    textual.join()
    from console.screens.shell import ConsoleApp

    app = ConsoleApp(exchange, config, runs, Drafts(exchange.id), first=first)
    interrupt = signal.getsignal(signal.SIGINT)
    try:
        code = app.run(mouse=False)
    finally:
        signal.signal(signal.SIGINT, interrupt)
    if code is None:  # nobody left: a fault of this program ended it, and has been shown with its place
        return Exit.NOT_DETERMINED if app.return_code else Exit.DONE
    return code
