"""What the run showed of the task itself on the way; a full judgement of tasks is not this panel's."""

from __future__ import annotations

from typing import Any

from runners.checks import CheckResult
from runners.checks.plan import Plan, plan_of
from runners.contract import Case
from runners.evidence import PanelResult, make_finding
from runners.findings import PanelName
from runners.session import Session

REASON = "the task itself is not judged in this version"
TAIL = 16
"""A size of this many or more that is no multiple of it leaves a tail for every usual block."""


class ScopeCheck:
    """Faults of the task that cost nothing to see."""

    panel: PanelName = "scope"
    order = 50

    def run(self, session: Session) -> CheckResult:
        """Look at the task's cases, and at what the twin and the reference did in this run."""
        facts: dict[str, Any] = {}
        findings = [
            make_finding(code, summary, detail=detail, severity=None if code != "scope/coverage" else "info")
            for code, summary, detail in (*_gates(plan_of(session)), *_reference(session), *_coverage(session))
        ]
        return CheckResult(tuple(findings), PanelResult(status="not-checked", reason=REASON, facts=facts))


_Seen = tuple[str, str, dict[str, Any]]


def _gates(plan: Plan) -> list[_Seen]:
    """The gate is invalid where the twin breaks the task's own atol and rtol on plain inputs."""
    broken: dict[str, list[str]] = {}
    for (case, family), outputs in plan.oracle.yardsticks.items():
        for output, twin in outputs.items():
            if family == "plain" and twin.breaks_tolerance:
                broken.setdefault(output, []).append(case)
    return [
        (
            "scope/tolerance-too-tight",
            f"the gate of output {output} is invalid: the baseline itself breaks the task's atol and rtol "
            f"in {', '.join(cases[:5])}",
            {"output": output, "cases": cases},
        )
        for output, cases in broken.items()
    ]


def _reference(session: Session) -> list[_Seen]:
    imprecise = sorted(session.reference.imprecise)
    if not imprecise:
        return []
    names = ", ".join(imprecise)
    return [
        ("scope/weak-reference", f"the reference gives less than float64 for output {names}", {"outputs": imprecise})
    ]


def _coverage(session: Session) -> list[_Seen]:
    cases = session.task.cases
    sizes = [value for case in cases for value in _sizes(case)]
    seen: list[_Seen] = []
    if sizes and not any(size >= TAIL and size % TAIL for size in sizes):
        seen.append(("scope/coverage", f"no case has a size with a tail: all are multiples of {TAIL} or below it", {}))
    unchecked = [case.name for case in cases if "correctness" not in case.use]
    if unchecked:
        names = ", ".join(unchecked)
        seen.append(
            (
                "scope/coverage",
                f"meant for timing only, checked here all the same: {names}",
                {"cases": unchecked},
            )
        )
    return seen


def _sizes(case: Case) -> list[int]:
    return [value for value in case.args.values() if isinstance(value, int) and not isinstance(value, bool)]


CHECK = ScopeCheck()
