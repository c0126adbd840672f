"""The rounds of one case, and what a wrong output means: shared buffer, earlier result, order, or plain wrong.

The two calls on plain draws decide about correctness. Each suspicion is put to a test that a right candidate passes,
whatever its algorithm, before it becomes a finding.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from runners.checks.families import data_names, mix
from runners.checks.oracle import Question, Verdict
from runners.checks.plan import Plan, Stopped, Trial, can_rewrite, same_bits
from runners.contract import Case
from runners.numerics.compare import Expected
from runners.numerics.derived import explained
from runners.numerics.formats import components
from runners.session import names_case

SPOTS = 8
"""Elements of each argument that change in place: few, so that a look at a sample of the contents misses them."""
MOVED_ENOUGH = 8
"""Elements that must have moved before equal outputs are called constant."""


@dataclass
class CaseResult:
    """What the rounds of one case came to."""

    case: Case
    trials: list[Trial] = field(default_factory=list)
    """The calls on plain draws, which decide about correctness."""
    unwritten: dict[int, dict[str, Tensor]] = field(default_factory=dict)
    """By number of the trial and output: where nothing is ever written."""
    data_elements: int = 0
    """Elements of the tensors that a family of inputs turns."""
    finite_share: dict[str, float] = field(default_factory=dict)
    """By output: the part of the truth that is finite as stored."""
    probes: dict[str, Any] = field(default_factory=dict)
    """What the other calls looked at, in plain JSON."""

    def verdicts(self, plan: Plan) -> list[dict[str, Verdict]]:
        """Per plain call the verdict on each output, elements that were never written left out."""
        return [
            plan.oracle.judge(trial.question, trial.call.outputs, self.unwritten[index])
            if index in self.unwritten
            else dict(trial.verdicts)
            for index, trial in enumerate(self.trials)
        ]


def play(plan: Plan, case: Case) -> CaseResult:
    """All rounds of one case: three calls where nothing is suspicious."""
    result = CaseResult(case)
    opening = plan.first if plan.first is not None and plan.first.question.case is case else None
    first = opening.question if opening is not None else plan.question(case, 0)
    second = plan.question(case, 1)
    result.data_elements = sum(first.inputs[name].numel() for name in data_names(first.inputs))
    result.finite_share = {name: finite_share(expected) for name, expected in first.expected.items()}
    slot = opening.slot if opening is not None else plan.place(first)
    result.trials = list(plan.run([(slot, first), (plan.place(second), second)], hold=True))
    if opening is not None:
        same_answer(plan, opening, result.trials[0])
    _aliased(plan, result)
    _replayed(plan, result, [opening] if opening is not None else [])
    _constant(plan, result)
    changed = _change_in_place(plan, result)
    _unwritten(plan, result)
    plan.release(*result.trials, *([changed] if changed is not None else []))
    return result


def moved(one: Question, two: Question, name: str) -> Tensor:
    """Where the truth of output ``name`` differs by more than rounding can hide (bool, of the output's shape)."""
    first, second = one.expected[name], two.expected[name]
    if first.stored.shape != second.stored.shape:
        return torch.zeros(first.stored.shape, dtype=torch.bool)
    allowed = torch.zeros(())
    for question in (one, two):
        expected = question.expected[name]
        bound = explained(question.twin.get(name), expected, question.terms.get(name))
        if bound is not None:
            magnitude = expected.aim.abs().reshape(-1)
            own = bound.allowance(magnitude, slice(0, magnitude.numel()))
            allowed = allowed + own.reshape(components(expected.stored).shape)
    apart = (first.aim - second.aim).abs() > allowed
    apart |= first.aim.isfinite() != second.aim.isfinite()
    return apart.any(-1) if first.stored.is_complex() else apart


def same_answer(plan: Plan, before: Trial, after: Trial) -> None:
    """Two calls on the same inputs, in the same order, on memory filled alike: the bits must be the same."""
    for name in before.call.outputs:
        if name not in after.call.outputs or before.verdicts[name].bad or after.verdicts[name].bad:
            continue
        same = same_bits(before.call.outputs[name], after.call.outputs[name])
        if not bool(same.all()):
            plan.find(
                "race/nondeterministic",
                f"output {name}: {int((~same).sum())} of {same.numel()} elements differ in their bits between two "
                f"calls on the same inputs (case {names_case(before.question.case)})",
                detail={"output": name, "elements": int((~same).sum()), "case": before.question.case.name},
            )


def _aliased(plan: Plan, result: CaseResult) -> None:
    """A held result that became that of the next call, and is right when it is not held, shares its buffer."""
    one, two = result.trials
    shared = [
        name
        for name in one.call.outputs
        if one.verdicts[name].bad
        and not two.verdicts[name].bad
        and _alike(one, two, name)
        and bool(moved(one.question, two.question, name).any())
    ]
    if not shared:
        return
    alone = plan.again(one)
    for name in shared:
        if not alone.verdicts[name].bad:
            plan.find(
                "integrity/aliased",
                f"output {name}: a result that was still held became that of the next call "
                f"(case {names_case(result.case)})",
                detail={"output": name, "case": result.case.name},
            )
    result.trials[0] = alone


def _replayed(plan: Plan, result: CaseResult, earlier: list[Trial]) -> None:
    """Results of earlier calls among the wrong ones; the numbers are then those of a process that has seen nothing."""
    seen = list(earlier)
    for index, trial in enumerate(result.trials):
        for before in seen:
            fresh = _replays(plan, before, trial)
            if fresh is not None:
                _charge_replay(plan, before, trial, "for inputs that were never seen before")
                result.trials[index] = fresh
                break
        seen.append(trial)


def _replays(plan: Plan, before: Trial, after: Trial) -> Trial | None:
    """The right answer of a fresh process, where ``after`` is wrong and gives what was right for ``before``."""
    for name, output in after.call.outputs.items():
        old = before.call.outputs.get(name)
        if old is None or old.shape != output.shape or before.verdicts[name].bad or not after.verdicts[name].bad:
            continue
        must_differ = moved(before.question, after.question, name)
        if bool(must_differ.any()) and bool(same_bits(old, output)[must_differ].all()):
            fresh = plan.elsewhere(after.question)
            if fresh is not None and not fresh.verdicts[name].bad:
                return fresh
    return None


def _charge_replay(plan: Plan, before: Trial, after: Trial, when: str) -> None:
    name = next(name for name in after.call.outputs if after.verdicts[name].bad)
    must_differ = moved(before.question, after.question, name)
    if not plan.found("integrity/replay"):
        plan.find(
            "integrity/replay",
            f"output {name}: an earlier result came back {when}; {int(must_differ.sum())} elements had to change and "
            f"did not, and a fresh process answers rightly (case {names_case(after.question.case)})",
            detail={
                "output": name,
                "case": after.question.case.name,
                "had_to_change": int(must_differ.sum()),
                "same_address": before.slot is after.slot,
            },
        )


def _constant(plan: Plan, result: CaseResult) -> None:
    """Two unrelated draws with outputs alike in every bit, all finite and written, although the truth moved."""
    one, two = result.trials
    for name, output in one.call.outputs.items():
        if name in plan.session.task.inplace or not _alike(one, two, name):
            continue
        if _blank(one, name) or not bool(_finite(output).all()):
            continue
        apart = int(moved(one.question, two.question, name).sum())
        if apart >= MOVED_ENOUGH and not plan.found("integrity/constant"):
            plan.find(
                "integrity/constant",
                f"output {name} is the same for two unrelated draws, where {apart} of {output.numel()} elements "
                f"had to differ (case {names_case(result.case)})",
                detail={"output": name, "case": result.case.name, "had_to_differ": apart},
            )


def _change_in_place(plan: Plan, result: CaseResult) -> Trial | None:
    """Contents changed at random spots, same addresses, reverse order, other fill: outputs must follow."""
    base = next((trial for trial in result.trials if trial.at_home and not trial.bad), None)
    if base is None:
        result.probes["in_place"] = "not tried: no right result to start from"
        return None
    asked = _changed(plan, base)
    if asked is None:
        result.probes["in_place"] = "not tried: the layout of the inputs depends on the draw"
        return None
    question, counts = asked
    try:
        trial = plan.run([(base.slot, question)], order="reverse", fill=1)[0]
    except Stopped as stop:
        raise Stopped(stop.failure, f"{stop.during}, contents changed in place") from None
    must_follow = {name: int(moved(base.question, question, name).sum()) for name in question.expected}
    result.probes["in_place"] = {"changed": counts, "had_to_follow": must_follow, "followed": not trial.bad}
    if not trial.bad:
        return trial
    if _replays(plan, base, trial) is not None:
        _charge_replay(plan, base, trial, "for the same address with changed contents")
        return trial
    forward = plan.again(trial, fill=1)
    if forward.bad:
        _try_reverse(plan, result, base)
        result.probes["in_place"]["followed"] = "no; elements of two draws together may be outside the task"
    elif plan.session.interpreted:
        _order_matters(plan, trial)
    else:
        plan.find(
            "race/nondeterministic",
            f"wrong in one call and right in the next on the same inputs (case {names_case(result.case)})",
            detail={"case": result.case.name},
        )
    return trial


def _changed(plan: Plan, base: Trial) -> tuple[Question, dict[str, int]] | None:
    """A question whose contents differ from the base's at few spots, at more where few do not move the truth."""
    case = base.question.case
    donor = plan.oracle.inputs(case, plan.seed(1, "spots", case.name))
    asked = None
    for spots in (SPOTS, 1 << 62):
        try:
            mixed, counts = mix(base.question.inputs, donor, spots, plan.seed(1, "places", case.name))
        except (IndexError, KeyError, RuntimeError):
            return None
        asked = plan.oracle.ask(case, mixed)
        if asked.spec != base.question.spec or not can_rewrite(base.slot, asked):
            return None
        if any(bool(moved(base.question, asked, name).any()) for name in asked.expected):
            return asked, counts
    return (asked, counts) if asked is not None else None


def _try_reverse(plan: Plan, result: CaseResult, base: Trial) -> None:
    """The reverse order once more, on a plain draw, where the changed contents said nothing."""
    if plan.session.interpreted:
        trial = plan.again(base, order="reverse")
        if trial.bad:
            _order_matters(plan, trial)


def _order_matters(plan: Plan, trial: Trial) -> None:
    if not plan.found("race/cross-program"):
        plan.find(
            "race/cross-program",
            f"right when the grid runs forward, wrong when it runs in {trial.order} order: "
            f"programs depend on each other (case {names_case(trial.question.case)})",
            detail={"order": trial.order, "case": trial.question.case.name},
        )


def _unwritten(plan: Plan, result: CaseResult) -> None:
    """Elements that are wrong and still hold the fill, under two different fills, were never written."""
    for index, trial in enumerate(result.trials):
        if not trial.bad or not trial.at_home:
            continue
        blank = {name: mask for name, mask in trial.call.untouched.items() if name in trial.verdicts}
        if not any(bool((mask & trial.verdicts[name].comparison.outside).any()) for name, mask in blank.items()):
            continue
        refilled = plan.again(trial, fill=1).call.untouched
        never = {name: mask & refilled[name] for name, mask in blank.items() if name in refilled}
        never = {name: mask for name, mask in never.items() if bool(mask.any())}
        for name, mask in never.items():
            _charge_unwritten(plan, result.case, name, mask)
        if never:
            result.unwritten[index] = never


def _charge_unwritten(plan: Plan, case: Case, name: str, never: Tensor) -> None:
    count = int(never.sum())
    first = [int(axis) for axis in never.nonzero()[0]] if never.dim() else []
    # A NaN that arithmetic carried on from fresh memory can look like fill: where hooks saw such a read, that is it.
    if not plan.found("memory/unwritten-output") and not plan.found("memory/uninitialised"):
        plan.find(
            "memory/unwritten-output",
            f"output {name}: {count} of {never.numel()} elements are never written: they hold what "
            f"fresh memory was filled with, the first at {first} (case {names_case(case)})",
            detail={"output": name, "elements": count, "of": never.numel(), "first": first, "case": case.name},
        )


def _alike(one: Trial, two: Trial, name: str) -> bool:
    first, second = one.call.outputs[name], two.call.outputs[name]
    return first.shape == second.shape and first.numel() > 0 and bool(same_bits(first, second).all())


def _blank(trial: Trial, name: str) -> bool:
    """Whether part of the output still is fill: equal bytes say nothing then."""
    return name in trial.call.untouched and bool(trial.call.untouched[name].any())


def finite_share(expected: Expected) -> float:
    """The part of a stored truth that is finite."""
    return float(_finite(components(expected.stored)).to(torch.float64).mean()) if expected.stored.numel() else 1.0


def _finite(values: Tensor) -> Tensor:
    if not values.is_floating_point():
        return torch.ones(values.shape, dtype=torch.bool)
    return (values.to(torch.float32) if values.element_size() == 1 else values).isfinite()
