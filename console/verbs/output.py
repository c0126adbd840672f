"""What verbs print: JSON lines or text on stdout, progress on stderr. Foreign text never reaches a terminal raw."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from typing import Any, Literal, TextIO

import msgspec

from console.exchange.text import visible

Tone = Literal["plain", "strong", "dim", "good", "bad", "warn"]

MAX_CELL = 100
"""Characters of one cell of a table."""

_SGR: dict[Tone, str] = {"plain": "", "strong": "1", "dim": "2", "good": "32", "bad": "31", "warn": "33"}
_NOT_PRINTABLE_ASCII = re.compile("[^ -~]")

STATUS_TONE: dict[str, Tone] = {
    "pass": "good",
    "warn": "warn",
    "fail": "bad",
    "error": "warn",
    "not-checked": "dim",
    "not-determined": "warn",
    "correct": "good",
    "incorrect": "bad",
    "info": "dim",
}


def wants_colour(stream: TextIO) -> bool:
    """Colour only on a terminal that has it, and not where NO_COLOR (no-color.org) is set."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(text: str, tone: Tone, stream: TextIO) -> str:
    """Text in its tone, where the stream wants colour."""
    return f"\x1b[{_SGR[tone]}m{text}\x1b[0m" if _SGR[tone] and wants_colour(stream) else text


def print_json(value: Any) -> None:
    """One value as one line of JSON in ASCII, so that neither locale nor terminal can change what it says."""
    text = msgspec.json.encode(value).decode()
    sys.stdout.write(_NOT_PRINTABLE_ASCII.sub(_ascii, text) + "\n")
    sys.stdout.flush()


def _ascii(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x10000:
        return f"\\u{code:04x}"
    return f"\\u{0xD800 + ((code - 0x10000) >> 10):04x}\\u{0xDC00 + ((code - 0x10000) & 0x3FF):04x}"


def print_text(*parts: str | tuple[str, Tone], end: str = "\n") -> None:
    """A line on stdout; every part is made safe to show, then painted."""
    line = "".join(
        visible(part) if isinstance(part, str) else paint(visible(part[0]), part[1], sys.stdout) for part in parts
    )
    sys.stdout.write(_encodable(line, sys.stdout) + end)
    sys.stdout.flush()


def print_block(text: str) -> None:
    """Text of several lines on stdout, each made safe to show."""
    for line in text.rstrip("\n").split("\n"):
        print_text(line)


def tell(text: str) -> None:
    """A line for people on stderr."""
    sys.stderr.write(_encodable(visible(text), sys.stderr) + "\n")
    sys.stderr.flush()


def _encodable(text: str, stream: TextIO) -> str:
    encoding = stream.encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def table(rows: Sequence[Sequence[str]], tones: Sequence[Sequence[Tone]] | None = None) -> None:
    """Rows in columns, each as wide as its widest cell; no line ends in blanks.

    Cells but the last are bounded, so that one of foreign length does not push all others away.
    """
    from rich.cells import cell_len

    shown = [[*(visible(cell, MAX_CELL) for cell in row[:-1]), visible(row[-1])] for row in rows]
    widths = [max(cell_len(cell) for cell in column) for column in zip(*shown, strict=True)]
    for number, row in enumerate(shown):
        cells: list[str | tuple[str, Tone]] = []
        last = max((place for place, cell in enumerate(row) if cell), default=0)
        for place, (cell, width) in enumerate(zip(row, widths, strict=True)):
            pad = "" if place >= last else " " * (width - cell_len(cell) + 2)
            cells += [(cell, tones[number][place] if tones else "plain"), pad]
        print_text(*cells)
