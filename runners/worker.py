"""The judge's handle on a process that holds a candidate or a baseline."""

from __future__ import annotations

import mmap
import os
import re
import signal
import struct
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec
import torch

from runners.arena import Arena, over_bytes, raw_bytes, storage_span
from runners.channel import Channel, ChannelClosed, ChannelError, ChannelTimeout
from runners.evidence import Place
from runners.findings import FINDINGS
from runners.frameworks.reports import plain_detail
from runners.patterns import element_pattern, guard_pattern
from runners.protocol import (
    Define,
    Describe,
    Details,
    Done,
    Forget,
    FromProcess,
    Go,
    Load,
    Loaded,
    MapSegment,
    OutputRegion,
    PlainArg,
    Plant,
    Planted,
    Prepare,
    Ready,
    Region,
    Seen,
    TensorArg,
    UnmapSegment,
    WireReport,
    clip,
)
from runners.session import Batch, Call, Failure, Mutation, OutputSpec, Report, Slot, Value

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(FromProcess).decode

DUMP_S = 0.05
"""How long faulthandler may take to write the stacks; its handler runs in signal context, at once."""
SLICE_S = 0.25
"""How often the heartbeat is read while a batch runs."""
PROGRESS_SHARE = 0.25
"""A process whose heartbeat moved in this last share of the time limit was progressing: a timeout, not a hang."""

_FRAME = re.compile(r'^  File "([^"\n]{1,400})", line (\d{1,9})', re.MULTILINE)

_Reply = TypeVar("_Reply")
SignalName = Literal["stop", "continue", "dump"]


class _Gone(Exception):
    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.summary)
        self.failure = failure


class SharedSlot:
    """Inputs in shared memory. ``inputs`` are the very tensors that the check handed over: nobody may change them."""

    def __init__(self, number: int, inputs: Mapping[str, Value], regions: dict[str, Region]) -> None:
        self.number = number
        self._inputs = dict(inputs)
        self.regions = regions
        self.outputs: dict[str, OutputRegion] = {}

    @property
    def inputs(self) -> Mapping[str, Value]:
        """What was last written, in argument order."""
        return self._inputs

    def replace(self, inputs: Mapping[str, Value]) -> None:
        """Remember new contents."""
        self._inputs = dict(inputs)


