"""Races between programs of one launch, by shadow memory.

Programs of a grid may run in any order or at once, so two plain accesses of different programs to one element, one of
them a write, are a race unless atomics order them. The interpreter runs programs one after another; an access is
ordered after another program's when a chain of release and acquire on the same location leads from there to here (the
happens-before relation of FastTrack, Flanagan and Freund, PLDI 2009, with one access remembered per element).

Not races: atomics among themselves; a plain read beside atomics (the first step of a compare-and-swap loop); two
programs that write the same value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from runners.frameworks.extents import Extent

Array = np.ndarray[Any, Any]

NOBODY, MANY = -1, -2
MAX_ELEMENTS = 1 << 25
"""Extents with more elements are not shadowed; the run says so."""
MAX_CLOCKED = 1 << 16
"""Launches with more programs than this are not checked once they synchronise: clocks grow with their square."""
_FOLD_AT = 1 << 20


class Programs:
    """Who runs, and whose earlier accesses the running program has synchronised with."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.current = 0
        self.epoch = 1
        self.known: Array | None = None
        self._released: dict[Any, Array] = {}
        self.gave_up = False

    def start(self, program: int) -> None:
        """The next program begins: it knows of nobody."""
        self.current, self.epoch, self.known = program, 1, None

    def synchronise(self, location: Any, acquire: bool, release: bool) -> None:
        """An atomic at ``location``: learn what was released there, release what is known."""
        if self.count > MAX_CLOCKED:
            self.gave_up = True
            return
        released = self._released.get(location)
        if acquire and released is not None:
            self.known = released.copy() if self.known is None else np.maximum(self.known, released)
        if release:
            if released is None:
                released = self._released[location] = np.zeros(self.count, dtype=np.int32)
            if self.known is not None:
                np.maximum(released, self.known, out=released)
            released[self.current] = self.epoch
            self.epoch += 1

    def unordered(self, programs: Array, epochs: Array | int) -> Array:
        """Which accesses by ``programs`` (all >= 0) are not ordered before the running program's next one."""
        if self.gave_up:
            return np.zeros(programs.shape, dtype=bool)
        if self.known is None:
            return np.ones(programs.shape, dtype=bool)
        return self.known[programs] < epochs


class _Last:
    """Per element, the last program that accessed it in one way, and when by its own clock."""

    def __init__(self, size: int) -> None:
        self.program = np.full(size, NOBODY, dtype=np.int32)
        self.epoch: Array | None = None

    def set(self, index: Array, program: Any, epoch: int) -> None:
        self.program[index] = program
        if epoch != 1 and self.epoch is None:
            self.epoch = np.ones(len(self.program), dtype=np.int32)
        if self.epoch is not None:
            self.epoch[index] = epoch

    def conflicts(self, index: Array, programs: Programs) -> Array | None:
        """Elements last accessed by one other program that is not ordered before; None where there are none."""
        last = self.program[index]
        bad = (last >= 0) & (last != programs.current)
        if not bad.any():
            return None
        bad[bad] = programs.unordered(last[bad], 1 if self.epoch is None else self.epoch[index][bad])
        return bad if bad.any() else None

    def split(self, factor: int) -> None:
        self.program = np.repeat(self.program, factor)
        if self.epoch is not None:
            self.epoch = np.repeat(self.epoch, factor)


Tell = Callable[[str, Array, Array], None]
"""Called with what happened, the elements' indices, and the other programs."""


