"""A text of several lines, written on a screen of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import TextArea

from console.grading.text import plain
from console.screens.prompts import PROMPT_CSS, keys_line
from console.view.spans import Span
from console.widgets.bar import Bar
from console.widgets.bindings import bindings_for
from console.widgets.lines_of import Text


class Write(ModalScreen[None], inherit_bindings=False):
    """A text of several lines. Every change is told at once, so that no way out of here loses a word."""

    SCOPE: ClassVar[str] = "form"
    BINDINGS: ClassVar[list[Binding]] = bindings_for("form")  # type: ignore[assignment]
    CSS = PROMPT_CSS.format(name="Write") + "\nWrite TextArea { height: 8; }\nWrite.-tall TextArea { height: 60%; }"

    def __init__(self, title: str, text: str, changed: Callable[[str], None], *, hint: str = "") -> None:
        super().__init__()
        self._title, self._text, self._changed, self._hint = title, text, changed, hint

    def compose(self) -> ComposeResult:
        """Title, anchor, text, keys."""
        with Vertical():
            yield Bar(raised=True, id="write-title")
            if self._hint:
                yield Text(self._hint, rows=3)
            area = TextArea(plain(self._text), soft_wrap=True, tab_behavior="focus", show_line_numbers=False)
            area.cursor_blink = False
            area.highlight_cursor_line = False
            yield area
            yield Bar(raised=True, id="write-keys")

    def on_mount(self) -> None:
        """Fill the rows and stand at the end of the text."""
        self.query_one("#write-title", Bar).show((Span(self._title, "title"),))
        self.query_one("#write-keys", Bar).show(
            keys_line(("esc", "done"), ("^s", "done")), (Span("every change is kept", "dim"),)
        )
        area = self.query_one(TextArea)
        area.move_cursor(area.document.end)
        self.set_focus(area)

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        """Tell at once."""
        event.stop()
        self._changed(event.text_area.text)

    def action_submit(self) -> None:
        """Done."""
        self.dismiss(None)

    def action_cancel(self) -> None:
        """Done as well: what is written is kept."""
        self.dismiss(None)
