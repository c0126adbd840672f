"""Whether a timed call is right, fast enough to ask of thousands: the correctness panel's own verdict, judged whole.

Only what that panel calls wrong counts. A call is first tried against the plain part of its bounds; the oracle, which
knows the rest and names elements, is asked about the few that this does not settle.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from runners.checks.oracle import Oracle
from runners.contract import Case
from runners.draws import derive_seed
from runners.evidence import Finding, make_finding
from runners.numerics.compare import Expected, describe
from runners.numerics.derived import explained
from runners.numerics.formats import components
from runners.numerics.rules import Bound, stated_bound
from runners.session import Session, Value


class Unverifiable(Exception):
    """The task gives no rule by which a timed call could be judged; the reason is the task's."""


class CaseVerifier:
    """Judges calls of one case. Every method raises ReferenceError for what the task does wrong."""

    def __init__(self, session: Session, case: Case) -> None:
        self._oracle = Oracle(session.reference, session.task, derive_seed(session.seeds[0], "timing", "oracle"))
        self._task, self._case = session.task, case
        if self._oracle.judgeable is not None:
            raise Unverifiable(self._oracle.judgeable)
        self._twin = self._oracle.yardstick(case)

    def __call__(self, inputs: Mapping[str, Value], outputs: Mapping[str, Tensor]) -> list[Finding]:
        """A ``numerics/mismatch`` or ``numerics/non-finite`` for each output that is wrong."""
        expected = self._oracle.expect(inputs)
        if all(self._plainly_right(name, outputs[name], one) for name, one in expected.items()):
            return []
        verdicts = self._oracle.judge(self._oracle.ask(self._case, inputs), outputs)
        return [
            make_finding(
                f"numerics/{verdict.status}",
                describe(name, verdict.comparison, outputs[name].dtype),
                detail={"case": self._case.name, "output": name, **verdict.facts()},
            )
            for name, verdict in verdicts.items()
            if verdict.bad
        ]

    def _plainly_right(self, name: str, got: Tensor, expected: Expected) -> bool:
        tolerance = self._task.tolerance_for(name)
        bounds = [stated_bound(tolerance)]
        if tolerance.rule == "derived" and name in self._twin:
            bounds.append(explained(self._twin[name], expected, None))
        return any(bound is not None and _accepts_all(bound, got, expected) for bound in bounds)


def _accepts_all(bound: Bound, got: Tensor, expected: Expected) -> bool:
    """Whether every element equals the stored truth or lies within the absolute and relative part of the bound."""
    if bound.cap is not None or got.shape != expected.stored.shape or got.dtype != expected.stored.dtype:
        return False
    mine, aim = components(got), expected.aim
    allowed = bound.absolute + bound.relative * aim.abs()
    near = (mine.to(torch.float64) - aim).abs() <= allowed
    return bool((near & aim.isfinite() | (mine == components(expected.stored))).all())


def verifier(session: Session, case: Case) -> CaseVerifier:
    """A verifier for one case of the session's task. Raises Unverifiable and ReferenceError."""
    return CaseVerifier(session, case)
