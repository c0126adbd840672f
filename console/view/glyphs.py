"""Glyph, word and tone of every state: colour never stands alone."""

from __future__ import annotations

from typing import Literal, NamedTuple

from console.view.spans import Span, Tone
from runners.evidence import PanelStatus
from runners.findings import PanelName, Severity

PanelPhase = PanelStatus | Literal["waiting", "running"]


class Mark(NamedTuple):
    """How a state looks: one cell, one word, one tone."""

    glyph: str
    word: str
    tone: Tone

    @property
    def span(self) -> Span:
        """Glyph and word together."""
        return Span(f"{self.glyph} {self.word}", self.tone)


PANEL_MARKS: dict[PanelPhase, Mark] = {
    "pass": Mark("✓", "pass", "good"),
    "warn": Mark("!", "warn", "warn"),
    "fail": Mark("✗", "fail", "bad"),
    "error": Mark("E", "error", "warn"),
    "not-checked": Mark("-", "not-checked", "dim"),
    "waiting": Mark("·", "waiting", "faint"),
    "running": Mark("»", "running", "accent"),
}

NO_RUN = Mark("·", "not run", "faint")

SEVERITY_MARKS: dict[Severity, Mark] = {
    "fail": Mark("✗", "fail", "bad"),
    "warn": Mark("!", "warn", "warn"),
    "info": Mark("i", "info", "dim"),
}

PANEL_LETTERS: dict[PanelName, str] = {
    "build": "B",
    "correctness": "C",
    "integrity": "I",
    "timing": "T",
    "resources": "R",
    "scope": "S",
}

ReviewState = Literal["broken", "todo", "draft", "reviewed", "outdated", "wants-review", "reject", "environment"]

REVIEW_MARKS: dict[ReviewState, Mark] = {
    "broken": Mark("‼", "broken", "bad"),
    "todo": Mark("○", "todo", "text"),
    "draft": Mark("✎", "draft", "accent"),
    "reviewed": Mark("✓", "reviewed", "good"),
    "outdated": Mark("↑", "new revision", "warn"),
    "wants-review": Mark("◆", "wants-review", "accent"),
    "reject": Mark("⊘", "reject", "dim"),
    "environment": Mark("E", "environment", "warn"),
}

ASCII: dict[int, int] = str.maketrans(
    "✓✗»·○✎↑◆⊘‼▌▏●◇▰▱…─┄¶→↻–−×▸‹↓←",
    "vx>.o*^#/#>|*?#.~-.@>~--x><v<",
)
"""For terminals and fonts that have no more: one cell for one cell, words stand beside them anyway."""
