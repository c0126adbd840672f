"""Run host code that hard-codes a CUDA device on the CPU.

Every factory and every move that names ``cuda`` lands on the CPU; ``torch.cuda`` and Triton's driver answer as one
device of :data:`CAPABILITY` would. With ``claims`` a tensor also says that it is on ``cuda:0``, so that checks such as
``assert x.is_cuda`` and ``x.device == DEVICE`` agree with each other; that is for interpreted kernels, whose host code
was written for a GPU.
"""

from __future__ import annotations

import contextlib
import re
import time
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

CAPABILITY = (9, 0)
"""The compute capability that code which asks is told: the newest that Triton's interpreter covers in full."""

PROPERTIES = types.SimpleNamespace(
    name="CPU in place of a CUDA device",
    major=CAPABILITY[0],
    minor=CAPABILITY[1],
    multi_processor_count=132,
    total_memory=80 << 30,
    warp_size=32,
    max_threads_per_multi_processor=2048,
    regs_per_multiprocessor=65536,
    shared_memory_per_block=49152,
    shared_memory_per_block_optin=232448,
    shared_memory_per_multiprocessor=233472,
    L2_cache_size=50 << 20,
    gcnArchName="",
)
"""Figures of an H100 SXM, from NVIDIA's data sheet and the CUDA C++ programming guide's table of technical limits."""

_MENTIONS = re.compile(r"\bcuda\b")
_offered = False
_mode: ToCPU | None = None


def on_cpu(device: Any) -> Any:
    """``device`` with every CUDA device, by name, object or index, replaced by the CPU."""
    if isinstance(device, torch.device):
        return torch.device("cpu") if device.type == "cuda" else device
    if isinstance(device, str):
        return "cpu" if device.split(":")[0] == "cuda" else device
    if isinstance(device, int) and not isinstance(device, bool):
        return "cpu"
    return device


def _names_cuda(value: Any) -> bool:
    if isinstance(value, torch.device):
        return value.type == "cuda"
    return isinstance(value, str) and value.split(":")[0] == "cuda"


class ToCPU(TorchFunctionMode):
    """Replaces CUDA devices in the arguments of every torch function; calls ``out_of_sight`` as it happens."""

    def __init__(self) -> None:
        super().__init__()
        self.leaves_sight: Callable[[Any], bool] | None = None
        self.out_of_sight: Callable[[], None] | None = None

    def __torch_function__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if self.leaves_sight is not None and self.out_of_sight is not None and self.leaves_sight(func):
            self.out_of_sight()
        if func is torch.Tensor.cuda or func is torch.Tensor.pin_memory:
            return args[0]
        named = dict(kwargs or {})
        if func is torch.device:
            # A name alone moves nothing, and must equal what a tensor claims.
            return func(*args, **named)
        if "device" in named:
            named["device"] = on_cpu(named["device"])
        if named.get("pin_memory"):
            named["pin_memory"] = False
        if func is torch.Tensor.to and len(args) > 1 and isinstance(args[1], int):
            args = (args[0], "cpu", *args[2:])
        if any(_names_cuda(one) for one in args):
            args = tuple(on_cpu(one) if _names_cuda(one) else one for one in args)
        return func(*args, **named)


class _AnyGenerator(type(torch._C.Generator)):  # type: ignore[misc]
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, torch._C.Generator)


class _Generator(torch._C.Generator, metaclass=_AnyGenerator):
    def __new__(cls, device: Any = "cpu") -> _Generator:
        return super().__new__(cls, on_cpu(device))  # type: ignore[call-arg]


class _Event:
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._at = 0.0

    def record(self, stream: Any = None) -> None:
        self._at = time.perf_counter()

    def elapsed_time(self, other: _Event) -> float:
        return (other._at - self._at) * 1e3

    def synchronize(self) -> None:
        pass

    def wait(self, stream: Any = None) -> None:
        pass

    def query(self) -> bool:
        return True


class _Stream:
    cuda_stream = 0
    device = torch.device("cuda", 0)
    device_index = 0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __enter__(self) -> _Stream:
        return self

    def __exit__(self, *error: Any) -> None:
        pass

    def synchronize(self) -> None:
        pass

    def wait_stream(self, stream: Any) -> None:
        pass

    def wait_event(self, event: Any) -> None:
        pass

    def record_event(self, event: Any = None) -> _Event:
        return event or _Event()

    def query(self) -> bool:
        return True


