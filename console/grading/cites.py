"""What a level or a note can point at: a finding, a panel, or a line of the submission."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

CiteKind = Literal["finding", "panel", "line"]

_LINE = re.compile(r"(?P<file>.+):(?P<line>[1-9][0-9]{0,8})", re.DOTALL)


class Cite(msgspec.Struct, frozen=True):
    """A parsed cite. ``target`` is a finding's id, a panel's name or a file; ``line`` counts from 1."""

    kind: CiteKind
    target: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.target}:{self.line}" if self.kind == "line" else f"{self.kind}:{self.target}"


def parse_cite(text: str) -> Cite:
    """Read ``finding:numerics/unstable#1``, ``panel:timing`` or ``kernel.py:14``. Raises ValueError."""
    if text.startswith("finding:") and len(text) > len("finding:"):
        return Cite("finding", text.removeprefix("finding:"))
    if text.startswith("panel:") and len(text) > len("panel:"):
        return Cite("panel", text.removeprefix("panel:"))
    match = _LINE.fullmatch(text)
    if match:
        return Cite("line", match["file"], int(match["line"]))
    raise ValueError(f"{text!r} is neither finding:CODE#N, panel:NAME nor FILE:LINE")


def finding_cite(finding_id: str) -> str:
    """The cite of a finding."""
    return f"finding:{finding_id}"


def panel_cite(panel: str) -> str:
    """The cite of a panel: its status and facts."""
    return f"panel:{panel}"


def line_cite(file: str, line: int) -> str:
    """The cite of a line of the submission, counted from 1."""
    return f"{file}:{line}"
