"""Byte patterns for fresh memory and guard zones, known to the judge and to the hooks alike.

A float pattern is a NaN, so that arithmetic on memory that nobody wrote spreads; its payload, like the bytes of every
other pattern, depends on a seed, so that two runs with two seeds tell "never written" from "happens to be equal".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

GUARD_BYTES = 4096
"""Size of a guard zone on each side of a tensor in shared memory."""

ALIGNMENT = 256
"""Alignment of a tensor's first byte, that of torch's own CUDA allocator; 16 is what Triton specialises on."""


def _noise(seed: int) -> int:
    """A 64-bit mix of ``seed`` (splitmix64's finaliser, public domain)."""
    x = (seed + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
    return x ^ (x >> 31)


def element_pattern(dtype: torch.dtype, seed: int) -> bytes:
    """The bytes of one unwritten element of ``dtype``, little endian.

    Quiet NaN with a seeded payload for floats of 16 bits and more; the one NaN of float8 types that have one; seeded
    bytes for integers. Bool has no pattern that is safe to read: it is False or True by the seed.
    """
    import torch

    noise = _noise(seed)
    if dtype is torch.bool:
        return bytes([noise & 1])
    if dtype.is_complex:
        half = element_pattern(torch.float32 if dtype.itemsize == 8 else torch.float64, seed)
        return half + half if dtype.itemsize >= 8 else element_pattern(torch.float16, seed) * 2
    if dtype is torch.float64:
        return (0x7FF8000000000000 | (noise & 0x0007FFFFFFFFFFFF)).to_bytes(8, "little")
    if dtype is torch.float32:
        return (0x7FC00000 | (noise & 0x003FFFFF)).to_bytes(4, "little")
    if dtype is torch.float16:
        return (0x7E00 | (noise & 0x01FF)).to_bytes(2, "little")
    if dtype is torch.bfloat16:
        return (0x7FC0 | (noise & 0x003F)).to_bytes(2, "little")
    if dtype is torch.float8_e4m3fn:
        return b"\x7f" if noise & 1 else b"\xff"
    if dtype is torch.float8_e5m2:
        return b"\x7e" if noise & 1 else b"\x7f"
    if dtype.is_floating_point and dtype.itemsize == 1:
        return b"\x80"
    return noise.to_bytes(8, "little")[: dtype.itemsize] * (1 if dtype.itemsize <= 8 else 2)


def guard_pattern(seed: int, size: int) -> bytes:
    """``size`` bytes for a guard zone: eight seeded bytes, repeated."""
    unit = _noise(seed ^ 0x5A5A).to_bytes(8, "little")
    return (unit * (size // 8 + 1))[:size]
