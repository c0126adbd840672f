"""One output against its truth: non-finite positions first, then errors, the worst elements and their spread.

Work is done in blocks, so that memory beyond the tensors themselves stays bounded.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from runners.contract import Overflow
from runners.numerics.formats import components, format_of, name_of, within_range
from runners.numerics.rules import Bound
from runners.numerics.ulp import distance

BLOCK = 1 << 19
WORST = 20
"""How many elements a comparison names."""
_LOWEST_DECADE = -324
"""Of the smallest float64."""


@dataclass(frozen=True)
class Expected:
    """The truth of one output."""

    truth: Tensor
    """Float64 or complex128, or exact integers."""
    stored: Tensor
    """The truth in the output dtype, by the overflow convention."""
    overflow: Overflow

    @property
    def aim(self) -> Tensor:
        """Real float64 numbers that errors are measured from: the truth, clamped where storing saturates."""
        if not (self.stored.is_floating_point() or self.stored.is_complex()):
            return self.stored.to(torch.float64)
        real = self.stored.dtype.to_real() if self.stored.is_complex() else self.stored.dtype
        return within_range(components(self.truth), real, self.overflow)


@dataclass(frozen=True)
class Element:
    """One element of an output that is worth showing."""

    index: tuple[int, ...]
    expected: float
    got: float
    absolute: float
    relative: float
    ulp: int

    def facts(self) -> dict[str, object]:
        """In plain JSON; what is not finite is given in words."""
        return {
            "index": list(self.index),
            "expected": plain(self.expected),
            "got": plain(self.got),
            "absolute": plain(self.absolute),
            "relative": plain(self.relative),
            "ulp": self.ulp,
        }


@dataclass(frozen=True)
class Comparison:
    """How one output differs from its truth."""

    elements: int
    counted: int
    """Elements whose error was measured: finite in output, truth and twin, and not skipped."""
    beyond: int
    """Counted elements outside the bound."""
    non_finite: int
    """Elements whose NaN or infinity is not that of the truth."""
    max_absolute: float
    max_relative: float
    max_ulp: int
    rms: float
    """Root mean square of the error."""
    rms_expected: float
    worst: tuple[Element, ...]
    """Largest error over allowance first."""
    non_finite_at: tuple[Element, ...]
    histogram: dict[str, int]
    """Counted elements by decade of absolute error; ``"0"`` holds the exact ones."""
    outside: Tensor
    """Bool, of the output's shape: beyond the bound, or wrongly non-finite."""

    @property
    def accepted(self) -> bool:
        """Whether nothing lies outside the bound."""
        return self.beyond == 0 and self.non_finite == 0

    def facts(self, worst: int = WORST) -> dict[str, object]:
        """In plain JSON, naming at most ``worst`` elements of each kind."""
        return {
            "elements": self.elements,
            "counted": self.counted,
            "beyond": self.beyond,
            "non_finite": self.non_finite,
            "max_absolute": plain(self.max_absolute),
            "max_relative": plain(self.max_relative),
            "max_ulp": self.max_ulp,
            "rms": plain(self.rms),
            "worst": [element.facts() for element in self.worst[:worst]],
            "non_finite_at": [element.facts() for element in self.non_finite_at[:worst]],
            "histogram": self.histogram,
        }


def plain(value: float) -> float | str:
    """A float that JSON can hold: NaN and infinities as words."""
    return value if math.isfinite(value) else str(value)


