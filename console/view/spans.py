"""Text with a meaning instead of a colour: the one currency between what is shown and how it is painted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from rich.cells import cell_len, set_cell_size

Tone = Literal[
    "text",
    "dim",
    "faint",
    "strong",
    "title",
    "key",
    "accent",
    "good",
    "warn",
    "bad",
    "add",
    "del",
    "hunk",
    "match",
    "keyword",
    "string",
    "comment",
    "number",
    "name",
]


class Span(NamedTuple):
    """A run of text in one tone. The text is ready for the terminal: nothing in it is obeyed."""

    text: str
    tone: Tone = "text"


Line = tuple[Span, ...]
"""One row of the screen, from the left."""

BLANK: Line = ()


def width_of(line: Iterable[Span]) -> int:
    """Terminal cells that a line takes."""
    return sum(cell_len(span.text) for span in line)


def fit(text: str, width: int, *, right: bool = False) -> str:
    """``text`` in exactly ``width`` cells: padded, or cut with an ellipsis."""
    size = cell_len(text)
    if size <= width:
        return " " * (width - size) + text if right else text + " " * (width - size)
    if width <= 0:
        return ""
    return set_cell_size(text, width - 1) + "…"


def clip(line: Line, width: int) -> Line:
    """The first ``width`` cells of a line, with an ellipsis where something was cut."""
    if width_of(line) <= width:
        return line
    kept: list[Span] = []
    left = width
    for span in line:
        size = cell_len(span.text)
        if size >= left:
            kept.append(Span(fit(span.text + " ", left), span.tone))
            break
        kept.append(span)
        left -= size
    return tuple(kept)


def spread(left: Line, right: Line, width: int) -> Line:
    """``left`` and ``right`` at the two ends of a row; the right end wins the space it needs."""
    room = max(0, width - width_of(right) - (1 if right else 0))
    head = clip(left, room)
    gap = width - width_of(head) - width_of(right)
    if gap < 0:
        return clip(right, width)
    return (*head, Span(" " * gap), *right)


def joined(parts: Iterable[Line], between: Span) -> Line:
    """The parts that are not empty, with ``between`` between them."""
    out: list[Span] = []
    for part in parts:
        if part:
            if out:
                out.append(between)
            out.extend(part)
    return tuple(out)


def wrap(text: str, width: int) -> Iterator[str]:
    """Lines of at most ``width`` cells, broken at spaces; leading indentation is kept on every line.

    Measured in terminal cells, which textwrap does not know; a word wider than the row is cut.
    """
    for paragraph in text.split("\n"):
        body = paragraph.lstrip(" ")
        indent = " " * min(len(paragraph) - len(body), max(0, width - 8))
        room = max(1, width - len(indent))
        current, size = "", 0
        for word in body.split(" "):
            length = cell_len(word)
            while length > room:
                if current:
                    yield indent + current
                    current, size = "", 0
                head = set_cell_size(word, room).rstrip(" ") or word[:1]
                yield indent + head
                word = word[len(head) :]
                length = cell_len(word)
            if not current:
                current, size = word, length
            elif size + 1 + length <= room:
                current, size = f"{current} {word}", size + 1 + length
            else:
                yield indent + current
                current, size = word, length
        yield (indent + current).rstrip()


def plain(line: Line) -> str:
    """The text of a line without its tones."""
    return "".join(span.text for span in line)
