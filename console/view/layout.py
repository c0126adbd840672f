"""Which panes of a review are on screen, for a width, a height and a focus."""

from __future__ import annotations

from typing import Literal

PaneName = Literal["scenario", "diff", "panels", "rubric"]

PANES: tuple[PaneName, ...] = ("scenario", "diff", "panels", "rubric")
LEFT: tuple[PaneName, ...] = ("scenario", "diff")
RIGHT: tuple[PaneName, ...] = ("panels", "rubric")

TWO = 120
"""Cells from which two panes stand side by side."""
THREE = 160
"""Cells from which panels and rubric stand one above the other beside the code, given :data:`TALL` rows."""
TALL = 36


def visible_panes(width: int, height: int, focus: PaneName, left: PaneName, right: PaneName) -> tuple[PaneName, ...]:
    """The panes to show. ``left`` and ``right`` are the panes of each side that had the focus last."""
    if width < TWO:
        return (focus,)
    if focus in LEFT:
        left = focus
    else:
        right = focus
    if width >= THREE and height >= TALL:
        return (left, *RIGHT)
    return (left, right)


def beside(pane: PaneName, step: int) -> PaneName:
    """The pane that tab goes to."""
    return PANES[(PANES.index(pane) + step) % len(PANES)]
