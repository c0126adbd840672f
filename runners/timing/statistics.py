"""How much faster, how sure, and whether that is a difference at all: pure functions of recorded windows.

A *ratio* is baseline time over candidate time, so above 1 the candidate is faster. Samples come in two levels: process
pairs (fresh processes of both sides) and, in each, rounds (one batch of either side, next to each other in time).
Rounds of one process pair are correlated, therefore the bootstrap resamples pairs first and rounds inside them next.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np
import numpy.typing as npt

Verdict = Literal["faster", "slower", "no-difference", "inconclusive"]

CONFIDENCE = 0.95
DRAWS = 2000
MIN_PAIRS = 3
"""Fewer process pairs say nothing about how processes differ; the expanded level would lie beyond the sample."""


@dataclass(frozen=True)
class Interval:
    """A confidence interval of a ratio: ``low <= high``, both above 0."""

    low: float
    high: float

    def contains(self, value: float) -> bool:
        """Whether ``value`` lies inside, ends included."""
        return self.low <= value <= self.high

    @property
    def half_width(self) -> float:
        """Half the width on the log scale; near 0 it reads as a relative error."""
        return math.log(self.high / self.low) / 2


@dataclass(frozen=True)
class Estimate:
    """A ratio with its interval, and what it rests on."""

    ratio: float
    interval: Interval
    pairs: int
    rounds: int


def log_ratios(baseline: Sequence[Sequence[float]], candidate: Sequence[Sequence[float]]) -> list[list[float]]:
    """Per process pair and round, log(baseline / candidate). Both in the same unit per call, each above 0.

    Raises ValueError for sides of unequal shape, empty pairs, or times that are not positive and finite.
    """
    if len(baseline) != len(candidate) or any(len(b) != len(c) for b, c in zip(baseline, candidate, strict=False)):
        raise ValueError("both sides need the same pairs and rounds")
    if not baseline or any(len(rounds) == 0 for rounds in baseline):
        raise ValueError("every process pair needs a round")
    ratios = []
    for b_rounds, c_rounds in zip(baseline, candidate, strict=True):
        for time in (*b_rounds, *c_rounds):
            if not (time > 0 and math.isfinite(time)):
                raise ValueError(f"not a time: {time!r}")
        ratios.append([math.log(b) - math.log(c) for b, c in zip(b_rounds, c_rounds, strict=True)])
    return ratios


def student_quantile(p: float, freedom: int) -> float:
    """The quantile of Student's t, ``0.5 < p < 1``, within 1 % from 3 degrees of freedom on.

    Source: the asymptotic expansion 26.7.5 of Abramowitz and Stegun, Handbook of Mathematical Functions (1964).
    """
    x, v = NormalDist().inv_cdf(p), float(freedom)
    return (
        x
        + (x**3 + x) / (4 * v)
        + (5 * x**5 + 16 * x**3 + 3 * x) / (96 * v**2)
        + (3 * x**7 + 19 * x**5 + 17 * x**3 - 15 * x) / (384 * v**3)
        + (79 * x**9 + 776 * x**7 + 1482 * x**5 - 1920 * x**3 - 945 * x) / (92160 * v**4)
    )


def expanded_level(confidence: float, pairs: int) -> float:
    """The tail that a percentile interval over ``pairs`` clusters must leave out on each side.

    A bootstrap of few clusters is too narrow by sqrt((n-1)/n) and by the normal in place of Student's t. Source: the
    expanded percentile interval of Hesterberg, "What Teachers Should Know About the Bootstrap", The American
    Statistician 69(4), 2015.
    """
    z = math.sqrt(pairs / (pairs - 1)) * student_quantile(0.5 + confidence / 2, pairs - 1)
    return 1 - NormalDist().cdf(z)


def estimate(
    ratios: Sequence[Sequence[float]], *, seed: int, confidence: float = CONFIDENCE, draws: int = DRAWS
) -> Estimate:
    """The median of all log ratios, and its hierarchical bootstrap interval, as a ratio.

    The same ratios and seed give the same answer. Raises ValueError below ``MIN_PAIRS`` process pairs.
    """
    if len(ratios) < MIN_PAIRS:
        raise ValueError(f"{len(ratios)} process pairs are too few for an interval; {MIN_PAIRS} at least")
    pooled = np.concatenate([np.asarray(rounds, dtype=np.float64) for rounds in ratios])
    centre = float(np.median(pooled))
    medians = _resampled_medians(ratios, np.random.default_rng(seed), draws)
    tail = expanded_level(confidence, len(ratios))
    low, high = (float(q) for q in np.quantile(medians, [tail, 1 - tail]))
    interval = Interval(math.exp(min(low, centre)), math.exp(max(high, centre)))
    return Estimate(math.exp(centre), interval, len(ratios), len(pooled))


def _resampled_medians(
    ratios: Sequence[Sequence[float]], rng: np.random.Generator, draws: int
) -> npt.NDArray[np.float64]:
    """The median of each of ``draws`` resamples: pairs with replacement, then rounds inside each chosen pair."""
    counts = np.array([len(rounds) for rounds in ratios])
    padded = np.full((len(ratios), int(counts.max())), np.nan)
    for row, rounds in zip(padded, ratios, strict=True):
        row[: len(rounds)] = rounds
    chosen = rng.integers(0, len(ratios), size=(draws, len(ratios)))
    within = counts[chosen]
    spots = (rng.random((draws, len(ratios), padded.shape[1])) * within[..., None]).astype(np.intp)
    values = padded[chosen[..., None], spots]
    if np.any(counts != counts[0]):
        values[np.arange(padded.shape[1]) >= within[..., None]] = np.nan
        return np.asarray(np.nanmedian(values.reshape(draws, -1), axis=1))
    return np.asarray(np.median(values.reshape(draws, -1), axis=1))


def judge(interval: Interval, margin: float, control: Interval | None = None) -> Verdict:
    """What an interval says against a margin, and against what the baseline showed against itself.

    A difference counts when the whole interval lies beyond the margin *and* beyond all that the A/A control's interval
    reaches: a machine that sees differences where none are cannot vouch for one of that size. ``no-difference`` means
    that the whole interval lies within the margin.
    """
    bound = math.log1p(margin)
    reach = bound if control is None else max(bound, abs(math.log(control.low)), abs(math.log(control.high)))
    low, high = math.log(interval.low), math.log(interval.high)
    if low > reach:
        return "faster"
    if high < -reach:
        return "slower"
    if -bound <= low and high <= bound:
        return "no-difference"
    return "inconclusive"


def spread(ratios: Sequence[Sequence[float]]) -> float:
    """The interquartile range of the log ratios around their pair's median: noise from batch to batch."""
    centred = np.concatenate([np.asarray(r, dtype=np.float64) - np.median(r) for r in ratios])
    low, high = np.quantile(centred, [0.25, 0.75])
    return float(high - low)
