"""Autotuned kernels without a device to tune on: run one chosen configuration, and see what tuning would spoil.

On a device the first call with a new key runs every configuration on the live arguments. A kernel that updates memory
it also reads then starts from what the trials left behind, unless the decorator resets or restores it. So at the first
call the arguments are compared with a second run on top of the first: where elements were read before they were
written, and a second run changes them again, tuning corrupts them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from triton.runtime.autotuner import Autotuner

from runners.frameworks.interpreter import launch as launches
from runners.frameworks.sites import site

MAX_COMPARED_BYTES = 1 << 28
"""Larger arguments are not copied to be compared."""


def install() -> None:
    """Let every autotuner in this process choose as :func:`run` does."""
    Autotuner.run = run


def _key(tuner: Any, kwargs: dict[str, Any]) -> tuple[Any, ...]:
    every = {**tuner.nargs, **kwargs}
    named = {name: value for name, value in every.items() if name in tuner.arg_names}
    key = [named[name] for name in tuner.keys if name in named]
    return (*key, *(str(value.dtype) for value in named.values() if hasattr(value, "dtype")))


def run(tuner: Any, *args: Any, **kwargs: Any) -> Any:
    """In place of ``Autotuner.run``: the configuration whose index the run was asked for, modulo their number."""
    tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))
    configs = tuner.configs
    first = False
    if len(configs) > 1:
        key = _key(tuner, kwargs)
        first = key not in tuner.cache
        configs = tuner.prune_configs(kwargs)
        if not configs:
            raise RuntimeError("Autotuner error: No valid autotuner configs after pruning.")
    watch = launches.current
    number = watch.config % len(configs)
    config = configs[number]
    clash = kwargs.keys() & config.kwargs.keys()
    if clash:
        raise ValueError(
            f"Conflicting meta-parameters: {', '.join(sorted(clash))}."
            " Make sure that you don't re-define auto-tuned symbols."
        )
    full = {**tuner.nargs, **kwargs, **config.all_kwargs()}
    if first:
        tuner.cache[key] = config
        tuner.pre_hook(full, reset_only=True)
    tuner.best_config = config
    _say(tuner, configs, number)

    def start() -> Any:
        if config.pre_hook is not None:
            config.pre_hook(full)
        return tuner.fn.run(*args, **kwargs, **config.all_kwargs())

    try:
        if first and watch.reports is not None and not tuner.user_defined_pre_hook and config.pre_hook is None:
            return _run_compared(tuner, full, start)
        return start()
    finally:
        tuner.nargs = None


def _name(tuner: Any) -> str:
    return str(getattr(tuner.base_fn, "__name__", "kernel"))


def _say(tuner: Any, configs: Any, number: int) -> None:
    reports = launches.current.reports
    if reports is None or len(configs) < 2:
        return
    file, line = site() or (None, None)
    reports.add(
        "integrity/hint",
        f"{_name(tuner)} is autotuned over {len(configs)} configurations; this run used number {number}: "
        f"{configs[number]}",
        file,
        line,
        {"kernel": _name(tuner), "configs": len(configs), "config": number},
        key=f"autotune {_name(tuner)}",
    )


def _run_compared(tuner: Any, full: dict[str, Any], start: Any) -> Any:
    covered = {*tuner.reset_to_zero, *tuner.restore_value}
    tensors = {name: value for name, value in full.items() if isinstance(value, torch.Tensor) and name not in covered}
    launches.updates_wanted = True
    launches.updated.clear()
    try:
        with torch._C.DisableTorchFunction():
            before = {name: _bytes(value) for name, value in tensors.items() if _small(value)}
        result = start()
    finally:
        launches.updates_wanted = False
    updated = launches.updated
    with torch._C.DisableTorchFunction():
        suspects = [
            name
            for name, old in before.items()
            if tensors[name].untyped_storage().data_ptr() in updated and not np.array_equal(old, _bytes(tensors[name]))
        ]
        if not suspects:
            return result
        after = {name: _bytes(value) for name, value in tensors.items() if name in before}
    spoiled = _spoiled_by_a_second_run(tensors, after, suspects, start)
    if spoiled:
        file, line = site() or (None, None)
        reports = launches.current.reports
        assert reports is not None
        reports.add(
            "build/autotune",
            f"{_name(tuner)}: tuning runs every configuration on the live arguments and so corrupts "
            f"{', '.join(spoiled)}, which the kernel updates in place; neither reset_to_zero nor restore_value name it",
            file,
            line,
            {"kernel": _name(tuner), "arguments": spoiled},
        )
    return result


def _spoiled_by_a_second_run(
    tensors: dict[str, torch.Tensor], after: dict[str, Any], suspects: list[str], start: Any
) -> list[str]:
    """Run once more on top, see which suspects change, and put everything back."""
    quiet = launches.Watch(memory=launches.current.memory, config=launches.current.config)
    watched = launches.set_watch(quiet)
    try:
        start()
        with torch._C.DisableTorchFunction():
            return [name for name in suspects if not np.array_equal(after[name], _bytes(tensors[name]))]
    finally:
        launches.set_watch(watched)
        with torch._C.DisableTorchFunction():
            for name, raw in after.items():
                _view(tensors[name])[:] = raw


def _small(tensor: torch.Tensor) -> bool:
    return 0 < tensor.untyped_storage().nbytes() <= MAX_COMPARED_BYTES


def _view(tensor: torch.Tensor) -> Any:
    storage = tensor.untyped_storage()
    return torch.empty(0, dtype=torch.uint8).set_(storage, 0, (storage.nbytes(),), (1,)).numpy()


def _bytes(tensor: torch.Tensor) -> Any:
    return _view(tensor).copy()
