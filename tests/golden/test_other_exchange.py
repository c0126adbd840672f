"""Kernels in the manner of Triton's tutorials, in an exchange that is not among the samples."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from runners.evidence import Evidence

EXCHANGE = Path(__file__).resolve().parent / "other_exchange"
FAULTS = {
    "vector-add": "memory/out-of-bounds-write",
    "seeded-dropout": "numerics/",
    "grouped-matmul": "memory/unwritten-output",
    "layer-norm-forward": "numerics/",
    "attention-forward": "numerics/",
}
Judge = Callable[..., Evidence]
Story = Callable[[Evidence], str]


@pytest.mark.parametrize("task", FAULTS)
def test_the_right_kernel_is_not_accused(judge: Judge, story: Story, task: str) -> None:
    evidence = judge(EXCHANGE, task, "right")
    assert evidence.outcome == "pass", story(evidence)
    assert not [f for f in evidence.findings if f.severity == "warn" and f.panel != "scope"], story(evidence)


@pytest.mark.parametrize(("task", "code"), FAULTS.items())
def test_the_wrong_kernel_is_caught_for_its_fault(judge: Judge, story: Story, task: str, code: str) -> None:
    evidence = judge(EXCHANGE, task, "wrong")
    assert evidence.outcome == "fail", story(evidence)
    assert any(f.code.startswith(code) and f.severity == "fail" for f in evidence.findings), story(evidence)
