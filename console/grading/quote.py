"""Lines of the submission inside prose: ``file:line`` mentions, and quoted lines under them.

A quotation is a line that ends with a mention, followed by lines that begin with ``>``: the first quotes the line
mentioned, each further one the next line of the file.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from console.grading.text import one_line, plain

_PLACE = re.compile(r"(?<![\w/.:@+-])(?P<file>[\w.+-]+(?:/[\w.+-]+)*):(?P<line>[1-9][0-9]{0,8})(?![\w.:]\w)")
_AT_END = re.compile(_PLACE.pattern + r"[`)\]:.]*\s*$")
_SOURCE = (".py", ".cu", ".cuh", ".h", ".hpp", ".c", ".cc", ".cpp", ".md", ".toml", ".json", ".yaml", ".yml", ".txt")


def text_lines(text: str) -> list[str]:
    """The lines of a file as ``file:line`` counts them: ends are LF or CRLF; a last line without an end counts."""
    lines = re.split(r"\r?\n", text)
    return lines[:-1] if lines[-1] == "" else lines


def quotation(file: str, line: int, lines: Sequence[str]) -> str:
    """Lines of a file as a quotation to put into prose, each on one line, with hostile characters escaped."""
    quoted = [f"> {plain(text).rstrip()}".rstrip() for text in lines]
    return "\n".join([f"`{plain(file)}:{line}`", *quoted])


def mentions(prose: str, files: Collection[str]) -> Iterator[tuple[str, int]]:
    """Every ``file:line`` in prose that means a file of the submission: a known path, or one that looks like source."""
    for match in _PLACE.finditer(prose):
        if match["file"] in files or match["file"].endswith(_SOURCE):
            yield match["file"], int(match["line"])


def quotes(prose: str, files: Collection[str]) -> Iterator[tuple[str, int, str]]:
    """Every quoted line in prose with the file and line that it claims to be."""
    file, line = "", 0
    for text in prose.split("\n"):
        if text.startswith(">") and file:
            yield file, line, text[1:]
            line += 1
            continue
        match = _AT_END.search(text)
        known = match and (match["file"] in files or match["file"].endswith(_SOURCE))
        file, line = (match["file"], int(match["line"])) if match and known else ("", 0)


def same_line(quoted: str, actual: str) -> bool:
    """True when a quoted line is the actual one; indentation and runs of white space do not count."""
    return one_line(quoted) == one_line(actual)
