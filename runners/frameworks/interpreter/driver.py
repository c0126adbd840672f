"""A driver for code that asks Triton about its device where there is none."""

# ruff: noqa: D102 - the methods' names and meanings are those of Triton's own drivers

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver

from runners.frameworks.device_mapping import CAPABILITY, PROPERTIES

_CAPABILITY = CAPABILITY[0] * 10 + CAPABILITY[1]


def _bench(call: Any, quantiles: Any = None, **kwargs: Any) -> Any:
    """Benchmarks of interpreted code mean nothing: call once, answer zero."""
    call()
    return [0.0] * len(quantiles) if quantiles else 0.0


class StandIn:
    """Answers like the driver of one CUDA device."""

    utils = SimpleNamespace(
        get_device_properties=lambda device=0: {
            "max_shared_mem": PROPERTIES.shared_memory_per_block_optin,
            "max_num_regs": PROPERTIES.regs_per_multiprocessor,
            "multiprocessor_count": PROPERTIES.multi_processor_count,
            "warpSize": PROPERTIES.warp_size,
            "sm_clock_rate": 1_980_000,
            "mem_clock_rate": 2_619_000,
            "mem_bus_width": 5120,
        }
    )

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", _CAPABILITY, PROPERTIES.warp_size)

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None:
        pass

    def get_current_stream(self, device: Any = None) -> int:
        return 0

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cuda", 0)

    def get_device_capability(self, device: Any = 0) -> tuple[int, int]:
        return CAPABILITY

    def get_device_interface(self) -> Any:
        return torch.cuda

    def get_empty_cache_for_benchmark(self) -> torch.Tensor:
        return torch.zeros(1, dtype=torch.int32)

    def clear_cache(self, cache: torch.Tensor) -> None:
        pass

    def get_benchmarker(self) -> Any:
        return _bench

    def is_active(self) -> bool:
        return True


def install() -> None:
    """Make the stand-in the active driver; benchmarks run their function once and answer zero."""
    import triton.testing

    driver.set_active(StandIn())
    triton.testing.do_bench = lambda fn, *args, quantiles=None, **kwargs: _bench(fn, quantiles)
    triton.testing.do_bench_cudagraph = lambda fn, *args, quantiles=None, **kwargs: _bench(fn, quantiles)
