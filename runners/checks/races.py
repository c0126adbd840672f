"""What an interpreted run can choose and a device leaves open: the order of programs, and the tuned configuration.

The reversed grid runs with the contents changed in place, the shuffled one with the stressed inputs; this check runs
the first question in a shuffle where stress had nothing to run, and once under every configuration of an autotuner.
"""

from __future__ import annotations

from typing import Any

from runners.checks import CheckResult
from runners.checks.plan import Plan, Trial, plan_of
from runners.evidence import PanelStatus
from runners.findings import PanelName
from runners.numerics.compare import describe
from runners.session import Session, names_case

MAX_CONFIGS = 16
"""Configurations tried at most; an autotuner may list hundreds."""


class RaceCheck:
    """Grid orders and configurations, under an interpreter."""

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
    facts["races"] = {"orders": sorted(plan.orders), "configurations": _configurations(plan, plan.first)}
    return "pass", None


def _configurations(plan: Plan, first: Trial) -> str:
    """Try the others of an autotuner's configurations: tuning on a device may choose any of them."""
    tried = min(plan.configs, MAX_CONFIGS)
    for number in range(1, tried):
        trial = plan.again(first, config=number)
        for name, verdict in trial.verdicts.items():
            if verdict.bad:
                dtype = trial.question.expected[name].stored.dtype
                plan.find(
                    "numerics/non-finite" if verdict.status == "non-finite" else "numerics/mismatch",
                    f"autotune configuration {number}: {describe(name, verdict.comparison, dtype)}"
                    f" (case {names_case(trial.question.case)})",
                    detail={"configuration": number, "output": name, **verdict.facts()},
                )
    return f"{tried} of {plan.configs} tried" if plan.configs > 1 else "none to choose from"


CHECK = RaceCheck()
