"""The derived rule: a tolerance that follows from how far a trusted low-precision implementation, the twin, errs.

An error is explained when it is at most 4 E + 2 u |truth| + the smallest subnormal of the output dtype. E is the twin's
largest error over many draws; u the unit roundoff. FlashAttention's tests use the same idea with a factor of 2 to 4
over one draw. A task's ``error_terms`` give a second bound, of the form used in Higham and Mary, "A new approach to
probabilistic rounding error analysis", SIAM J. Sci. Comput. 41(5), 2019: a sum of K terms in precision u errs by at
most lambda sqrt(K) u times the sum of their magnitudes, with a probability that lambda decides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from runners.numerics.compare import Expected
from runners.numerics.formats import components, format_of
from runners.numerics.rules import Bound
from runners.reference import ErrorTerms

DRAWS = 32
"""Draws that E is taken over, at least: with fewer, right kernels with few outputs would be accused."""
TWIN_FACTOR = 4.0
ROUNDOFF_FACTOR = 2.0
TERMS_FACTOR = 2.0
TERMS_LAMBDA = 4.0


@dataclass(frozen=True)
class TwinError:
    """What is known of the twin for one output of one case and family."""

    largest: float = 0.0
    """E: the twin's largest error over all draws, where twin and truth are finite."""
    draws: int = 0
    breaks_tolerance: bool = False
    """Whether the twin was outside the task's own atol and rtol in any draw."""
    non_finite: int = 0
    """Elements, over all draws, where the twin's NaN or Inf is not that of the truth."""

    def joined(self, other: TwinError) -> TwinError:
        """Both sets of draws together."""
        return TwinError(
            max(self.largest, other.largest),
            self.draws + other.draws,
            self.breaks_tolerance or other.breaks_tolerance,
            self.non_finite + other.non_finite,
        )


def finite_in_both(twin: Tensor, expected: Expected) -> Tensor:
    """Where the twin's output and the stored truth are both finite (bool, complex components apart)."""
    return _finite(components(twin)) & _finite(components(expected.stored))


def observe(twin: Tensor, expected: Expected, stated: Bound | None) -> TwinError:
    """The twin's error in one draw. ``twin`` is in the output dtype; ``stated`` is the task's own bound."""
    both = finite_in_both(twin, expected)
    got, stored = components(twin), components(expected.stored)
    if got.dtype == torch.int64 and bool((got != stored).any()):
        error = (got - stored).abs().to(torch.float64)
    else:
        error = (got.to(torch.float64) - expected.aim).abs()
    error = torch.where(both, error, 0.0)
    breaks = False
    if stated is not None and error.numel():
        fine = stated.accepts(error.reshape(-1), expected.aim.abs().reshape(-1), None, slice(0, error.numel()))
        breaks = not bool((fine | ~both.reshape(-1) | (got == stored).reshape(-1)).all())
    largest = float(error.max()) if error.numel() else 0.0
    return TwinError(largest, 1, breaks, int((_finite(got) != _finite(stored)).sum()))


def explained(twin: TwinError | None, expected: Expected, terms: ErrorTerms | None) -> Bound | None:
    """The bound that rounding explains; None where nothing can be derived.

    Integers carry no rounding: where the twin agrees with the truth they must be exact, where it is off by one, as by
    another rounding to integers, one is allowed; a twin that is further off explains nothing.
    """
    if twin is None and terms is None:
        return None
    stored = expected.stored
    if not (stored.is_floating_point() or stored.is_complex()):
        error = twin.largest if twin is not None else 0.0
        return Bound(absolute=float(error > 0)) if error <= 1 else None
    form = format_of(stored.dtype)
    elementwise = None
    if terms is not None:
        growth = min(TERMS_LAMBDA * math.sqrt(terms.terms), terms.terms) * format_of(terms.accumulate).u
        rounding = form.u * expected.aim.abs()
        elementwise = TERMS_FACTOR * (rounding + growth * _over(terms.magnitude, rounding)) + form.smallest
    return Bound(
        absolute=TWIN_FACTOR * (twin.largest if twin is not None else 0.0) + form.smallest,
        relative=ROUNDOFF_FACTOR * form.u,
        elementwise=elementwise,
    )


def _over(magnitude: Tensor, like: Tensor) -> Tensor:
    """``magnitude`` spread over the output's shape; a complex output has its two components last."""
    if magnitude.dim() and magnitude.shape != like.shape and magnitude.shape == like.shape[:-1]:
        magnitude = magnitude.unsqueeze(-1)
    return magnitude.expand(like.shape)


def _finite(values: Tensor) -> Tensor:
    if not values.is_floating_point():
        return torch.ones(values.shape, dtype=torch.bool)
    return (values.to(torch.float32) if values.element_size() == 1 else values).isfinite()
