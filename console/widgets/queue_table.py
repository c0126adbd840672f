"""The queue's rows on screen."""

from __future__ import annotations

from collections.abc import Sequence

from console.view.queue import Columns, QueueRow, columns_for, row_line
from console.view.spans import Line
from console.widgets.line_view import LineView


class QueueTable(LineView):
    """A table of any length; widths follow the whole queue, so that filtering moves nothing sideways."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self.rows: Sequence[QueueRow] = ()
        self.columns: Columns = columns_for((), 79)
        self._measured: Sequence[QueueRow] = ()
        self._measured_width = 0

    @property
    def row(self) -> QueueRow | None:
        """The row under the cursor."""
        return self.rows[self.cursor] if 0 <= self.cursor < len(self.rows) else None

    def show(self, rows: Sequence[QueueRow], every: Sequence[QueueRow], keep: str = "") -> None:
        """Show ``rows`` out of ``every``; the cursor goes to the row called ``keep`` if it is there."""
        self.rows = rows
        self._measured, self._measured_width = every, 0
        place = next((y for y, row in enumerate(rows) if row.key == keep), None)
        if place is not None:
            self.set_reactive(LineView.cursor, place)
        self.reload()

    def replace(self, y: int, row: QueueRow) -> None:
        """One row has changed where it stands."""
        assert isinstance(self.rows, list)
        self.rows[y] = row
        self.redraw_line(y)

    def count(self) -> int:
        """How many rows the filter shows."""
        return len(self.rows)

    def line(self, y: int, width: int) -> Line:
        """One row."""
        return row_line(self.rows[y], self.columns)

    def reload(self, *, keep: bool = True) -> None:
        """Widths first, then the rows."""
        width = self.size.width - 1
        if width > 0 and width != self._measured_width:
            self.columns = columns_for(self._measured, width)
            self._measured_width = width
        super().reload(keep=keep)