class _Device(contextlib.nullcontext[None]):
    def __init__(self, device: Any = None) -> None:
        super().__init__()
        self.idx = 0


def _answer(value: Any) -> Callable[..., Any]:
    """A function of its own per name: torch's compiler keeps a table that must not meet one object twice."""
    return lambda *args, **kwargs: value


def _stand_in_for_cuda() -> None:
    cuda = torch.cuda
    current = _Stream()
    answers: dict[str, Any] = {
        "is_available": True,
        "is_initialized": True,
        "device_count": 1,
        "current_device": 0,
        "get_device_name": PROPERTIES.name,
        "get_device_capability": CAPABILITY,
        "get_device_properties": PROPERTIES,
        "get_arch_list": ["sm_90"],
        "is_bf16_supported": True,
        "current_stream": current,
        "default_stream": current,
        "mem_get_info": (PROPERTIES.total_memory, PROPERTIES.total_memory),
        "memory_allocated": 0,
        "max_memory_allocated": 0,
        "memory_reserved": 0,
        "max_memory_reserved": 0,
        "is_current_stream_capturing": False,
    }
    for name, value in answers.items():
        setattr(cuda, name, _answer(value))
    for name in (
        "init",
        "synchronize",
        "empty_cache",
        "set_device",
        "set_stream",
        "ipc_collect",
        "reset_peak_memory_stats",
        "reset_max_memory_allocated",
    ):
        setattr(cuda, name, _answer(None))
    for name in ("manual_seed", "manual_seed_all"):
        setattr(cuda, name, lambda seed: torch.default_generator.manual_seed(seed) and None)
    stand_ins: dict[str, Any] = {
        "Event": _Event,
        "Stream": _Stream,
        "stream": lambda stream=None: stream if isinstance(stream, _Stream) else current,
        "device": _Device,
        "device_of": _Device,
    }
    for name, value in stand_ins.items():
        setattr(cuda, name, value)


def _claim_cuda() -> None:
    claimed = torch.device("cuda", 0)
    own = torch._C.TensorBase.device

    def device(tensor: torch.Tensor) -> torch.device:
        real = own.__get__(tensor)
        return claimed if real.type == "cpu" else real

    torch.Tensor.device = property(device)  # type: ignore[assignment]
    torch.Tensor.is_cuda = property(lambda tensor: device(tensor) == claimed)  # type: ignore[assignment]
    torch.Tensor.is_cpu = property(lambda tensor: device(tensor).type == "cpu")  # type: ignore[assignment]
    torch.Tensor.get_device = lambda tensor: 0  # type: ignore[method-assign, assignment]


def _cover_backward(mode: ToCPU) -> None:
    """A mode is off while it handles a function, and ``backward`` is one: switch it on for what runs inside."""
    run = torch.autograd.graph._engine_run_backward

    def covered(*args: Any, **kwargs: Any) -> Any:
        with mode:
            return run(*args, **kwargs)

    for module in (torch.autograd, torch.autograd.graph):
        module._engine_run_backward = covered  # type: ignore[attr-defined]


def install(claims: bool) -> ToCPU:
    """Map CUDA to the CPU in this process from here on. Idempotent; the mode stays entered."""
    global _mode
    if _mode is None:
        _mode = ToCPU()
        _stand_in_for_cuda()
        torch.Generator = _Generator  # type: ignore[misc]
        if claims:
            _claim_cuda()
        _cover_backward(_mode)
        _mode.__enter__()  # type: ignore[no-untyped-call]
    return _mode


def offer() -> None:
    """Map only if the candidate's source turns out to mention CUDA: other code runs without the mode's overhead."""
    global _offered
    _offered = True


def map_if_mentioned(source: str) -> None:
    """Take up an offer when ``source`` names ``cuda``."""
    if _offered and _MENTIONS.search(source):
        install(claims=False)


def active() -> ToCPU | None:
    """The mode, where it is installed."""
    return _mode
