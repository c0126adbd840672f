"""Small questions over a screen: one line, yes or no, something to read."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input

from console.grading.text import plain
from console.view.spans import Line, Span
from console.widgets.bar import Bar
from console.widgets.bindings import bindings_for
from console.widgets.lines_of import Text

if TYPE_CHECKING:
    from console.screens.shell import ConsoleApp

PROMPT_CSS = """
{name} {{ align: center bottom; background: $background 0%; }}
{name} > Vertical {{ height: auto; max-height: 80%; border-top: solid $accent; background: $surface; padding: 0 1; }}
{name} Input, {name} TextArea {{ border: none; padding: 0; background: $surface; }}
{name} Input {{ height: 1; }}
"""


class Ask(ModalScreen["str | None"], inherit_bindings=False):
    """One line of text. The answer is None when the grader went back."""

    SCOPE: ClassVar[str] = "form"
    BINDINGS: ClassVar[list[Binding]] = bindings_for("form")  # type: ignore[assignment]
    CSS = PROMPT_CSS.format(name="Ask")

    def __init__(self, title: str, text: str = "", *, required: bool = False) -> None:
        super().__init__()
        self._title, self._text, self._required = title, text, required

    def compose(self) -> ComposeResult:
        """Title, line, keys."""
        with Vertical():
            yield Bar(raised=True, id="ask-title")
            field = Input(plain(self._text), select_on_focus=False)
            field.cursor_blink = False
            yield field
            yield Bar(raised=True, id="ask-keys")

    def on_mount(self) -> None:
        """Fill the rows."""
        self.query_one("#ask-title", Bar).show((Span(self._title, "title"),))
        self.query_one("#ask-keys", Bar).show(keys_line(("enter", "keep"), ("esc", "back")))
        self.set_focus(self.query_one(Input))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter keeps the text."""
        event.stop()
        self.action_submit()

    def action_submit(self) -> None:
        """Answer with the text."""
        text = self.query_one(Input).value.strip()
        if self._required and not text:
            self.query_one("#ask-keys", Bar).show((Span("a reason is needed: it is committed with the mark", "warn"),))
            return
        self.dismiss(text)

    def action_cancel(self) -> None:
        """Go back without an answer."""
        self.dismiss(None)


class Confirm(ModalScreen[bool], inherit_bindings=False):
    """A question that one key answers; every other key leaves things as they are."""

    EVERY_KEY: ClassVar[bool] = True
    BINDINGS: ClassVar[list[Binding]] = []  # type: ignore[assignment]
    CSS = PROMPT_CSS.format(name="Confirm")

    def __init__(self, question: str, yes: str, no: str = "any other key: stay", *, detail: str = "") -> None:
        super().__init__()
        self._question, self._yes, self._no, self._detail = question, yes, no, detail

    def compose(self) -> ComposeResult:
        """Question, detail, keys."""
        with Vertical():
            yield Bar(raised=True, id="confirm-title")
            if self._detail:
                yield Text(self._detail, rows=14)
            yield Bar(raised=True, id="confirm-keys")

    def on_mount(self) -> None:
        """Fill the rows."""
        self.query_one("#confirm-title", Bar).show((Span(self._question, "title"),))
        line: Line = (Span("y ", "key"), Span(f"{self._yes}    ", "dim"), Span(self._no, "dim"))
        self.query_one("#confirm-keys", Bar).show(line)

    def on_key(self, event: object) -> None:
        """Answer; the arrows and page keys read the detail."""
        from textual.events import Key

        key = cast(Key, event)
        if key.key in ("up", "down", "pageup", "pagedown"):
            return
        key.stop()
        self.dismiss(key.key == "y")


class Tell(ModalScreen[None], inherit_bindings=False):
    """Something to read; any key goes back, the arrows scroll."""

    EVERY_KEY: ClassVar[bool] = True
    BINDINGS: ClassVar[list[Binding]] = []  # type: ignore[assignment]
    CSS = PROMPT_CSS.format(name="Tell")

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self._title, self._text = title, text

    def compose(self) -> ComposeResult:
        """Title, text, keys."""
        with Vertical():
            yield Bar(raised=True, id="tell-title")
            yield Text(self._text, rows=16)
            yield Bar(raised=True, id="tell-keys")

    def on_mount(self) -> None:
        """Fill the rows."""
        self.query_one("#tell-title", Bar).show((Span(self._title, "title"),))
        self.query_one("#tell-keys", Bar).show((Span("any key: back", "dim"),))

    def on_key(self, event: object) -> None:
        """Any key but those that scroll goes back."""
        from textual.events import Key

        key = cast(Key, event)
        if key.key not in ("up", "down", "pageup", "pagedown"):
            key.stop()
            self.dismiss(None)


def keys_line(*pairs: tuple[str, str]) -> Line:
    """Keys and what they do, for the last row of a question."""
    spans: list[Span] = []
    for key, word in pairs:
        spans += [Span(f"{key} ", "key"), Span(f"{word}   ", "dim")]
    return tuple(spans)


def reason_prompt(app: ConsoleApp, title: str, then: Callable[[str], None], *, text: str = "") -> None:
    """Ask for a reason that is needed; ``then`` gets it unless the grader went back."""

    def answered(reason: str | None) -> None:
        if reason:
            then(reason)

    app.push_screen(Ask(title, text, required=True), answered)
