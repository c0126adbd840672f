"""Runs in the background, against a runner that answers at once: states, the store, cancelling, the self-check."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from console.exchange.model import FileEntry, Snapshot, Submission, Task
from console.runs import Runs, RunState, after, why_not_run
from runners.client import RunnerError
from runners.contract import Found, PanelDone, PanelStarted, Progress, RunEnded, RunRequest, Waiting, parse_task
from runners.environment import Environment
from runners.evidence import (
    Evidence,
    PanelResult,
    SubmissionRef,
    TaskRef,
    make_finding,
    not_checked,
    number_findings,
    outcome_of,
)
from runners.selfcheck import Ledger, SelfCheck
from runners.store import EvidenceStore

SPEC = parse_task(
    b'schema = 1\ntitle = "t"\nkind = "fusion"\nframeworks = ["torch", "answer"]\nentry = "f"\n[[cases]]\nname = "a"\n'
)
TASK = Task(name="t", tree="t1", spec=SPEC, scenario="", has_starter=False)
ONE = Submission(
    task="t",
    name="m",
    tree="s1",
    revision="c1",
    author="a",
    when=0,
    framework="torch",
    files=(FileEntry("kernel.py", "100644", "0", 1),),
)
HERE = Environment(
    fingerprint="sha256:00",
    python="3",
    torch="2.13.0+cpu",
    triton=None,
    cpu="c",
    device="cpu",
    driver=None,
    sandbox="none",
    runner="1",
)


class Trees:
    id = "exchange"

    def materialise(self, tree: str, into: Path) -> None:
        into.mkdir(parents=True)
        (into / "tree").write_text(tree)


class AnsweringRunner:
    """Gives every submission but the self-check's the same evidence."""

    def __init__(self) -> None:
        self.requests: list[RunRequest] = []
        self.hold: threading.Event | None = None
        self.error: Exception | None = None
        self.honest = True

    def run(self, request: RunRequest, on_event: Any = None, cancelled: Any = None) -> Evidence | None:
        self.requests.append(request)
        if self.error is not None:
            raise self.error
        if self.hold is not None:
            while not self.hold.wait(0.01):
                if cancelled.is_set():
                    return None
        code = {
            "writes its input": "integrity/input-mutated",
            "leaves with success": "integrity/forged-result",
            "wrong factor": "numerics/mismatch",
        }.get(request.submission_name if self.honest else "")
        found = number_findings([make_finding(code, "x")] if code else [])
        passed = {name: PanelResult(status="pass") for name in ("build", "correctness", "integrity")}
        evidence = Evidence(
            task=TaskRef(request.task_name, request.task_tree),
            submission=SubmissionRef(request.submission_name, request.submission_tree, request.revision),
            environment=request.environment,
            outcome=outcome_of(passed, found),
            panels={**not_checked("no"), **passed},
            findings=found,
        )
        if on_event is not None:
            on_event(RunEnded(evidence))
        return evidence

    def close(self) -> None:
        pass


@pytest.fixture
def runner() -> AnsweringRunner:
    return AnsweringRunner()


@pytest.fixture
def make(tmp_path: Path, runner: AnsweringRunner, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Runs]]:
    monkeypatch.setattr("console.runs.describe", lambda python: HERE)
    made: list[Runs] = []

    def open_runs(**options: Any) -> Runs:
        runs = Runs(Trees(), store=EvidenceStore(tmp_path / "store"), runner=runner, **options)  # type: ignore[arg-type]
        made.append(runs)
        return runs

    yield open_runs
    for runs in made:
        runs.close()


def snapshot(*submissions: Submission, task: Task = TASK) -> Snapshot:
    return Snapshot(head="h", branch="main", tasks={"t": task}, submissions=submissions)


def test_events_build_the_state_up():
    state = RunState(key="t/m", phase="running")
    for event in (
        PanelStarted("build"),
        Progress("build", 1, 3, "loading"),
        Found(make_finding("numerics/mismatch", "x")),
        Found(make_finding("numerics/mismatch", "y")),
        Waiting("ann"),
        PanelDone("build", PanelResult(status="pass")),
    ):
        state = after(state, event)
    assert state.panels["build"].status == "pass"
    assert [finding.id for finding in state.findings] == ["numerics/mismatch#1", "numerics/mismatch#2"]
    assert state.message == "waits for ann"


def test_a_run_is_kept_and_found_again_by_content(make: Callable[..., Runs], runner: AnsweringRunner):
    runs = make()
    told: list[str] = []
    runs.subscribe(told.append)
    runs.start(TASK, ONE)
    state = runs.wait("t/m", 10)
    assert state.phase == "done"
    assert state.evidence is not None
    assert state.evidence_sha is not None and state.evidence_sha.startswith("sha256:")
    assert set(told) == {"t/m"}
    runs.start(TASK, ONE)
    assert runs.wait("t/m", 10).evidence_sha == state.evidence_sha
    assert len(runner.requests) == 1
    runs.start(TASK, ONE, fresh=True)
    runs.wait("t/m", 10)
    assert len(runner.requests) == 2


def test_stored_evidence_is_shown_at_once_and_stale_after_a_change(make: Callable[..., Runs]):
    runs = make()
    runs.start(TASK, ONE)
    runs.wait("t/m", 10)
    again = make()
    again.adopt(snapshot(ONE))
    assert (again.state("t/m").phase, again.state("t/m").stale) == ("done", False)
    again.adopt(snapshot(msgspec.structs.replace(ONE, tree="s2", revision="c2")))
    assert (again.state("t/m").phase, again.state("t/m").stale) == ("done", True)
    again.adopt(snapshot(ONE, task=msgspec.structs.replace(TASK, tree="t2")))
    assert again.state("t/m").stale


