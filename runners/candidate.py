"""The process that holds foreign code: imports it, calls it, and copies what it returns into shared memory.

Nothing in here is trusted by the judge, as the code that it calls can change any of it. It runs after the sandbox is
closed, with no descriptor but its channel, a heartbeat page and a file for stack dumps.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import importlib.util
import mmap
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import torch

from runners.channel import Channel, ChannelClosed
from runners.frameworks import FrameworkHooks, hooks_for, sites
from runners.frameworks.loading import diagnose, load_entry
from runners.protocol import (
    MAX_REPORTS,
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
    Plant,
    Planted,
    Prepare,
    ProcessPlan,
    Ready,
    Region,
    TensorArg,
    ToProcess,
    UnmapSegment,
    WireReport,
    clip,
)

_decode = msgspec.msgpack.Decoder(ToProcess).decode
_encode = msgspec.msgpack.Encoder().encode


class _ContractBroken(Exception):
    def __init__(self, code: str, summary: str) -> None:
        super().__init__(summary)
        self.code = code


class Memory:
    """The shared segments that the judge has handed over."""

    def __init__(self) -> None:
        self._segments: dict[int, mmap.mmap] = {}

    def add(self, number: int, fd: int, size: int) -> None:
        """Map a segment; the descriptor is closed."""
        self._segments[number] = mmap.mmap(fd, size)
        os.close(fd)

    def drop(self, number: int) -> None:
        """Forget a segment; its pages go when the last tensor over it does."""
        self._segments.pop(number, None)

    def tensor(
        self, region: Region, dtype: str, shape: tuple[int, ...], strides: tuple[int, ...] | None, offset: int = 0
    ) -> torch.Tensor:
        """A tensor whose storage is exactly the region."""
        kind = getattr(torch, dtype)
        if region.size == 0:
            return torch.empty(shape, dtype=kind)
        flat = torch.frombuffer(
            self._segments[region.segment], dtype=torch.uint8, count=region.size, offset=region.offset
        )
        if strides is None:
            strides = tuple(torch.empty(shape, device="meta").stride())
        made = torch.empty(0, dtype=kind)
        return made.set_(flat.untyped_storage(), offset, shape, strides)


def named_outputs(result: Any) -> dict[str, Any]:
    """A result's outputs by name: a tensor is ``"0"``, a tuple or list counts, a dict keeps its keys."""
    if result is None:
        return {}
    if isinstance(result, dict):
        return {str(name): value for name, value in result.items()}
    if isinstance(result, (tuple, list)):
        return {str(index): value for index, value in enumerate(result)}
    return {"0": result}


def _store(result: Any, regions: tuple[tuple[OutputRegion, torch.Tensor], ...]) -> None:
    if not regions:
        return
    outputs = named_outputs(result)
    expected = [region.name for region, _ in regions]
    if sorted(outputs) != sorted(expected):
        got = ", ".join(clip(name, 40) for name in list(outputs)[:8]) or "nothing"
        raise _ContractBroken("build/contract", f"returns {got} where {', '.join(expected)} is expected")
    for region, destination in regions:
        value = outputs[region.name]
        kind = type(value)
        if kind is not torch.Tensor and kind is not torch.nn.Parameter:
            if isinstance(value, torch.Tensor):
                raise _ContractBroken(
                    "integrity/lazy", f"output {region.name} is a {kind.__name__}, not a plain Tensor"
                )
            raise _ContractBroken("build/contract", f"output {region.name} is a {kind.__name__}, not a Tensor")
        if tuple(value.shape) != region.shape:
            raise _ContractBroken(
                "build/contract", f"output {region.name} has shape {tuple(value.shape)}, expected {region.shape}"
            )
        dtype = str(value.dtype).removeprefix("torch.")
        if dtype != region.dtype:
            raise _ContractBroken("build/contract", f"output {region.name} is {dtype}, expected {region.dtype}")
        if value.layout is not torch.strided:
            raise _ContractBroken("build/contract", f"output {region.name} has layout {value.layout}")
        with torch.no_grad():
            torch.Tensor.copy_(destination, value)


class _Placed(NamedTuple):
    """One call, ready: its arguments in shared memory, the same where the framework wants them, and its outputs."""

    arguments: dict[str, Any]
    on_device: Mapping[str, Any]
    regions: tuple[tuple[OutputRegion, torch.Tensor], ...]


