"""A kernel that breaks the rules on purpose, to prove that breaking them is reported."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def store_at(target, place):  # type: ignore[no-untyped-def]
    """Store a number ``place`` elements from ``target``."""
    tl.store(target + place, 1.0)
