from __future__ import annotations

from pathlib import Path

import pytest

from console.grading.rubric import Rubric
from console.grading.suggest import suggest
from runners.evidence import make_finding
from runners.findings import FINDINGS

from .conftest import evidence_with

FILE = Path(__file__).parents[3] / "rubrics" / "kernel.toml"


def test_it_covers_what_it_must(kernel: Rubric) -> None:
    assert {"correctness", "numerics", "performance", "robustness", "reasoning", "writing"} <= set(kernel.ids)
    assert {criterion.axis for criterion in kernel.criteria} == {"answer", "reasoning", "evidence", "writing"}
    assert all(criterion.top == 3 for criterion in kernel.criteria)


def test_it_fits_a_terminal() -> None:
    assert max(len(line) for line in FILE.read_text().split("\n")) <= 80


def test_a_question_and_a_level_name_fit_one_row(kernel: Rubric) -> None:
    for criterion in kernel.criteria:
        assert len(criterion.question) <= 60, criterion.id
        for level in criterion.levels:
            assert len(level.name) <= 16, (criterion.id, level.name)
            assert len(level.anchor) <= 160, (criterion.id, level.name)
            assert "\n" not in level.anchor


def test_a_clean_run_suggests_the_top_where_panels_can_tell_and_nothing_elsewhere(kernel: Rubric) -> None:
    levels = {name: one.level for name, one in suggest(kernel, evidence_with()).items()}
    assert levels == {"correctness": 3, "integrity": 3, "numerics": 3, "performance": 2, "robustness": 2}


def test_a_machine_that_checked_nothing_suggests_nothing(kernel: Rubric) -> None:
    nothing = evidence_with(unchecked=("build", "correctness", "integrity", "timing", "resources", "scope"))
    assert suggest(kernel, nothing) == {}


@pytest.mark.parametrize("code", [code for code, kind in FINDINGS.items() if kind.severity == "fail"])
def test_every_failing_finding_costs_a_point_somewhere(kernel: Rubric, code: str) -> None:
    found = suggest(kernel, evidence_with(make_finding(code, "s")))
    costing = [name for name, one in found.items() if one.level <= 1 and f"finding:{code}#1" in one.cites]
    assert costing, code


@pytest.mark.parametrize(
    ("code", "levels"),
    [
        ("numerics/unstable", {"correctness": 1, "numerics": 0}),
        ("numerics/stride", {"correctness": 1, "robustness": 1}),
        ("memory/out-of-bounds-write", {"correctness": 0, "robustness": 0}),
        ("integrity/replay", {"correctness": 0, "integrity": 0}),
        ("integrity/input-mutated", {"integrity": 1, "robustness": 1, "correctness": 3}),
        ("numerics/unexplained", {"correctness": 2, "numerics": 1}),
        ("timing/above-roofline", {"performance": 0, "correctness": 3}),
        ("build/compile", {"correctness": 0}),
    ],
)
def test_findings_suggest_the_level_whose_anchor_describes_them(
    kernel: Rubric, code: str, levels: dict[str, int]
) -> None:
    found = suggest(kernel, evidence_with(make_finding(code, "s")))
    assert {name: found[name].level for name in levels} == levels
