from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from console.grading.rubric import Rubric, parse_rubric
from runners.evidence import (
    Evidence,
    Finding,
    PanelResult,
    SubmissionRef,
    TaskRef,
    make_finding,
    number_findings,
    outcome_of,
    settle_panel,
)
from runners.findings import PANELS, PanelName

TREE = "b" * 40
REVISION = "a" * 40

SMALL = b"""
schema = 1
id = "small"
version = 3
[[criteria]]
id = "right"
question = "Is it right?"
axis = "answer"
weight = 3
gate = { below = 1, cap = 3.0 }
needs = ["correctness"]
levels = [{ name = "no", anchor = "wrong" }, { name = "partly", anchor = "some" }, { name = "yes", anchor = "all" }]
suggest = [
  { when = ["numerics/*", "memory/*"], severity = "fail", level = 0 },
  { when = ["numerics/*"], level = 1 },
  { panel = "correctness", status = "pass", level = 2 },
]
[[criteria]]
id = "clear"
question = "Is it clear?"
axis = "writing"
weight = 1
levels = [{ name = "no", anchor = "not" }, { name = "yes", anchor = "so" }]
"""

FILES: dict[str, str | None] = {
    "kernel.py": "import triton\n\n\n@triton.jit\ndef softmax(x):\n    m = tl.max(x)\n",
    "plot.png": None,
}


@pytest.fixture
def small() -> Rubric:
    return parse_rubric(SMALL)


@pytest.fixture(scope="session")
def kernel() -> Rubric:
    return parse_rubric((Path(__file__).parents[3] / "rubrics" / "kernel.toml").read_bytes())


def evidence_with(*findings: Finding, unchecked: tuple[PanelName, ...] = (), **changes: Any) -> Evidence:
    numbered = number_findings(findings)
    panels = {}
    for name in PANELS:
        result = PanelResult(status="not-checked", reason="why") if name in unchecked else PanelResult(status="pass")
        panels[name] = settle_panel(name, result, numbered)
    fields: dict[str, Any] = {
        "task": TaskRef("t", "c" * 40),
        "submission": SubmissionRef("m-1", TREE, REVISION),
        "environment": {"python": "3.11"},
        "seeds": (1, 2),
        "outcome": outcome_of(panels, numbered),
        "panels": panels,
        "findings": numbered,
    }
    return Evidence(**{**fields, **changes})


@pytest.fixture
def evidence() -> Callable[..., Evidence]:
    return evidence_with


@pytest.fixture
def unstable() -> Evidence:
    return evidence_with(make_finding("numerics/unstable", "NaN for rows above 88"))
