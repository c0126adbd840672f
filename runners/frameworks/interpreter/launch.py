"""One launch: which memory its pointers derive from, the order of its programs, and what is reported about it."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Literal, cast

import numpy as np
import torch
import triton
import triton.language as tl
from triton.runtime import interpreter as upstream
from triton.runtime.errors import InterpreterError
from triton.runtime.interpreter import TensorHandle
from triton.tools.tensor_descriptor import TensorDescriptor

from runners.frameworks.diagnosis import DeviceAssertionError, NotInterpretableError, SpinError
from runners.frameworks.extents import DERIVED, Extent, MemoryMap, whole_storage
from runners.frameworks.interpreter.access import Access
from runners.frameworks.interpreter.builder import Builder
from runners.frameworks.interpreter.formats import numpy_kind
from runners.frameworks.interpreter.races import MAX_ELEMENTS, Programs, Shadow, Tell
from runners.frameworks.interpreter.unwritten import MarkingBuilder
from runners.frameworks.reports import Reports
from runners.frameworks.sites import Site, site

Order = Literal["forward", "reverse", "shuffle"]

GRID_LIMITS = (2**31 - 1, 65535, 65535)
"""CUDA C++ programming guide, technical specifications per compute capability: largest grid in x, y and z."""
POLLS = 5_000
PLAIN_POLLS = 100_000
"""So many equal reads of one address in a row, with no other access between, are a wait for another program."""


@dataclass
class Watch:
    """What is known while a call is watched. The one for unwatched calls has no reports."""

    memory: MemoryMap = field(default_factory=MemoryMap)
    reports: Reports | None = None
    order: Order = "forward"
    order_seed: int = 0
    config: int = 0
    tf32: bool = False
    heartbeat: Callable[[], None] = lambda: None
    failed: tuple[BaseException, Site | None] | None = None
    """The last launch's error and place, while no later launch has worked."""


current = Watch()
"""The watch that launches belong to; replaced by :func:`watching`."""


def set_watch(watch: Watch) -> Watch:
    """Make ``watch`` the current one; gives the one before."""
    global current
    before, current = current, watch
    return before


class CompiledStandIn:
    """In place of the compiled kernel that a launch or ``warmup`` gives on a device; can be launched like it."""

    n_regs = 32
    n_spills = 0
    n_max_threads = 1024

    def __init__(self, function: Any, constants: Mapping[str, Any]) -> None:
        self._function, self._constants = function, constants
        self.name = function.__name__
        self.metadata = SimpleNamespace(shared=1024, num_warps=4, num_ctas=1, num_stages=1, name=self.name)
        self.asm: dict[str, str] = {}

    def _init_handles(self) -> None:
        pass

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        def start(*args: Any) -> Any:
            named = dict(self._constants) if len(args) < len(self._function.arg_names) else {}
            rest = [name for name in self._function.arg_names if name not in named]
            return self._function.run(grid=grid, warmup=False, **named, **dict(zip(rest, args, strict=True)))

        return start


