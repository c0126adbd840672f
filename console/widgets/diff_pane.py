"""The diff on screen: numbered, coloured, with findings and cites in the margin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from rich.style import Style
from textual.binding import Binding

from console.exchange.text import visible
from console.view.diff import PROSE, DiffModel, Marks, Texts, build
from console.view.glyphs import SEVERITY_MARKS
from console.view.spans import Line, Span, Tone, clip
from console.view.syntax import Highlighter
from console.widgets.bindings import bindings_for
from console.widgets.line_view import LineView

if TYPE_CHECKING:
    from console.exchange.diff import FileDiff

SIDEWAYS = 16
MARGIN = 11
"""Cells left of the code: cursor, mark, number, sign."""


class DiffPane(LineView):
    """All files of a diff in one list."""

    SCOPE: ClassVar[str] = "diff"
    BINDINGS: ClassVar[list[Binding]] = bindings_for("diff")

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self.files: Sequence[FileDiff] = ()
        self.texts: Texts = {}
        self.model: DiffModel = build(())
        self.whole = False
        self.message = "reading the diff"
        self._marks: Marks = {}
        self._cited: frozenset[tuple[str, int]] = frozenset()
        self._colours: dict[int, Highlighter] = {}
        self._needle = ""
        self._shift = 0
        self._built_for = 0

    # ---- what it shows

    def show(self, files: Sequence[FileDiff], texts: Texts, message: str = "") -> None:
        """Show another diff; the cursor stays on its line of the submission, where that is shown."""
        place = self.model.place(self.cursor)
        self.files, self.texts, self.message = files, texts, message
        self._colours = {}
        self._rebuild(place)

    def _rebuild(self, place: tuple[str, int] | None) -> None:
        self._built_for = self._prose_width()
        self.model = build(self.files, self.texts, whole=self.whole, width=self._built_for)
        row = self.model.find(*place) if place is not None else None
        if row is None:
            row = self.model.hunk_rows[0] if self.model.hunk_rows else 0
        self.set_reactive(LineView.cursor, row)
        self.reload()

    def _prose_width(self) -> int:
        """Cells for prose: what is right of the margin, but no more than can be followed."""
        return min(96, max(20, (self.size.width or self.app.size.width) - MARGIN))

    def reload(self, *, keep: bool = True) -> None:
        """Another width wraps prose otherwise."""
        if self.files and self.size.width and self._built_for != self._prose_width():
            self._rebuild(self.model.place(self.cursor))
        else:
            super().reload(keep=keep)

    def annotate(self, marks: Marks, cited: frozenset[tuple[str, int]]) -> None:
        """Show which lines findings speak of, and which ones the review cites."""
        if (marks, cited) != (self._marks, self._cited):
            self._marks, self._cited = marks, cited
            self._cache.clear()
            self.refresh()

    def count(self) -> int:
        """Rows, or the one that says why there are none."""
        return len(self.model.rows) or 1

    def line(self, y: int, width: int) -> Line:
        """One row: margin, number, sign, code."""
        if not self.model.rows:
            return (Span(self.message or "no difference", "dim"),)
        row = self.model.rows[y]
        if row.kind == "file":
            title = f"── {visible(row.text)} "
            note = "new file " if row.file in self.model.added else ""
            rule = "─" * max(0, width - cell_len(title) - len(note) - 2)
            return clip((Span(title, "title"), Span(rule, "faint"), Span(f" {note}", "dim")), width)
        if row.kind == "hunk":
            return clip((Span("      ┄ ", "faint"), Span(visible(row.text), "dim")), width)
        if row.kind == "note":
            return clip((Span("        ", "text"), Span(visible(row.text), "warn")), width)
        sign, tone = _SIGNS[row.kind]
        if row.kind == "add" and row.file in self.model.added:
            sign, tone = " ", "text"
        number = str(row.new or row.old) if not row.part else ""
        numbers = Span(f"{number:>5}", "faint" if row.kind != "del" else "del")
        head: Line = (self._margin(row.file, row.new), numbers, Span(f" {sign} ", tone))
        return clip((*head, *self._code(y)), width)

    def _margin(self, file: int, line: int) -> Span:
        place = (self.model.paths[file], line)
        severity = self._marks.get(place) if line else None
        if severity is not None:
            mark = SEVERITY_MARKS[severity]
            return Span(mark.glyph, mark.tone)
        return Span("¶", "accent") if line and place in self._cited else Span(" ")

    def _code(self, y: int) -> Line:
        row = self.model.rows[y]
        spans: Line
        if row.kind == "del":
            spans = (Span(visible(row.text), "del"),)
        elif self.model.paths[row.file].endswith(PROSE):
            spans = (Span(visible(row.text), "strong" if row.text.startswith("#") else "text"),)
        else:
            spans = self._coloured(row.file, row.new, row.text)
        if self._needle:
            spans = highlight(spans, self._needle)
        return shifted(spans, self._shift) if self._shift else spans

    def _coloured(self, file: int, line: int, text: str) -> Line:
        lines = self.texts.get(self.model.paths[file])
        if lines is None or not 0 < line <= len(lines):
            return (Span(visible(text)),)
        if file not in self._colours:
            self._colours[file] = Highlighter(self.model.paths[file], lines)
        return self._colours[file].line(line - 1)

    def tint(self, y: int) -> Style | None:
        """Whole lines that came or went, in files that were there before."""
        if not self.model.rows:
            return None
        row = self.model.rows[y]
        paint = self.host.paint
        if row.kind == "add" and row.file not in self.model.added:
            return paint.added
        return paint.removed if row.kind == "del" else None

    @property
    def needle(self) -> str:
        """What was searched last."""
        return self._needle

    # ---- where it is

    def place(self) -> tuple[str, int, str] | None:
        """File, line and text under the cursor, of the submission; None where there is no such line."""
        found = self.model.place(self.cursor)
        if found is None:
            return None
        return (*found, self.model.rows[self.cursor].text)

    def go(self, path: str, line: int) -> bool:
        """Put the cursor on a line of the submission, unfolding the file if need be."""
        row = self.model.find(path, line)
        if row is None and not self.whole:
            self.whole = True
            self._rebuild((path, line))
            row = self.model.find(path, line)
        if row is None:
            return False
        self.cursor = row
        self._scroll_to_line(row - self.page // 3)
        return True

    def summary(self) -> str:
        """How many lines came and went."""
        added = sum(row.kind == "add" for row in self.model.rows)
        removed = sum(row.kind == "del" for row in self.model.rows)
        return f"+{added} −{removed}"

    # ---- actions

    def _land(self, y: int) -> None:
        if y != self.cursor:
            self.cursor = y
            self._scroll_to_line(y - 3)

    def action_next_hunk(self) -> None:
        """To the next change."""
        self._land(self.model.next_hunk(self.cursor))

    def action_previous_hunk(self) -> None:
        """To the change before."""
        self._land(self.model.previous_hunk(self.cursor))

    def action_next_file(self) -> None:
        """To the next file."""
        self._land(self.model.next_file(self.cursor))

    def action_previous_file(self) -> None:
        """To the file before."""
        self._land(self.model.previous_file(self.cursor))

    def action_whole(self) -> None:
        """Whole files, or only what changed."""
        place = self.model.place(self.cursor)
        self.whole = not self.whole
        self._rebuild(place)

    def action_base(self) -> None:
        """The screen knows what else to compare with."""
        self.screen.action_next_base()  # type: ignore[attr-defined]

    def action_left(self) -> None:
        """Scroll the code back."""
        self._slide(max(0, self._shift - SIDEWAYS))

    def action_right(self) -> None:
        """Scroll the code to the right."""
        self._slide(self._shift + SIDEWAYS)

    def _slide(self, shift: int) -> None:
        if shift != self._shift:
            self._shift = shift
            self._cache.clear()
            self.refresh()

    def action_search(self) -> None:
        """The screen asks for what to search."""
        self.screen.action_search_diff()  # type: ignore[attr-defined]

    def search(self, text: str) -> None:
        """Go to the next row that has ``text``; an empty text ends the search."""
        self._needle = text
        self._cache.clear()
        self.refresh()
        if text:
            self._seek(backwards=False)

    def _seek(self, *, backwards: bool) -> None:
        if not self._needle:
            self.host.say("nothing to search for: / asks")
            return
        row = self.model.search(self._needle, self.cursor, backwards=backwards)
        if row is None:
            self.host.say(f"not found: {self._needle}", "warn")
        else:
            self.cursor = row

    def action_next_match(self) -> None:
        """To the next match."""
        self._seek(backwards=False)

    def action_previous_match(self) -> None:
        """To the match before."""
        self._seek(backwards=True)


_SIGNS: Mapping[str, tuple[str, Tone]] = {"same": (" ", "text"), "add": ("+", "add"), "del": ("-", "del")}


def highlight(line: Line, needle: str) -> Line:
    """The line with every occurrence of ``needle`` in the tone of a match."""
    text = "".join(span.text for span in line)
    where = text if needle != needle.lower() else text.lower()
    starts = []
    at = where.find(needle)
    while at >= 0:
        starts.append((at, at + len(needle)))
        at = where.find(needle, at + len(needle))
    if not starts:
        return line
    out: list[Span] = []
    place = 0
    for span in line:
        at = 0
        while at < len(span.text):
            inside = next(((a, b) for a, b in starts if a <= place + at < b), None)
            ahead = min((a for a, _ in starts if a > place + at), default=place + len(span.text))
            end = min(len(span.text), (inside[1] if inside else ahead) - place)
            out.append(Span(span.text[at:end], "match" if inside else span.tone))
            at = end
        place += len(span.text)
    return tuple(out)


def shifted(line: Line, by: int) -> Line:
    """The line without its first ``by`` cells, and a sign that there is something."""
    text = "".join(span.text for span in line)
    if not text:
        return line
    out: list[Span] = [Span("‹", "faint")]
    left = by + 1
    for span in line:
        if left >= len(span.text):
            left -= len(span.text)
            continue
        out.append(Span(span.text[left:], span.tone))
        left = 0
    return tuple(out)
