"""Every load, store and atomic of a kernel: bounds, unwritten memory, races, then the access itself.

A lane that would leave its extent is reported and dropped, so that the process survives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from triton.runtime import interpreter as upstream
from triton.runtime.interpreter import TensorHandle

from runners.frameworks.extents import DERIVED, WRITTEN, Extent
from runners.frameworks.interpreter.formats import PATTERNS, Array, decode, encode, numpy_kind
from runners.frameworks.interpreter.mapped import mapped

if TYPE_CHECKING:
    from runners.frameworks.interpreter.launch import Launch

_raw = upstream._interpreter
_VERBS = {"read": "reads", "write": "writes", "atomic": "updates"}
_SEMANTIC = upstream._ir.MEM_SEMANTIC
_OPS = upstream._ir.ATOMIC_OP


class Part:
    """The lanes of one access that fall into one extent: byte offsets, and which flat lanes they are (None: all)."""

    __slots__ = ("extent", "lanes", "offsets")

    def __init__(self, extent: Extent, offsets: Array, lanes: Array | None) -> None:
        self.extent, self.offsets, self.lanes = extent, offsets, lanes


def _mask(mask: Any, shape: tuple[int, ...]) -> Array | None:
    """The mask as a bool array of ``shape``; None where every lane is active."""
    if mask is None:
        return None
    data = mask.data if isinstance(mask, TensorHandle) else mask
    if data.shape != shape:
        data = np.broadcast_to(data, shape)
    return None if data.all() else data.astype(bool, copy=False)


class Access:
    """The accesses of one launch."""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch

    # bounds

    def _admit(self, ptrs: Any, active: Array | None, size: int, how: str) -> tuple[Array, list[Part]]:
        """The lanes that may go ahead, as a bool array of the pointers' shape, and where they go."""
        data = ptrs.data
        extent = ptrs.origin
        if extent is None:
            return self._admit_unknown(data, active, size, how)
        offsets = data - np.uint64(extent.lo)
        room = extent.hi - extent.lo - size
        inside = offsets <= np.uint64(room) if room >= 0 else np.zeros(data.shape, dtype=bool)
        if active is None:
            if inside.all():
                return inside, [Part(extent, offsets.reshape(-1), None)]
            active = np.ones(data.shape, dtype=bool)
        outside = active & ~inside
        if outside.any():
            self._report_bounds(extent, data[outside], size, how)
            active = active & inside
        return active, [Part(extent, offsets[active], np.flatnonzero(active))]

    def _admit_unknown(self, data: Array, active: Array | None, size: int, how: str) -> tuple[Array, list[Part]]:
        """Pointers that came out of memory: whatever is mapped may be meant."""
        allowed = np.ones(data.shape, dtype=bool) if active is None else active.copy()
        flat, left = data.reshape(-1), allowed.reshape(-1).copy()
        parts: list[Part] = []
        while left.any() and len(parts) < 64:
            address = int(flat[np.argmax(left)])
            extent = self._launch.extent_at(address)
            if extent is None or address + size > extent.hi:
                break
            offsets = flat - np.uint64(extent.lo)
            here = left & (offsets <= np.uint64(extent.hi - extent.lo - size))
            parts.append(Part(extent, offsets[here], np.flatnonzero(here)))
            left &= ~here
        if left.any():
            lost = ~mapped(flat[left], size, how != "read")
            if lost.any():
                bad = np.flatnonzero(left)[lost]
                self._report_nowhere(flat[bad], how)
                allowed.reshape(-1)[bad] = False
        return allowed, parts

    def _report_bounds(self, extent: Extent, addresses: Array, size: int, how: str) -> None:
        first = (int(addresses[0]) - extent.start) // size
        held = (extent.hi - extent.lo) // size
        self._launch.report(
            f"memory/out-of-bounds-{'read' if how == 'read' else 'write'}",
            f"{_VERBS[how]} {extent.name}[{first}], which has {held} elements: {len(addresses)} lanes outside, "
            f"program {self._launch.program_text()}",
            {
                "tensor": extent.name,
                "argument": extent.argument,
                "index": first,
                "elements": held,
                "lanes": len(addresses),
                "access": how,
            },
        )

    def _report_nowhere(self, addresses: Array, how: str) -> None:
        self._launch.report(
            f"memory/out-of-bounds-{'read' if how == 'read' else 'write'}",
            f"{_VERBS[how]} through a pointer to no memory: {len(addresses)} lanes, "
            f"program {self._launch.program_text()}",
            {"lanes": len(addresses), "access": how},
        )

    # unwritten memory

    def _unwritten(self, parts: list[Part], shape: tuple[int, ...], size: int) -> Array | None:
        """Per lane the number of the source of a value that nobody wrote, 0 where there is none."""
        found: Array | None = None
        for part in parts:
            extent = part.extent
            if extent.states is None:
                continue
            states = extent.states_at(part.offsets, size)
            if not states.any():
                continue
            derived = extent.source if (states == DERIVED).any() else None
            what = f"memory that nothing wrote ({extent.name})" if derived is None else derived[0]
            number = self._launch.source(what, None if derived is None else derived[1])
            if found is None:
                found = np.zeros(int(np.prod(shape)), dtype=np.uint8)
            found[slice(None) if part.lanes is None else part.lanes] = np.where(states != 0, number, 0)
        return None if found is None else found.reshape(shape)

    def _write_states(self, parts: list[Part], size: int, unwritten: Array | None) -> None:
        for part in parts:
            extent = part.extent
            lanes = None
            if unwritten is not None:
                lanes = unwritten.reshape(-1) if part.lanes is None else unwritten.reshape(-1)[part.lanes]
            if lanes is not None and lanes.any():
                extent.source = self._launch.source_of(int(lanes.max()))
                extent.set_states(part.offsets, size, np.where(lanes != 0, DERIVED, WRITTEN).astype(np.uint8))
            elif extent.states is not None:
                extent.set_states(part.offsets, size, WRITTEN)

    def _check_operands(self, ptrs: Any, mask: Any, active: Array | None) -> None:
        for handle, what in ((ptrs, "an address"), (mask, "a mask")):
            unwritten = getattr(handle, "unwritten", None)
            if unwritten is None:
                continue
            if handle is ptrs and active is not None:
                unwritten = unwritten[active]
            if unwritten.any():
                self._launch.report_unwritten(int(unwritten.max()), f"{what} depends on")

    # the accesses

    def load(self, ptrs: Any, mask: Any, other: Any, volatile: bool) -> Any:
        """A load; ``mask`` is a handle, an array or None."""
        element = ptrs.get_element_ty()
        kind = numpy_kind(element)
        data = ptrs.data
        active = _mask(mask, data.shape)
        launch = self._launch
        if launch.tainted:
            self._check_operands(ptrs, mask, active)
        allowed, parts = self._admit(ptrs, active, kind.itemsize, "read")
        fallback = np.zeros(data.shape, dtype=kind) if other is None else other.data
        if fallback.shape != data.shape:
            fallback = np.broadcast_to(fallback, data.shape)
        made = TensorHandle(_raw.load(data, allowed, fallback, kind), element)
        if data.size == 1:
            launch.poll(int(data.reshape(-1)[0]), made.data, volatile)
        if launch.watched:
            for part in parts if launch.shares else ():
                shadow = launch.shadow(part.extent, kind.itemsize)
                if shadow is not None:
                    shadow.read(shadow.index(part.offsets, kind.itemsize), launch.teller(part.extent, shadow))
            made.unwritten = self._unwritten(parts, data.shape, kind.itemsize)
            if other is None and active is not None:
                number = launch.source("the masked-off lanes of a load without `other`")
                lanes = np.where(active, 0, number).astype(np.uint8)
                made.unwritten = lanes if made.unwritten is None else np.maximum(made.unwritten, lanes)
            elif other is not None and other.unwritten is not None and active is not None:
                lanes = np.where(active, 0, np.broadcast_to(other.unwritten, data.shape)).astype(np.uint8)
                made.unwritten = lanes if made.unwritten is None else np.maximum(made.unwritten, lanes)
            if made.unwritten is not None:
                launch.begin_taint()
        return made

    def store(self, ptrs: Any, value: Any, mask: Any) -> None:
        """A store; ``mask`` is a handle, an array or None."""
        data = ptrs.data
        size = value.data.itemsize
        active = _mask(mask, data.shape)
        launch = self._launch
        if launch.tainted:
            self._check_operands(ptrs, mask, active)
        allowed, parts = self._admit(ptrs, active, size, "write")
        values = value.data if value.data.shape == data.shape else np.broadcast_to(value.data, data.shape)
        if launch.watched:
            flat = np.ascontiguousarray(values).reshape(-1)
            for part in parts:
                shadow = launch.shadow(part.extent, size)
                if shadow is not None:
                    self._race_of_store(shadow, part, flat, size)
            self._write_states(parts, size, value.unwritten)
            launch.poll_reset()
        _raw.store(data, values, allowed)

    def _race_of_store(self, shadow: Any, part: Part, flat: Array, size: int) -> None:
        launch = self._launch
        lanes = flat if part.lanes is None else flat[part.lanes]
        index = shadow.index(part.offsets, size)
        repeats = size // shadow.element

        def same(conflicting: Array) -> Array:
            mine = lanes.view(np.uint8).reshape(len(lanes), -1)
            places = part.offsets.astype(np.int64)[:, None] + np.arange(size)
            equal = (part.extent.bytes[places] == mine).all(axis=1)
            return np.repeat(equal, repeats)[conflicting]

        if launch.shares:
            shadow.write(index, same, launch.teller(part.extent, shadow))
        again = shadow.repeated(index)
        if again is not None:
            lost, kept = again[0] // repeats, again[1] // repeats
            raw = lanes.view(np.uint8).reshape(len(lanes), -1)
            differ = (raw[lost] != raw[kept]).any(axis=1)
            if differ.any():
                element = int(index[again[0][differ][0]])
                launch.report(
                    "race/nondeterministic",
                    f"one store writes {part.extent.name}[{element}] from several lanes with different values, "
                    f"program {launch.program_text()}",
                    {"tensor": part.extent.name, "index": element, "lanes": int(differ.sum())},
                )

    def _synchronise(self, parts: list[Part], semantic: Any) -> None:
        if semantic == _SEMANTIC.RELAXED:
            return
        acquire = semantic in (_SEMANTIC.ACQUIRE, _SEMANTIC.ACQUIRE_RELEASE)
        release = semantic in (_SEMANTIC.RELEASE, _SEMANTIC.ACQUIRE_RELEASE)
        for part in parts:
            single = len(part.offsets) == 1
            location = (id(part.extent), int(part.offsets[0]) if single else None)
            self._launch.programs.synchronise(location, acquire, release)

    def _before_atomic(self, parts: list[Part], size: int, semantic: Any) -> None:
        launch = self._launch
        for part in parts if launch.shares else ():
            shadow = launch.shadow(part.extent, size)
            if shadow is not None:
                shadow.atomic(shadow.index(part.offsets, size), launch.teller(part.extent, shadow))
        self._synchronise(parts, semantic)

    def atomic_rmw(self, op: Any, ptr: Any, value: Any, mask: Any, semantic: Any) -> Any:
        """A read-modify-write; gives the old values."""
        data = ptr.data
        size = value.data.itemsize
        active = _mask(mask, data.shape)
        launch = self._launch
        if launch.tainted:
            self._check_operands(ptr, mask, active)
        allowed, parts = self._admit(ptr, active, size, "atomic")
        old_unwritten = None
        if launch.watched:
            self._before_atomic(parts, size, semantic)
            old_unwritten = self._unwritten(parts, data.shape, size)
            exchange = op == _OPS.XCHG
            new = value.unwritten if exchange else _union(value.unwritten, old_unwritten)
            self._write_states(parts, size, new)
        if value.dtype.scalar.name in PATTERNS and op == _OPS.FADD:
            old = self._add_patterns(data, value, allowed)
        else:
            builder = type(launch.builder)
            old = _raw.atomic_rmw(
                builder.ir_rmw_op_to_interpreter_rmw_op[op],
                data,
                np.ascontiguousarray(np.broadcast_to(value.data, data.shape)),
                allowed,
                builder.ir_sem_to_interpreter_sem[semantic],
            )
        made = TensorHandle(old, value.dtype.scalar)
        return self._old(made, old_unwritten, ptr)

    def _old(self, made: Any, unwritten: Array | None, ptr: Any) -> Any:
        if ptr.data.size == 1:
            self._launch.poll(int(ptr.data.reshape(-1)[0]), made.data, True)
        if unwritten is not None:
            made.unwritten = unwritten
            self._launch.begin_taint()
        return made

    def _add_patterns(self, data: Array, value: Any, allowed: Array) -> Array:
        """Atomic addition where numpy has no such type: lane by lane, rounded each time as hardware does."""
        name = value.dtype.scalar.name
        kind = value.data.dtype
        flat, lanes = data.reshape(-1), allowed.reshape(-1)
        added = decode(np.broadcast_to(value.data, data.shape).reshape(-1), name)
        old = np.zeros(flat.shape, dtype=kind)
        one = np.ones(1, dtype=bool)
        for lane in np.flatnonzero(lanes):
            place = flat[lane : lane + 1]
            before = _raw.load(place, one, old[lane : lane + 1], kind)
            old[lane] = before[0]
            _raw.store(place, encode(decode(before, name) + added[lane], name), one)
        return old.reshape(data.shape)  # type: ignore[no-any-return]

    def atomic_cas(self, ptr: Any, compare: Any, value: Any, semantic: Any) -> Any:
        """A compare-and-swap; gives the old values."""
        data = ptr.data
        size = value.data.itemsize
        launch = self._launch
        if launch.tainted:
            self._check_operands(ptr, None, None)
        allowed, parts = self._admit(ptr, None, size, "atomic")
        unwritten = None
        if launch.watched:
            self._before_atomic(parts, size, semantic)
            unwritten = self._unwritten(parts, data.shape, size)
            self._write_states(parts, size, _union(value.unwritten, unwritten))
        old = np.zeros(data.shape, dtype=value.data.dtype)
        if allowed.any():
            everything = bool(allowed.all())
            pick: Callable[[Array], Array] = lambda array: np.ascontiguousarray(  # noqa: E731
                np.broadcast_to(array, data.shape) if everything else np.broadcast_to(array, data.shape)[allowed]
            )
            sem = type(launch.builder).ir_sem_to_interpreter_sem[semantic]
            found = _raw.atomic_cas(pick(data), pick(compare.data), pick(value.data), sem)
            if everything:
                old = found
            else:
                old[allowed] = found
        return self._old(TensorHandle(old, compare.dtype.scalar), unwritten, ptr)


def _union(one: Array | None, other: Array | None) -> Array | None:
    if one is None or other is None:
        return other if one is None else one
    return np.maximum(one, other)


def pointer_masks(materialize: Callable[..., Any]) -> Callable[..., Any]:
    """Let the pointers of a block pointer or descriptor keep the extent that its base derives from."""

    def with_origin(self: Any, *args: Any) -> Any:
        pointers, masks = materialize(self, *args)
        pointers.origin = self.base.origin
        return pointers, masks

    return with_origin
