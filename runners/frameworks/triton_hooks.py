"""Hooks for Triton submissions: on a CPU through the interpreter, on a CUDA device natively."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from runners.contract import Device
from runners.frameworks import cuda_device, device_mapping
from runners.frameworks.allocations import Allocations, leaves_sight
from runners.frameworks.diagnosis import NotInterpretableError, SpinError
from runners.frameworks.extents import MemoryMap
from runners.frameworks.reports import Reports, clip


class TritonHooks:
    """See :class:`runners.frameworks.FrameworkHooks`."""

    name = "triton"

    def __init__(self) -> None:
        self._interpreted = True
        self._device: Device = "cpu"

    def install(self, device: Device, interpreted: bool) -> None:
        """Prepare this process. Interpreted, it needs TRITON_INTERPRET=1 from before the import of Triton."""
        self._interpreted, self._device = interpreted, device
        if not interpreted:
            return
        from runners.frameworks.interpreter import driver, language

        language.patch_language()
        driver.install()
        device_mapping.install(claims=True)

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
        """Check memory, races, autotuning. On a device nothing is hooked: no reports."""
        reports = Reports()
        if not self._interpreted:
            yield reports
            return
        from runners.frameworks.interpreter import launch

        memory = MemoryMap()
        with torch._C.DisableTorchFunction():
            memory.lend(arguments)
        watch = launch.Watch(
            memory=memory,
            reports=reports,
            order=options.get("order", "forward"),
            order_seed=int(options.get("order_seed", options.get("fill", 0))),
            config=int(options.get("config", 0)),
            tf32=bool(options.get("tf32", False)),
            heartbeat=heartbeat,
        )
        allocations = Allocations(reports, memory, int(options.get("fill", 0)), heartbeat, track=True)
        reports.on_returned.append(lambda result: _swallowed(watch, reports))
        mode = device_mapping.active()
        before = launch.set_watch(watch)
        try:
            if mode is not None:
                mode.leaves_sight, mode.out_of_sight = leaves_sight, allocations.forget_unwritten
            with allocations:
                yield reports
                for name, value in arguments.items():
                    if isinstance(value, torch.Tensor):
                        allocations.look_at(value, name)
        finally:
            launch.set_watch(before)
            if mode is not None:
                mode.leaves_sight = mode.out_of_sight = None

    def planted(self) -> bool | None:
        """Store one element to a random place outside of a tensor: is it reported? None on a device."""
        if not self._interpreted:
            return None
        from runners.frameworks.interpreter.planted import store_at

        chance = random.SystemRandom()
        size = chance.randrange(1, 300)
        place = chance.choice([-chance.randrange(1, 1000), size + chance.randrange(1000)])
        target = torch.zeros(size)
        with self.watch({"planted": target}, {}, lambda: None) as reports:
            store_at[(1,)](target, place)
        return any(report["code"] == "memory/out-of-bounds-write" for report in reports)


def _swallowed(watch: Any, reports: Reports) -> None:
    """A launch failed and the call returned all the same: it took another way without saying so."""
    if watch.failed is None:
        return
    error, place = watch.failed
    file, line = place or (None, None)
    words = clip(f"{type(error).__name__}: {error}", 200)
    if isinstance(error, (NotInterpretableError, SpinError)):
        reports.add(
            "build/environment",
            f"what ran is not what runs on a device, as a kernel could not be run: {words}",
            file,
            line,
        )
    else:
        reports.add(
            "integrity/silent-fallback", f"a kernel failed and the call returned all the same: {words}", file, line
        )


def make_hooks() -> TritonHooks:
    """The hooks of this framework."""
    return TritonHooks()


def preload(interpreted: bool) -> None:
    """Import Triton and, for the interpreter, patch and warm it once for all forks."""
    import triton  # noqa: F401

    if not interpreted:
        return
    from triton import knobs

    if not knobs.runtime.interpret:
        raise RuntimeError("TRITON_INTERPRET=1 must be set before Triton is imported")
    from runners.frameworks.interpreter import language

    language.warm()