class Candidate:
    """One candidate's or baseline's life: answers the judge until the channel closes."""

    def __init__(self, plan: ProcessPlan, channel: Channel, heartbeat: mmap.mmap, hooks: FrameworkHooks) -> None:
        self._plan = plan
        self._channel = channel
        self._pulse = ctypes.c_uint64.from_buffer(heartbeat)
        self._hooks = hooks
        self._memory = Memory()
        self._slots: dict[int, dict[str, Any]] = {}
        self._entry: Callable[..., Any] | None = None
        self._batch: list[_Placed] = []
        self._prepared = Prepare((), False, False, {})
        self._details = Details()

    def serve(self) -> None:
        """Answer until the judge hangs up."""
        while True:
            try:
                message = _decode(self._channel.receive())
            except ChannelClosed:
                return
            reply = self._answer(message)
            if reply is not None:
                self._channel.send(_encode(reply))

    def _answer(self, message: ToProcess) -> FromProcess | None:
        if isinstance(message, Go):
            return self._go()
        if isinstance(message, Prepare):
            self._prepare(message)
            return Ready()
        if isinstance(message, Describe):
            return self._details
        if isinstance(message, Define):
            self._slots[message.slot] = {
                argument.name: self._memory.tensor(
                    argument.storage, argument.dtype, argument.shape, argument.strides, argument.offset
                )
                if isinstance(argument, TensorArg)
                else argument.value
                for argument in message.arguments
            }
        elif isinstance(message, MapSegment):
            (fd,) = self._channel.take_fds()
            self._memory.add(message.segment, fd, message.size)
        elif isinstance(message, Forget):
            self._batch = []
            for slot in message.slots:
                self._slots.pop(slot, None)
        elif isinstance(message, UnmapSegment):
            self._memory.drop(message.segment)
        elif isinstance(message, Plant):
            return Planted(self._hooks.planted())
        elif isinstance(message, Load):
            return Loaded(self._load())
        return None

    def _load(self) -> WireReport | None:
        try:
            if self._plan.role == "baseline":
                self._entry = _baseline(Path(self._plan.folder), self._plan.baseline or "")
            else:
                self._entry = load_entry(Path(self._plan.folder) / "kernel.py", self._plan.entry)
        except BaseException as error:  # noqa: BLE001 - foreign code raises what it likes; all of it becomes a finding
            return _wire(diagnose(error, Path(self._plan.folder), "load"))
        return None

    def _beat(self) -> None:
        self._pulse.value += 1

    def _prepare(self, message: Prepare) -> None:
        self._prepared = message
        self._batch = []
        for slot, regions in message.calls:
            outputs = tuple(
                (region, self._memory.tensor(region.region, region.dtype, region.shape, None)) for region in regions
            )
            arguments = self._slots[slot]
            self._batch.append(_Placed(arguments, self._hooks.place(arguments), outputs))

    def _go(self) -> Done:
        prepared, entry = self._prepared, self._entry
        if entry is None:
            self._details = Details(failure=WireReport("build/import", "nothing is loaded"))
            return Done(0)
        held: list[Any] = []
        reports: list[tuple[WireReport, ...]] = []
        times: list[int] = []
        clock = time.perf_counter_ns
        failure: WireReport | None = None
        index = 0
        try:
            for index, call in enumerate(self._batch):  # noqa: B007 - read after a failure
                self._pulse.value += 1
                begun = clock()
                if prepared.checked:
                    result = self._checked(entry, call, prepared.options, reports)
                else:
                    result = entry(*call.on_device.values())
                result = self._hooks.collect(result, call.on_device, call.arguments)
                times.append(clock() - begun)
                if prepared.hold:
                    held.append(result)
                else:
                    _store(result, call.regions)
                del result
            for index, result in enumerate(held):
                _store(result, self._batch[index].regions)
        except _ContractBroken as broken:
            failure = WireReport(broken.code, str(broken))
        except BaseException as error:  # noqa: BLE001
            failure = _wire(diagnose(error, Path(self._plan.folder), "call"))
        self._details = Details(failure, tuple(reports), tuple(times))
        return Done(-1 if failure is None else index)

    def _checked(
        self,
        entry: Callable[..., Any],
        call: _Placed,
        options: Mapping[str, Any],
        reports: list[tuple[WireReport, ...]],
    ) -> Any:
        """One call under the hooks; what they saw is kept also when the call raises."""
        seen: list[dict[str, Any]] = []
        try:
            with self._hooks.watch(call.arguments, options, self._beat) as seen:
                result = entry(*call.on_device.values())
                seen.returned(named_outputs(result))
        finally:
            reports.append(tuple(_wire(report) for report in seen[:MAX_REPORTS]))
        return result


def _wire(report: Mapping[str, Any]) -> WireReport:
    return WireReport(
        code=str(report["code"]),
        summary=clip(str(report["summary"])),
        file=report.get("file"),
        line=report.get("line"),
        detail=dict(report.get("detail") or {}),
    )


def _baseline(folder: Path, name: str) -> Callable[..., Any]:
    spec = importlib.util.spec_from_file_location("reference", folder / "reference.py")
    if spec is None or spec.loader is None:
        raise ImportError("reference.py cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules["reference"] = module
    spec.loader.exec_module(module)
    found: Callable[..., Any] = module.BASELINES[name]
    return found


def serve(plan: ProcessPlan, channel: Channel, heartbeat_fd: int, dump_fd: int) -> None:
    """Run the process's life on ``channel``; returns when the judge hangs up."""
    dump = open(dump_fd, "wb", buffering=0, closefd=False)  # noqa: SIM115 - lives as long as the process
    faulthandler.enable(dump)
    with contextlib.suppress(AttributeError, ValueError):
        import signal

        faulthandler.register(signal.SIGUSR2, dump, all_threads=True, chain=False)
    sites.set_folder(Path(plan.folder))
    hooks = hooks_for(plan.framework)
    hooks.install(plan.device, plan.interpreted)
    heartbeat = mmap.mmap(heartbeat_fd, mmap.PAGESIZE)
    os.close(heartbeat_fd)
    Candidate(plan, channel, heartbeat, hooks).serve()
