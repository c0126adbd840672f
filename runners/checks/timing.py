"""The timing panel: each case meant for it, candidate against baseline, on a machine that nothing else of ours uses."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from runners.checks import CheckResult
from runners.contract import Case, Progress, Waiting
from runners.draws import derive_seed
from runners.evidence import Finding, PanelResult, make_finding
from runners.findings import PanelName
from runners.session import OutputSpec, Session, Worker
from runners.timing import lock
from runners.timing.accounts import call_ns, clock_findings, quality_findings, wrong_findings
from runners.timing.contents import POOL, PoolContents
from runners.timing.facts import case_facts, load_average, plain_facts, work_rates
from runners.timing.protocol import Comparison, Plan, SideFailed, TooSlow, Verify
from runners.timing.samples import Measurement, Side
from runners.timing.statistics import judge
from runners.timing.verify import Unverifiable, verifier

MARGIN = 0.03
"""The smallest difference that is called one; DESIGN's A/A goal is stated at it."""


@dataclass(frozen=True)
class _Timed:
    """One case's outcome: its facts, its findings, and why there is no number where there is none."""

    facts: dict[str, Any]
    findings: tuple[Finding, ...] = ()
    missing: str | None = None


class TimingCheck:
    """Times native candidates; says why where it cannot."""

    panel: PanelName = "timing"
    order = 30

    def __init__(
        self,
        *,
        plan: Plan | None = None,
        lock_folder: Path | None = None,
        verify_with: Callable[[Session, Case], Verify] = verifier,
    ) -> None:
        self._plan = plan or Plan()
        self._lock_folder = lock_folder
        self._verify_with = verify_with

    def run(self, session: Session) -> CheckResult:
        """Time every case that is meant for it."""
        if session.interpreted:
            words = "an interpreter ran the kernel: its time says nothing of the kernel's"
            reason = "not measured: interpreted"
            return CheckResult((make_finding("timing/not-meaningful", words),), _not_checked(reason))
        cases = session.task.cases_for("timing")
        if not cases:
            return CheckResult((), _not_checked("no case of the task is meant for timing"))
        baseline = session.reference.twin_name
        if baseline is None:
            return CheckResult((), _not_checked("the task has no baseline to compare with"))
        timed = []
        for index, case in enumerate(cases):
            session.emit(Progress("timing", index, len(cases), case.name))
            timed.append(self._case(session, case, baseline))
        return _panel(timed, baseline, session.task.timing.threads)

    def _case(self, session: Session, case: Case, baseline: str) -> _Timed:
        seed = derive_seed(session.seeds[0], "timing", case.name)
        reference = session.reference
        contents = PoolContents.of_case(
            lambda number: reference.make_inputs(case, derive_seed(seed, "draw", number)), range(POOL), time.monotonic
        )
        stored = reference.stored(reference.truth(contents.first), contents.first)
        expect = dict(reference.expect(stored))
        facts: dict[str, Any] = {"case": case.name, "baseline": baseline, "threads": session.task.timing.threads}

        def waiting(holder: str) -> None:
            session.emit(Waiting(holder))

        try:
            verify = self._verify_with(session, case)
            comparison = self._comparison(session, case, baseline, contents, expect, verify, seed)
            with lock.exclusive(f"{session.task.title}: timing of {case.name}", waiting, folder=self._lock_folder):
                before = load_average()
                measured = comparison.run()
        except Unverifiable as error:
            return _missing(facts, f"timed calls cannot be compared with the truth: {error}")
        except SideFailed as failed:
            return _side_failed(facts, failed, baseline)
        except TooSlow as error:
            return _missing(facts, f"too slow to time: {error}")
        except MemoryError:
            return _missing(facts, "one call's inputs and outputs exceed half of the memory limit")
        except lock.LockError as error:
            return _missing(facts, f"the machine's lock cannot be taken: {error}")
        facts |= {"contents": contents.facts, "load": {"before": before, "after": load_average()}}
        return _concluded(session, case, measured, facts, seed)

    def _comparison(
        self,
        session: Session,
        case: Case,
        baseline: str,
        contents: PoolContents,
        expect: dict[str, OutputSpec],
        verify: Verify,
        seed: int,
    ) -> Comparison:
        def start(side: Side) -> Worker:
            return session.fresh("candidate") if side == "candidate" else session.fresh("baseline", name=baseline)

        def progress(done: int, total: int, text: str) -> None:
            session.emit(Progress("timing", done, total, f"{case.name}: {text}"))

        half_of_limit = session.task.limits.memory_mib << 19
        return Comparison(
            start=start,
            contents=contents,
            expect=expect,
            verify=verify,
            seed=derive_seed(seed, "protocol"),
            plan=replace(self._plan, max_bytes=min(self._plan.max_bytes, half_of_limit)),
            progress=progress,
        )


