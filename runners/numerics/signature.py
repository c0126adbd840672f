"""Which lower precision an error looks like: a hint that names a cause, given only where it is clear-cut.

Two tests, each of which a right float32 or float64 computation fails by orders of magnitude: every value of the output
is representable in a narrower format; or the output is much nearer to the truth of inputs that were rounded to a
narrower format than to the truth itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from runners.numerics.compare import Expected
from runners.session import Value

NEARER = 0.2
"""The distance to the emulated truth, as a part of that to the truth, below which the emulation explains the error."""
SAME = 1.05
"""Distances within this factor of the smallest are no worse."""
ENOUGH = 32
"""Elements below which neither test says anything."""

_WIDE = (torch.float32, torch.float64)
_NARROW = (torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)


def stored_precision(got: Tensor, expected: Expected) -> str | None:
    """The narrower format whose numbers all values of ``got`` are, where those of the truth are not."""
    if got.dtype not in _WIDE or got.numel() < ENOUGH or not bool(got.isfinite().all()):
        return None
    narrower = (*_NARROW, torch.float32) if got.dtype is torch.float64 else _NARROW
    for dtype in reversed(narrower):
        if _representable(got, dtype) == 1.0 and _representable(expected.stored, dtype) < 0.5:
            return str(dtype).removeprefix("torch.")
    return None


def input_precision(
    got: Tensor, expected: Expected, inputs: Mapping[str, Value], truth_of: Callable[[Mapping[str, Value]], Tensor]
) -> str | None:
    """The format that inputs seem to have been rounded to: tf32, bfloat16, float16 or a float8; "a or b" if undecided.

    ``truth_of`` gives the truth of this output for other inputs.
    """
    if got.dtype not in _WIDE or got.numel() < ENOUGH:
        return None
    wide = [name for name, value in inputs.items() if isinstance(value, Tensor) and value.dtype in _WIDE]
    if not wide or not bool(got.isfinite().all()):
        return None
    distance = _rms(got.to(torch.float64) - expected.aim)
    found: list[tuple[float, str]] = []
    for name, rounded in _ROUNDINGS.items():
        emulated = truth_of({key: rounded(value) if key in wide else value for key, value in inputs.items()})
        if emulated.shape != got.shape or not bool(emulated.isfinite().all()):
            continue
        left = _rms(got.to(torch.float64) - emulated)
        if left <= NEARER * distance:
            found.append((left, name.split()[0]))
    if not found:
        return None
    nearest = min(left for left, _ in found)
    # tf32 and float16 have one significand: where the range does not tell them apart, both are named.
    return " or ".join(dict.fromkeys(name for left, name in found if left <= SAME * nearest))


def _representable(values: Tensor, dtype: torch.dtype) -> float:
    return float((values.to(dtype).to(values.dtype) == values).to(torch.float64).mean())


def _rms(values: Tensor) -> float:
    return float(values.square().mean().sqrt())


def _through(dtype: torch.dtype) -> Callable[[Tensor], Tensor]:
    return lambda values: values.to(dtype).to(values.dtype)


def _tf32(values: Tensor) -> Tensor:
    """Float32 rounded to nearest in 10 stored significand bits, ties away from zero (PTX ``cvt.rna.tf32.f32``)."""
    bits = values.to(torch.float32).view(torch.int32)
    return ((bits + 0x1000) & ~0x1FFF).view(torch.float32).to(values.dtype)


def _tf32_truncated(values: Tensor) -> Tensor:
    """Float32 whose low 13 bits are dropped, as tensor cores do with operands nobody rounded."""
    bits = values.to(torch.float32).view(torch.int32)
    return (bits & ~0x1FFF).view(torch.float32).to(values.dtype)


_ROUNDINGS: dict[str, Callable[[Tensor], Tensor]] = {
    "tf32": _tf32,
    "tf32 truncated": _tf32_truncated,
    "float16": _through(torch.float16),
    "bfloat16": _through(torch.bfloat16),
    "float8_e4m3fn": _through(torch.float8_e4m3fn),
    "float8_e5m2": _through(torch.float8_e5m2),
}