class Shadow:
    """Who touched which element of one extent in one launch."""

    def __init__(self, extent: Extent, element: int, programs: Programs, watch_updates: bool) -> None:
        self._programs = programs
        self.element = element
        self._size = -(-(extent.hi - extent.lo) // element)
        self._writer: _Last | None = None
        self._reader: _Last | None = None
        self._atomic: _Last | None = None
        self._pending: list[tuple[int, Array]] = []
        self._pending_lanes = 0
        self._readers: dict[int, int] = {}
        self._order: Array | None = None
        self.updated: Array | None = np.zeros(self._size, dtype=bool) if watch_updates else None
        """Elements that were read before this launch first wrote them: in-out memory."""

    def index(self, offsets: Array, size: int) -> Array:
        """Element indices of accesses of ``size`` bytes at byte ``offsets``."""
        if size < self.element:
            self._refine(size)
        index = (offsets // np.uint64(self.element)).astype(np.int64)
        if size > self.element:
            steps = np.arange(size // self.element, dtype=np.int64)
            return (index[:, None] + steps).reshape(-1)  # type: ignore[no-any-return]
        return index  # type: ignore[no-any-return]

    def _refine(self, element: int) -> None:
        self._fold()
        factor = self.element // element
        for last in (self._writer, self._reader, self._atomic):
            if last is not None:
                last.split(factor)
        if self.updated is not None:
            self.updated = np.repeat(self.updated, factor)
        self._size *= factor
        self._order = None
        self.element = element

    def _fold(self) -> None:
        """Bring the reads seen so far into the shadow; memory that is only read never needs it."""
        if not self._pending:
            return
        if self._reader is None:
            self._reader = _Last(self._size)
        program = self._reader.program
        for reader, index in self._pending:
            last = program[index]
            program[index] = np.where((last == NOBODY) | (last == reader), reader, MANY)
        self._pending.clear()
        self._pending_lanes = 0

    def read(self, index: Array, tell: Tell) -> None:
        """A plain read."""
        programs = self._programs
        if self._writer is not None:
            bad = self._writer.conflicts(index, programs)
            if bad is not None:
                tell("reads what another program writes", index[bad], self._writer.program[index[bad]])
        self._readers[programs.current] = programs.epoch
        if programs.known is None and programs.epoch == 1:
            self._pending.append((programs.current, index))
            self._pending_lanes += len(index)
            if self._pending_lanes > _FOLD_AT:
                self._fold()
            return
        self._fold()
        if self._reader is None:
            self._reader = _Last(self._size)
        bad = self._reader.conflicts(index, programs)
        who = np.full(len(index), programs.current, dtype=np.int32)
        who[self._reader.program[index] == MANY] = MANY
        if bad is not None:
            who[bad] = MANY
        self._reader.set(index, who, programs.epoch)

    def write(self, index: Array, same: Callable[[Array], Array], tell: Tell) -> None:
        """A plain write; ``same(lanes)`` says which of the lanes write what is there already."""
        programs = self._programs
        self._fold()
        if self._writer is None:
            self._writer = _Last(self._size)
        else:
            bad = self._writer.conflicts(index, programs)
            if bad is not None:
                bad[bad] = ~same(bad)
                if bad.any():
                    tell("writes what another program writes", index[bad], self._writer.program[index[bad]])
        if self._reader is not None:
            self._write_after_read(self._reader, index, tell)
        if self._atomic is not None:
            bad = self._atomic.conflicts(index, programs)
            if bad is not None:
                tell("writes what another program updates atomically", index[bad], self._atomic.program[index[bad]])
        self._note_update(index, self._reader)
        self._writer.set(index, programs.current, programs.epoch)

    def _write_after_read(self, reader: _Last, index: Array, tell: Tell) -> None:
        programs = self._programs
        bad = reader.conflicts(index, programs)
        if bad is not None:
            tell("writes what another program reads", index[bad], reader.program[index[bad]])
            return
        many = reader.program[index] == MANY
        if many.any():
            others = np.array([one for one in self._readers if one != programs.current], dtype=np.int64)
            epochs = np.array([self._readers[int(one)] for one in others], dtype=np.int32)
            late = programs.unordered(others, epochs)
            if late.any():
                tell("writes what other programs read", index[many], others[late][:1])

    def atomic(self, index: Array, tell: Tell) -> None:
        """A read-modify-write that the hardware does in one step."""
        programs = self._programs
        if self._writer is not None:
            bad = self._writer.conflicts(index, programs)
            if bad is not None:
                tell("updates atomically what another program writes", index[bad], self._writer.program[index[bad]])
        if self._atomic is None:
            self._atomic = _Last(self._size)
        if self.updated is not None:
            fresh = index if self._writer is None else index[self._writer.program[index] == NOBODY]
            self.updated[fresh] = True
        self._atomic.set(index, programs.current, programs.epoch)

    def _note_update(self, index: Array, reader: _Last | None) -> None:
        if self.updated is None or reader is None or self._writer is None:
            return
        read_first = (reader.program[index] != NOBODY) & (self._writer.program[index] == NOBODY)
        self.updated[index[read_first]] = True

    def repeated(self, index: Array) -> tuple[Array, Array] | None:
        """Lanes of one store that another lane of it overwrites, and that other lane; None where all differ."""
        if len(index) < 2 or bool((index[1:] > index[:-1]).all()):
            return None
        if self._order is None:
            self._order = np.zeros(self._size, dtype=np.int32)
        lanes = np.arange(len(index), dtype=np.int32)
        self._order[index] = lanes
        last = self._order[index]
        lost = np.flatnonzero(last != lanes)
        return (lost, last[lost]) if len(lost) else None
