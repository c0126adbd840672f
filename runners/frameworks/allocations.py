"""Memory that ``torch.empty`` and its kin hand out in a checked run: filled with a pattern, between guard zones.

A mode on torch's dispatcher sees every operator, so it also learns which fresh bytes torch itself has written. What it
cannot see (writes through numpy, DLPack or another thread) ends the tracking of unwritten memory: no accusation rests
on it.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from runners.frameworks.extents import DERIVED, UNWRITTEN, WRITTEN, Extent, MemoryMap, whole_storage
from runners.frameworks.reports import Reports
from runners.frameworks.sites import Site, site
from runners.patterns import ALIGNMENT, GUARD_BYTES, element_pattern, guard_pattern

_aten = torch.ops.aten
_EMPTY = frozenset(
    {
        _aten.empty.memory_format,
        _aten.empty_like.default,
        _aten.empty_strided.default,
        _aten.empty_permuted.default,
        _aten.new_empty.default,
        _aten.new_empty_strided.default,
    }
)
_OUT_OF_SIGHT = frozenset(
    {
        torch.Tensor.numpy,
        torch.Tensor.__array__,
        torch.Tensor.__dlpack__,
        torch.Tensor.untyped_storage,
        torch.Tensor.storage,
        torch.Tensor.data_ptr,
    }
)
_PLAIN = (torch.Tensor, torch.nn.Parameter)
MAX_BLOCK_BYTES = 1 << 28
"""Larger allocations are left to torch, and the run says so: shadowing them would exceed the memory limit."""


class Block(bytearray):
    """One guarded allocation. Lives as long as a tensor looks at it; its guards are looked at when it goes."""

    __slots__ = ("__weakref__", "extent", "first", "made_at", "on_end", "size")

    extent: Extent
    first: int
    size: int
    made_at: Site | None
    on_end: Callable[[Block], None] | None

    def broken(self, guard: bytes) -> tuple[int, int] | None:
        """Bytes changed before and behind the tensor, None where both guards are whole."""
        end = self.first + self.size
        before, behind = self[self.first - GUARD_BYTES : self.first], self[end : end + GUARD_BYTES]
        if before == guard and behind == guard:
            return None
        return tuple(  # type: ignore[return-value]
            int(np.count_nonzero(np.frombuffer(zone, np.uint8) != np.frombuffer(guard, np.uint8)))
            for zone in (before, behind)
        )

    def __del__(self) -> None:
        if getattr(self, "on_end", None) is not None:
            self.on_end(self)  # type: ignore[misc]


def _fill(zone: memoryview, pattern: bytes) -> None:
    width = min(len(pattern), 8)
    cells = np.frombuffer(zone, dtype=f"<u{width}")
    values = np.frombuffer(pattern, dtype=f"<u{width}")
    if len(values) == 1:
        cells[:] = values[0]
    else:
        cells.reshape(-1, len(values))[:] = values


class Allocations(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Switches the interception on for one call. ``memory`` learns of every block.

    With ``track`` it also follows which bytes are written; only kernels that are watched can make use of that.
    """

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # Else torch wraps the handler and imports its compiler, more than a second, at the first operator.
        return False

    def __init__(
        self, reports: Reports, memory: MemoryMap, fill: int, heartbeat: Callable[[], None], *, track: bool
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._reports, self._memory, self._seed, self._heartbeat = reports, memory, fill, heartbeat
        self._guard = guard_pattern(fill, GUARD_BYTES)
        self._blocks: dict[int, weakref.ref[Block]] = {}
        self._writes: dict[Any, tuple[tuple[int, str], ...]] = {}
        self._tracking = track
        self._start_thread = threading.Thread.start
        reports.on_returned.append(self._look_at_result)

    def __enter__(self) -> Allocations:
        start, forget = self._start_thread, self.forget_unwritten

        def started(thread: threading.Thread) -> None:
            forget()
            start(thread)

        threading.Thread.start = started  # type: ignore[method-assign, assignment]
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        threading.Thread.start = self._start_thread  # type: ignore[method-assign]
        for reference in list(self._blocks.values()):
            block = reference()
            if block is not None:
                self._check_guards(block)
                block.on_end = None
                block.extent.mark(WRITTEN)
        self._blocks.clear()

    def forget_unwritten(self) -> None:
        """From here on nothing counts as unwritten: something writes where this cannot look."""
        self._tracking = False
        for extent in self._memory:
            extent.mark(WRITTEN)

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        self._heartbeat()
        named = dict(kwargs or {})
        with torch._C.DisableTorchFunction():
            if func in _EMPTY:
                made = self._allocate(func, args, named)
                if made is not None:
                    return made
            if func is _aten.resize_.default:
                self._make_room(args[0], args[1])
            result = func(*args, **named)
            if self._tracking and self._blocks:
                self._note_writes(func, args, named, result)
        return result

    def _allocate(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor | None:
        device = kwargs.get("device")
        if device is not None and torch.device(device).type != "cpu":
            return None
        if args and isinstance(args[0], torch.Tensor) and type(args[0]) not in _PLAIN:
            return None
        if kwargs.get("layout") not in (None, torch.strided) or kwargs.get("pin_memory"):
            return None
        plan = func(*args, **{**kwargs, "device": "meta"})
        size = plan.untyped_storage().nbytes()
        if size > MAX_BLOCK_BYTES:
            file, line = site() or (None, None)
            self._reports.add(
                "integrity/hint", f"an allocation of {size} bytes is too large to be filled and guarded", file, line
            )
        if size == 0 or size > MAX_BLOCK_BYTES:
            return None
        block = self.block(size, plan.dtype)
        flat = torch.frombuffer(block, dtype=torch.uint8, offset=block.first, count=size)
        return torch.empty(0, dtype=plan.dtype).set_(flat.untyped_storage(), 0, plan.shape, plan.stride())

    def block(self, size: int, dtype: torch.dtype) -> Block:
        """A new block of ``size`` bytes, filled with the pattern of ``dtype``, between guards."""
        block = Block(size + 2 * GUARD_BYTES + ALIGNMENT)
        base = np.frombuffer(block, np.uint8).__array_interface__["data"][0]
        block.first = GUARD_BYTES + (-(base + GUARD_BYTES)) % ALIGNMENT
        block.size, block.made_at, block.on_end = size, site(2), self._end_of
        whole = memoryview(block)
        whole[block.first - GUARD_BYTES : block.first] = self._guard
        whole[block.first + size : block.first + size + GUARD_BYTES] = self._guard
        pattern = element_pattern(dtype, self._seed)
        count = size - size % len(pattern)
        _fill(whole[block.first : block.first + count], pattern)
        lo = base + block.first
        block.extent = Extent(lo, lo + size, "fresh memory")
        if self._tracking:
            block.extent.mark(UNWRITTEN)
        self._blocks[lo] = weakref.ref(block)
        self._memory.add(lo, block.extent)
        return block

    def _end_of(self, block: Block) -> None:
        self._check_guards(block)
        self._blocks.pop(block.extent.lo, None)
        self._memory.drop(block.extent.lo)

    def _check_guards(self, block: Block) -> None:
        broken = block.broken(self._guard)
        if broken is None:
            return
        file, line = block.made_at or (None, None)
        self._reports.add(
            "memory/out-of-bounds-write",
            f"{sum(broken)} bytes beside an allocation of {block.size} bytes were overwritten "
            f"({broken[0]} before it, {broken[1]} behind it); allocated here",
            file,
            line,
            {"tensor": block.extent.name, "before": broken[0], "behind": broken[1], "size": block.size},
            key="guard",
        )

    def _make_room(self, tensor: torch.Tensor, shape: Sequence[int]) -> None:
        """A block cannot grow; give a tensor that outgrows its own an ordinary storage first."""
        known = self._memory.known(tensor)
        needed = int(np.prod(shape, dtype=np.int64)) * tensor.element_size()
        if known is None or known.lo not in self._blocks or needed <= known.hi - known.lo:
            return
        bigger = torch.zeros(needed, dtype=torch.uint8)
        old = known.hi - known.lo
        bigger[:old] = torch.from_numpy(known.bytes.copy())
        tensor.set_(bigger.untyped_storage(), tensor.storage_offset(), tensor.shape, tensor.stride())

    def _written_arguments(self, func: Any) -> tuple[tuple[int, str], ...]:
        found = self._writes.get(func)
        if found is None:
            found = self._writes[func] = tuple(
                (index, argument.name)
                for index, argument in enumerate(func._schema.arguments)
                if argument.alias_info is not None and argument.alias_info.is_write
            )
        return found

    def _note_writes(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        written: list[torch.Tensor] = []
        for index, name in self._written_arguments(func):
            value = args[index] if index < len(args) else kwargs.get(name)
            written += [one for one in _tensors(value) if one.layout is torch.strided]
        derived = self._derived_operands(args, kwargs)
        for tensor in written:
            extent = self._memory.known(tensor)
            if extent is not None and extent.states is not None and tensor.numel():
                extent.view_states(tensor).fill_(WRITTEN)
        if derived:
            aliases = any(one.alias_info is not None for one in func._schema.returns)
            for tensor in written if aliases or written else list(_tensors(result)):
                self._spread(tensor, derived)

    def _derived_operands(self, args: Any, kwargs: Any) -> list[tuple[torch.Tensor, Extent]]:
        found = []
        for tensor in (*_tensors(args), *_tensors(tuple(kwargs.values()))):
            extent = self._memory.known(tensor) if tensor.layout is torch.strided else None
            if extent is not None and extent.source is not None and extent.states is not None and tensor.numel():
                states = extent.view_states(tensor).amax(-1) == DERIVED
                if bool(states.any()):
                    found.append((states, extent))
        return found

    def _spread(self, tensor: torch.Tensor, operands: list[tuple[torch.Tensor, Extent]]) -> None:
        """An operator read derived values: so is what it wrote, element by element where the shapes agree."""
        if tensor.layout is not torch.strided or not tensor.numel():
            return
        extent = self._memory.known(tensor)
        if extent is None:
            extent = whole_storage(tensor, "result")
            extent.keep = tensor.untyped_storage()
            self._memory.add(extent.lo, extent)
        if extent.states is None:
            extent.mark(UNWRITTEN)
            extent.states[:] = WRITTEN  # type: ignore[index]
        view = extent.view_states(tensor)
        for states, source in operands:
            extent.source = source.source
            if states.shape == tensor.shape:
                view[states] = DERIVED
            else:
                view.fill_(DERIVED)

    def _look_at_result(self, result: Any) -> None:
        tensors = list(result.values()) if isinstance(result, dict) else result
        for index, tensor in enumerate(_tensors(tensors)):
            self.look_at(tensor, f"output {index}")

    def look_at(self, tensor: torch.Tensor, what: str) -> None:
        """Report a tensor that leaves the call with values computed from memory that nobody wrote."""
        with torch._C.DisableTorchFunction():
            extent = self._memory.known(tensor) if tensor.layout is torch.strided else None
            if extent is None or extent.states is None or extent.source is None or not tensor.numel():
                return
            count = int((extent.view_states(tensor) == DERIVED).any(-1).sum())
        if count:
            source, place = extent.source
            file, line = place or (None, None)
            self._reports.add(
                "memory/uninitialised",
                f"{count} of {tensor.numel()} elements of {what} are computed from {source}",
                file,
                line,
                {"tensor": what, "elements": count},
            )


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [one for one in value if isinstance(one, torch.Tensor)] + [
            one for inner in value if isinstance(inner, (list, tuple)) for one in inner if isinstance(one, torch.Tensor)
        ]
    return []


def leaves_sight(func: Any) -> bool:
    """Does this torch function hand out memory in a way that hides later writes?"""
    return func in _OUT_OF_SIGHT
