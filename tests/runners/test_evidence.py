"""Statuses and outcomes follow from findings; evidence survives its encoding."""

import msgspec
import pytest

from runners.evidence import (
    Evidence,
    PanelResult,
    Place,
    SubmissionRef,
    TaskRef,
    decode,
    encode,
    make_finding,
    number_findings,
    outcome_of,
    settle_panel,
)
from runners.findings import FINDINGS, PANELS

PASS = PanelResult(status="pass")
CORE = {"build": PASS, "correctness": PASS, "integrity": PASS}


def test_findings_are_numbered_per_code():
    codes = ["numerics/mismatch", "memory/uninitialised", "numerics/mismatch"]
    ids = [finding.id for finding in number_findings(make_finding(code, "x") for code in codes)]
    assert ids == ["numerics/mismatch#1", "memory/uninitialised#1", "numerics/mismatch#2"]


def test_a_panel_takes_the_status_of_its_worst_finding():
    warn, fail = make_finding("numerics/precision", "x"), make_finding("numerics/mismatch", "x")
    assert settle_panel("correctness", PASS, [warn]).status == "warn"
    assert settle_panel("correctness", PASS, [warn, fail]).status == "fail"
    assert settle_panel("integrity", PASS, [fail]).status == "pass"


def test_the_machine_is_never_charged_to_the_submission():
    found = [make_finding("build/environment", "no driver")]
    panels = {**CORE, "build": settle_panel("build", PASS, found)}
    assert panels["build"].status == "error"
    assert outcome_of(panels, found) == "not-determined"


def test_a_warning_on_a_panel_that_was_not_checked_does_not_make_it_checked():
    not_checked = PanelResult(status="not-checked", reason="why")
    assert settle_panel("timing", not_checked, [make_finding("timing/noisy", "x")]).status == "not-checked"


@pytest.mark.parametrize("panel", ["build", "correctness", "integrity"])
def test_no_core_panel_may_be_missing_from_a_pass(panel: str):
    assert outcome_of(CORE, []) == "pass"
    for status in ("not-checked", "error"):
        assert outcome_of({**CORE, panel: PanelResult(status=status)}, []) == "not-determined"
    assert outcome_of({name: value for name, value in CORE.items() if name != panel}, []) == "not-determined"


def test_severities_are_those_of_the_design():
    severity = {code: kind.severity for code, kind in FINDINGS.items()}
    assert severity["build/environment"] == "warn"
    assert severity["race/nondeterministic"] == "warn"
    assert severity["race/cross-program"] == "fail"
    assert severity["numerics/unexplained"] == "warn"
    assert severity["timing/not-meaningful"] == "info"
    assert severity["integrity/replay"] == "fail"
    assert severity["scope/coverage"] == "warn"
    assert all(kind.panel in PANELS for kind in FINDINGS.values())


def test_evidence_is_one_line_and_comes_back():
    evidence = Evidence(
        task=TaskRef("t", "1"),
        submission=SubmissionRef("s", "2", "3"),
        environment={"fingerprint": "f"},
        seeds=(1, 2),
        outcome="pass",
        panels={"build": PASS},
        findings=number_findings([make_finding("numerics/mismatch", "a\nb", where=Place("kernel.py", 3))]),
    )
    line = encode(evidence)
    assert b"\n" not in line
    assert decode(line) == evidence
    assert list(msgspec.json.decode(line))[:4] == ["schema", "task", "submission", "environment"]
