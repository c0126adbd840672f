"""What the judge knows: expected outputs, the twin's error, and the verdict on one call's outputs."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from torch import Tensor

from runners.checks.families import PLAIN, turn
from runners.contract import Case, TaskSpec
from runners.draws import derive_seed
from runners.numerics.compare import WORST, Comparison, Expected, compare, plain
from runners.numerics.derived import DRAWS, TwinError, explained, finite_in_both, observe
from runners.numerics.rules import Bound, stated_bound
from runners.reference import ErrorTerms, Reference, ReferenceError  # noqa: A004
from runners.session import OutputSpec, Value

LARGE = 1_000_000
"""Output elements from which on fewer draws may do: their number alone makes the largest error a good estimate."""
LARGE_SECONDS = 2.0
LARGE_DRAWS = 2

Status = Literal["pass", "unexplained", "mismatch", "non-finite", "not-checked"]


@dataclass(frozen=True)
class Question:
    """One set of inputs and everything that is known about the right answer."""

    case: Case
    family: str
    inputs: Mapping[str, Value]
    expected: Mapping[str, Expected]
    spec: Mapping[str, OutputSpec]
    finite: Mapping[str, Tensor]
    """Where twin and truth are both finite; empty without a twin."""
    twin: Mapping[str, TwinError]
    """The twin's error on these inputs alone; empty without a twin."""
    terms: Mapping[str, ErrorTerms]


@dataclass(frozen=True)
class Verdict:
    """How one output stands. ``reason`` says why it was not checked, or what the comparison means."""

    status: Status
    rule: str
    comparison: Comparison
    bound: Bound | None
    twin: TwinError | None
    reason: str | None = None

    @property
    def good(self) -> bool:
        """Whether nothing speaks against the output."""
        return self.status in ("pass", "unexplained")

    @property
    def bad(self) -> bool:
        """Whether the output is wrong; neither good nor bad means that it could not be judged."""
        return self.status in ("mismatch", "non-finite")

    @property
    def ratio(self) -> float | None:
        """The largest error over that of the twin."""
        if self.twin is None or self.twin.largest == 0:
            return None
        return self.comparison.max_absolute / self.twin.largest

    def facts(self) -> dict[str, Any]:
        """In plain JSON: errors, bound, the twin's error and the ratio of the two, worst elements."""
        return {
            "verdict": self.status,
            "reason": self.reason,
            "rule": self.rule,
            "bound": self.bound.facts() if self.bound is not None else None,
            "twin_error": plain(self.twin.largest) if self.twin is not None else None,
            "twin_draws": self.twin.draws if self.twin is not None else 0,
            "ratio_to_twin": plain(self.ratio) if self.ratio is not None else None,
            **self.comparison.facts(3 if self.good else WORST),
        }


