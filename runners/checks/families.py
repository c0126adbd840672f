"""Families of inputs: a case's plain draw turned into one that asks something special of the arithmetic.

Only the data is turned, the floating tensors of two and more dimensions (all floating ones where there are none), and
only its finite elements: masks made of infinities stay. Weights, scales and integers keep what the task drew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch import Tensor

from runners.numerics.formats import format_of
from runners.session import Value

PLAIN = "plain"

FAMILIES: dict[str, str] = {
    "offset": "a mean many times the spread: cancellation, exponentials without a maximum",
    "wide-range": "magnitudes over many powers of two: overflow and lost small terms",
    "all-equal": "one value everywhere: zero variance, ties",
    "one-huge": "one element near the largest power that squares safely: overflow inside",
    "small": "magnitudes where an epsilon counts",
}


def data_names(inputs: Mapping[str, Value]) -> tuple[str, ...]:
    """The arguments that a family turns."""
    floating = [
        name
        for name, value in inputs.items()
        if isinstance(value, Tensor) and value.is_floating_point() and value.numel() > 1 and _own_places(value)
    ]
    matrices = [name for name in floating if inputs[name].dim() >= 2]
    return tuple(matrices or floating)


def families_for(inputs: Mapping[str, Value]) -> tuple[str, ...]:
    """The families that make sense for these inputs.

    ``small`` needs a floating scalar, such as an epsilon, that small data could meet. Data of one sign is bounded by
    the task for some reason, such as a logarithm: of it only ``all-equal`` is made, from a value that was drawn.
    """
    names = data_names(inputs)
    if not names:
        return ()
    for name in names:
        finite = inputs[name].to(torch.float64)
        finite = finite[finite.isfinite()]
        if finite.numel() == 0 or bool((finite >= 0).all()) or bool((finite <= 0).all()):
            return ("all-equal",)
    scalars = any(isinstance(value, float) for value in inputs.values())
    return tuple(name for name in FAMILIES if name != "small" or scalars)


def turn(family: str, inputs: Mapping[str, Value], seed: int) -> dict[str, Value]:
    """The inputs of ``family`` made from a plain draw; layouts stay. ``plain`` returns the draw itself."""
    if family == PLAIN:
        return dict(inputs)
    generator = torch.Generator().manual_seed(seed)
    turned = dict(inputs)
    for name in data_names(inputs):
        value: Tensor = inputs[name]
        wide = value.to(torch.float64)
        finite = wide.isfinite()
        if not bool(finite.any()):
            continue
        spread = float(wide[finite].std()) if int(finite.sum()) > 1 else 0.0
        changed = _TURNS[family](wide, finite, spread or 1.0, value.dtype, generator)
        limit = format_of(value.dtype).max
        turned[name] = layout_copy(value).copy_(torch.where(finite, changed.clamp(-limit, limit), wide))
    return turned


def _offset(wide: Tensor, finite: Tensor, spread: float, dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    # 1000 in float32; in narrow formats so much less that the spread still spans a few steps.
    return wide + spread * min(1000.0, 0.25 / format_of(dtype).eps)


def _wide_range(wide: Tensor, finite: Tensor, spread: float, dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    reach = {torch.float16: 6.0, torch.bfloat16: 8.0}.get(dtype, 10.0 if dtype.itemsize > 2 else 2.0)
    powers = torch.rand(wide.shape, generator=generator, dtype=torch.float64) * (2 * reach) - reach
    return wide * powers.round().exp2()


def _all_equal(wide: Tensor, finite: Tensor, spread: float, dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    values = wide[finite]
    chosen = values[torch.randint(values.numel(), (), generator=generator)]
    return torch.full_like(wide, float(chosen))


def _one_huge(wide: Tensor, finite: Tensor, spread: float, dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    places = finite.reshape(-1).nonzero()[:, 0]
    place = places[torch.randint(places.numel(), (), generator=generator)]
    changed = wide.reshape(-1).clone()
    changed[place] = spread * (1e4 if dtype.itemsize > 1 else 64.0)
    return changed.reshape(wide.shape)


def _small(wide: Tensor, finite: Tensor, spread: float, dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    return wide * (max(1e-3, 16 * format_of(dtype).min_normal) / spread)


_TURNS: dict[str, Callable[[Tensor, Tensor, float, torch.dtype, torch.Generator], Tensor]] = {
    "offset": _offset,
    "wide-range": _wide_range,
    "all-equal": _all_equal,
    "one-huge": _one_huge,
    "small": _small,
}


def mix(
    inputs: Mapping[str, Value], donor: Mapping[str, Value], spots: int, seed: int
) -> tuple[dict[str, Value], dict[str, int]]:
    """``inputs`` with ``spots`` random elements of each floating tensor taken from the same places of ``donor``.

    Where there is no floating tensor integers are mixed. Both have one layout. Also gives how many elements of which
    argument were replaced.
    """
    generator = torch.Generator().manual_seed(seed)
    candidates = [
        name for name, value in inputs.items() if isinstance(value, Tensor) and value.numel() > 0 and _own_places(value)
    ]
    floating = [name for name in candidates if inputs[name].is_floating_point() or inputs[name].is_complex()]
    mixed, counts = dict(inputs), {}
    for name in floating or candidates:
        value = inputs[name]
        count = min(spots, max(1, value.numel() // 8))
        places = (
            torch.randperm(value.numel(), generator=generator)[:count]
            if value.numel() < 1 << 20
            else (torch.randint(value.numel(), (count,), generator=generator))
        )
        index = (
            tuple(map(torch.from_numpy, np.unravel_index(places.numpy(), tuple(value.shape))))
            if value.dim()
            else (...,)
        )
        changed = layout_copy(value)
        _bits(changed)[index] = _bits(donor[name])[index]
        mixed[name], counts[name] = changed, count
    return mixed, counts


def layout_copy(value: Tensor) -> Tensor:
    """A copy with the same strides and storage offset, as a slot in shared memory demands."""
    storage = torch.empty(0, dtype=value.dtype).set_(value.untyped_storage().clone())  # type: ignore[no-untyped-call]
    return storage.as_strided(value.shape, value.stride(), value.storage_offset())


def _bits(value: Tensor) -> Tensor:
    """The same memory as integers: indexing is not implemented for every narrow float."""
    width = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}.get(value.element_size())
    return value if width is None else value.view(width)


def _own_places(value: Tensor) -> bool:
    """Whether every element has memory of its own: false for expanded tensors, whose elements cannot be changed."""
    return all(stride > 0 for stride, size in zip(value.stride(), value.shape, strict=True) if size > 1)
