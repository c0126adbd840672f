"""Syntax colours for the lines that are visible, and for no others.

Lines are coloured in blocks, so that a 20,000-line file costs as much as a page of it. A block may begin inside a
string or comment of several lines; the quotes before it are counted to find out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from console.exchange.text import visible
from console.view.spans import Span, Tone

if TYPE_CHECKING:
    from pygments.lexer import Lexer  # type: ignore[import-untyped]

BLOCK = 48
MAX_LINE = 400
"""Longer lines stay plain: they are data, and a lexer is slow on them."""

_LEXERS = {
    ".py": "python",
    ".cu": "cuda",
    ".cuh": "cuda",
    ".c": "c",
    ".h": "cpp",
    ".cc": "cpp",
    ".cpp": "cpp",
    ".hpp": "cpp",
    ".toml": "toml",
    ".json": "json",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".sh": "bash",
}


class Highlighter:
    """Colours the lines of one file. ``lines`` may be many and hostile; none is touched before it is asked for."""

    def __init__(self, path: str, lines: Sequence[str]) -> None:
        self._lines = lines
        self._suffix = path[path.rfind(".") :] if "." in path else ""
        self._lexer: Lexer | None = None
        self._blocks: dict[int, list[tuple[Span, ...]]] = {}
        self._opened: list[str] = [""]

    def line(self, number: int) -> tuple[Span, ...]:
        """The spans of line ``number``, from 0."""
        text = self._lines[number]
        if self._suffix not in _LEXERS or len(text) > MAX_LINE:
            return (Span(visible(text)),)
        block = number // BLOCK
        if block not in self._blocks:
            if len(self._blocks) > 64:
                self._blocks.clear()
            self._blocks[block] = self._colour(block)
        return self._blocks[block][number % BLOCK]

    def _colour(self, block: int) -> list[tuple[Span, ...]]:
        lines = [
            visible(line) if len(line) <= MAX_LINE else "" for line in self._lines[block * BLOCK : (block + 1) * BLOCK]
        ]
        opened = self._open_before(block)
        if self._lexer is None:
            from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]

            self._lexer = get_lexer_by_name(_LEXERS[self._suffix], stripnl=False, ensurenl=False)
        text = "\n".join(lines)
        if opened:
            text = f"{opened}\n{text}"
        coloured: list[list[Span]] = [[]]
        for token, value in self._lexer.get_tokens(text):
            tone = _tone(str(token))
            for number, piece in enumerate(value.split("\n")):
                if number:
                    coloured.append([])
                if piece:
                    coloured[-1].append(Span(piece, tone))
        if opened:
            coloured = coloured[1:]
        coloured += [[] for _ in range(len(lines) - len(coloured))]
        return [tuple(spans) for spans in coloured]

    def _open_before(self, block: int) -> str:
        """The string or comment that is open where ``block`` begins."""
        pairs = ('"""', "'''") if self._suffix == ".py" else ("/*",) if _LEXERS[self._suffix] != "toml" else ()
        while len(self._opened) <= block:
            number = len(self._opened) - 1
            state = self._opened[-1]
            for line in self._lines[number * BLOCK : (number + 1) * BLOCK]:
                state = _after(line, state, pairs)
            self._opened.append(state)
        return self._opened[block]


def _after(line: str, state: str, pairs: tuple[str, ...]) -> str:
    """What is open after ``line`` when ``state`` was open before it."""
    at = 0
    while True:
        if state:
            end = line.find("*/" if state == "/*" else state, at)
            if end < 0:
                return state
            at, state = end + len(state), ""
        else:
            starts = [(place, pair) for pair in pairs if (place := line.find(pair, at)) >= 0]
            if not starts:
                return ""
            place, state = min(starts)
            if state != "/*" and "#" in line[at:place]:
                return ""
            at = place + len(state)


_TONES: tuple[tuple[str, Tone], ...] = (
    ("Token.Keyword.Constant", "number"),
    ("Token.Keyword", "keyword"),
    ("Token.Operator.Word", "keyword"),
    ("Token.Comment", "comment"),
    ("Token.Literal.String", "string"),
    ("Token.Literal.Number", "number"),
    ("Token.Name.Function", "name"),
    ("Token.Name.Class", "name"),
    ("Token.Name.Decorator", "name"),
)


def _tone(token: str) -> Tone:
    for prefix, tone in _TONES:
        if token.startswith(prefix):
            return tone
    return "text"
