"""Does it load, and does one call of the smallest case give outputs of the right shape, dtype and type?"""

from __future__ import annotations

from typing import Any

from runners.checks import CheckResult
from runners.checks.plan import Plan, Stopped, plan_of, smallest_case
from runners.evidence import PanelStatus
from runners.findings import PanelName
from runners.session import Session


class BuildCheck:
    """Import, entry, hooks, one call."""

    panel: PanelName = "build"
    order = 0

    def run(self, session: Session) -> CheckResult:
        """Judge one session; everything later rests on this."""
        return plan_of(session).guarded(_judge)


def _judge(plan: Plan, facts: dict[str, Any]) -> tuple[PanelStatus, str | None]:
    session = plan.session
    case = smallest_case(session)
    # The reference first: when it is at fault no word about the candidate is due.
    question = plan.question(case, 0)
    unusable = plan.oracle.judgeable
    if unusable is not None:
        plan.stopped = f"a fault of the task: {unusable}"
        return "not-checked", plan.stopped
    worker = session.candidate()
    failure = worker.load()
    if failure is not None:
        raise Stopped(failure, "while loading")
    planted = worker.planted()
    facts["entry"] = session.task.entry
    facts["planted_violation"] = {True: "reported", False: "not reported", None: "no hooks here"}[planted]
    if planted is False:
        plan.find(
            "integrity/harness",
            "a violation planted by the judge was not reported: the hooks in the candidate's process are not at work",
        )
    plan.first = plan.run([(worker.place(question.inputs), question)], during=f"in the first call, case {case.name}")[0]
    facts["first_case"] = case.name
    facts["outputs"] = {
        name: {"shape": list(spec.shape), "dtype": str(spec.dtype).removeprefix("torch.")}
        for name, spec in question.spec.items()
    }
    return "pass", None


CHECK = BuildCheck()
