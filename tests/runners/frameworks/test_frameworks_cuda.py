"""Native runs on a CUDA device."""

from __future__ import annotations

import pytest
import torch

from runners.frameworks import hooks_for


@pytest.mark.gpu
@pytest.mark.parametrize("framework", ["torch", "triton"])
def test_arguments_go_to_the_device_and_changes_come_back(framework: str) -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    hooks = hooks_for(framework)  # type: ignore[arg-type]
    hooks.install("cuda", False)
    lent = {"x": torch.arange(6.0).as_strided((2, 2), (3, 1)), "n": 3}
    placed = hooks.place(lent)
    assert placed["x"].is_cuda and placed["x"].stride() == (3, 1) and placed["n"] == 3
    with hooks.watch(lent, {}, lambda: None) as reports:
        placed["x"].add_(1)
        result = {"y": placed["x"] * 2}
    back = hooks.collect(result, placed, lent)
    assert reports == []
    assert torch.equal(lent["x"], torch.tensor([[1.0, 2.0], [4.0, 5.0]]))
    assert not back["y"].is_cuda and torch.equal(back["y"], lent["x"] * 2)
    assert hooks.planted() is None


def test_on_a_cpu_nothing_is_moved() -> None:
    hooks = hooks_for("torch")
    lent = {"x": torch.ones(2)}
    assert hooks.place(lent) is lent
    assert hooks.collect(lent["x"], lent, lent) is lent["x"]
