"""Rows of one line: header, tabs, messages and footer."""

from __future__ import annotations

from typing import cast

from textual.strip import Strip
from textual.widget import Widget

from console.view.spans import BLANK, Line, spread
from console.widgets.host import Host
from console.widgets.strips import strip_of


class Bar(Widget, can_focus=False):
    """One line with a left and a right end. Repaints only when what it shows has changed."""

    DEFAULT_CSS = "Bar { height: 1; width: 1fr; }"

    def __init__(self, *, raised: bool = False, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._raised = raised
        self._left: Line = BLANK
        self._right: Line = BLANK

    @property
    def shown(self) -> Line:
        """What stands there now."""
        return (*self._left, *self._right)

    def show(self, left: Line, right: Line = BLANK) -> None:
        """Put new text there."""
        if (left, right) != (self._left, self._right):
            self._left, self._right = left, right
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """The line."""
        paint = cast(Host, self.app).paint
        width = self.size.width
        return strip_of(spread(self._left, self._right, width), width, paint, paint.bar if self._raised else None)