def _concluded(session: Session, case: Case, measured: Measurement, facts: dict[str, Any], seed: int) -> _Timed:
    """From raw numbers to facts and findings. A number that cannot be believed is void, whatever it is."""
    reports = {(report.code, report.summary): report for report in measured.reports}
    findings = [
        make_finding(report.code, report.summary, where=report.where, detail=report.detail)
        for report in reports.values()
    ]
    findings += wrong_findings(measured)
    if measured.wrong is not None:
        reason = "outputs of timed calls are wrong"
        return _Timed(facts | plain_facts(measured) | {"verdict": "void", "reason": reason}, tuple(findings), reason)
    if session.device == "cpu":
        findings += clock_findings(measured, session.task.timing.threads)
    ratio, control = measured.estimates(derive_seed(seed, "bootstrap"))
    verdict = judge(ratio.interval, MARGIN, control.interval)
    facts |= case_facts(measured, ratio, control, verdict, MARGIN)
    work = session.reference.work(case)
    facts["work"] = {
        side: work_rates(work, call_ns(measured, side)) for side in ("candidate", "baseline")
    }  # measured time over the task's own figures
    convicting = sorted({finding.code for finding in findings if finding.severity == "fail"})
    if convicting:
        reason = f"the time is not believed: {', '.join(convicting)}"
        return _Timed(facts | {"verdict": "void", "reason": reason}, tuple(findings), reason)
    findings += quality_findings(measured, control.interval, verdict, MARGIN)
    return _Timed(facts, tuple(findings))


def _side_failed(facts: dict[str, Any], failed: SideFailed, baseline: str) -> _Timed:
    failure = failed.failure
    if failed.side != "candidate":
        return _missing(facts, f"the baseline {baseline!r} failed: {failure.summary}")
    reason = f"the candidate failed: {failure.summary}"
    if failed.loading:
        return _missing(facts, reason)
    finding = make_finding(failure.code, failure.summary, where=failure.where, detail=failure.detail)
    return _missing(facts, reason, (finding,))


def _missing(facts: dict[str, Any], reason: str, findings: tuple[Finding, ...] = ()) -> _Timed:
    return _Timed(facts | {"verdict": None, "reason": reason}, findings, reason)


def _not_checked(reason: str) -> PanelResult:
    return PanelResult(status="not-checked", reason=reason)


def _panel(timed: Sequence[_Timed], baseline: str, threads: int) -> CheckResult:
    missing = [one for one in timed if one.missing is not None]
    reason = None
    if missing:
        words = "; ".join(dict.fromkeys(one.missing for one in missing if one.missing))
        reason = words if len(missing) == len(timed) else f"{len(missing)} of {len(timed)} cases have no time: {words}"
    result = PanelResult(
        status="not-checked" if len(missing) == len(timed) else "pass",
        reason=reason,
        facts={
            "margin": MARGIN,
            "baseline": baseline,
            "threads": threads,
            "ratio_is": "baseline time over candidate time",
            "cases": [one.facts for one in timed],
        },
    )
    return CheckResult(tuple(finding for one in timed for finding in one.findings), result)


CHECK = TimingCheck()
