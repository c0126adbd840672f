"""The app: what all screens share, and the only place where threads report back."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, TypeVar

from textual.app import App
from textual.binding import Binding
from textual.events import Event, Key, Paste

from console.grading.text import plain
from console.screens.base import ConsoleScreen
from console.screens.queue import QueueScreen
from console.view.spans import BLANK, Line, Span, Tone
from console.widgets._textual_hacks import begin_with_theme, in_order, survive_hangup, tolerate_input, without_colour
from console.widgets.background import in_background
from console.widgets.bindings import bindings_for
from console.widgets.tones import THEME_NAMES, THEMES, Paint, paint_for

if TYPE_CHECKING:
    from console.config import Config
    from console.drafts import Drafts
    from console.exchange import Exchange
    from console.exchange.model import Grader, Pending, Published, Snapshot
    from console.runs import Runs

T = TypeVar("T")

RUN_TICK = 0.2
"""Seconds between two repaints for runs: progress comes in bursts, and the terminal may be far away."""


class ConsoleApp(App[int], inherit_bindings=False):
    """The console on one exchange."""

    SCOPE: ClassVar[str] = "app"
    BINDINGS: ClassVar[list[Binding]] = bindings_for("app")  # type: ignore[assignment]
    ENABLE_COMMAND_PALETTE = False
    # What the queue needs stands here as well: CSS of a screen makes Textual parse everything once more.
    CSS = """
    Screen { background: $background; color: $foreground; scrollbar-size: 0 0; }
    QueueScreen Input { border: none; height: 1; padding: 0 1; display: none; background: $background; }
    QueueScreen Input.-open { display: block; }
    """

    def __init__(
        self,
        exchange: Exchange,
        config: Config,
        runs: Runs,
        drafts: Drafts,
        *,
        first: Future[Snapshot] | None = None,
    ) -> None:
        tolerate_input()
        survive_hangup(lambda: self.call_later(self._ended_by, signal.SIGHUP))
        super().__init__()
        self.exchange, self.config, self.runs, self.drafts = exchange, config, runs, drafts
        self.snapshot: Snapshot | None = None
        self.fetched: Line = (Span("not fetched yet", "dim"),)
        self.said: Line = BLANK
        self.moved: set[str] = set()
        self.pending: tuple[Pending, ...] = ()
        self._first = first
        self._changed: set[str] = set()
        self._changed_lock = threading.Lock()
        self._ticking = False
        for theme in THEMES:
            self.register_theme(theme)
        begin_with_theme(self, "ansi-dark" if self.no_color else self._theme_name(config.theme))
        if self.no_color:
            without_colour(self)
        self._paint: tuple[str, Paint] | None = None

    def _theme_name(self, wish: str) -> str:
        name = THEME_NAMES.get(wish, wish)
        return name if name in self.available_themes else "review-dark"

    @property
    def paint(self) -> Paint:
        """Styles of the theme that is on."""
        if self._paint is None or self._paint[0] != self.theme:
            theme = self.get_theme(self.theme) or THEMES[0]
            depth = self.console.color_system
            self._paint = (self.theme, paint_for(theme, depth, no_color=self.no_color, plain=self.config.ascii))
        return self._paint[1]

    def get_default_screen(self) -> QueueScreen:
        """The queue, below all others: an empty screen under it would be made and painted for nothing."""
        self.queue = QueueScreen()
        return self.queue

    def on_mount(self) -> None:
        """Fill the queue, then ask the remote."""
        self._catch_signals()
        self.runs.subscribe(self._run_changed)
        if self._first is not None and self._first.done() and self._first.exception() is None:
            self._read_first(self._first.result())
        else:
            self.work(self._first_snapshot, then=self._read_first)

    @cached_property
    def grader(self) -> Grader:
        """Who reviews; asked of git once."""
        return self.exchange.grader

    def _first_snapshot(self) -> Snapshot:
        return self._first.result() if self._first is not None else self.exchange.snapshot()

    def _read_first(self, snapshot: Snapshot) -> None:
        self._read(snapshot)
        # Nobody waits for the remote, but everybody for the rows.
        self.call_after_refresh(self.fetch)

    # ---- threads

    def work(
        self,
        work: Callable[[], T],
        *,
        then: Callable[[T], object],
        failed: Callable[[BaseException], object] | None = None,
        group: str = "default",
        exclusive: bool = False,
    ) -> None:
        """Do something slow in a thread; what goes wrong is said in the message line."""
        in_background(self, work, then=then, failed=failed or self.say_error, group=group, exclusive=exclusive)

    def _run_changed(self, key: str) -> None:
        """Called from runner threads: note the key, and wake the event loop once."""
        with self._changed_lock:
            self._changed.add(key)
            wake, self._ticking = not self._ticking, True
        if wake:
            self.call_later(self._tick_soon)

    def _tick_soon(self) -> None:
        self.set_timer(RUN_TICK, self._tick)

    def _tick(self) -> None:
        with self._changed_lock:
            keys, self._changed = frozenset(self._changed), set()
            self._ticking = False
        for screen in self.screen_stack:
            if isinstance(screen, ConsoleScreen) and screen.is_mounted:
                screen.runs_changed(keys)
                screen.refresh_bars()

    # ---- the exchange

    def reread(self, then: Callable[[], object] | None = None) -> None:
        """Read the exchange again."""

        def got(snapshot: Snapshot) -> None:
            self._read(snapshot)
            if then is not None:
                then()

        self.work(self.exchange.snapshot, then=got, group="snapshot", exclusive=True)

    def _read(self, snapshot: Snapshot) -> None:
        if self.snapshot is not None:
            before = {one.key: one.revision for one in self.snapshot.submissions}
            self.moved |= {one.key for one in snapshot.submissions if before.get(one.key, one.revision) != one.revision}
        self.snapshot = snapshot
        self.runs.adopt(snapshot)
        for screen in self.screen_stack:
            if isinstance(screen, ConsoleScreen) and screen.is_mounted:
                screen.snapshot_changed()
                screen.refresh_bars()

    def fetch(self) -> None:
        """Ask the remote in the background."""
        self.look_for_pending()
        self.fetched = (Span("fetching", "dim"),)
        self.refresh_bars()
        self.work(self.exchange.fetch, then=self._fetched, failed=self._not_fetched, group="fetch", exclusive=True)

    def look_for_pending(self) -> None:
        """Commits that an earlier session made and could not push."""

        def got(pending: tuple[Pending, ...]) -> None:
            self.pending = pending
            self.refresh_bars()

        self.work(self.exchange.pending, then=got, group="pending", exclusive=True)

    def push_pending(self) -> None:
        """Push the oldest of them."""
        if not self.pending:
            self.say("nothing waits to be pushed")
            return
        first = self.pending[0]

        def done(published: Published) -> None:
            self.say(f"{first.subject}: pushed to {published.pushed_to}", "good")
            self.look_for_pending()
            self.reread()

        self.say(f"pushing {first.subject}", "dim")
        self.work(lambda: self.exchange.retry_pending(first.id), then=done, group="publish")

    def _fetched(self, changed: bool) -> None:
        self.fetched = (Span("fetched", "dim"),)
        if changed:
            self.reread()
        self.refresh_bars()

    def _not_fetched(self, error: BaseException) -> None:
        from console.errors import words

        self.fetched = (Span("! not fetched", "warn"),)
        self.say(f"fetch: {words(error)}", "warn")

    # ---- messages

    def say(self, text: str, tone: Tone = "text") -> None:
        """Put a message into the message line, where it stays until the next key."""
        from console.exchange.text import visible

        self.said = (Span(visible(" ".join(text.split())), tone),) if text else BLANK
        self.refresh_bars()

    def say_error(self, error: BaseException) -> None:
        """Say what went wrong, in the words of the one place that has them; a commit that was kept is counted."""
        from console.errors import words
        from console.exchange.errors import GitRefused

        self.say(words(error), "bad")
        if isinstance(error, GitRefused) and error.pending:
            self.look_for_pending()

    def hush(self) -> None:
        """The message has been read."""
        if self.said:
            self.said = BLANK
            self.refresh_bars()

    def refresh_bars(self) -> None:
        """Header and message line of the screen on top, or of the one under a question."""
        for screen in reversed(self.screen_stack):
            if isinstance(screen, ConsoleScreen):
                screen.refresh_bars()
                return

    async def on_event(self, event: Event) -> None:
        """A key is also the sign that the last message was read. What is pasted may be anyone's text."""
        if isinstance(event, Key) and not event.is_forwarded:
            self.hush()
            if not getattr(self.screen, "EVERY_KEY", False) and await in_order(self, event):
                return
        elif isinstance(event, Paste):
            event.text = plain(event.text)  # a field shows what it holds as it is
        await super().on_event(event)

    # ---- the registry's scope "app"

    def action_help(self) -> None:
        """Every key."""
        self._look_up(only_live=False)

    def action_palette(self) -> None:
        """Actions by name."""
        self._look_up(only_live=True)

    def _look_up(self, *, only_live: bool) -> None:
        if isinstance(self.screen, ConsoleScreen):
            from console.screens.palette import PaletteScreen

            self.push_screen(PaletteScreen(self.screen, only_live=only_live))

    async def action_back(self) -> None:
        """One screen back; the queue is the last."""
        if isinstance(self.screen, QueueScreen):
            self.say("this is the queue: Q quits")
        elif len(self.screen_stack) > 1:
            self.pop_screen()

    def action_leave(self) -> None:
        """Quit, but not over the head of a run."""
        active = self.runs.active()
        if not active:
            self.exit(0)
            return
        from console.screens.prompts import Confirm

        word = "run is" if active == 1 else "runs are"
        self.push_screen(
            Confirm(f"{active} {word} active. Quit and cancel?", "cancel and quit"),
            lambda yes: self.exit(0) if yes else None,
        )

    def action_redraw(self) -> None:
        """Paint everything again."""
        self.refresh(repaint=True, layout=True)
        self.screen.refresh(repaint=True, layout=True)

    # ---- the end

    def _catch_signals(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        import asyncio

        loop = asyncio.get_running_loop()
        for one in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(one, self._ended_by, one)
        # Not through the loop, which would hear later of an interrupt that was meant for whom the terminal is lent to.
        interrupted = signal.SIGINT
        signal.signal(interrupted, lambda *_: loop.call_soon_threadsafe(self._ended_by, interrupted))

    def _ended_by(self, which: signal.Signals) -> None:
        """Drafts are on disk already, after every change; what is left is to give the terminal back."""
        self.exit(128 + which)
