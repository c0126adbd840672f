"""What every screen has: a header, a message line and a footer that follows the focus."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.binding import Binding
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.widget import Widget

from console.actions import Action, footer_of, keys_of
from console.view.spans import BLANK, Line, Span, width_of
from console.widgets.bar import Bar

if TYPE_CHECKING:
    from console.screens.shell import ConsoleApp


def scopes_around(node: MessagePump | None) -> tuple[str, ...]:
    """The scopes whose keys are live for a focus, innermost first."""
    found: list[str] = []
    while node is not None:
        for kind in type(node).__mro__:
            scopes = kind.__dict__.get("SCOPES") or (kind.__dict__.get("SCOPE"),)
            found += [scope for scope in scopes if scope and scope not in found]
        node = node._parent
    return tuple(found)


def owner_of(action: Action, node: MessagePump | None) -> MessagePump | None:
    """The nearest node around ``node`` that handles ``action``."""
    while node is not None:
        for kind in type(node).__mro__:
            if action.scope == kind.__dict__.get("SCOPE") or action.scope in kind.__dict__.get("SCOPES", ()):
                return node
        node = node._parent
    return None


def footer_line(actions: Iterable[Action], width: int) -> Line:
    """Keys and labels, as many as fit; the way to all keys is always among them."""
    chosen = list(actions)
    last = [action for action in chosen if action.id == "app.help"]
    spans: list[Span] = []
    tail = [span for action in last for span in _offer(action)]
    for action in chosen:
        if action in last:
            continue
        offer = _offer(action)
        if width_of(spans) + width_of(offer) + width_of(tail) > width:
            break
        spans += offer
    return (*spans, *tail)


def _offer(action: Action) -> tuple[Span, ...]:
    return (Span(f" {keys_of(action).split(' ')[0]} ", "key"), Span(f"{action.label} ", "dim"))


class ConsoleScreen(Screen[None], inherit_bindings=False):
    """A full screen of the console. Subclasses give the body."""

    SCOPES: ClassVar[tuple[str, ...]] = ()
    BINDINGS: ClassVar[list[Binding]] = []  # type: ignore[assignment]

    @property
    def console_app(self) -> ConsoleApp:
        """The app, by its own type."""
        return cast("ConsoleApp", self.app)

    def compose(self) -> ComposeResult:
        """Header, body, message line, footer."""
        yield Bar(raised=True, id="header")
        yield from self.body()
        yield Bar(id="status")
        yield Bar(raised=True, id="footer")

    def body(self) -> Iterable[Widget]:
        """The widgets between header and message line."""
        raise NotImplementedError

    def on_mount(self) -> None:
        """Fill the fixed rows."""
        self.watch(self, "focused", self.focus_moved, init=False)
        self.refresh_bars()

    def on_resize(self) -> None:
        """The fixed rows depend on the width."""
        self.refresh_bars()

    def on_screen_resume(self) -> None:
        """Other screens may have changed what is shown here."""
        self.refresh_bars()

    def focus_moved(self) -> None:
        """The footer follows the focus."""
        self.refresh_footer()

    def refresh_bars(self) -> None:
        """Header, message line and footer again."""
        if self.is_mounted:
            self.query_one("#header", Bar).show(*self.header())
            self.refresh_status()
            self.refresh_footer()

    def refresh_status(self) -> None:
        """The message line: what happened last, else what the screen has to say."""
        said = self.console_app.said
        left, right = self.status()
        if said and width_of(said) + width_of(right) + 2 > self.size.width:
            right = BLANK
        self.query_one("#status", Bar).show((Span(" "), *said) if said else left, right)

    def refresh_footer(self) -> None:
        """The keys for where the focus is."""
        if not self.is_mounted:
            return
        actions = [one for one in footer_of(scopes_around(self.focused or self)) if self.offers(one)]
        self.query_one("#footer", Bar).show(footer_line(actions, self.size.width))

    def offers(self, action: Action) -> bool:
        """Whether an action makes sense now."""
        return True

    def header(self) -> tuple[Line, Line]:
        """Left and right of the first row."""
        raise NotImplementedError

    def status(self) -> tuple[Line, Line]:
        """Left and right of the message line when there is no message."""
        return BLANK, BLANK

    def runs_changed(self, keys: frozenset[str]) -> None:
        """Runs of these submissions have something new."""

    def snapshot_changed(self) -> None:
        """The exchange was read again."""