class ProcessWorker:
    """Talks to one process. ``inspect``, ``end``, ``signal_process`` and ``account`` ask the supervisor, its parent."""

    def __init__(
        self,
        *,
        pid: int,
        channel: Channel,
        heartbeat_fd: int,
        dump_fd: int,
        folder: Path,
        inplace: Collection[str],
        wall_seconds: float,
        memory_bytes: int,
        seed: int,
        inspect: Callable[[], Seen],
        end: Callable[[], Seen],
        signal_process: Callable[[SignalName], object],
        account: Callable[[], int] | None = None,
    ) -> None:
        self._pid = pid
        self._channel = channel
        self._heartbeat = mmap.mmap(heartbeat_fd, mmap.PAGESIZE, prot=mmap.PROT_READ)
        os.close(heartbeat_fd)
        self._dump_fd = dump_fd
        self._folder = folder
        self._inplace = frozenset(inplace)
        self._wall = wall_seconds
        self._inspect, self._end, self._signal = inspect, end, signal_process
        self._account = account or (lambda: _cpu_ns(pid))
        self._loaded: Failure | None = None
        self._was_loaded = False
        self._failure: Failure | None = None
        self._seen: Seen | None = None
        self._slots = 0
        self._seed = seed

        def share(number: int, size: int, fd: int) -> None:
            self._tell(MapSegment(number, size), fds=(fd,))

        def unshare(number: int) -> None:
            self._tell(UnmapSegment(number))

        self._inputs = Arena(memory_bytes, seed, share, unshare)
        self._results = Arena(memory_bytes, seed + 1, share, unshare, first=1 << 20)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._pid

    @property
    def dead(self) -> bool:
        """True once a call has failed in a way that ended the process."""
        return self._seen is not None

    def cpu_ns(self) -> int:
        """On-CPU time so far of the process and of all that it started; 0 when it is gone."""
        return 0 if self.dead else self._account()

    def load(self) -> Failure | None:
        """Import the code and look up its entry; later calls give the first answer again."""
        if not self._was_loaded:
            self._was_loaded = True
            try:
                loaded = self._ask(Load(), Loaded, self._wall)
                self._loaded = self._as_failure(loaded.failure) if loaded.failure else None
            except _Gone as gone:
                self._loaded = gone.failure
        return self._loaded

    def place(self, inputs: Mapping[str, Value]) -> Slot:
        """Write inputs into new shared memory. Raises MemoryError at the limit."""
        self._slots += 1
        slot = SharedSlot(self._slots, inputs, {})
        arguments: list[TensorArg | PlainArg] = []
        for name, value in inputs.items():
            if isinstance(value, torch.Tensor):
                region = self._inputs.allocate(storage_span(value))
                slot.regions[name] = region
                if region.size:
                    self._inputs.bytes_of(region).copy_(raw_bytes(value))
                offset = value.storage_offset() if region.size else 0
                dtype = str(value.dtype).removeprefix("torch.")
                arguments.append(TensorArg(name, region, dtype, tuple(value.shape), tuple(value.stride()), int(offset)))
            else:
                arguments.append(PlainArg(name, value))
        self._tell(Define(slot.number, tuple(arguments)))
        return slot

    def rewrite(self, slot: Slot, inputs: Mapping[str, Value]) -> None:
        """New contents at the same addresses. Raises ValueError when a shape, dtype, stride or scalar differs."""
        assert isinstance(slot, SharedSlot)
        for name, value in inputs.items():
            before = slot.inputs[name]
            if not isinstance(value, torch.Tensor):
                if value != before:
                    raise ValueError(f"scalar {name} cannot change in place")
                continue
            same = (
                value.dtype == before.dtype
                and value.shape == before.shape
                and value.stride() == before.stride()
                and value.storage_offset() == before.storage_offset()
            )
            if not same:
                raise ValueError(f"{name} would change its layout in place")
            if slot.regions[name].size:
                self._inputs.bytes_of(slot.regions[name]).copy_(raw_bytes(value))
        slot.replace(inputs)

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
        """Call the entry once per slot in one released batch; see :class:`runners.session.Worker`."""
        if self._failure is not None:
            return Batch((), self._failure)
        options = dict(options or {})
        fill = int(options.setdefault("fill", self._seed & 0xFFFF))
        try:
            shared = [slot for slot in slots if isinstance(slot, SharedSlot)]
            regions = [self._output_regions(slot, specs) for slot, specs in zip(shared, expect, strict=True)]
            calls = tuple((slot.number, outputs) for slot, outputs in zip(shared, regions, strict=True))
            self._ask(Prepare(calls, checked, hold, options), Ready, self._wall)
            cpu = _cpu_ns(self._pid)
            begun = time.perf_counter_ns()
            done = self._ask(Go(), Done, self._wall)
            window = time.perf_counter_ns() - begun
            cpu = _cpu_ns(self._pid) - cpu
            self._stop()
            try:
                chosen = range(len(shared)) if copy is None else copy
                copied = {
                    index: self._copy(shared[index], regions[index], fill if checked else None)
                    for index in chosen
                    if done.failed_at < 0 or index < done.failed_at
                }
            finally:
                self._continue()
            details = self._ask(Describe(), Details, self._wall)
        except _Gone as gone:
            return Batch((), gone.failure)
        if details.failure is not None:
            return Batch((), self._as_failure(details.failure), window, cpu, (), self._reports(details))
        if done.failed_at >= 0:
            failure = Failure("integrity/forged-result", "the process says a call failed but not how")
            return Batch((), failure, window, cpu)
        results = []
        for index in range(len(shared)):
            call = copied.get(index, Call({}))
            mine = details.reports[index] if index < len(details.reports) else ()
            results.append(_with_reports(call, tuple(self._as_report(report) for report in mine)))
        forged = next(
            (index for index in sorted(copied) if self._untouched_result(copied[index], regions[index])), None
        )
        if forged is not None:
            return Batch(
                (),
                Failure("integrity/forged-result", f"call {forged + 1} reports success but wrote no output at all"),
                window,
                cpu,
            )
        return Batch(tuple(results), None, window, cpu, details.times_ns[: len(results)])

    def planted(self) -> bool | None:
        """Run the planted violation; False also when the process died of it."""
        if self._failure is not None:
            return None
        try:
            return self._ask(Plant(), Planted, self._wall).reported
        except _Gone:
            return False

    def release(self, slots: Sequence[Slot]) -> None:
        """Give the memory of slots back."""
        shared = [slot for slot in slots if isinstance(slot, SharedSlot)]
        self._tell(Forget(tuple(slot.number for slot in shared)))
        for slot in shared:
            for region in slot.regions.values():
                self._inputs.free(region)
            for output in slot.outputs.values():
                self._results.free(output.region)
            slot.regions, slot.outputs = {}, {}

    def close(self) -> tuple[Report, ...]:
        """End the process; what the supervisor saw of it."""
        if self._seen is None:
            self._seen = self._end()
            self._channel.close()
            os.close(self._dump_fd)
            if self._failure is None:
                self._failure = Failure("build/crash", "the process was closed")
        return refusal_reports(self._seen)

    # ---- conversation ------------------------------------------------------------------------------------------

    def _tell(self, message: Any, fds: tuple[int, ...] = ()) -> None:
        """Send what has no reply; that nobody reads it is the failure of what is asked next."""
        if self.dead:
            return
        try:
            self._channel.send(_encode(message), fds, self._wall)
        except ChannelClosed:
            pass
        except ChannelTimeout:
            self._timed_out(self._wall, self._wall)

    def _ask(self, message: Any, kind: type[_Reply], timeout: float) -> _Reply:
        if self._failure is not None:
            raise _Gone(self._failure)
        deadline = time.monotonic() + timeout
        beat, beat_at = self._beat(), time.monotonic()
        try:
            try:
                self._channel.send(_encode(message), timeout=timeout)
            except ChannelTimeout:
                raise _Gone(self._timed_out(timeout, timeout)) from None
            while True:
                try:
                    reply = _decode(self._channel.receive(min(SLICE_S, max(0.0, deadline - time.monotonic()))))
                    break
                except ChannelTimeout:
                    now = time.monotonic()
                    if self._beat() != beat:
                        beat, beat_at = self._beat(), now
                    if now >= deadline:
                        raise _Gone(self._timed_out(timeout, now - beat_at)) from None
        except ChannelClosed:
            raise _Gone(self._ended()) from None
        except (ChannelError, msgspec.MsgspecError, RecursionError) as error:
            failure = Failure("integrity/forged-result", f"bytes on the result channel that are no reply: {error}")
            raise _Gone(self._lose(failure)) from None
        if not isinstance(reply, kind):
            failure = Failure("integrity/forged-result", f"a {type(reply).__name__} where a {kind.__name__} was asked")
            raise _Gone(self._lose(failure))
        return reply

    def _lose(self, failure: Failure) -> Failure:
        self._failure = failure
        self.close()
        return failure

    def _beat(self) -> int:
        (value,) = struct.unpack_from("<Q", self._heartbeat)
        return int(value)

    def _timed_out(self, limit: float, since_beat: float) -> Failure:
        self._signal("dump")
        time.sleep(DUMP_S)
        place, stack = self._stack()
        if since_beat < limit * PROGRESS_SHARE and self._beat() > 1:
            failure = Failure(
                "build/timeout", f"still working when {limit:g} s had passed", place, {"stack": stack, "limit_s": limit}
            )
        else:
            failure = Failure(
                "build/hang",
                f"no progress when {limit:g} s had passed" + (f"; it stood at {place}" if place else ""),
                place,
                {"stack": stack, "limit_s": limit},
            )
        return self._lose(failure)

    def _ended(self) -> Failure:
        seen = self._inspect()
        place, stack = self._stack()
        detail = {"stack": stack, "output": seen.output, "peak_bytes": seen.peak_bytes}
        if seen.ended_for == "memory":
            failure = Failure(
                "build/out-of-memory", f"ended at the memory limit, having {seen.peak_bytes >> 20} MiB", place, detail
            )
        elif seen.ended_for == "output":
            failure = Failure("build/crash", f"ended for {seen.output_bytes >> 20} MiB of output", place, detail)
        elif seen.ended_for == "processes":
            failure = Failure("integrity/escape", "ended for the number of processes it started", place, detail)
        elif seen.signal is not None:
            name = signal.Signals(seen.signal).name if seen.signal in set(signal.Signals) else str(seen.signal)
            failure = Failure("build/crash", f"ended by {name}", place, detail)
        elif seen.exit_code == 0:
            failure = Failure(
                "integrity/forged-result", "left with exit status 0 before it gave a result", place, detail
            )
        else:
            failure = Failure("build/crash", f"left with exit status {seen.exit_code}", place, detail)
        self._failure = failure
        self.close()
        return failure

    def _stack(self) -> tuple[Place | None, list[str]]:
        size = min(os.fstat(self._dump_fd).st_size, 1 << 16)
        text = os.pread(self._dump_fd, size, 0).decode("utf-8", "replace")
        frames = [(Path(name), int(line)) for name, line in _FRAME.findall(text)]
        mine = [(path, line) for path, line in frames if self._folder in path.parents]
        place = Place(str(mine[0][0].relative_to(self._folder)), mine[0][1]) if mine else None
        return place, [f"{path.name}:{line}" for path, line in frames[:12]]

    # ---- memory ------------------------------------------------------------------------------------------------

    def _output_regions(self, slot: SharedSlot, specs: Mapping[str, OutputSpec]) -> tuple[OutputRegion, ...]:
        made = []
        for name, spec in specs.items():
            if name in self._inplace and name in slot.regions:
                continue
            dtype = str(spec.dtype).removeprefix("torch.")
            region = slot.outputs.get(name)
            if region is None or (region.dtype, region.shape) != (dtype, spec.shape):
                if region is not None:
                    self._results.free(region.region)
                size = spec.dtype.itemsize
                for extent in spec.shape:
                    size *= extent
                region = OutputRegion(name, self._results.allocate(size), dtype, spec.shape)
                slot.outputs[name] = region
            self._prefill(region.region)
            made.append(region)
        return tuple(made)

    def _prefill(self, region: Region) -> None:
        if region.size:
            data = self._results.bytes_of(region)
            unit = torch.frombuffer(bytearray(guard_pattern(self._seed + 7, 4096)), dtype=torch.uint8)
            whole = region.size // 4096
            if whole:
                data[: whole * 4096].view(whole, 4096).copy_(unit)
            data[whole * 4096 :].copy_(unit[: region.size - whole * 4096])

    def _untouched_result(self, call: Call, regions: tuple[OutputRegion, ...]) -> bool:
        for region in regions:
            if region.region.size < 8 or region.name not in call.outputs:
                continue
            data = raw_bytes(call.outputs[region.name])
            expected = guard_pattern(self._seed + 7, 4096)
            head = bytes(data[:64].tolist())
            if head == expected[: len(head)]:
                pattern = torch.frombuffer(bytearray(expected), dtype=torch.uint8)
                repeated = pattern.repeat(-(-region.region.size // 4096))[: region.region.size]
                if torch.equal(data, repeated):
                    return True
        return False

    def _copy(self, slot: SharedSlot, regions: tuple[OutputRegion, ...], fill: int | None) -> Call:
        outputs: dict[str, torch.Tensor] = {}
        untouched: dict[str, torch.Tensor] = {}
        broken: list[str] = []
        for output in regions:
            dtype = getattr(torch, output.dtype)
            data = self._results.bytes_of(output.region).clone() if output.region.size else None
            strides = tuple(torch.empty(output.shape, device="meta").stride())
            outputs[output.name] = (
                torch.empty(output.shape, dtype=dtype)
                if data is None
                else over_bytes(data, dtype, output.shape, strides, 0)
            )
            if fill is not None and data is not None:
                untouched[output.name] = _equals_pattern(data, dtype, fill).view(output.shape)
            if not self._results.intact(output.region):
                broken.append(output.name)
                self._results.mend(output.region)
        mutations: list[Mutation] = []
        for name, region in slot.regions.items():
            value = slot.inputs[name]
            if name in self._inplace:
                if region.size:
                    data = self._inputs.bytes_of(region).clone()
                    shape, strides = tuple(value.shape), tuple(value.stride())
                    outputs[name] = over_bytes(data, value.dtype, shape, strides, int(value.storage_offset()))
                else:
                    outputs[name] = value
            elif region.size:
                found = _mutation(name, self._inputs.bytes_of(region), value)
                if found is not None:
                    mutations.append(found)
                    self._inputs.bytes_of(region).copy_(raw_bytes(value))
            if not self._inputs.intact(region):
                broken.append(name)
                self._inputs.mend(region)
        return Call(outputs, untouched, tuple(mutations), (), tuple(broken))

    # ---- standing still ----------------------------------------------------------------------------------------

    def _stop(self) -> None:
        """Stop the process before anything is read: else work is put off until someone looks."""
        self._signal("stop")

    def _continue(self) -> None:
        if self._seen is None:
            self._signal("continue")

    # ---- words of the process ----------------------------------------------------------------------------------

    def _place(self, report: WireReport) -> Place | None:
        if report.file is None or report.line is None or report.line < 1:
            return None
        name = clip(Path(report.file).name, 200)
        return Place(name, report.line)

    def _as_failure(self, report: WireReport) -> Failure:
        detail = plain_detail(report.detail)
        if report.code != "build/environment" and (
            report.code not in FINDINGS or FINDINGS[report.code].severity != "fail"
        ):
            summary = f"says that a call failed with {clip(report.code, 60)}, which is no failure of a call"
            return Failure("integrity/forged-result", summary, self._place(report), detail)
        return Failure(report.code, clip(report.summary), self._place(report), detail)

    def _as_report(self, report: WireReport) -> Report:
        code = report.code if report.code in FINDINGS else "integrity/harness"
        return Report(code, clip(report.summary), self._place(report), plain_detail(report.detail))

    def _reports(self, details: Details) -> tuple[Report, ...]:
        return tuple(self._as_report(report) for call in details.reports for report in call)


def _with_reports(call: Call, reports: tuple[Report, ...]) -> Call:
    return Call(call.outputs, call.untouched, call.mutations, reports, call.broken_guards)


def _equals_pattern(data: torch.Tensor, dtype: torch.dtype, fill: int) -> torch.Tensor:
    pattern = torch.frombuffer(bytearray(element_pattern(dtype, fill)), dtype=torch.uint8)
    return (data.view(-1, len(pattern)) == pattern).all(dim=1)


def _mutation(name: str, shared: torch.Tensor, value: torch.Tensor) -> Mutation | None:
    mine = raw_bytes(value)
    now = shared.clone()
    if torch.equal(now, mine):
        return None
    shape, strides = tuple(value.shape), tuple(value.stride())
    width = value.element_size()
    wide = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}.get(width)
    if wide is None:
        return Mutation(name, int((now != mine).sum()) // width + 1, ())
    before = over_bytes(mine.clone(), wide, shape, strides, int(value.storage_offset()))
    after = over_bytes(now, wide, shape, strides, int(value.storage_offset()))
    changed = (before != after).nonzero()
    if len(changed) == 0:
        return Mutation(name, int((now != mine).sum()) // width + 1, ())
    return Mutation(name, len(changed), tuple(int(index) for index in changed[0]))


def _cpu_ns(pid: int) -> int:
    """The process's CPU time by the kernel's account: clock id of a foreign process as in clock_getcpuclockid(3)."""
    try:
        return time.clock_gettime_ns((~pid << 3) | 2)
    except OSError:
        return 0


def refusal_reports(seen: Seen) -> tuple[Report, ...]:
    """What the sandbox refused, as reports: attempts to leave convict, harmless look-ups are told as hints."""
    reports = []
    for severity, syscall, words, count in seen.refusals:
        code = "integrity/escape" if severity == "escape" else "integrity/hint"
        reports.append(Report(code, clip(words), None, {"syscall": syscall, "times": count}))
    if seen.left:
        reports.append(Report("integrity/escape", f"{seen.left} processes survived their end", None, {}))
    return tuple(reports)
