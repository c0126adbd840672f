"""bfloat16 and float8 values, which the interpreter keeps as bits: exact decoding, correctly rounded encoding."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from triton.runtime import interpreter as upstream

Array = np.ndarray[Any, Any]

_TORCH = {
    "fp8e4nv": torch.float8_e4m3fn,
    "fp8e5": torch.float8_e5m2,
    "fp8e4b8": torch.float8_e4m3fnuz,
    "fp8e5b16": torch.float8_e5m2fnuz,
}
_slow_kind = upstream._get_np_dtype
_kinds: dict[Any, np.dtype[Any]] = {}


def numpy_kind(dtype: Any) -> np.dtype[Any]:
    """The numpy dtype that holds a Triton type; remembered, as Triton's own function builds a table per call."""
    name = dtype.name
    kind = _kinds.get(name)
    if kind is None:
        kind = _kinds[name] = _slow_kind(dtype)
    return kind


_LARGEST = {name: float(torch.finfo(kind).max) for name, kind in _TORCH.items()}
PATTERNS = frozenset({"bf16", *_TORCH})
"""Names of the Triton types whose numpy array holds bits, not values."""

_tables: dict[str, Array] = {}


def _table(name: str) -> Array:
    table = _tables.get(name)
    if table is None:
        every = torch.arange(256, dtype=torch.int16).to(torch.uint8)
        table = _tables[name] = every.view(_TORCH[name]).to(torch.float32).numpy()
    return table


def decode(bits: Array, name: str) -> Array:
    """The float32 values of bit patterns."""
    if name == "bf16":
        return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)  # type: ignore[no-any-return]
    return _table(name)[bits]


def _encode_bf16(values: Array, toward_zero: bool) -> Array:
    single = np.ascontiguousarray(values, dtype=np.float32).reshape(values.shape)
    bits = single.view(np.uint32)
    if not toward_zero:
        bits = bits + (((bits >> np.uint32(16)) & np.uint32(1)) + np.uint32(0x7FFF))
    high = (bits >> np.uint32(16)).astype(np.uint16)
    nan = np.isnan(single)
    return np.where(nan, np.uint16(0x7FC0), high) if nan.any() else high  # type: ignore[no-any-return]


def encode(values: Array, name: str, toward_zero: bool = False) -> Array:
    """Bit patterns of values, rounded to nearest even.

    Too large values saturate in the two float8 types that NVIDIA hardware converts to (PTX ISA, ``cvt`` with
    ``.satfinite``), infinities included; NaN stays NaN.
    """
    if name == "bf16":
        return _encode_bf16(values, toward_zero)
    flat = torch.from_numpy(np.ascontiguousarray(values, dtype=np.float32).reshape(-1))
    if name in ("fp8e4nv", "fp8e5"):
        flat = flat.clamp(-_LARGEST[name], _LARGEST[name])
    bits: Array = flat.to(_TORCH[name]).view(torch.uint8).numpy()
    if toward_zero:
        over = np.abs(decode(bits, name)) > np.abs(flat.numpy())
        bits = np.where(over, bits - 1, bits).astype(np.uint8)
    return bits.reshape(values.shape)  # type: ignore[no-any-return]


def half_toward_zero(values: Array) -> Array:
    """float16, rounded toward zero."""
    nearest = values.astype(np.float16)
    over = np.abs(nearest.astype(np.float64)) > np.abs(values)
    return np.where(over, np.nextafter(nearest, np.float16(0)), nearest)


_INTEGER_RANGE = {
    np.dtype(kind): (np.iinfo(kind).min, np.iinfo(kind).max) for kind in (np.int32, np.uint32, np.int64, np.uint64)
}


def to_integer(values: Array, kind: np.dtype[Any]) -> Array:
    """Truncate toward zero; out-of-range values saturate and NaN becomes 0, as PTX's ``cvt.rzi`` does."""
    limits = _INTEGER_RANGE.get(kind)
    if limits is None:
        return to_integer(values, np.dtype(np.int32)).astype(kind)
    low, high = limits
    if values.size and not (values.min() >= low and values.max() < float(high)):
        wide = values.astype(np.float64)
        inside = (wide >= low) & (wide < float(high))
        safe = np.where(inside, wide, 0).astype(kind)
        return np.where(inside, safe, np.where(wide > 0, high, np.where(wide < 0, low, 0)).astype(kind))
    return values.astype(kind)


def to_tf32(values: Array) -> Array:
    """float32 with the 10 stored mantissa bits of TF32, rounded to nearest, ties away from zero (PTX ``cvt.rna``)."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded = ((bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)
    return np.where(np.isfinite(values), rounded, values)
