import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch

from runners.checks.timing import TimingCheck
from runners.contract import Case, Progress, TaskSpec, TimingPlan, Waiting
from runners.evidence import make_finding, settle_panel
from runners.session import Failure, OutputSpec
from runners.timing import lock
from runners.timing.protocol import Plan
from runners.timing.verify import Unverifiable

sys.path.insert(0, str(Path(__file__).parents[1] / "timing"))

from timing_simulation import FakeWorker, Nature, World, right, verify

SPEC = TaskSpec(
    title="Doubling",
    kind="optimization",
    frameworks=("torch",),
    entry="f",
    cases=(Case(name="big"), Case(name="tail", use=("correctness",))),
    timing=TimingPlan(baseline="eager"),
)


class FakeReference:
    twin_name: str | None = "eager"

    def make_inputs(self, case: Case, seed: int) -> dict[str, Any]:
        return {"x": torch.randn((), generator=torch.Generator().manual_seed(seed % 2**31))}

    def truth(self, inputs: dict[str, Any]) -> dict[str, Any]:
        return {"0": right(inputs)}

    def stored(self, truth: dict[str, Any], inputs: dict[str, Any]) -> dict[str, Any]:
        return truth

    def expect(self, stored: dict[str, Any]) -> dict[str, OutputSpec]:
        return {"0": OutputSpec((2,), torch.float32)}

    def work(self, case: Case) -> dict[str, float]:
        return {"bytes": 1e6}


@dataclass
class FakeSession:
    """Real seconds do not pass in its workers, so the plan's budget is what ends a run."""

    candidate_nature: Nature
    baseline_nature: Nature = field(default_factory=Nature)
    task: TaskSpec = SPEC
    interpreted: bool = False
    device: str = "cpu"
    framework: str = "torch"
    seeds: tuple[int, int] = (1, 2)
    source: str = ""
    reference: FakeReference = field(default_factory=FakeReference)
    events: list[Any] = field(default_factory=list)
    world: World = field(default_factory=World)
    asked: list[tuple[str, str | None]] = field(default_factory=list)

    def fresh(self, role: str, *, name: str | None = None) -> FakeWorker:
        self.asked.append((role, name))
        return FakeWorker(self.world, self.candidate_nature if role == "candidate" else self.baseline_nature)

    def emit(self, event: Any) -> None:
        self.events.append(event)


PLAN = Plan(seconds=30, max_pairs=5, max_rounds=4)


