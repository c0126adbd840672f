"""What a submission can be compared with."""

from __future__ import annotations

from typing import Literal

Base = Literal["starter", "previous", "reviewed"]

BASE_WORDS: dict[Base, str] = {
    "starter": "starter",
    "previous": "previous revision",
    "reviewed": "last reviewed",
}


def bases_for(revisions: int, reviewed: bool) -> tuple[Base, ...]:
    """What there is to compare with. Where a task has no starter, every file is new against it."""
    found: list[Base] = ["starter"]
    if revisions > 1:
        found.append("previous")
    if reviewed:
        found.append("reviewed")
    return tuple(found)
