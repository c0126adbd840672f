"""Programs of one grid must not depend on each other's order: what the other checks' calls showed, and tunings.

The reversed grid runs with the contents changed in place, the shuffled one with the stressed inputs; this check tells
what was tried, and runs the smallest case in a second shuffle where stress had nothing to run.
"""

from __future__ import annotations

from typing import Any

from runners.checks import CheckResult
from runners.checks.plan import Plan, plan_of
from runners.evidence import PanelStatus
from runners.findings import PanelName
from runners.session import Session, names_case


class RaceCheck:
    """Grid orders, under an interpreter."""

    panel: PanelName = "correctness"
    order = 12

    def run(self, session: Session) -> CheckResult:
        """Judge one session."""
        return plan_of(session).guarded(_judge)


def _judge(plan: Plan, facts: dict[str, Any]) -> tuple[PanelStatus, str | None]:
    if not plan.session.interpreted:
        facts["races"] = "not-checked: grid order is not the judge's to choose in a native run"
        return "not-checked", None
    if plan.first is None or not plan.plain_good:
        facts["races"] = "not-checked: results are not right in the forward order"
        return "not-checked", None
    if "shuffle" not in plan.orders:
        trial = plan.again(plan.first, order="shuffle")
        if trial.bad and not plan.found("race/cross-program"):
            plan.find(
                "race/cross-program",
                "right when the grid runs forward, wrong when it runs in shuffled order: programs depend on each other "
                f"(case {names_case(trial.question.case)})",
                detail={"order": "shuffle", "case": trial.question.case.name},
            )
    facts["races"] = {"orders": sorted(plan.orders)}
    return "pass", None


CHECK = RaceCheck()
