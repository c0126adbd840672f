"""Inputs that ask something special of the arithmetic: right on plain inputs, wrong here is unstable.

Nothing is charged that rounding the inputs a few more times would do to the truth itself: an algorithm is backward
stable when its error is no larger than that (Higham, "Accuracy and Stability of Numerical Algorithms", 2nd ed., SIAM
2002, ch. 1).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from runners.checks import CheckResult
from runners.checks.families import FAMILIES, data_names, families_for
from runners.checks.oracle import Question, Verdict
from runners.checks.plan import Plan, Trial, plan_of
from runners.checks.rounds import finite_share
from runners.contract import Case
from runners.evidence import PanelStatus
from runners.findings import PanelName
from runners.numerics.compare import describe, plain
from runners.numerics.formats import format_of
from runners.reference import ReferenceError  # noqa: A004
from runners.session import Session, names_case

ENOUGH = 256
"""Elements of data that a case needs for stress to say something; the smallest such case is used."""
PLACED_AT_ONCE = 1 / 8
"""The part of the memory limit that the inputs and outputs of one batch may take; a single call may take more."""
PERTURBATIONS = 8
CONDITION_FACTOR = 64.0
"""How many times the effect of one rounding of the inputs is explained: sums round once for every term."""
ACCEPTED_FACTOR = 16.0
"""How much worse, against the twin, an unexplained but accepted error may get before it is unstable."""


class StressCheck:
    """Named families of inputs on one case."""

    panel: PanelName = "correctness"
    order = 11

    def run(self, session: Session) -> CheckResult:
        """Judge one session."""
        return plan_of(session).guarded(_judge)


def _judge(plan: Plan, facts: dict[str, Any]) -> tuple[PanelStatus, str | None]:
    shown: dict[str, Any] = {}
    facts["stress"] = shown
    if not plan.plain_good:
        shown["not_tried"] = "plain inputs are not answered rightly"
        return "not-checked", None
    if plan.found("integrity/replay"):
        shown["not_tried"] = "answers come from earlier calls"
        return "not-checked", None
    case = _case(plan)
    without = plan.session.task.stress
    asked: list[Question] = []
    for family in families_for(plan.question(case, 0).inputs):
        question, reason = None, without.reason or "the task takes it out"
        if family not in without.without:
            question, reason = _question(plan, case, family)
        if question is None:
            shown[family] = {"verdict": "not-checked", "reason": reason}
        else:
            asked.append(question)
    if not asked:
        return "not-checked", None
    plan.progress("correctness", 0, 0, "stressed inputs")
    for some in _that_fit(asked, plan.session.task.limits.memory_mib << 20):
        slots = [(plan.place(question), question) for question in some]
        trials = plan.run(slots, order="shuffle", during=f"on stressed inputs in case {names_case(case)}")
        for trial in trials:
            shown[trial.question.family] = _weigh(plan, trial)
        plan.release(*trials)
    shown["case"] = case.name
    return "pass", None


def _that_fit(asked: list[Question], limit: int) -> list[list[Question]]:
    """Batches that take a small part of the memory limit each: what the judge places counts as the candidate's."""
    batches: list[list[Question]] = []
    room = 0
    for question in asked:
        tensors = [value for value in question.inputs.values() if isinstance(value, Tensor)]
        tensors += [expected.stored for expected in question.expected.values()]
        need = sum(tensor.nbytes for tensor in tensors)
        if not batches or need > room:
            batches.append([])
            room = int(limit * PLACED_AT_ONCE)
        batches[-1].append(question)
        room -= need
    return batches


def _case(plan: Plan) -> Case:
    """The cheapest case with enough data, else the one with most."""
    sized = []
    for case in plan.session.task.cases:
        sized.append((plan.played[case.name].data_elements, case))
    enough = [entry for entry in sized if entry[0] >= ENOUGH]
    return min(enough, key=lambda entry: entry[0])[1] if enough else max(sized, key=lambda entry: entry[0])[1]


