"""The total: a weighted mean of levels, then the lowest cap of a failed gate."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction

import msgspec

from console.grading.rubric import Rubric


class Score(msgspec.Struct, frozen=True):
    """A total of 10, to one decimal. ``value`` and ``raw`` (before gates) are None until every level is set."""

    value: float | None
    raw: float | None
    failed_gates: tuple[str, ...]
    """Ids of the criteria whose gate failed, in the rubric's order."""
    missing: tuple[str, ...]
    """Ids of the criteria that have no level yet."""


def score(rubric: Rubric, levels: Mapping[str, int | None]) -> Score:
    """``10·Σ weight·level/top / Σ weight``, rounded half up to 0.1, then capped.

    Raises ValueError for a level that its criterion does not have.
    """
    total = Fraction(0)
    weights = Fraction(0)
    missing: list[str] = []
    failed: list[str] = []
    caps: list[float] = []
    for criterion in rubric.criteria:
        level = levels.get(criterion.id)
        weight = Fraction(str(criterion.weight))
        weights += weight
        if level is None:
            missing.append(criterion.id)
            continue
        if not 0 <= level <= criterion.top:
            raise ValueError(f"{criterion.id}: level {level} is not between 0 and {criterion.top}")
        total += weight * level / criterion.top
        if criterion.gate and level < criterion.gate.below:
            failed.append(criterion.id)
            caps.append(criterion.gate.cap)
    if missing:
        return Score(None, None, tuple(failed), tuple(missing))
    raw = _tenth(10 * total / weights)
    return Score(min([raw, *caps]), raw, tuple(failed), ())


def _tenth(value: Fraction) -> float:
    exact = Decimal(value.numerator) / Decimal(value.denominator)
    return float(exact.quantize(Decimal("0.1"), ROUND_HALF_UP))
