"""What a tolerance accepts, as data: every rule of a task becomes one :class:`Bound`."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from runners.contract import Tolerance


@dataclass(frozen=True)
class Bound:
    """An error is accepted when any of the three parts accepts it and ``cap`` does not forbid it.

    error <= ``absolute`` + ``relative`` * |expected|; or distance <= ``ulp``; or error <= ``elementwise``.
    """

    absolute: float = 0.0
    relative: float = 0.0
    ulp: int | None = None
    elementwise: Tensor | None = None
    """Float64, one allowance per element, of the output's shape."""
    cap: float | None = None
    """No error may be larger than this, whatever else accepts it."""

    def allowance(self, magnitude: Tensor, part: slice) -> Tensor:
        """The largest error accepted for elements ``part`` (row-major) of magnitudes ``magnitude``, ulp apart."""
        allowed = self.absolute + self.relative * magnitude
        if self.elementwise is not None:
            # fmax: where the element's own allowance is NaN it allows nothing, and takes nothing away either.
            allowed = torch.fmax(allowed, self.elementwise.reshape(-1)[part])
        return allowed

    def accepts(self, error: Tensor, magnitude: Tensor, ulps: Tensor | None, part: slice) -> Tensor:
        """Which of the errors, all finite, are accepted."""
        accepted = error <= self.allowance(magnitude, part)
        if self.ulp is not None and ulps is not None:
            accepted |= ulps <= self.ulp
        if self.cap is not None:
            accepted &= error <= self.cap
        return accepted

    def facts(self) -> dict[str, float | int | bool | None]:
        """The bound in plain JSON."""
        return {
            "absolute": self.absolute,
            "relative": self.relative,
            "ulp": self.ulp,
            "cap": self.cap,
            "per_element": self.elementwise is not None,
        }


def stated_bound(tolerance: Tolerance) -> Bound | None:
    """What the task itself states. Under ``derived`` it is the band that warns: None where no atol or rtol is given."""
    absolute, relative = tolerance.atol or 0.0, tolerance.rtol or 0.0
    if tolerance.rule == "exact":
        return Bound()
    if tolerance.rule == "ulp":
        return Bound(absolute, relative, ulp=tolerance.ulp, cap=tolerance.cap)
    if tolerance.rule == "absolute-relative" or tolerance.atol is not None or tolerance.rtol is not None:
        return Bound(absolute, relative, cap=tolerance.cap)
    return None