def compare(
    got: Tensor, expected: Expected, bound: Bound, *, only: Tensor | None = None, skip: Tensor | None = None
) -> Comparison:
    """Compare ``got`` with what is expected; both have one shape and dtype.

    ``only`` (bool, of the output's shape, components of complex numbers apart) limits whose errors are measured, as
    where the twin is finite; positions of NaN and Inf are compared everywhere. ``skip`` elements count for nothing.
    """
    if got.shape != expected.stored.shape or got.dtype != expected.stored.dtype:
        raise ValueError(f"{got.dtype}{tuple(got.shape)} cannot be {expected.stored.dtype}")
    shape = components(got).shape
    tally = _Tally(bound, expected.overflow, components(got).dtype, tuple(shape))
    flat_got, flat_stored = components(got).reshape(-1), components(expected.stored).reshape(-1)
    aim = expected.aim.reshape(-1)
    flat_only = None if only is None else only.reshape(-1)
    flat_skip = None if skip is None else _like_components(skip, got).reshape(-1)
    outside = torch.zeros(flat_got.numel(), dtype=torch.bool)
    for start in range(0, flat_got.numel(), BLOCK):
        part = slice(start, min(start + BLOCK, flat_got.numel()))
        outside[part] = tally.add(
            flat_got[part],
            flat_stored[part],
            aim[part],
            part,
            None if flat_only is None else flat_only[part],
            None if flat_skip is None else flat_skip[part],
        )
    outside = outside.reshape(shape)
    return tally.result(outside.any(-1) if got.is_complex() else outside)


def _like_components(mask: Tensor, values: Tensor) -> Tensor:
    return mask.unsqueeze(-1).expand(*mask.shape, 2) if values.is_complex() else mask


