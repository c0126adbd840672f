"""What a check may ask of the processes it judges: the seam between the checks and the process tree.

A check runs inside the judge. It never sees the candidate's objects, only private copies of bytes that came out of
shared memory, and reports from hooks that can convict but never acquit.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from runners.contract import Case, Device, Framework, RunEvent, TaskSpec
from runners.evidence import Place

if TYPE_CHECKING:
    import torch

    from runners.reference import Reference

Value = Any
"""A torch.Tensor on the CPU, or a plain int, float, bool, str or None."""

Role = Literal["candidate", "baseline"]


class Unavailable(Exception):
    """No process can be opened on this machine; the reason is the machine's, never the submission's."""


@dataclass(frozen=True)
class Failure:
    """A call that gave no outputs. ``code`` is a finding code; whose fault it is follows from the code."""

    code: str
    summary: str
    where: Place | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Report:
    """Something a hook in the candidate's process, or the supervisor, saw. ``code`` is a finding code."""

    code: str
    summary: str
    where: Place | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Mutation:
    """An input that changed during a call although the candidate may not write it."""

    name: str
    elements: int
    first_index: tuple[int, ...]


@dataclass(frozen=True)
class Call:
    """One call's result: private copies of its outputs, by name (``"0"``, ``"1"`` … or the dict's keys).

    Arguments that the task lists under ``inplace`` appear as further outputs under their names. ``untouched`` gives,
    for each output, a bool tensor of its shape: True where the bytes still are the pattern that allocations were
    filled with (empty when the run was not ``checked``).
    """

    outputs: Mapping[str, torch.Tensor]
    untouched: Mapping[str, torch.Tensor] = field(default_factory=dict)
    mutations: tuple[Mutation, ...] = ()
    reports: tuple[Report, ...] = ()
    broken_guards: tuple[str, ...] = ()
    """Names of arguments beside which bytes outside the tensor were changed."""


@dataclass(frozen=True)
class OutputSpec:
    """What an output must look like: shape and torch dtype."""

    shape: tuple[int, ...]
    dtype: torch.dtype


@dataclass(frozen=True)
class Batch:
    """The answer to one request. Either every call is there, or ``failure`` says why not."""

    calls: tuple[Call, ...]
    failure: Failure | None = None
    window_ns: int = 0
    """The judge's clock, from the release of the batch to the last output's bytes in shared memory."""
    cpu_ns: int = 0
    """The operating system's account of the process's on-CPU time over the same window."""
    self_reported_ns: tuple[int, ...] = ()
    """Per call, from the process's own clock: shows a distribution only, never the number."""
    reports: tuple[Report, ...] = ()
    """Reports that belong to the batch as a whole."""


class Slot(Protocol):
    """A set of inputs that lies in shared memory between guard zones; keeps its address over rewrites."""

    @property
    def inputs(self) -> Mapping[str, Value]:
        """What was last written, in argument order: the very tensors handed over, which nobody may change."""
        ...


class Worker(Protocol):
    """A live process, sandboxed, that holds a candidate or a baseline."""

    @property
    def pid(self) -> int:
        """The process id, for the operating system's accounts."""
        ...

    def cpu_ns(self) -> int:
        """On-CPU time so far, by the operating system's account, of the process and of all that it started."""
        ...

    def load(self) -> Failure | None:
        """Import the code and look up its entry. None when that worked; later calls repeat the first answer."""
        ...

    def place(self, inputs: Mapping[str, Value]) -> Slot:
        """Write inputs into new shared memory, strides and storage offset kept. Raises MemoryError at the limit."""
        ...

    def rewrite(self, slot: Slot, inputs: Mapping[str, Value]) -> None:
        """New contents at the same addresses; shapes, dtypes and strides must be those of the slot."""
        ...

    def run(
        self,
        slots: Sequence[Slot],
        expect: Sequence[Mapping[str, OutputSpec]],
        *,
        checked: bool = True,
        hold: bool = False,
        options: Mapping[str, Any] | None = None,
        copy: Collection[int] | None = None,
    ) -> Batch:
        """Call the entry once per slot, in order, in one released batch.

        ``expect[i]`` are the outputs of call i. A result of another shape, dtype or type is a Failure
        ``build/contract`` (``integrity/lazy`` for a Tensor subclass). With ``hold`` all results are kept and copied
        only after the last call, which shows results that share a buffer. ``checked`` switches the hooks on:
        allocations filled with a pattern, memory and race checks; a timed batch has it off. ``options`` go to the
        framework's hooks (``order``: "forward" | "reverse" | "shuffle"; ``config``: index of the autotune
        configuration). ``copy`` picks the calls whose outputs are copied out (default all); it is looked at after the
        process has been stopped, so nobody can know it before. Calls that are not copied have no outputs. Never raises
        for what the candidate does.
        """
        ...

    def planted(self) -> bool | None:
        """Run the planted violation: True when it was reported, None where the framework has no such hook."""
        ...

    def release(self, slots: Sequence[Slot]) -> None:
        """Give the memory of slots back."""
        ...

    def close(self) -> tuple[Report, ...]:
        """End the process and its descendants; what the supervisor saw of it (escapes, output floods)."""
        ...


class Session(Protocol):
    """One run, seen from a check."""

    @property
    def task(self) -> TaskSpec:
        """The task."""
        ...

    @property
    def framework(self) -> Framework:
        """The submission's framework."""
        ...

    @property
    def device(self) -> Device:
        """Where the candidate's tensors live."""
        ...

    @property
    def interpreted(self) -> bool:
        """True when kernels run through an interpreter, so that time means nothing."""
        ...

    @property
    def reference(self) -> Reference:
        """The task's loaded ``reference.py``."""
        ...

    @property
    def seeds(self) -> tuple[int, int]:
        """Two secret seeds; checks derive theirs from these with :func:`runners.draws.derive_seed`."""
        ...

    @property
    def source(self) -> str:
        """The text of the candidate's file, decoded tolerantly."""
        ...

    def candidate(self) -> Worker:
        """The process that checks share; opened and loaded on first use, opened anew when it has died.

        Whether loading worked is what its ``load()`` says. Raises Unavailable when the machine cannot open one.
        """
        ...

    def fresh(self, role: Role, *, name: str | None = None) -> Worker:
        """A new process of its own. ``name`` picks the baseline; not loaded yet. The caller closes it."""
        ...

    def emit(self, event: RunEvent) -> None:
        """Tell the console."""
        ...


def names_case(case: Case) -> str:
    """How findings name a case: its name, and its arguments in short."""
    return f"{case.name} ({', '.join(f'{key}={value}' for key, value in case.args.items())})"
