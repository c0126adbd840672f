"""Every case on fresh inputs from two secret seeds, each output by its tolerance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from runners.checks import CheckResult
from runners.checks.oracle import Question, Verdict
from runners.checks.plan import Plan, Trial, plan_of
from runners.checks.rounds import CaseResult, play
from runners.contract import Case
from runners.evidence import PanelStatus
from runners.findings import PanelName
from runners.numerics.compare import describe
from runners.numerics.signature import input_precision, stored_precision
from runners.reference import ReferenceError  # noqa: A004
from runners.session import Session, Value, names_case

_RANK = {"pass": 0, "unexplained": 1, "not-checked": 2, "mismatch": 3, "non-finite": 4}


class CorrectnessCheck:
    """Right values for all cases; memory and race reports of the calls on the way."""

    panel: PanelName = "correctness"
    order = 10

    def run(self, session: Session) -> CheckResult:
        """Judge one session."""
        return plan_of(session).guarded(_judge)


def results(plan: Plan, panel: PanelName = "correctness") -> dict[str, CaseResult]:
    """The rounds of all cases, by case name; played on first use."""
    cases = plan.session.task.cases
    for number, case in enumerate(cases):
        if case.name not in plan.played:
            plan.progress(panel, number, len(cases), f"case {case.name}")
            plan.played[case.name] = play(plan, case)
    return plan.played


def _judge(plan: Plan, facts: dict[str, Any]) -> tuple[PanelStatus, str | None]:
    facts["cases"] = {}
    try:
        results(plan)
    except ReferenceError:
        # Whatever the earlier cases showed, a task that fails half-way accuses nobody.
        raise
    except Exception:
        _conclude(plan, facts)
        raise
    unjudged = _conclude(plan, facts)
    facts["orders"] = sorted(plan.orders)
    facts["hooks"] = f"{plan.reports} reports" if plan.reports else "nothing reported"
    return ("not-checked", f"a fault of the task: {unjudged}") if unjudged else ("pass", None)


def _conclude(plan: Plan, facts: dict[str, Any]) -> str | None:
    """Facts and findings of the cases played so far; what could not be judged, and why."""
    verdicts = {name: result.verdicts(plan) for name, result in plan.played.items()}
    facts["cases"] = {
        name: {output: _worst(per_call, output).facts() for output in per_call[0]}
        for name, per_call in verdicts.items()
    }
    every = [(output, one) for per_call in verdicts.values() for call in per_call for output, one in call.items()]
    unwritten = any(result.unwritten for result in plan.played.values())
    plan.plain_good = bool(every) and all(one.good for _, one in every) and not unwritten
    for output, one in every:
        if one.status == "unexplained" and one.ratio is not None:
            plan.accepted_ratios[output] = max(plan.accepted_ratios.get(output, 0.0), one.ratio)
    _charge(plan, verdicts)
    for result in plan.played.values():
        # Outputs and truths of large cases need not wait for the end of the run.
        result.trials.clear()
    return next((f"output {output}: {one.reason}" for output, one in every if one.status == "not-checked"), None)


def _worst(per_call: list[dict[str, Verdict]], output: str) -> Verdict:
    return max(
        (one[output] for one in per_call),
        key=lambda verdict: (_RANK[verdict.status], verdict.comparison.max_absolute),
    )


def _charge(plan: Plan, verdicts: Mapping[str, list[dict[str, Verdict]]]) -> None:
    """One finding for each kind of fault and output, with the cases that show it."""
    tested = [plan.played[name].case for name in verdicts]
    failing: dict[tuple[str, str], list[tuple[Case, Verdict, Trial]]] = {}
    for name, per_call in verdicts.items():
        for output in per_call[0]:
            worst = _worst(per_call, output)
            trial = plan.played[name].trials[[one[output] for one in per_call].index(worst)]
            for kind in _kinds(worst):
                failing.setdefault((kind, output), []).append((plan.played[name].case, worst, trial))
    wrong = {case.name for (kind, _), shown in failing.items() if kind != "unexplained" for case, _, _ in shown}
    sizes_alone = _only_some_sizes([case for case in tested if case.name in wrong], tested)
    for (kind, output), shown in failing.items():
        code = "numerics/shape" if kind == "mismatch" and sizes_alone else f"numerics/{kind}"
        case, verdict, trial = max(shown, key=lambda entry: entry[1].comparison.beyond)
        plan.find(
            code,
            f"{describe(output, verdict.comparison, trial.question.expected[output].stored.dtype, kind)}"
            f" (case {names_case(case)}; {len(shown)} of {len(tested)} cases)",
            detail={
                "output": output,
                "cases": [case.name for case, _, _ in shown],
                "right_cases": [case.name for case in tested if case.name not in wrong],
                **verdict.facts(),
            },
        )
        if kind != "non-finite":
            _hint_at_precision(plan, output, trial)


def _kinds(verdict: Verdict) -> tuple[str, ...]:
    """What is wrong with an output, by the names of the codes; non-finite and plainly wrong may come together."""
    if verdict.status == "non-finite" and verdict.comparison.beyond:
        return ("non-finite", "mismatch")
    return (verdict.status,) if verdict.bad or verdict.status == "unexplained" else ()


def _only_some_sizes(failing: list[Case], tested: list[Case]) -> bool:
    """Whether size tells wrong cases from right ones, and no switch does.

    A right case of the same sizes speaks against it (then it is another dtype), as do switches (bool arguments) that
    no right case shares with a wrong one.
    """

    def sizes(case: Case) -> tuple[tuple[str, Any], ...]:
        return tuple(
            (key, value) for key, value in case.args.items() if isinstance(value, int) and not isinstance(value, bool)
        )

    def switches(case: Case) -> tuple[tuple[str, Any], ...]:
        return tuple((key, value) for key, value in case.args.items() if isinstance(value, bool))

    names = {case.name for case in failing}
    right = [case for case in tested if case.name not in names]
    return (
        bool(right)
        and not {sizes(case) for case in right} & {sizes(case) for case in failing}
        and bool({switches(case) for case in right} & {switches(case) for case in failing})
    )


def _hint_at_precision(plan: Plan, output: str, trial: Trial) -> None:
    question: Question = trial.question
    got, expected = trial.call.outputs[output], question.expected[output]

    def truth_of(inputs: Mapping[str, Value]) -> Tensor:
        return plan.oracle.expect(inputs)[output].aim

    looks = stored_precision(got, expected)
    how = f"all values of output {output} are numbers of {looks}"
    if looks is None:
        try:
            looks = input_precision(got, expected, question.inputs, truth_of)
        except ReferenceError:
            # The reference need not accept inputs that the task never draws: then there is no hint.
            return
        how = f"output {output} is far nearer to the truth of inputs rounded to {looks} than to that of the inputs"
    if looks is not None:
        plan.find(
            "numerics/precision",
            f"{how} (case {names_case(question.case)})",
            detail={"output": output, "format": looks, "case": question.case.name},
        )


CHECK = CorrectnessCheck()
