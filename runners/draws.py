"""Seeded draws of input tensors, and how one secret seed becomes many."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import torch
from torch import Tensor

from runners.numerics.formats import dtype_of

Shape = Sequence[int] | int


def derive_seed(seed: int, *labels: str | int) -> int:
    """A 63-bit seed that depends on ``seed`` and on every label; the same on every machine and in every version."""
    text = "\x1f".join((str(seed), *(f"{type(label).__name__}:{label}" for label in labels)))
    digest = hashlib.blake2b(text.encode("utf-8"), digest_size=8, person=b"kernel-review").digest()
    return int.from_bytes(digest, "little") & (2**63 - 1)


class Draw:
    """A seeded source of CPU tensors, handed to a task's ``make_inputs``.

    A dtype is a torch dtype or its name. Narrow floats are drawn in float32 and rounded once.
    """

    def __init__(self, seed: int) -> None:
        self.generator = torch.Generator()
        self.generator.manual_seed(seed)

    def normal(self, shape: Shape, dtype: torch.dtype | str, mean: float = 0.0, std: float = 1.0) -> Tensor:
        """Normally distributed numbers."""
        wanted = dtype_of(dtype)
        drawn = torch.randn(_shape(shape), generator=self.generator, dtype=_drawn_in(wanted))
        return drawn.mul_(std).add_(mean).to(wanted)

    def uniform(self, shape: Shape, dtype: torch.dtype | str, low: float = 0.0, high: float = 1.0) -> Tensor:
        """Uniformly distributed numbers from ``low`` up to, never equal to, ``high``."""
        wanted = dtype_of(dtype)
        drawn = torch.rand(_shape(shape), generator=self.generator, dtype=_drawn_in(wanted))
        rounded = drawn.mul_(high - low).add_(low).to(wanted)
        back = rounded.to(drawn.dtype)
        return torch.where(back >= high, torch.full((), low, dtype=drawn.dtype), back).to(wanted)

    def integers(self, shape: Shape, dtype: torch.dtype | str, low: int, high: int) -> Tensor:
        """Integers from ``low`` up to, never equal to, ``high``, in any dtype that holds them."""
        return torch.randint(low, high, _shape(shape), generator=self.generator, dtype=torch.int64).to(dtype_of(dtype))

    def choice(self, shape: Shape, dtype: torch.dtype | str, values: Sequence[float]) -> Tensor:
        """One of ``values`` for each element, all equally likely."""
        if len(values) == 0:
            raise ValueError("choice needs at least one value")
        which = torch.randint(0, len(values), _shape(shape), generator=self.generator)
        return torch.tensor(list(values))[which].to(dtype_of(dtype))


def _shape(shape: Shape) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


def _drawn_in(dtype: torch.dtype) -> torch.dtype:
    return dtype if dtype in (torch.float64, torch.complex64, torch.complex128) else torch.float32
