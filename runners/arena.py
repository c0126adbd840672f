"""Shared memory in which inputs and outputs lie between guard zones."""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from runners.patterns import ALIGNMENT, GUARD_BYTES, guard_pattern
from runners.protocol import Region

SEGMENT_BYTES = 16 * 1024 * 1024
"""Least size of a segment; pages that nothing touches cost nothing."""

_F_ADD_SEALS = 1033
_SEALS = 0x1 | 0x2 | 0x4  # F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW: a shrunk file would kill the judge by SIGBUS


@dataclass
class Segment:
    """One sealed memory file, mapped."""

    number: int
    size: int
    memory: mmap.mmap
    used: int = 0
    live: int = 0
    tensor: torch.Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.tensor = torch.frombuffer(self.memory, dtype=torch.uint8)


def sealed_memory(name: str, size: int) -> int:
    """A memory file of ``size`` bytes, whose size nobody can change any more; the caller owns the descriptor."""
    fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    fcntl.fcntl(fd, _F_ADD_SEALS, _SEALS)
    return fd


def align(value: int, to: int = ALIGNMENT) -> int:
    """``value`` rounded up to a multiple of ``to``."""
    return -(-value // to) * to


class Arena:
    """The judge's side: allocates regions in segments and hands each new segment to ``share``.

    ``share(number, size, fd)`` must pass the descriptor on at once; it is closed afterwards. ``unshare(number)`` tells
    that a segment is gone. ``limit`` bounds the bytes in use; segments are numbered from ``first`` + 1, so that two
    arenas can share one channel.
    """

    def __init__(
        self,
        limit: int,
        seed: int,
        share: Callable[[int, int, int], None],
        unshare: Callable[[int], None],
        *,
        first: int = 0,
    ) -> None:
        self._limit = limit
        self._share, self._unshare = share, unshare
        self._segments: dict[int, Segment] = {}
        self._next = first
        self._guard = torch.frombuffer(bytearray(guard_pattern(seed, GUARD_BYTES)), dtype=torch.uint8)

    @property
    def bytes_in_use(self) -> int:
        """Bytes of all segments."""
        return sum(segment.size for segment in self._segments.values())

    def allocate(self, size: int) -> Region:
        """A region of ``size`` bytes between guard zones. Raises MemoryError at the limit."""
        need = GUARD_BYTES + align(max(size, 1)) + GUARD_BYTES
        segment = self._with_room(need)
        start = segment.used + GUARD_BYTES
        segment.used += need
        segment.live += 1
        region = Region(segment.number, start, size)
        before, after = self._guards(region)
        before.copy_(self._guard)
        after.copy_(self._after_guard(region))
        return region

    def free(self, region: Region) -> None:
        """Give a region back; a segment without live regions is unmapped on both sides, but for the first."""
        segment = self._segments[region.segment]
        segment.live -= 1
        if segment.live:
            return
        segment.used = 0
        if len(self._segments) > 1:
            del self._segments[segment.number]
            self._unshare(segment.number)

    def bytes_of(self, region: Region) -> torch.Tensor:
        """The region's bytes in place: a uint8 tensor that the other process can write at any time."""
        return self._segments[region.segment].tensor[region.offset : region.offset + region.size]

    def intact(self, region: Region) -> bool:
        """Whether both guard zones still hold their pattern."""
        before, after = self._guards(region)
        return torch.equal(before, self._guard) and torch.equal(after, self._after_guard(region))

    def mend(self, region: Region) -> None:
        """Write the guard zones again, so that one broken call does not accuse the next."""
        before, after = self._guards(region)
        before.copy_(self._guard)
        after.copy_(self._after_guard(region))

    def _guards(self, region: Region) -> tuple[torch.Tensor, torch.Tensor]:
        memory = self._segments[region.segment].tensor
        end = region.offset + region.size
        stop = region.offset + align(max(region.size, 1)) + GUARD_BYTES
        return memory[region.offset - GUARD_BYTES : region.offset], memory[end:stop]

    def _after_guard(self, region: Region) -> torch.Tensor:
        size = align(max(region.size, 1)) - region.size + GUARD_BYTES
        return self._guard.repeat(2)[:size]

    def _with_room(self, need: int) -> Segment:
        for segment in self._segments.values():
            if segment.size - segment.used >= need:
                return segment
        size = align(max(SEGMENT_BYTES, need), mmap.PAGESIZE)
        if self.bytes_in_use + size > self._limit:
            raise MemoryError(f"the run's shared memory would exceed {self._limit >> 20} MiB")
        self._next += 1
        fd = sealed_memory(f"segment-{self._next}", size)
        try:
            segment = Segment(self._next, size, mmap.mmap(fd, size))
            self._share(segment.number, size, fd)
        finally:
            os.close(fd)
        self._segments[segment.number] = segment
        return segment


def storage_span(tensor: torch.Tensor) -> int:
    """Bytes from the first byte of ``tensor``'s storage to the last byte that the tensor can reach."""
    if tensor.numel() == 0:
        return 0
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return int(tensor.storage_offset() + last + 1) * tensor.element_size()


def raw_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """The bytes of ``tensor``'s storage up to :func:`storage_span`, in place, as uint8."""
    span = storage_span(tensor)
    flat = torch.empty(0, dtype=torch.uint8)
    return flat.set_(tensor.untyped_storage(), 0, (span,), (1,))


def over_bytes(
    data: torch.Tensor, dtype: torch.dtype, shape: tuple[int, ...], strides: tuple[int, ...], offset: int
) -> torch.Tensor:
    """A tensor that looks at the uint8 tensor ``data`` in place; ``strides`` and ``offset`` count elements."""
    storage = data.untyped_storage()
    first = data.storage_offset()
    if first % dtype.itemsize:
        raise ValueError("the bytes are not aligned to the dtype")
    flat = torch.empty(0, dtype=dtype)
    return flat.set_(storage, first // dtype.itemsize + offset, shape, strides)


def private_copy(tensor: torch.Tensor) -> torch.Tensor:
    """A copy with the same strides and storage offset, whose storage nobody else has."""
    data = raw_bytes(tensor).clone()
    return over_bytes(data, tensor.dtype, tuple(tensor.shape), tuple(tensor.stride()), int(tensor.storage_offset()))
