"""The messages between judge, supervisor and the processes that hold a candidate or a baseline."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from runners.contract import Device, Framework
from runners.session import Role

MAX_REPORTS = 50
MAX_TEXT = 4096


class Region(msgspec.Struct, frozen=True, array_like=True):
    """Bytes in a shared segment."""

    segment: int
    offset: int
    size: int


class TensorArg(msgspec.Struct, frozen=True, tag="tensor"):
    """An argument that lies in shared memory: its storage, and how the tensor looks at it (in elements)."""

    name: str
    storage: Region
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int


class PlainArg(msgspec.Struct, frozen=True, tag="plain"):
    """A scalar argument."""

    name: str
    value: int | float | bool | str | None


class OutputRegion(msgspec.Struct, frozen=True, array_like=True):
    """Where one output's contiguous bytes go, and what it must look like."""

    name: str
    region: Region
    dtype: str
    shape: tuple[int, ...]


# ---- judge to process ------------------------------------------------------------------------------------------


class Load(msgspec.Struct, frozen=True, tag="load"):
    """Import the code."""


class MapSegment(msgspec.Struct, frozen=True, tag="map"):
    """A shared segment; its descriptor comes with the message. Has no reply."""

    segment: int
    size: int


class UnmapSegment(msgspec.Struct, frozen=True, tag="unmap"):
    """Forget a segment. Has no reply."""

    segment: int


class Define(msgspec.Struct, frozen=True, tag="define"):
    """Build the arguments of a slot once, so that object and address stay over rewrites. Has no reply."""

    slot: int
    arguments: tuple[TensorArg | PlainArg, ...]


class Forget(msgspec.Struct, frozen=True, tag="forget"):
    """Drop slots. Has no reply."""

    slots: tuple[int, ...]


class Prepare(msgspec.Struct, frozen=True, tag="prepare"):
    """Get a batch ready; answered by Ready, so that the window opens on a process that only waits."""

    calls: tuple[tuple[int, tuple[OutputRegion, ...]], ...]
    checked: bool
    hold: bool
    options: dict[str, Any]


class Go(msgspec.Struct, frozen=True, tag="go"):
    """Run the prepared batch; answered by Done, then, on request, by Details."""


class Describe(msgspec.Struct, frozen=True, tag="describe"):
    """Ask what the hooks saw in the last batch."""


class Plant(msgspec.Struct, frozen=True, tag="plant"):
    """Run the planted violation."""


ToProcess = Load | MapSegment | UnmapSegment | Define | Forget | Prepare | Go | Describe | Plant

# ---- process to judge: every word of it is untrusted -----------------------------------------------------------


class WireReport(msgspec.Struct, frozen=True):
    """What a hook saw, or how a call failed."""

    code: str
    summary: str
    file: str | None = None
    line: int | None = None
    detail: dict[str, Any] = {}


class Loaded(msgspec.Struct, frozen=True, tag="loaded"):
    """The entry is there, or why it is not."""

    failure: WireReport | None = None


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """A batch is prepared."""


class Done(msgspec.Struct, frozen=True, tag="done"):
    """All outputs lie in shared memory; or call number ``failed_at`` gave none."""

    failed_at: int = -1


class Details(msgspec.Struct, frozen=True, tag="details"):
    """What goes with the last batch: a failure, each call's reports, self-reported times in ns."""

    failure: WireReport | None = None
    reports: tuple[tuple[WireReport, ...], ...] = ()
    times_ns: tuple[int, ...] = ()


class Planted(msgspec.Struct, frozen=True, tag="planted"):
    """Whether the planted violation was reported; None where the framework has none."""

    reported: bool | None


FromProcess = Loaded | Ready | Done | Details | Planted

# ---- judge to supervisor ---------------------------------------------------------------------------------------


class Open(msgspec.Struct, frozen=True, tag="open"):
    """Fork a process. Answered by Opened with the judge's end of its channel."""

    role: Role
    name: str | None
    pinned: bool


class Inspect(msgspec.Struct, frozen=True, tag="inspect"):
    """Ask what became of a process that closed its channel; answered by Seen once it is known."""

    process: int


class Close(msgspec.Struct, frozen=True, tag="close"):
    """End a process and its descendants; answered by Seen."""

    process: int


class Signal(msgspec.Struct, frozen=True, tag="signal"):
    """Stop a process (answered by Standing once it stands still), let it go on, or have it dump its stack."""

    process: int
    what: Literal["stop", "continue", "dump"]


class Account(msgspec.Struct, frozen=True, tag="account"):
    """Ask for the on-CPU time so far of a process and all that it started; answered by Accounted."""

    process: int


class Emit(msgspec.Struct, frozen=True, tag="emit"):
    """Pass an event on to the console. Has no reply."""

    event: bytes


ToSupervisor = Open | Inspect | Close | Signal | Account | Emit

# ---- supervisor to judge ---------------------------------------------------------------------------------------


class Opened(msgspec.Struct, frozen=True, tag="opened"):
    """A process is there. Descriptors: its channel, its heartbeat page, the file for stack dumps."""

    process: int
    pid: int
    profile: str
    sandbox: str


class NotOpened(msgspec.Struct, frozen=True, tag="not-opened"):
    """No process: the reason, which is the machine's."""

    reason: str


class Seen(msgspec.Struct, frozen=True, tag="seen"):
    """What the supervisor knows of a process."""

    exit_code: int | None = None
    signal: int | None = None
    ended_for: Literal["", "memory", "output", "processes"] = ""
    refusals: tuple[tuple[Literal["escape", "info"], str, str, int], ...] = ()
    """Severity, system call, words, how often."""
    output: str = ""
    output_bytes: int = 0
    peak_bytes: int = 0
    left: int = 0
    """Descendants that were still alive after the process was ended: 0 unless something is very wrong."""


class Standing(msgspec.Struct, frozen=True, tag="standing"):
    """The answer to a signal; ``still`` says whether the process stands still."""

    still: bool


class Accounted(msgspec.Struct, frozen=True, tag="accounted"):
    """On-CPU time by the kernel's account, of processes that have ended too."""

    cpu_ns: int


FromSupervisor = Opened | NotOpened | Seen | Standing | Accounted


class ProcessPlan(msgspec.Struct, frozen=True):
    """What a forked process needs to know; built by the supervisor from the run request."""

    role: Role
    framework: Framework
    device: Device
    interpreted: bool
    folder: str
    entry: str
    baseline: str | None
    threads: int


def clip(text: str, limit: int = MAX_TEXT) -> str:
    """``text``, bounded."""
    return text if len(text) <= limit else text[: limit - 1] + "…"
