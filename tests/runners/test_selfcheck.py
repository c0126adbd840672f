"""The self-check passes with the real judge, and a judge that waves everything through or accuses all fails it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from runners.client import Runner
from runners.contract import RunRequest
from runners.evidence import (
    Evidence,
    PanelResult,
    SubmissionRef,
    TaskRef,
    make_finding,
    not_checked,
    number_findings,
    outcome_of,
    settle_panel,
)
from runners.selfcheck import SAMPLES, Ledger, SelfCheck, self_check, unproven


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    made = Runner()
    yield made
    made.close()


def evidence(request: RunRequest, *codes: str) -> Evidence:
    found = number_findings(make_finding(code, "x") for code in codes)
    panels = {
        **not_checked("no"),
        **{n: settle_panel(n, PanelResult(status="pass"), found) for n in ("build", "correctness", "integrity")},
    }
    return Evidence(
        task=TaskRef(request.task_name, request.task_tree),
        submission=SubmissionRef(request.submission_name, request.submission_tree, request.revision),
        environment={},
        outcome=outcome_of(panels, found),
        panels=panels,
        findings=found,
    )


@pytest.mark.parametrize("framework", SAMPLES)
def test_this_machine_judges_its_samples_rightly(runner: Runner, framework: str):
    outcome = self_check(runner.run, framework, "cpu")  # type: ignore[arg-type]
    assert outcome.failures == ()
    assert outcome.samples == 6


@pytest.mark.parametrize("framework", SAMPLES)
def test_a_draw_that_forgives_half_precision_leaves_the_wrong_ones_wrong(runner: Runner, framework: str):
    def unlucky(request: RunRequest, *rest: object) -> Evidence | None:
        return runner.run(msgspec.structs.replace(request, replay_seeds=(63380067843308, 205408134929395)), *rest)

    assert self_check(unlucky, framework, "cpu").failures == ()  # type: ignore[arg-type]


def test_a_judge_that_passes_everything_is_unproven():
    outcome = self_check(evidence, "torch", "cpu")
    assert len(outcome.failures) == 3
    assert "where integrity/input-mutated is right" in "".join(outcome.failures)


def test_a_judge_that_accuses_everyone_is_unproven():
    outcome = self_check(lambda request: evidence(request, "numerics/mismatch"), "torch", "cpu")
    assert "plain: fail (numerics/mismatch), where pass is right" in outcome.failures


def test_outcomes_are_kept_and_a_broken_file_is_no_proof(tmp_path: Path):
    ledger = Ledger(tmp_path / "deep" / "ledger")
    assert ledger.find("sha256:ab-1", "torch", "cpu") is None
    ledger.keep("sha256:ab-1", "torch", "cpu", SelfCheck(6))
    assert ledger.find("sha256:ab-1", "torch", "cpu") == SelfCheck(6)
    assert ledger.find("sha256:ab-1", "triton", "cpu") is None
    assert ledger.find("sha256:ab-2", "torch", "cpu") is None
    (path,) = (tmp_path / "deep" / "ledger").iterdir()
    path.write_text("{")
    assert ledger.find("sha256:ab-1", "torch", "cpu") is None


def test_panels_of_an_unproven_machine_say_so():
    found = Evidence(
        task=TaskRef("t", "1"),
        submission=SubmissionRef("s", "1", "1"),
        environment={},
        outcome="pass",
        panels={"build": PanelResult(status="pass"), "timing": PanelResult(status="not-checked", reason="interpreted")},
    )
    shown = unproven(found, SelfCheck(6, ("plain: fail",)))
    assert shown.outcome == "not-determined"
    assert shown.panels["build"].reason == "unproven here: the self-check failed: plain: fail"
    assert shown.panels["timing"].reason == "interpreted"
