"""A diff as rows, searchable and of any size; which row is which line of which file."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from console.exchange.text import visible
from console.view.spans import wrap
from runners.findings import Severity

if TYPE_CHECKING:
    from console.exchange.diff import FileDiff

RowKind = Literal["file", "hunk", "same", "add", "del", "note"]


class Row(NamedTuple):
    """One row. ``old`` and ``new`` are line numbers from 1, 0 where there is none; ``text`` is foreign, as it is."""

    kind: RowKind
    file: int
    old: int
    new: int
    text: str
    part: int = 0
    """Counts on where one line of prose takes several rows."""


@dataclass(frozen=True)
class DiffModel:
    """Rows with an index of files and hunks."""

    rows: Sequence[Row]
    paths: tuple[str, ...]
    added: frozenset[int] = frozenset()
    """Files that the base does not have: all of their lines are new, which needs no colour."""
    file_rows: tuple[int, ...] = field(init=False)
    hunk_rows: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "file_rows", tuple(y for y, row in enumerate(self.rows) if row.kind == "file"))
        object.__setattr__(self, "hunk_rows", tuple(_hunk_starts(self.rows)))

    def place(self, y: int) -> tuple[str, int] | None:
        """File and line of the submission at row ``y``; None for rows that are no line of it."""
        if not 0 <= y < len(self.rows):
            return None
        row = self.rows[y]
        return (self.paths[row.file], row.new) if row.new else None

    def find(self, path: str, line: int) -> int | None:
        """The row that shows a line of the submission; None when it is not among the rows."""
        if path not in self.paths:
            return None
        start = self.file_rows[self.paths.index(path)]
        for y in range(start, len(self.rows)):
            row = self.rows[y]
            if y > start and row.kind == "file":
                break
            if row.new == line:
                return y
        return None

    def next_hunk(self, y: int) -> int:
        """First row of the next hunk, or ``y``."""
        at = bisect_right(self.hunk_rows, y)
        return self.hunk_rows[at] if at < len(self.hunk_rows) else y

    def previous_hunk(self, y: int) -> int:
        """First row of this hunk or of the one before, or ``y``."""
        at = bisect_left(self.hunk_rows, y) - 1
        return self.hunk_rows[at] if at >= 0 else y

    def next_file(self, y: int) -> int:
        """Row of the next file, or ``y``."""
        at = bisect_right(self.file_rows, y)
        return self.file_rows[at] if at < len(self.file_rows) else y

    def previous_file(self, y: int) -> int:
        """Row of this file or of the one before, or ``y``."""
        at = bisect_left(self.file_rows, y) - 1
        return self.file_rows[at] if at >= 0 else y

    def search(self, text: str, start: int, *, backwards: bool = False) -> int | None:
        """The next row after ``start`` that has ``text``, round the end; capitals matter when there are any."""
        if not text or not self.rows:
            return None
        plain = text == text.lower()
        total = len(self.rows)
        for offset in range(1, total + 1):
            y = (start - offset if backwards else start + offset) % total
            content = self.rows[y].text
            if text in (content.lower() if plain else content):
                return y
        return None


def _hunk_starts(rows: Sequence[Row]) -> list[int]:
    """Where a run of changed lines begins; in a new file, where the file begins."""
    starts = []
    changed = False
    for y, row in enumerate(rows):
        now = row.kind in ("add", "del")
        if now and not changed:
            starts.append(y)
        changed = now
    return starts


Texts = Mapping[str, Sequence[str] | None]
"""The lines of the submission's files by path; None for a file that is not text."""


PROSE = (".md", ".txt", ".rst")
"""Endings of files that are read rather than run: their lines are wrapped, not cut."""


def build(files: Sequence[FileDiff], texts: Texts | None = None, *, whole: bool = False, width: int = 0) -> DiffModel:
    """Rows for the files of a diff; with ``whole``, the lines between the hunks, too, where ``texts`` has them.

    Lines of prose are wrapped at ``width`` cells, unless that is 0.
    """
    rows: list[Row] = []
    added = set()
    for number, file in enumerate(files):
        if file.status == "added":
            added.add(number)
        text = (texts or {}).get(file.path) if whole else None
        rows.append(Row("file", number, 0, 0, file.path))
        if file.note:
            rows.append(Row("note", number, 0, 0, file.note))
        old, new = 1, 1
        for hunk in file.hunks:
            if text is not None:
                rows += _between(number, text, old, new, hunk.new)
            elif number not in added:
                rows.append(Row("hunk", number, 0, 0, hunk.heading))
            old, new = hunk.old, hunk.new
            for line in hunk.lines:
                rows.append(Row(line.kind, number, line.old, line.new, line.text))
                old += line.kind != "add"
                new += line.kind != "del"
        if text is not None and file.status != "removed":
            rows += _between(number, text, old, new, len(text) + 1)
    paths = tuple(file.path for file in files)
    if width and any(path.endswith(PROSE) for path in paths):
        prose = [path.endswith(PROSE) for path in paths]
        rows = [part for row in rows for part in (_wrapped(row, width) if prose[row.file] else (row,))]
    return DiffModel(rows, paths, frozenset(added))


def _wrapped(row: Row, width: int) -> Iterable[Row]:
    if row.kind not in ("same", "add", "del"):
        return (row,)
    return [row._replace(text=text, part=part) for part, text in enumerate(wrap(visible(row.text), width))]


def _between(number: int, text: Sequence[str], old: int, new: int, until: int) -> list[Row]:
    """Rows for the lines from ``new`` up to ``until``, which no hunk has."""
    lines = range(new, min(until, len(text) + 1))
    return [Row("same", number, old + line - new, line, text[line - 1]) for line in lines]


Marks = Mapping[tuple[str, int], Severity]
"""Severity of the worst finding at a line of the submission."""