def _question(plan: Plan, case: Case, family: str) -> tuple[Question | None, str]:
    """A question of the family, or why it cannot be put: the truth or the twin does not hold there."""
    plain = plan.played[case.name].finite_share
    seed = plan.seed(1, "stress", case.name, family)
    try:
        question = plan.oracle.ask(case, plan.oracle.inputs(case, seed, family), family)
        yardstick = plan.oracle.yardstick(case, family)
    except ReferenceError as error:
        return None, f"reference or baseline cannot take it: {error.summary}"
    for name, expected in question.expected.items():
        if finite_share(expected) < plain[name]:
            return None, f"the truth of output {name} is not finite"
        if (yardstick and yardstick[name].non_finite) or (question.twin and question.twin[name].non_finite):
            return None, f"the baseline's output {name} is not finite where the truth is"
    return question, ""


def _weigh(plan: Plan, trial: Trial) -> dict[str, Any]:
    """The family's facts; what is wrong in any order and beyond the problem's condition is charged."""
    question = trial.question
    verdicts = trial.verdicts
    if trial.bad and plan.session.interpreted:
        forward = plan.again(trial)
        if not forward.bad and not plan.found("race/cross-program"):
            plan.find(
                "race/cross-program",
                "right when the grid runs forward, wrong when it runs in shuffled order: programs depend on each other "
                f"(case {names_case(question.case)}, {question.family} inputs)",
                detail={"order": "shuffle", "case": question.case.name},
            )
        verdicts = forward.verdicts
    for name, verdict in verdicts.items():
        if not verdict.bad:
            continue
        comparison = verdict.comparison
        condition = _condition(plan, question, name)
        reason = None
        if comparison.non_finite == 0 and comparison.max_absolute <= CONDITION_FACTOR * condition:
            reason = "no further off than a few roundings of the inputs put the truth itself"
        elif comparison.non_finite == 0 and _as_on_plain_inputs(plan, name, verdict):
            reason = "no worse against the baseline than on plain inputs, where the task's tolerance accepts it"
        if reason is not None:
            return {
                "verdict": "pass",
                "output": name,
                "reason": reason,
                "max_absolute": comparison.max_absolute,
                "condition": condition,
            }
        dtype = question.expected[name].stored.dtype
        plan.find(
            "numerics/unstable",
            f"{question.family} inputs ({FAMILIES[question.family]}): {describe(name, comparison, dtype)}"
            f" (case {names_case(question.case)})",
            detail={
                "family": question.family,
                "case": question.case.name,
                "output": name,
                "condition": condition,
                **verdict.facts(),
            },
        )
        return {"verdict": verdict.status, "output": name, "max_absolute": plain(comparison.max_absolute)}
    worst = max(verdicts.values(), key=lambda verdict: verdict.comparison.max_absolute)
    return {
        "verdict": worst.status,
        "max_absolute": plain(worst.comparison.max_absolute),
        "twin_error": plain(worst.twin.largest) if worst.twin is not None else None,
    }


def _as_on_plain_inputs(plan: Plan, name: str, verdict: Verdict) -> bool:
    """Whether a lower precision that the task accepts explains it: an atol does not grow with the inputs."""
    ratio = plan.accepted_ratios.get(name)
    if ratio is None or verdict.twin is None:
        return False
    return verdict.comparison.max_absolute <= ACCEPTED_FACTOR * ratio * verdict.twin.largest


def _condition(plan: Plan, question: Question, name: str) -> float:
    """How far the truth moves when each datum is rounded once more, in float32 or its own wider format."""
    expected = question.expected[name]
    if not (expected.stored.is_floating_point() or expected.stored.is_complex()):
        return 0.0
    generator = torch.Generator().manual_seed(plan.seed(1, "condition", question.family))
    largest = 0.0
    for _ in range(PERTURBATIONS):
        try:
            aim = plan.oracle.expect(_perturbed(question.inputs, generator))[name].aim
        except ReferenceError:
            # A reference that insists on the drawn dtype gives no condition: nothing is explained by it.
            return 0.0
        apart = (aim - expected.aim).abs()
        largest = max(largest, float(apart[apart.isfinite()].max()) if bool(apart.isfinite().any()) else 0.0)
    return largest


def _perturbed(inputs: Mapping[str, Any], generator: torch.Generator) -> dict[str, Any]:
    changed = dict(inputs)
    for name in data_names(inputs):
        value: Tensor = inputs[name]
        unit = format_of(torch.float64 if value.dtype is torch.float64 else torch.float32).u
        signs = torch.randint(0, 2, value.shape, generator=generator, dtype=torch.float64) * 2 - 1
        changed[name] = value.to(torch.float64) * (1 + unit * signs)
    return changed


CHECK = StressCheck()
