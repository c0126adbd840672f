"""Did it do the work that was asked: what all calls showed of memos, constants, shared buffers and drift."""

from __future__ import annotations

from typing import Any

from runners.checks import CheckResult
from runners.checks.correctness import results
from runners.checks.plan import Plan, Trial, plan_of
from runners.checks.rounds import same_answer
from runners.evidence import PanelStatus
from runners.findings import PanelName
from runners.session import Session, names_case

DRIFT_CALLS = 24
"""Unwatched calls of a native candidate before the first question is put again."""

_PROBES = {
    "integrity/input-mutated": "the bytes of every argument, before and after every call",
    "integrity/aliased": "two results held while both were made, in every case",
    "integrity/replay": "contents changed at random spots at the same address, and unrelated draws",
    "integrity/constant": "two unrelated draws of every case",
    "integrity/lazy": "the type of every result",
}


class IntegrityCheck:
    """Replay, constant, aliased, mutated, drift, and every report of the hooks."""

    panel: PanelName = "integrity"
    order = 20

    def run(self, session: Session) -> CheckResult:
        """Judge one session."""
        return plan_of(session).guarded(_judge)


def _judge(plan: Plan, facts: dict[str, Any]) -> tuple[PanelStatus, str | None]:
    played = results(plan, "integrity")
    facts["probes"] = {code: {"looked_at": what, "seen": plan.found(code)} for code, what in _PROBES.items()}
    facts["in_place"] = {name: result.probes.get("in_place") for name, result in played.items()}
    facts["hooks"] = f"{plan.reports} reports" if plan.reports else "nothing reported"
    if plan.first is not None and not plan.first.bad:
        _drift(plan, plan.first)
    facts["calls"] = plan.calls
    return "pass", None


def _drift(plan: Plan, first: Trial) -> None:
    """The first question once more, after everything else; native candidates are called unwatched in between."""
    unwatched = not plan.session.interpreted and not plan.session.task.inplace
    if unwatched:
        asked = [(first.slot, first.question)] * DRIFT_CALLS
        late = plan.run(asked, checked=False, during="in unwatched calls")[-1]
        if late.bad and not plan.again(first).bad:
            plan.find(
                "integrity/context",
                f"wrong in calls without hooks, right with them on the same inputs (case {_case(first)})",
                detail={"case": first.question.case.name},
            )
            return
    last = plan.again(first)
    if last.bad and not plan.found("integrity/replay"):
        plan.find(
            "numerics/drift",
            f"right in the first call, wrong after {plan.calls - 1} more, on the same inputs (case {_case(first)})",
            detail={"calls": plan.calls, "case": first.question.case.name},
        )
    elif not last.bad:
        same_answer(plan, first, last)


def _case(trial: Trial) -> str:
    return names_case(trial.question.case)


CHECK = IntegrityCheck()
