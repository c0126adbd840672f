"""Hooks for torch submissions: fresh memory filled and guarded; on a CUDA device, inputs moved there and back."""

from __future__ import annotations

import contextlib
import ctypes
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from runners.contract import Device
from runners.frameworks import cuda_device, device_mapping
from runners.frameworks.allocations import Allocations
from runners.frameworks.extents import MemoryMap
from runners.frameworks.reports import Reports
from runners.patterns import GUARD_BYTES


class TorchHooks:
    """See :class:`runners.frameworks.FrameworkHooks`."""

    name = "torch"

    def __init__(self) -> None:
        self._device: Device = "cpu"

    def install(self, device: Device, interpreted: bool) -> None:
        """Prepare this process."""
        self._device = device
        if device == "cpu":
            device_mapping.offer()

    def place(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """The arguments where the code runs."""
        return cuda_device.place(arguments) if self._device == "cuda" else arguments

    def collect(self, result: Any, placed: Mapping[str, Any], arguments: Mapping[str, Any]) -> Any:
        """A result on the CPU, in-place changes brought back."""
        return cuda_device.collect(result, placed, arguments) if self._device == "cuda" else result

    @contextlib.contextmanager
    def watch(
        self, arguments: Mapping[str, Any], options: Mapping[str, Any], heartbeat: Callable[[], None]
    ) -> Iterator[Reports]:
        """Fill and guard what ``torch.empty`` and its kin hand out. On CUDA nothing is hooked: no reports."""
        reports = Reports()
        if self._device != "cpu":
            yield reports
            return
        memory = MemoryMap()
        memory.lend(arguments)
        with Allocations(reports, memory, int(options.get("fill", 0)), heartbeat, track=False):
            yield reports

    def planted(self) -> bool | None:
        """Overwrite a random byte of a guard zone: is it reported? None on CUDA, where nothing is hooked."""
        if self._device != "cpu":
            return None
        chance = random.SystemRandom()
        with self.watch({}, {"fill": chance.getrandbits(32)}, lambda: None) as reports:
            fresh = torch.empty(chance.randrange(1, 200), dtype=torch.float32)
            where = chance.randrange(GUARD_BYTES)
            address = fresh.data_ptr() + chance.choice([-1 - where, fresh.nbytes + where])
            byte = ctypes.c_uint8.from_address(address)
            byte.value ^= chance.randrange(1, 256)
        return any(report["code"] == "memory/out-of-bounds-write" for report in reports)


def make_hooks() -> TorchHooks:
    """The hooks of this framework."""
    return TorchHooks()