class _Tally:
    def __init__(self, bound: Bound, overflow: Overflow, dtype: torch.dtype, shape: tuple[int, ...]) -> None:
        self._bound, self._shape = bound, shape
        self._form = format_of(dtype) if dtype.is_floating_point else None
        self._overflows = overflow == "inf"
        self.elements = self.counted = self.beyond = self.non_finite = self.max_ulp = 0
        self.max_absolute = self.max_relative = self.squares = self.squares_expected = 0.0
        self._worst: list[tuple[float, Element]] = []
        self._non_finite_at: list[Element] = []
        self._decades: Counter[int] = Counter()
        self._exact = 0

    def add(
        self, got: Tensor, stored: Tensor, aim: Tensor, part: slice, only: Tensor | None, skip: Tensor | None
    ) -> Tensor:
        """Take in one block; which of its elements are outside the bound."""
        g, s = got.to(torch.float64), stored.to(torch.float64)
        error = (g - aim).abs()
        if self._form is None:
            # float64 cannot tell neighbours apart beyond 2**53; the integers themselves can.
            error = torch.where((got != stored) & (error == 0), 1.0, error)
        counted = g.isfinite() & s.isfinite()
        wrong = self._wrongly_non_finite(g, s, aim, part)
        if skip is not None:
            counted, wrong = counted & ~skip, wrong & ~skip
        if only is not None:
            counted &= only
        magnitude = aim.abs()
        ulps = distance(got, stored)
        fine = self._bound.accepts(error, magnitude, ulps, part)
        fine |= got == stored if self._form is None else g == s
        beyond = counted & ~fine
        self.elements += got.numel()
        self.beyond += int(beyond.sum())
        self.non_finite += int(wrong.sum())
        self._measure(error[counted], magnitude[counted], ulps[counted])
        self._name_worst(g, aim, error, magnitude, ulps, counted, part)
        self._name_non_finite(g, s, wrong, part)
        return beyond | wrong

    def result(self, outside: Tensor) -> Comparison:
        """What all blocks came to."""
        decades = {f"1e{decade}": count for decade, count in sorted(self._decades.items())}
        return Comparison(
            elements=self.elements,
            counted=self.counted,
            beyond=self.beyond,
            non_finite=self.non_finite,
            max_absolute=self.max_absolute,
            max_relative=self.max_relative,
            max_ulp=self.max_ulp,
            rms=math.sqrt(self.squares / self.counted) if self.counted else 0.0,
            rms_expected=math.sqrt(self.squares_expected / self.counted) if self.counted else 0.0,
            worst=tuple(element for _, element in self._worst),
            non_finite_at=tuple(self._non_finite_at),
            histogram={**({"0": self._exact} if self._exact else {}), **decades},
            outside=outside,
        )

    def _wrongly_non_finite(self, g: Tensor, s: Tensor, aim: Tensor, part: slice) -> Tensor:
        same = (g.isnan() & s.isnan()) | (g.isinf() & (g == s)) | (g.isfinite() & s.isfinite())
        wrong = ~same
        if self._form is None or not self._overflows or not bool(wrong.any()):
            return wrong
        # At the edge of the range rounding decides between the largest number and overflow: an overflowed element
        # counts as the next number the format would have, and is judged by its error like any other.
        limit = self._form.overflowed
        overflowed = g.isinf() if self._form.has_inf else g.isnan()
        sign = torch.where(g.isnan(), aim.sign(), g.sign())
        value = torch.where(overflowed, sign * limit, g)
        error = (value - aim).abs()
        edge = aim.isfinite() & value.isfinite() & (g.isfinite() | s.isfinite())
        return wrong & ~(edge & self._bound.accepts(error, aim.abs(), None, part))

    def _measure(self, error: Tensor, magnitude: Tensor, ulps: Tensor) -> None:
        if error.numel() == 0:
            return
        self.counted += error.numel()
        self.max_absolute = max(self.max_absolute, float(error.max()))
        nonzero = magnitude > 0
        if bool(nonzero.any()):
            self.max_relative = max(self.max_relative, float((error[nonzero] / magnitude[nonzero]).max()))
        self.max_ulp = max(self.max_ulp, int(ulps.max()))
        self.squares += float(error.square().sum())
        self.squares_expected += float(magnitude.square().sum())
        positive = error[error > 0]
        self._exact += error.numel() - positive.numel()
        if positive.numel():
            counts = torch.bincount(positive.log10().floor().to(torch.int64) - _LOWEST_DECADE)
            self._decades.update({int(at) + _LOWEST_DECADE: int(counts[at]) for at in counts.nonzero()[:, 0]})

    def _name_worst(
        self, g: Tensor, aim: Tensor, error: Tensor, magnitude: Tensor, ulps: Tensor, counted: Tensor, part: slice
    ) -> None:
        floor = self._form.smallest if self._form else 1.0
        ranked = torch.where(counted, error / self._bound.allowance(magnitude, part).clamp(min=floor), -1.0)
        scores, places = ranked.topk(min(WORST, ranked.numel()))
        found = [
            (score, self._element(place, part, g, aim, float(error[place]), int(ulps[place])))
            for score, place in zip(scores.tolist(), places.tolist(), strict=True)
            if score > 0
        ]
        self._worst = sorted(self._worst + found, key=lambda pair: -pair[0])[:WORST]

    def _name_non_finite(self, g: Tensor, s: Tensor, wrong: Tensor, part: slice) -> None:
        room = WORST - len(self._non_finite_at)
        for place in wrong.nonzero()[:room, 0].tolist():
            self._non_finite_at.append(self._element(place, part, g, s, math.nan, -1))

    def _element(self, place: int, part: slice, g: Tensor, aim: Tensor, error: float, ulp: int) -> Element:
        expected = float(aim[place])
        relative = error / abs(expected) if expected else (0.0 if error == 0 else math.inf)
        index = np.unravel_index(part.start + place, self._shape) if self._shape else ()
        return Element(tuple(int(axis) for axis in index), expected, float(g[place]), error, relative, ulp)


def describe(name: str, comparison: Comparison, dtype: torch.dtype, kind: str | None = None) -> str:
    """What is not accepted, in one sentence; ``kind`` ("mismatch" or "non-finite") picks one of two faults."""
    if comparison.non_finite and (kind == "non-finite" or not comparison.beyond):
        first = comparison.non_finite_at[0]
        return (
            f"output {name}: {comparison.non_finite} of {comparison.elements} elements are NaN or infinite where "
            f"they should not be, or the reverse; at {list(first.index)}"
            f" {first.got:g} where {first.expected:g} is right"
        )
    first = comparison.worst[0]
    return (
        f"output {name}: {comparison.beyond} of {comparison.elements} elements are off; worst at {list(first.index)}: "
        f"{first.got:.9g} where {first.expected:.9g} is right, {first.absolute:.3g} apart"
        f" ({first.ulp} ulp of {name_of(dtype)})"
    )
