"""Every action of the registry: to look up a key, or to find an action by name and do it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.binding import Binding
from textual.fuzzy import Matcher
from textual.message_pump import MessagePump
from textual.screen import ModalScreen, Screen
from textual.widgets import Input

from console.actions import ACTIONS, Action, keys_of
from console.screens.base import owner_of
from console.view.spans import Line, Span, fit, spread
from console.widgets.bar import Bar
from console.widgets.bindings import bindings_for
from console.widgets.line_view import LineView

if TYPE_CHECKING:
    from console.screens.shell import ConsoleApp

_PLACES = {
    "app": "everywhere",
    "lines": "lists",
    "queue": "queue",
    "submission": "queue, review",
    "review": "review",
    "diff": "diff",
    "panels": "panels",
    "rubric": "rubric",
    "scenario": "scenario",
    "preview": "preview",
    "help": "help",
    "form": "writing",
}


class ActionList(LineView):
    """Actions with key, place and meaning."""

    def __init__(self) -> None:
        super().__init__(id="actions")
        self.actions: list[Action] = []
        self.live: frozenset[str] = frozenset()

    def show(self, actions: list[Action], live: frozenset[str]) -> None:
        """Show these; ``live`` are the ids that can be done from here."""
        self.actions, self.live = actions, live
        self.reload(keep=False)

    def count(self) -> int:
        """How many actions match."""
        return len(self.actions)

    def line(self, y: int, width: int) -> Line:
        """Key, label, meaning, place."""
        action = self.actions[y]
        live = action.id in self.live
        left = (
            Span(fit(keys_of(action), 20), "key" if live else "dim"),
            Span(" " + fit(action.label, 14), "strong" if live else "dim"),
            Span(action.help, "text" if live else "dim"),
        )
        place = (Span(_PLACES[action.scope], "faint"),) if width >= 100 else ()
        return spread(left, place, width)


class PaletteScreen(ModalScreen[None], inherit_bindings=False):
    """A search line over the list of actions. Enter does the one under the cursor, where it can be done."""

    SCOPE: ClassVar[str] = "help"
    BINDINGS: ClassVar[list[Binding]] = [  # type: ignore[assignment]
        *bindings_for("help"),
        *bindings_for("lines"),
        Binding("escape", "leave", show=False),
        Binding("ctrl+p", "leave", show=False),
    ]
    CSS = """
    PaletteScreen { background: $background; }
    PaletteScreen Input { border: none; height: 1; padding: 0 1; background: $background; }
    """

    def __init__(self, under: Screen[None], *, only_live: bool) -> None:
        super().__init__()
        self._focus: MessagePump = under.focused or under
        self._only_live = only_live

    def compose(self) -> ComposeResult:
        """Title, search line, list, keys."""
        yield Bar(raised=True, id="help-title")
        field = Input(placeholder="search by key, name or words", id="help-search")
        field.cursor_blink = False
        yield field
        yield ActionList()
        yield Bar(raised=True, id="help-keys")

    def on_mount(self) -> None:
        """Show everything; writing begins in the search line."""
        title = "Do an action" if self._only_live else "Keys and actions"
        self.query_one("#help-title", Bar).show(
            (Span(f" {title}", "title"),), (Span("bright: can be done from here ", "dim"),)
        )
        line: list[Span] = []
        for key, word in (("↑↓", "choose"), ("enter", "do it"), ("esc", "back")):
            line += [Span(f" {key} ", "key"), Span(f"{word} ", "dim")]
        self.query_one("#help-keys", Bar).show(tuple(line))
        self.query_one(ActionList).can_focus = False
        self.set_focus(self.query_one(Input))
        self._search("")

    def _can(self, action: Action) -> bool:
        return owner_of(action, self._focus) is not None or action.scope == "app"

    def _search(self, text: str) -> None:
        live = frozenset(action.id for action in ACTIONS if self._can(action))
        pool: Iterable[Action] = (one for one in ACTIONS if not self._only_live or one.id in live)
        if text:
            matcher = Matcher(text)
            scored = [(self._score(matcher, text, one), place, one) for place, one in enumerate(pool)]
            chosen = [one for score, _, one in sorted(scored, key=lambda each: (-each[0], each[1])) if score > 0]
        else:
            chosen = sorted(pool, key=lambda one: one.id not in live)
        self.query_one(ActionList).show(chosen, live)

    @staticmethod
    def _score(matcher: Matcher, text: str, action: Action) -> float:
        """Keys first, then words of the label, then words of the meaning, then whatever is alike."""
        if text in keys_of(action).split(" "):
            return 100.0
        sought = text.lower()
        if action.label.startswith(sought):
            return 50.0
        if any(word.startswith(sought) for word in action.label.split()):
            return 40.0
        if f" {sought}" in f" {action.help} {action.group}".lower():
            return 30.0
        return matcher.match(action.label)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Search while writing."""
        event.stop()
        self._search(event.value.strip())

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter in the search line does the chosen action."""
        event.stop()
        self.action_run()

    def action_run(self) -> None:
        """Do the chosen action where the focus was."""
        shown = self.query_one(ActionList)
        if not shown.actions:
            return
        action = shown.actions[shown.cursor]
        owner = owner_of(action, self._focus) or (self.app if action.scope == "app" else None)
        if owner is None or action.name == "level":
            self.query_one("#help-keys", Bar).show((Span(f" {keys_of(action)}: not from here ", "warn"),))
            return
        self.dismiss(None)
        app = cast("ConsoleApp", self.app)
        app.call_after_refresh(getattr(owner, action.handler))

    def action_leave(self) -> None:
        """Back without doing anything."""
        self.dismiss(None)

    def action_down(self) -> None:
        """Choose the next one."""
        self.query_one(ActionList).action_down()

    def action_up(self) -> None:
        """Choose the one before."""
        self.query_one(ActionList).action_up()

    def action_page_down(self) -> None:
        """A page down."""
        self.query_one(ActionList).action_page_down()

    def action_page_up(self) -> None:
        """A page up."""
        self.query_one(ActionList).action_page_up()

    def action_half_down(self) -> None:
        """Half a page down."""
        self.query_one(ActionList).action_half_down()

    def action_half_up(self) -> None:
        """Half a page up."""
        self.query_one(ActionList).action_half_up()

    def action_top(self) -> None:
        """To the first."""
        self.query_one(ActionList).action_top()

    def action_bottom(self) -> None:
        """To the last."""
        self.query_one(ActionList).action_bottom()
