"""What the timed calls work on: drawn once, changed at random spots for every call, so that no two calls are alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch

from runners.session import Value

POOL = 4
"""Draws of the case that calls are made from."""
SPOTS = 8
"""Elements of each floating input that a call changes, at most."""
DRAW_SECONDS = 1.0
"""Draws beyond the second stop here: large inputs take long to draw."""


class Contents(Protocol):
    """A source of inputs that all have one layout."""

    bytes_per_call: int

    def draw(self, count: int, rng: np.random.Generator) -> list[Mapping[str, Value]]:
        """Inputs for ``count`` calls, each unlike all others."""
        ...


def same_layout(one: Mapping[str, Value], two: Mapping[str, Value]) -> bool:
    """Whether ``two`` can be written where ``one`` lies: equal scalars; equal dtypes, shapes, strides, offsets."""
    if one.keys() != two.keys():
        return False
    for name, value in one.items():
        other = two[name]
        if isinstance(value, torch.Tensor) != isinstance(other, torch.Tensor):
            return False
        if not isinstance(value, torch.Tensor):
            if value != other:
                return False
        elif (value.dtype, value.shape, value.stride(), value.storage_offset()) != (
            other.dtype,
            other.shape,
            other.stride(),
            other.storage_offset(),
        ):
            return False
    return True


class PoolContents:
    """Draws of one case, mixed: a call gets one draw whole, with a few floating elements taken from another.

    An element comes from the same position of another draw, so that it stays within what the task draws there. Integer
    and bool tensors are never mixed, as their elements may depend on each other (offsets, permutations). Where draws
    differ in layout only the first is used, and elements trade places inside a tensor.
    """

    def __init__(self, draws: Sequence[Mapping[str, Value]]) -> None:
        self._pool = [draws[0], *(draw for draw in draws[1:] if same_layout(draws[0], draw))]
        self._floating = tuple(
            name
            for name, value in draws[0].items()
            if isinstance(value, torch.Tensor) and value.is_floating_point() and _every_element_has_its_own_place(value)
        )
        self._elements = [{name: _storage_elements(draw[name]) for name in self._floating} for draw in self._pool]
        self.bytes_per_call = sum(
            value.untyped_storage().nbytes() for value in draws[0].values() if isinstance(value, torch.Tensor)
        )

    @classmethod
    def of_case(
        cls, make: Callable[[int], Mapping[str, Value]], seeds: Sequence[int], clock: Callable[[], float]
    ) -> PoolContents:
        """Draw with each of ``seeds``, two at least, more while the clock (seconds) allows."""
        begun = clock()
        draws: list[Mapping[str, Value]] = []
        for seed in seeds[:POOL]:
            if len(draws) >= 2 and clock() - begun > DRAW_SECONDS:
                break
            draws.append(make(seed))
        return cls(draws)

    @property
    def first(self) -> Mapping[str, Value]:
        """One draw, unchanged."""
        return self._pool[0]

    @property
    def facts(self) -> dict[str, object]:
        """What evidence says of the contents."""
        return {"draws": len(self._pool), "changed_inputs": list(self._floating), "bytes_per_call": self.bytes_per_call}

    def draw(self, count: int, rng: np.random.Generator) -> list[Mapping[str, Value]]:
        """Inputs for ``count`` calls. Tensors that are not changed are shared between the calls, others are copies."""
        return [self._one(rng) for _ in range(count)]

    def _one(self, rng: np.random.Generator) -> Mapping[str, Value]:
        base = int(rng.integers(len(self._pool)))
        donor = (base + int(rng.integers(1, len(self._pool)))) % len(self._pool) if len(self._pool) > 1 else None
        made = dict(self._pool[base])
        for name in self._floating:
            value: torch.Tensor = made[name]
            if value.numel() == 0:
                continue
            spots = int(rng.integers(1 if donor is not None else 2, SPOTS + 1))
            where = _positions(value, rng.integers(0, value.numel(), size=spots))
            before = self._elements[base][name]
            changed = before.copy()
            changed[where] = self._elements[donor][name][where] if donor is not None else before[np.roll(where, 1)]
            whole = torch.from_numpy(changed).view(value.dtype)
            made[name] = whole.as_strided(value.shape, value.stride(), value.storage_offset())
        return made


def _every_element_has_its_own_place(value: torch.Tensor) -> bool:
    """Whether writing one element changes no other: false for expanded and overlapping tensors."""
    spans = sorted((stride, size) for stride, size in zip(value.stride(), value.shape, strict=True) if size > 1)
    reach = 0
    for stride, size in spans:
        if stride <= reach:
            return False
        reach += stride * (size - 1)
    return True


def _storage_elements(value: torch.Tensor) -> npt.NDArray[Any]:
    """All of a tensor's storage as integers of the element's width: numpy has no float8, and bits are what moves."""
    width = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[value.element_size()]
    elements = value.untyped_storage().nbytes() // value.element_size()
    return value.detach().as_strided((elements,), (1,), 0).view(width).numpy()


def _positions(value: torch.Tensor, where: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Where in the storage, in elements, the elements number ``where`` (in row-major order) lie."""
    index = np.unravel_index(where, tuple(value.shape)) if value.dim() else ()
    strided = (axis * stride for axis, stride in zip(index, value.stride(), strict=True))
    return np.asarray(sum(strided, start=np.full_like(where, value.storage_offset())))