class Oracle:
    """Asks the reference, remembers the twin's error per case and family, and judges outputs."""

    def __init__(self, reference: Reference, task: TaskSpec, seed: int) -> None:
        self._reference, self._task, self._seed = reference, task, seed
        self._yardsticks: dict[tuple[str, str], dict[str, TwinError]] = {}

    @property
    def judgeable(self) -> str | None:
        """Why the task's tolerance cannot be used; None when it can."""
        rules = {self._task.tolerance.rule, *(one.rule for one in self._task.tolerances.values())}
        if "derived" in rules and self._reference.twin_name is None and not self._reference.has_error_terms:
            return "the derived rule needs a baseline or error_terms, and the task has neither"
        return None

    @property
    def yardsticks(self) -> Mapping[tuple[str, str], Mapping[str, TwinError]]:
        """The twin's error so far, by case name and family, and by output."""
        return self._yardsticks

    def inputs(self, case: Case, seed: int, family: str = PLAIN) -> dict[str, Value]:
        """The inputs of a case and family for one seed."""
        return turn(family, self._reference.make_inputs(case, seed), derive_seed(seed, "family", family))

    def expect(self, inputs: Mapping[str, Value]) -> dict[str, Expected]:
        """Truth and stored truth of every output."""
        truth = self._reference.truth(inputs)
        stored = self._reference.stored(truth, inputs)
        return {
            name: Expected(truth[name], value, self._reference.overflow(name, value.dtype))
            for name, value in stored.items()
        }

    def ask(self, case: Case, inputs: Mapping[str, Value], family: str = PLAIN) -> Question:
        """Everything that is known about the right answer for these inputs."""
        expected = self.expect(inputs)
        finite, twin = self._observe(inputs, expected)
        terms = self._reference.error_terms(case, inputs) or {}
        for name in set(terms) & set(expected):
            self._fits(name, terms[name], expected[name])
        spec = self._reference.expect({name: one.stored for name, one in expected.items()})
        return Question(case, family, inputs, expected, spec, finite, twin, terms)

    def yardstick(self, case: Case, family: str = PLAIN) -> Mapping[str, TwinError]:
        """The twin's error over many draws of a case and family; empty without a twin. Drawn once, then remembered."""
        key = (case.name, family)
        if key not in self._yardsticks:
            total: dict[str, TwinError] = {}
            begun = time.monotonic()
            for number in range(DRAWS if self._reference.twin_name is not None else 0):
                inputs = self.inputs(case, derive_seed(self._seed, "twin", *key, number), family)
                expected = self.expect(inputs)
                for name, seen in self._observe(inputs, expected)[1].items():
                    total[name] = total.get(name, TwinError()).joined(seen)
                large = max((one.stored.numel() for one in expected.values()), default=0) > LARGE
                if large and number + 1 >= LARGE_DRAWS and time.monotonic() - begun > LARGE_SECONDS:
                    break
            self._yardsticks[key] = total
        return self._yardsticks[key]

    def judge(
        self, question: Question, outputs: Mapping[str, Tensor], skip: Mapping[str, Tensor] | None = None
    ) -> dict[str, Verdict]:
        """The verdict on every output. ``skip`` (bool, by output) marks elements that count for nothing."""
        drawn = self.yardstick(question.case, question.family)
        verdicts = {}
        for name in question.expected:
            twin = drawn.get(name)
            if twin is not None and name in question.twin:
                twin = twin.joined(question.twin[name])
            verdicts[name] = self._verdict(question, name, outputs[name], twin, (skip or {}).get(name))
        return verdicts

    # ---- one output --------------------------------------------------------------------------------------------

    def _verdict(
        self, question: Question, name: str, got: Tensor, twin: TwinError | None, skip: Tensor | None
    ) -> Verdict:
        tolerance = self._task.tolerance_for(name)
        expected, terms = question.expected[name], question.terms.get(name)
        only = question.finite.get(name) if tolerance.rule == "derived" else None
        stated, derived = stated_bound(tolerance), explained(twin, expected, terms)

        def against(bound: Bound) -> Comparison:
            return compare(got, expected, bound, only=only, skip=skip)

        def verdict(status: Status, comparison: Comparison, bound: Bound, reason: str | None = None) -> Verdict:
            return Verdict(status, tolerance.rule, comparison, bound, twin, reason)

        if tolerance.rule == "derived":
            if derived is None:
                comparison = against(Bound())
                status: Status = "pass" if comparison.accepted else "not-checked"
                reason = "the baseline itself disagrees with the reference on these integers"
                return verdict(status, comparison, Bound(), None if comparison.accepted else reason)
            comparison = against(derived)
            if comparison.accepted:
                return verdict("pass", comparison, derived)
            if comparison.non_finite == 0 and stated is not None and against(stated).accepted:
                return verdict("unexplained", comparison, derived, "inside the task's atol and rtol")
            return verdict("non-finite" if comparison.non_finite else "mismatch", comparison, derived)
        assert stated is not None
        comparison = against(stated)
        if comparison.accepted:
            return verdict("pass", comparison, stated)
        if comparison.non_finite:
            return verdict("non-finite", comparison, stated)
        too_tight = twin is not None and twin.breaks_tolerance and tolerance.rule != "exact"
        if too_tight and derived is not None and against(derived).accepted:
            reason = "the task's tolerance is tighter than the rounding of its own baseline, which explains the error"
            return verdict("not-checked", comparison, stated, reason)
        return verdict("mismatch", comparison, stated)

    # ---- the twin ----------------------------------------------------------------------------------------------

    def _observe(
        self, inputs: Mapping[str, Value], expected: Mapping[str, Expected]
    ) -> tuple[dict[str, Tensor], dict[str, TwinError]]:
        if self._reference.twin_name is None:
            return {}, {}
        outputs = self._reference.twin(inputs)
        finite, seen = {}, {}
        for name, one in expected.items():
            got = outputs.get(name)
            if got is None or got.shape != one.stored.shape:
                what = "no output" if got is None else f"shape {tuple(got.shape)} for output"
                raise ReferenceError(
                    f"the baseline {self._reference.twin_name!r} gives {what} {name}; "
                    f"the reference has shape {tuple(one.stored.shape)}"
                )
            if got.dtype != one.stored.dtype:
                got = self._reference.store(name, got, one.stored.dtype)
            tolerance = self._task.tolerance_for(name)
            finite[name] = finite_in_both(got, one)
            seen[name] = observe(got, one, None if tolerance.rule == "ulp" else stated_bound(tolerance))
        return finite, seen

    def _fits(self, name: str, terms: ErrorTerms, expected: Expected) -> None:
        try:
            explained(None, expected, terms)
        except (RuntimeError, TypeError) as error:
            raise ReferenceError(f"error_terms for output {name} do not fit its shape or dtype: {error}") from None
