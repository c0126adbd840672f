"""A list of blocks: the cursor goes from block to block, and the current one unfolds."""

from __future__ import annotations

from collections.abc import Sequence

from console.view.blocks import Block
from console.view.spans import Line, clip
from console.widgets.line_view import LineView


class BlockView(LineView):
    """Subclasses make the blocks; :attr:`current` is the key under the cursor and survives a rebuild."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self.current = ""
        self._lines: list[Line] = []
        self._starts: list[int] = []
        self._keys: list[str] = []
        self._ends: list[int] = []

    def make(self, width: int, current: str) -> Sequence[Block]:
        """The blocks for ``width`` cells, the one called ``current`` unfolded."""
        raise NotImplementedError

    def count(self) -> int:
        """How many lines there are."""
        return len(self._lines)

    def line(self, y: int, width: int) -> Line:
        """Line ``y``."""
        return clip(self._lines[y], width)

    def stops(self) -> Sequence[int]:
        """First lines of the blocks that have a key."""
        return self._starts

    def extent(self, y: int) -> tuple[int, int]:
        """The block that begins at ``y``."""
        if y in self._starts:
            return y, self._ends[self._starts.index(y)]
        return y, y

    def reload(self, *, keep: bool = True) -> None:
        """Make the blocks again; the cursor stays on the same key, else on the same place in the order."""
        # A pane that was never shown has no size, yet its cursor can be moved: keys come faster than layouts.
        width = (self.size.width or self.app.size.width) - 1
        place = self._keys.index(self.current) if self.current in self._keys else 0
        blocks = self.make(width, self.current)
        keys = [block.key for block in blocks if block.key]
        if keys and (not keep or self.current not in keys):
            self.current = keys[min(place if keep else 0, len(keys) - 1)]
            blocks = self.make(width, self.current)
        self._lines, self._starts, self._keys, self._ends = [], [], [], []
        for block in blocks:
            if block.key:
                self._starts.append(len(self._lines))
                self._keys.append(block.key)
            self._lines += block.lines
            if block.key:
                self._ends.append(max(self._starts[-1], len(self._lines) - 1))
        if self.current in self._keys:
            self.set_reactive(LineView.cursor, self._starts[self._keys.index(self.current)])
        super().reload(keep=True)

    def go(self, key: str) -> bool:
        """Put the cursor on ``key``; False when there is no such block."""
        if key not in self._keys:
            return False
        self.cursor = self._starts[self._keys.index(key)]
        return True

    def watch_cursor(self, old: int, new: int) -> None:
        """Fold the old block, unfold the new one."""
        if old == new or new not in self._starts:
            return
        key = self._keys[self._starts.index(new)]
        if key != self.current:
            self.current = key
            self.reload()
        self.post_message(self.Moved(self))