class Launch:
    """The running launch."""

    def __init__(self, name: str, watch: Watch, builder: Builder) -> None:
        self.name = name
        self.builder = builder
        self.watched = watch.reports is not None
        self.access = Access(self)
        self.programs = Programs(1)
        self.tainted = False
        self.watch_updates = False
        self.extents: list[Extent] = []
        self._own: dict[int, Extent] = {}
        self._shadowed: list[Extent] = []
        self.shape: tuple[int, ...] = (1,)
        self._watch = watch
        self._sources: list[tuple[str, Site | None]] = [("", None)]
        self._poll: tuple[int, bytes] | None = None
        self._polls = 0

    # memory

    def extent_of(self, tensor: torch.Tensor, name: str) -> Extent:
        """The extent that a tensor's pointer derives from, named after the kernel's parameter."""
        extent = self._watch.memory.known(tensor) or self._own.get(tensor.untyped_storage().data_ptr())
        if extent is None:
            extent = whole_storage(tensor, name)
            extent.keep = tensor.untyped_storage()
            self._own[extent.storage] = extent
        if extent not in self.extents:
            self.extents.append(extent)
            extent.name, extent.start = name, tensor.data_ptr()
        return extent

    @property
    def shares(self) -> bool:
        """Is it worth noting who touches what: several programs, or someone who wants to know of updates?"""
        return self.programs.count > 1 or self.watch_updates

    def extent_at(self, address: int) -> Extent | None:
        """The extent that holds an address."""
        for extent in self.extents:
            if extent.lo <= address < extent.hi:
                return extent
        return self._watch.memory.find(address)

    def shadow(self, extent: Extent, size: int) -> Shadow | None:
        """The record of who touched what; None where the extent is too large for one."""
        shadow = extent.shadow
        if shadow is None:
            if (extent.hi - extent.lo) // size > MAX_ELEMENTS:
                self.report("integrity/hint", f"{extent.name} is too large to be checked for races")
                return None
            shadow = extent.shadow = Shadow(extent, size, self.programs, self.watch_updates)
            self._shadowed.append(extent)
        return shadow

    # programs

    def run(self, function: Callable[..., Any], arguments: Mapping[str, Any], grid: tuple[int, int, int]) -> None:
        """Run every program of the grid, in the order asked for."""
        builder, watch = self.builder, self._watch
        x, y, z = grid
        count = x * y * z
        self.programs = Programs(max(count, 1))
        builder.set_grid_dim(x, y, z)
        before, builder.launch, builder.tf32 = builder.launch, self, watch.tf32
        try:
            with np.errstate(all="ignore"):
                for program in _ordered(count, watch.order, watch.order_seed):
                    builder.grid_idx = (program % x, program // x % y, program // (x * y))
                    builder.__class__ = Builder
                    self.tainted = False
                    self.programs.start(program)
                    self._poll = None
                    watch.heartbeat()
                    function(**arguments)
        finally:
            builder.__class__ = Builder
            builder.launch = before
            for extent in self._shadowed:
                if extent.shadow is not None and extent.shadow.updated is not None and extent.shadow.updated.any():
                    updated.add(extent.storage)
                extent.shadow = None
            self._keep_derived()

    def _keep_derived(self) -> None:
        """Memory of the submission that now holds derived values stays known for the rest of the call."""
        for extent in self.extents:
            if extent.states is not None and extent.keep is not None and (extent.states == DERIVED).any():
                self._watch.memory.add(extent.storage, extent)

    def program_text(self, program: int | None = None) -> str:
        """The running program's index, or another's, as the grid has dimensions."""
        x, y, _ = self.builder.grid_dim
        number = self.programs.current if program is None else program
        index = (number % x, number // x % y, number // (x * y))[: len(self.shape)]
        return f"({', '.join(str(one) for one in index)})"

    # waiting

    def poll(self, address: int, value: Any, atomic: bool) -> None:
        """A read of one element: so many equal ones in a row are a wait that cannot end here."""
        seen = (address, value.tobytes())
        if seen != self._poll:
            self._poll, self._polls = seen, 0
            return
        self._polls += 1
        if self._polls > (POLLS if atomic else PLAIN_POLLS):
            order = "forward" if self.programs.count == 1 else self._watch.order
            raise SpinError(
                f"program {self.program_text()} waits for another one, which can only run after it "
                f"({self.programs.count} programs, one at a time, {self._watch.order} order)",
                order,
            )

    def poll_reset(self) -> None:
        """A store: the program does something."""
        self._poll = None

    # unwritten values

    def begin_taint(self) -> None:
        """From here to the end of the program operations hand on marks."""
        if not self.tainted:
            self.tainted = True
            self.builder.__class__ = MarkingBuilder

    def source(self, what: str, place: Site | None = None) -> int:
        """The number of a source of unwritten values; the last number stands for all beyond 255."""
        entry = (what, place or site())
        if entry in self._sources:
            return self._sources.index(entry)
        if len(self._sources) < 256:
            self._sources.append(entry)
        return len(self._sources) - 1

    def source_of(self, number: int) -> tuple[str, Site | None]:
        """What the values of a source depend on, and where that was read."""
        return self._sources[number]

    def report_unwritten(self, number: int, what: str) -> None:
        """A value that nobody wrote decides something."""
        source, place = self._sources[number]
        self.report("memory/uninitialised", f"{what} {source}, program {self.program_text()}", place=place)

    # reports

    def report(
        self, code: str, summary: str, detail: Mapping[str, Any] | None = None, place: Site | None = None
    ) -> None:
        """Report for the line that runs, or another."""
        reports = self._watch.reports
        if reports is None:
            return
        file, line = place or site() or (None, None)
        about = {"kernel": self.name, "program": self.program_text(), **(detail or {})}
        reports.add(code, f"{self.name}: {summary}", file, line, about, key=str((detail or {}).get("tensor", "")))

    def teller(self, extent: Extent, shadow: Shadow) -> Tell:
        """How a shadow reports a race."""

        def tell(what: str, index: Any, others: Any) -> None:
            element = int(index[0]) - (extent.start - extent.lo) // shadow.element
            self.report(
                "race/cross-program",
                f"program {self.program_text()} {what}: {extent.name}[{element}], "
                f"program {self.program_text(int(others[0]))}; {len(index)} elements",
                {
                    "tensor": extent.name,
                    "argument": extent.argument,
                    "index": element,
                    "elements": len(index),
                    "other_program": self.program_text(int(others[0])),
                },
            )

        return tell


def _ordered(count: int, order: Order, seed: int) -> Iterator[int] | list[int] | range:
    if order == "reverse":
        return range(count - 1, -1, -1)
    if order == "shuffle":
        programs = list(range(count))
        random.Random(seed).shuffle(programs)  # noqa: S311 - an order of programs, no secret
        return programs
    return range(count)


_signatures: dict[Any, tuple[frozenset[str], frozenset[str]]] = {}


def _signature(function: Any) -> tuple[frozenset[str], frozenset[str]]:
    """Names of all parameters, and of the constexpr ones."""
    known = _signatures.get(function)
    if known is None:
        names = inspect.getfullargspec(function).args
        constants = frozenset(
            name for name in names if "constexpr" in str(function.__annotations__.get(name, "")).rsplit(".", 1)[-1]
        )
        known = _signatures[function] = (frozenset(names), constants)
    return known


_types: dict[Any, Any] = {}


def _pointer(address: int, dtype: Any, origin: Extent | None) -> Any:
    kind = _types.get(dtype)
    if kind is None:
        name = triton.runtime.jit.type_canonicalisation_dict[str(dtype).split(".")[-1]]
        kind = _types[dtype] = tl.str_to_ty(f"*{name}", None)
    handle = TensorHandle(np.array([address], dtype=np.uint64), kind)
    handle.origin = origin
    return tl.tensor(handle, kind)


def _scalar(value: bool | int | float) -> Any:
    """A plain number as the compiler takes it: i1, i32 where it fits, else i64 or u64, and fp32."""
    if isinstance(value, bool):
        kind: Any = tl.int1
    elif isinstance(value, float):
        kind = tl.float32
    elif -(2**31) <= value < 2**31:
        kind = tl.int32
    else:
        kind = tl.int64 if -(2**63) <= value < 2**63 else tl.uint64
    return tl.tensor(TensorHandle(np.array([value], dtype=numpy_kind(kind)), kind), kind)


def _argument(launch: Launch, name: str, value: Any) -> Any:
    """What a kernel gets for one of the launch's arguments."""
    if isinstance(value, torch.Tensor):
        if value.is_meta or value.layout is not torch.strided:
            raise ValueError(f"Pointer argument {name} cannot be accessed from Triton")
        return _pointer(value.data_ptr(), value.dtype, launch.extent_of(value, name))
    if isinstance(value, triton.runtime.jit.TensorWrapper):
        return _pointer(value.data_ptr(), value.dtype, launch.extent_of(value.base, name))
    if isinstance(value, TensorDescriptor):
        strides = [_scalar(step) for step in value.strides[:-1]]
        return upstream.interpreter_semantic.make_tensor_descriptor(
            base=_argument(launch, name, value.base),
            shape=[_scalar(size) for size in value.shape],
            strides=[*strides, tl.constexpr(1)],
            block_shape=[tl.constexpr(size) for size in value.block_shape],
            padding_option=value.padding,
        )
    if isinstance(value, tuple):
        return upstream._tuple_create(
            value, [_argument(launch, f"{name}[{index}]", one) for index, one in enumerate(value)]
        )
    return _scalar(value) if isinstance(value, (bool, int, float)) else value


def _grid(grid: Any, arguments: Mapping[str, Any]) -> tuple[int, ...]:
    sizes = grid(dict(arguments)) if callable(grid) else grid
    sizes = (sizes,) if isinstance(sizes, int) else tuple(sizes)
    if not 1 <= len(sizes) <= 3:
        raise ValueError("grid must have at most 3 dimensions")
    whole = tuple(int(size.value if isinstance(size, tl.constexpr) else size.__index__()) for size in sizes)
    for size, limit in zip(whole, GRID_LIMITS, strict=False):
        if not 0 <= size <= limit:
            raise RuntimeError(f"Triton Error [CUDA]: invalid configuration argument: grid {whole}")
    return whole


def run_kernel(function: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
    """In place of ``InterpretedFunction.run``: bind, run each program, give a stand-in for the compiled kernel."""
    body = function.rewrite()
    names, constants = _signature(body)
    named = {key: value for key, value in kwargs.items() if key in names}
    if warmup:
        fixed = {key: value for key, value in named.items() if key in constants}
        return CompiledStandIn(function, fixed)
    for hook in function.pre_run_hooks:
        hook(*args, **named)
    bound = inspect.getcallargs(body, *args, **named)
    sizes = _grid(grid, bound)
    watch = current
    launch = Launch(function.__name__, watch, cast(Builder, upstream.interpreter_builder))
    launch.shape = sizes
    launch.watch_updates = updates_wanted
    x, y, z = (*sizes, 1, 1)[:3]
    try:
        with torch._C.DisableTorchFunction():
            values = {
                name: value if name in constants else _argument(launch, name, value) for name, value in bound.items()
            }
        launch.run(body, values, (x, y, z))
    except (NotInterpretableError, SpinError, DeviceAssertionError) as error:
        watch.failed = (error, site())
        raise
    except Exception as error:
        watch.failed = (error, site())
        raise InterpreterError(repr(error)) from error
    watch.failed = None
    return CompiledStandIn(function, {key: value for key, value in bound.items() if key in constants})


updates_wanted = False
"""Note which memory launches read before they write it; set around a launch by :mod:`.autotune`."""
updated: set[int] = set()
"""The storages of such memory, by address."""