def test_without_evidence_the_machine_is_not_even_described(make: Callable[..., Runs], monkeypatch: pytest.MonkeyPatch):
    runs = make()
    runs.adopt(snapshot(ONE))
    monkeypatch.setattr("console.runs.describe", lambda python: pytest.fail("it takes a tenth of a second"))
    assert runs.state(ONE.key) == RunState(key=ONE.key)


def test_cancelling_ends_a_run_and_keeps_nothing(make: Callable[..., Runs], runner: AnsweringRunner):
    runner.hold = threading.Event()
    runs = make()
    runs.start(TASK, ONE)
    assert runs.active() == 1
    runs.cancel("t/m")
    assert runs.wait("t/m", 10).phase == "cancelled"
    assert runs.active() == 0
    assert make().state("t/m").phase == "idle"


def test_a_fault_of_the_machine_is_said_in_words(make: Callable[..., Runs], runner: AnsweringRunner):
    runner.error = RunnerError("the runner did not start")
    runs = make()
    runs.start(TASK, ONE)
    state = runs.wait("t/m", 10)
    assert (state.phase, state.message) == ("failed", "the runner did not start")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"framework": "answer"}, "read, not run"),
        ({"framework": "cuda"}, "not run in this version"),
        ({"problem": "kernel.py is missing"}, "kernel.py is missing"),
    ],
)
def test_what_cannot_be_run_says_why_in_every_panel(
    make: Callable[..., Runs], runner: AnsweringRunner, change: dict[str, Any], words: str
):
    odd = msgspec.structs.replace(ONE, **change)
    assert words in (why_not_run(TASK, odd) or "")
    runs = make()
    runs.start(TASK, odd)
    evidence = runs.wait("t/m", 10).evidence
    assert evidence is not None and evidence.outcome == "not-determined"
    assert all(panel.status == "not-checked" and words in (panel.reason or "") for panel in evidence.panels.values())
    assert runner.requests == []


def test_the_first_run_proves_the_machine_and_the_next_does_not(
    make: Callable[..., Runs], runner: AnsweringRunner, tmp_path: Path
):
    runs = make(ledger=Ledger(tmp_path / "ledger"))
    runs.start(TASK, ONE)
    evidence = runs.wait("t/m", 10).evidence
    assert evidence is not None and evidence.environment["self_check"] == "passed"
    assert len(runner.requests) == 7
    runs.start(TASK, ONE, fresh=True)
    runs.wait("t/m", 10)
    assert len(runner.requests) == 8


def test_on_a_machine_that_judges_wrongly_panels_are_unproven_and_nothing_is_kept(
    make: Callable[..., Runs], runner: AnsweringRunner, tmp_path: Path
):
    runner.honest = False
    ledger = Ledger(tmp_path / "ledger")
    runs = make(ledger=ledger)
    ended = []
    runs.subscribe(lambda key: ended.append(runs.state(key)))
    runs.start(TASK, ONE)
    state = runs.wait("t/m", 10)
    runs.close()
    assert [one for one in ended if one.phase == "done"] == [state]
    assert state.evidence is not None and state.evidence_sha is None
    assert state.evidence.outcome == "not-determined"
    assert (state.evidence.panels["build"].reason or "").startswith("unproven here: the self-check failed")
    kept = ledger.find(f"{HERE.fingerprint}-{HERE.runner}", "torch", "cpu")
    assert isinstance(kept, SelfCheck) and not kept.passed
    assert make().state("t/m").phase == "idle"


@pytest.mark.parametrize(
    ("device", "torch", "words"),
    [("cpu", "2.13.0", "there is no GPU"), ("NVIDIA H200", "2.13.0+cpu", "torch 2.13.0+cpu cannot use the GPU")],
)
def test_a_device_that_is_not_there_is_no_fault_of_the_submission(
    make: Callable[..., Runs],
    runner: AnsweringRunner,
    monkeypatch: pytest.MonkeyPatch,
    device: str,
    torch: str,
    words: str,
):
    monkeypatch.setattr(
        "console.runs.describe", lambda python: msgspec.structs.replace(HERE, device=device, torch=torch)
    )
    runs = make(device="cuda")
    runs.start(TASK, ONE)
    evidence = runs.wait("t/m", 10).evidence
    assert evidence is not None and evidence.outcome == "not-determined"
    assert words in (evidence.panels["build"].reason or "")
    assert runner.requests == []


@pytest.mark.parametrize(
    ("device", "torch", "expected"),
    [("cpu", "2.13.0+cpu", "cpu"), ("NVIDIA H200", "2.13.0", "cuda"), ("NVIDIA H200", "2.13.0+cpu", "cpu")],
)
def test_a_device_is_used_where_torch_can(
    make: Callable[..., Runs],
    runner: AnsweringRunner,
    monkeypatch: pytest.MonkeyPatch,
    device: str,
    torch: str,
    expected: str,
):
    monkeypatch.setattr(
        "console.runs.describe", lambda python: msgspec.structs.replace(HERE, device=device, torch=torch)
    )
    runs = make()
    runs.start(TASK, ONE)
    runs.wait("t/m", 10)
    assert runner.requests[0].device == expected