def run(session: FakeSession, tmp_path: Path, **more: Any) -> Any:
    more.setdefault("verify_with", lambda session, case: verify)
    return TimingCheck(plan=PLAN, lock_folder=tmp_path / "locks", **more).run(session)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def simulated_accounts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fakes have no process: their on-CPU time is what they say."""
    monkeypatch.setattr("runners.timing.protocol.time.clock_gettime_ns", lambda clock: 0)


def test_a_case_is_timed_and_its_numbers_are_facts(tmp_path: Path) -> None:
    session = FakeSession(Nature(call_ns=250_000))
    result = run(session, tmp_path)
    assert result.findings == ()
    assert result.result.status == "pass"
    (case,) = result.result.facts["cases"]
    assert (case["case"], case["baseline"], case["verdict"]) == ("big", "eager", "faster")
    assert case["ratio"] == pytest.approx(2.0, rel=0.02)
    assert case["control"]["verdict"] == "no-difference"
    assert case["pairs"] == 5
    assert case["compared_calls"] * 5 >= case["timed_calls"] > 0
    assert case["work"]["candidate"]["gigabytes_per_second"] == pytest.approx(4.0, rel=0.05)
    assert session.asked.count(("candidate", None)) == 5
    assert session.asked.count(("baseline", "eager")) == 10
    assert any(isinstance(event, Progress) for event in session.events)
    assert session.world.open == 0
    assert lock.holders(folder=tmp_path / "locks") == ()


def test_interpreted_kernels_have_no_time(tmp_path: Path) -> None:
    result = run(FakeSession(Nature(), interpreted=True), tmp_path)
    assert (result.result.status, result.result.reason) == ("not-checked", "not measured: interpreted")
    (finding,) = result.findings
    assert (finding.code, finding.severity) == ("timing/not-meaningful", "info")
    assert settle_panel("timing", result.result, result.findings).status == "not-checked"


def test_without_a_baseline_or_a_case_the_panel_says_so(tmp_path: Path) -> None:
    session = FakeSession(Nature())
    session.reference.twin_name = None
    assert "no baseline" in run(session, tmp_path).result.reason
    only = TaskSpec(title="t", kind="fusion", frameworks=("torch",), entry="f", cases=SPEC.cases[1:])
    result = run(FakeSession(Nature(), task=only), tmp_path)
    assert result.result.status == "not-checked"
    assert "no case" in result.result.reason


@pytest.mark.parametrize(
    ("answer", "code"),
    [("replays", "integrity/replay"), ("puts-off", "integrity/context"), ("wrong", "numerics/mismatch")],
)
def test_the_time_of_wrong_work_is_void(tmp_path: Path, answer: str, code: str) -> None:
    result = run(FakeSession(Nature(answer=answer)), tmp_path)
    assert [finding.code for finding in result.findings] == [code]
    assert result.result.status == "not-checked"
    assert "wrong" in result.result.reason
    (case,) = result.result.facts["cases"]
    assert case["verdict"] == "void"
    assert "ratio" not in case


def test_a_time_from_a_false_clock_is_void(tmp_path: Path) -> None:
    result = run(FakeSession(Nature(cpu_share=0.05)), tmp_path)
    assert [finding.code for finding in result.findings] == ["integrity/timer"]
    assert result.result.status == "not-checked"
    assert "integrity/timer" in result.result.reason


def test_a_failing_candidate_is_charged_and_a_failing_baseline_is_not(tmp_path: Path) -> None:
    charged = run(FakeSession(Nature(fails_after=9)), tmp_path)
    assert [finding.code for finding in charged.findings] == ["build/crash"]
    assert charged.result.status == "not-checked"
    spared = run(FakeSession(Nature(), Nature(fails_after=9)), tmp_path)
    assert spared.findings == ()
    assert spared.result.reason == "the baseline 'eager' failed: ended by SIGSEGV"


def test_a_candidate_that_does_not_load_is_left_to_the_build_panel(tmp_path: Path) -> None:
    result = run(FakeSession(Nature(load=Failure("build/import", "no module named x"))), tmp_path)
    assert result.findings == ()
    assert result.result.reason == "the candidate failed: no module named x"


def test_a_task_without_a_rule_is_not_timed(tmp_path: Path) -> None:
    def refuse(session: object, case: object) -> Any:
        raise Unverifiable("no rule")

    result = run(FakeSession(Nature()), tmp_path, verify_with=refuse)
    assert result.result.status == "not-checked"
    assert "no rule" in result.result.reason


def test_no_memory_and_no_lock_are_reasons(tmp_path: Path) -> None:
    assert "memory limit" in run(FakeSession(Nature(room=0)), tmp_path).result.reason
    (tmp_path / "file").write_text("")
    check = TimingCheck(plan=PLAN, lock_folder=tmp_path / "file", verify_with=lambda session, case: verify)
    result = check.run(FakeSession(Nature()))  # type: ignore[arg-type]
    assert result.result.status == "not-checked"
    assert "lock" in (result.result.reason or "")


def test_one_case_without_a_time_does_not_hide_the_other(tmp_path: Path) -> None:
    two = TaskSpec(
        title="t",
        kind="fusion",
        frameworks=("torch",),
        entry="f",
        cases=(Case(name="a"), Case(name="b")),
        timing=TimingPlan(baseline="eager"),
    )
    calls = iter((verify, None))

    def second_fails(session: object, case: object) -> Any:
        found = next(calls)
        if found is None:
            raise Unverifiable("odd")
        return found

    result = run(FakeSession(Nature(), task=two), tmp_path, verify_with=second_fails)
    assert result.result.status == "pass"
    assert result.result.reason.startswith("1 of 2 cases have no time")


def test_the_wait_for_the_machine_is_told(tmp_path: Path) -> None:
    import threading

    session = FakeSession(Nature())
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with lock.shared("correctness of x", folder=tmp_path / "locks"):
            inside.set()
            leave.wait()

    thread = threading.Thread(target=other)
    thread.start()
    assert inside.wait(30)
    emit = session.emit

    def noticing(event: Any) -> None:
        emit(event)
        if isinstance(event, Waiting):
            leave.set()

    session.emit = noticing  # type: ignore[method-assign]
    result = run(session, tmp_path)
    thread.join(30)
    assert result.result.status == "pass"
    (waiting,) = [event for event in session.events if isinstance(event, Waiting)]
    assert waiting.holder.endswith("correctness of x")


def test_findings_of_severity_warn_leave_the_number(tmp_path: Path) -> None:
    def sometimes(inputs: Any, outputs: Any) -> Any:
        return [make_finding("numerics/unexplained", "inside atol")]

    result = run(FakeSession(Nature(call_ns=250_000)), tmp_path, verify_with=lambda session, case: sometimes)
    assert result.result.facts["cases"][0]["verdict"] == "faster"
