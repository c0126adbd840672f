"""The floating-point formats that outputs are stored in, and correct rounding into them.

Limits come from ``torch.finfo``, spacings from the bit patterns themselves (finfo's eps of ``float8_e5m2fnuz`` is half
of what the format has). Which formats lack infinities follows the OCP specifications "8-bit Floating Point" (OFP8, rev.
1.0) and "Microscaling Formats" (MX, rev. 1.0); the ``fnuz`` formats are those of Noune et al., arXiv:2206.02915.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from runners.contract import Overflow

_WITHOUT_INF = frozenset(
    {torch.float8_e4m3fn, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz, getattr(torch, "float8_e8m0fnu", None)}
)
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@dataclass(frozen=True)
class Format:
    """The numbers of one format; all are exact in float64."""

    dtype: torch.dtype
    name: str
    eps: float
    """Distance from 1 to the next larger number: ulp(1)."""
    u: float
    """Unit roundoff: half of eps, the largest relative error of rounding to nearest."""
    max: float
    min_normal: float
    smallest: float
    """Smallest positive number: the smallest subnormal where there are subnormals."""
    has_inf: bool

    @property
    def overflowed(self) -> float:
        """Where the next number after ``max`` would lie, did the exponent range go on (inf for float64)."""
        # The spacing at max: eps times the largest power of two that is not above max.
        return self.max + self.eps * 2.0 ** (torch.tensor(self.max, dtype=torch.float64).frexp().exponent.item() - 1)


@cache
def format_of(dtype: torch.dtype) -> Format:
    """The format of a floating dtype; of a complex one, that of its parts. Raises TypeError for other dtypes."""
    if dtype.is_complex:
        dtype = dtype.to_real()
    if not dtype.is_floating_point:
        raise TypeError(f"{dtype} is not a floating-point dtype")
    info = torch.finfo(dtype)
    one = torch.ones((), dtype=dtype).view(_BITS[dtype.itemsize])
    eps = float((one + 1).view(dtype)) - 1.0
    return Format(
        dtype=dtype,
        name=name_of(dtype),
        eps=eps,
        u=eps / 2,
        max=info.max,
        min_normal=info.smallest_normal,
        smallest=float(torch.ones((), dtype=_BITS[dtype.itemsize]).view(dtype)),
        has_inf=dtype not in _WITHOUT_INF,
    )


def name_of(dtype: torch.dtype) -> str:
    """``float16`` for ``torch.float16``."""
    return str(dtype).removeprefix("torch.")


def dtype_of(name: str | torch.dtype) -> torch.dtype:
    """The torch dtype called ``name``, with or without ``torch.``. Raises ValueError when there is none."""
    if isinstance(name, torch.dtype):
        return name
    found = getattr(torch, name.removeprefix("torch."), None)
    if not isinstance(found, torch.dtype):
        raise ValueError(f"{name!r} is not the name of a torch dtype")
    return found


def default_overflow(dtype: torch.dtype) -> Overflow:
    """What torch's own conversion on the CPU does: ``float8_e4m3fn`` saturates, all other formats overflow."""
    return "saturate" if dtype is torch.float8_e4m3fn else "inf"


def widen(values: Tensor) -> Tensor:
    """``values`` in float64, exactly; complex becomes complex128. int64 above 2**53 is rounded."""
    return values.to(torch.complex128 if values.is_complex() else torch.float64)


def components(values: Tensor) -> Tensor:
    """Real numbers to compare: a complex tensor gains a last dimension of size 2."""
    return torch.view_as_real(values) if values.is_complex() else values


def within_range(values: Tensor, dtype: torch.dtype, overflow: Overflow) -> Tensor:
    """The float64 values that a store aims at: clamped to the finite range under ``saturate``, else unchanged."""
    if overflow != "saturate" or not dtype.is_floating_point:
        return values
    limit = format_of(dtype).max
    return values.clamp(-limit, limit)


def round_to(values: Tensor, dtype: torch.dtype, overflow: Overflow) -> Tensor:
    """Round real float64 ``values`` to ``dtype``, to nearest with ties to even, once.

    Under ``saturate`` too large values, infinities among them, become the largest finite one. Under ``inf`` they become
    infinite, or NaN in a format that has no infinity.
    """
    values = within_range(values, dtype, overflow)
    if dtype is torch.float64:
        return values.clone()
    form = format_of(dtype)
    if dtype is not torch.float32:
        values = _to_odd_float32(values)
    stored = values.to(dtype)
    if overflow == "inf" and not form.has_inf:
        # Only float8_e4m3fn needs this, as torch saturates it. Its max has an even significand: halfway rounds to it.
        too_large = values.abs() > (form.max + form.overflowed) / 2
        stored = torch.where(too_large.to(stored.device), torch.full((), float("nan")).to(dtype), stored)
    return stored


def _to_odd_float32(values: Tensor) -> Tensor:
    """Float32 by rounding to odd, after which a second rounding gives what one rounding would.

    Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums: proved algorithms using rounding to odd",
    IEEE Trans. Computers 57(4), 2008.
    """
    single = values.to(torch.float32)
    back = single.to(torch.float64)
    inexact = (back != values) & single.isfinite()
    bits = single.view(torch.int32)
    toward_zero = torch.where(back.abs() > values.abs(), bits - 1, bits)
    odd = torch.where(inexact, toward_zero | 1, bits).view(torch.float32)
    largest = torch.finfo(torch.float32).max
    # A finite value beyond float32 must stay finite here: the narrow format decides what it becomes.
    return torch.where(values.isfinite() & single.isinf(), torch.copysign(torch.full((), largest), single), odd)
