"""Native runs on a CUDA device: inputs go there before the call, results and in-place changes come back after it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch


def place(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Copies of the arguments on the current CUDA device, strides kept; what is no tensor stays as it is.

    Memory between a strided tensor's elements is not copied: it belongs to nobody.
    """
    moved: dict[str, Any] = {}
    for name, value in arguments.items():
        if isinstance(value, torch.Tensor):
            there = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="cuda")
            there.copy_(value)
            moved[name] = there
        else:
            moved[name] = value
    torch.cuda.synchronize()
    return moved


def collect(result: Any, moved: Mapping[str, Any], arguments: Mapping[str, Any]) -> Any:
    """A result with its tensors on the CPU, containers kept; waits for the device.

    What the call did to its arguments is written into the lent ones, so that it is seen where it is judged.
    """
    torch.cuda.synchronize()
    for name, value in arguments.items():
        if isinstance(value, torch.Tensor):
            changed = moved[name].cpu()
            if not torch.equal(_bits(changed), _bits(value)):
                value.copy_(changed)
    return _on_host(result)


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().view(torch.uint8)


def _on_host(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.cpu()
    if isinstance(value, dict):
        return {key: _on_host(one) for key, one in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value)(_on_host(one) for one in value)
    return value
