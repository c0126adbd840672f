"""What memory a pointer may touch, and what is known about its bytes.

An extent is the allocation that a pointer derives from: for a tensor that the judge lent, the span of that very tensor
(first to last element, gaps included); for memory that the submission allocated, the whole storage. So a kernel may
move a pointer backwards or sideways inside its own buffer, and a view of a larger buffer may be left, as on a device;
one byte beyond is out of bounds, even where another tensor happens to lie there.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from runners.frameworks.sites import Site

if TYPE_CHECKING:
    from runners.frameworks.interpreter.races import Shadow

WRITTEN, UNWRITTEN, DERIVED = 0, 1, 2
"""States of a byte: holds a value; nobody wrote it; holds a value computed from bytes that nobody wrote."""


class Extent:
    """A range of memory with a name. ``states`` is one byte per byte, None while every byte is written."""

    __slots__ = (
        "__weakref__",
        "_bytes",
        "argument",
        "hi",
        "keep",
        "lo",
        "name",
        "shadow",
        "source",
        "start",
        "states",
        "storage",
    )

    def __init__(self, lo: int, hi: int, name: str, argument: str | None = None, storage: int | None = None) -> None:
        self.lo, self.hi, self.name, self.argument = lo, hi, name, argument
        self.storage = lo if storage is None else storage
        """Address of the storage that it lies in."""
        self.start = lo
        """Where the tensor that gave the name begins: indices in reports count from here."""
        self.states: np.ndarray[Any, Any] | None = None
        self.source: tuple[str, Site | None] | None = None
        """What the last derived value depends on, and where that was read."""
        self.shadow: Shadow | None = None
        self.keep: Any = None
        self._bytes: np.ndarray[Any, Any] | None = None

    @property
    def bytes(self) -> np.ndarray[Any, Any]:
        """The memory itself, as uint8."""
        if self._bytes is None:
            raw = (ctypes.c_uint8 * (self.hi - self.lo)).from_address(self.lo)
            self._bytes = np.ctypeslib.as_array(raw)
        return self._bytes

    def mark(self, state: int) -> None:
        """Set every byte's state."""
        self.states = None if state == WRITTEN else np.full(self.hi - self.lo, state, dtype=np.uint8)

    def states_at(self, offsets: np.ndarray[Any, Any], size: int) -> np.ndarray[Any, Any]:
        """For elements of ``size`` bytes at byte ``offsets``: nonzero where a byte is not plainly written."""
        assert self.states is not None
        if size == 1:
            return self.states[offsets]  # type: ignore[no-any-return]
        found: np.ndarray[Any, Any] = self.states[offsets]
        for byte in range(1, size):
            found = np.maximum(found, self.states[offsets + np.uint64(byte)])
        return found

    def set_states(self, offsets: np.ndarray[Any, Any], size: int, states: Any) -> None:
        """Set the state of elements of ``size`` bytes at byte ``offsets``."""
        if self.states is None:
            self.states = np.zeros(self.hi - self.lo, dtype=np.uint8)
        for byte in range(size):
            self.states[offsets + np.uint64(byte)] = states

    def view_states(self, tensor: torch.Tensor) -> torch.Tensor:
        """The states of a tensor's bytes, one more dimension than the tensor. It must lie inside the extent."""
        assert self.states is not None
        size = tensor.element_size()
        offset = tensor.data_ptr() - self.lo
        return torch.from_numpy(self.states).as_strided(
            (*tensor.shape, size), (*(step * size for step in tensor.stride()), 1), offset
        )


def span(tensor: torch.Tensor) -> tuple[int, int]:
    """First and one past the last byte that belong to a tensor's elements, gaps included; empty when it is."""
    start = tensor.data_ptr()
    if tensor.numel() == 0:
        return start, start
    reach = sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
    return start, start + (reach + 1) * tensor.element_size()


class MemoryMap:
    """The extents of one watched call, by the storage they lie in."""

    def __init__(self) -> None:
        self._by_storage: dict[int, list[Extent]] = {}

    def __iter__(self) -> Iterator[Extent]:
        for extents in self._by_storage.values():
            yield from extents

    def lend(self, arguments: Mapping[str, Any]) -> None:
        """Register the tensors that the judge lent, each with its own span."""
        for name, value in arguments.items():
            if isinstance(value, torch.Tensor) and value.layout is torch.strided and value.numel():
                lo, hi = span(value)
                storage = value.untyped_storage().data_ptr()
                self._by_storage.setdefault(storage, []).append(Extent(lo, hi, name, name, storage))

    def add(self, storage: int, extent: Extent) -> None:
        """Register an extent that covers a whole storage, in place of what was there before."""
        self._by_storage[storage] = [extent]

    def drop(self, storage: int) -> None:
        """Forget a storage: its memory is gone."""
        self._by_storage.pop(storage, None)

    def known(self, tensor: torch.Tensor) -> Extent | None:
        """The extent that a tensor lies in, if it is registered."""
        extents = self._by_storage.get(tensor.untyped_storage().data_ptr())
        if not extents:
            return None
        start = tensor.data_ptr()
        for extent in extents:
            if extent.lo <= start < extent.hi:
                return extent
        return extents[0]

    def find(self, address: int) -> Extent | None:
        """The extent that holds an address, if any."""
        for extents in self._by_storage.values():
            for extent in extents:
                if extent.lo <= address < extent.hi:
                    return extent
        return None


def whole_storage(tensor: torch.Tensor, name: str) -> Extent:
    """An extent over all of a tensor's storage."""
    storage = tensor.untyped_storage()
    extent = Extent(storage.data_ptr(), storage.data_ptr() + storage.nbytes(), name)
    extent.start = tensor.data_ptr() if tensor.numel() else extent.lo
    return extent
