"""Distance in units in the last place: how many representable numbers lie between two of one format."""

from __future__ import annotations

import torch
from torch import Tensor

_SIGNED = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_UNSIGNED_FORMATS = frozenset({getattr(torch, "float8_e8m0fnu", None)})

FAR = torch.iinfo(torch.int64).max
"""The distance to a NaN, and the most that a distance can be."""


def ordinal(values: Tensor) -> Tensor:
    """An int64 for each number of a real floating format, monotone in its value.

    Neighbours differ by 1, both zeros are 0, the smallest subnormals are 1 and -1. NaN gives no meaningful number.
    """
    size = values.element_size()
    bits = values.contiguous().view(_SIGNED[size]).to(torch.int64)
    if values.dtype in _UNSIGNED_FORMATS:
        return bits & 0xFF
    magnitude = bits & ((1 << (8 * size - 1)) - 1)
    return torch.where(bits < 0, -magnitude, magnitude)


def distance(a: Tensor, b: Tensor) -> Tensor:
    """|ordinal(a) - ordinal(b)| as int64, for tensors of one real dtype and shape.

    Two NaNs are 0 apart, a NaN and a number ``FAR``. For integer and bool tensors it is the difference of the values.
    """
    if a.dtype != b.dtype:
        raise TypeError(f"{a.dtype} and {b.dtype} have no common unit in the last place")
    if not a.dtype.is_floating_point:
        first, second = a.to(torch.int64), b.to(torch.int64)
        nan_a = nan_b = torch.zeros((), dtype=torch.bool)
    else:
        first, second = ordinal(a), ordinal(b)
        nan_a, nan_b = _isnan(a), _isnan(b)
    gap = (first - second).abs()
    # Numbers of opposite sign can be further apart than int64 counts: the subtraction wraps exactly then.
    wrapped = ((first < 0) != (second < 0)) & (((first - second) < 0) != (first < 0))
    gap = torch.where(wrapped | (gap < 0), FAR, gap)
    return torch.where(nan_a & nan_b, 0, torch.where(nan_a ^ nan_b, FAR, gap))


def _isnan(values: Tensor) -> Tensor:
    return (values.to(torch.float32) if values.element_size() == 1 else values).isnan()
