"""A list of lines that are known beforehand."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from console.view.spans import Line, Span, wrap
from console.widgets.line_view import LineView


class Lines(LineView):
    """Lines made anew whenever the width changes."""

    def __init__(self, make: Callable[[int], Sequence[Line]], *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._make = make
        self._lines: Sequence[Line] = ()

    def count(self) -> int:
        """How many lines there are."""
        return len(self._lines)

    def line(self, y: int, width: int) -> Line:
        """Line ``y``."""
        return self._lines[y]

    def reload(self, *, keep: bool = True) -> None:
        """Make the lines again for the width of now."""
        if self.size.width:
            self._lines = self._make(self.size.width - 1)
        super().reload(keep=keep)


class Text(Lines):
    """Plain text, wrapped, at most ``rows`` high."""

    DEFAULT_CSS = "Text { height: auto; background: $surface; }"

    def __init__(self, text: str, *, rows: int) -> None:
        super().__init__(lambda width: [(Span(line),) for line in wrap(text, max(10, width))])
        self._text, self._rows = text, rows

    def on_mount(self) -> None:
        """As high as the text at the width of the screen, within bounds."""
        width = max(10, self.app.size.width - 4)
        self.styles.height = min(self._rows, sum(1 for _ in wrap(self._text, width)))
