"""One run's calls, shared between the checks: each call answers as many questions as it can.

A candidate may be slow, an interpreted one above all, so the checks plan together. The first call of the smallest case
is the build check's; two held calls with two secret seeds serve correctness, aliasing and constancy, and repeat the
first; a call on contents changed in place serves replay, with the grid in reverse order and fresh memory filled
differently. More calls are made only where something looks wrong, to find out what it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import torch

from runners.checks import CheckResult
from runners.checks.oracle import Oracle, Question, Verdict
from runners.contract import Case, Progress
from runners.draws import derive_seed
from runners.evidence import Finding, PanelResult, PanelStatus, Place, make_finding
from runners.findings import PanelName
from runners.numerics.formats import components
from runners.patterns import element_pattern
from runners.reference import ReferenceError  # noqa: A004
from runners.session import Call, Failure, Report, Session, Slot, Worker, names_case
from runners.timing.contents import same_layout

if TYPE_CHECKING:
    from runners.checks.rounds import CaseResult

MAX_FINDINGS_PER_CODE = 8
"""Places that one code is reported at; what comes after is counted only."""


class Stopped(Exception):
    """A call gave no outputs: the candidate is not asked any further."""

    def __init__(self, failure: Failure, during: str) -> None:
        super().__init__(f"{failure.code} {during}: {failure.summary}")
        self.failure, self.during = failure, during


@dataclass(frozen=True)
class Trial:
    """One call, the question it answered and the verdict on each output."""

    question: Question
    slot: Slot
    call: Call
    verdicts: Mapping[str, Verdict]
    order: str
    at_home: bool
    """Whether it ran in the shared process, so that it can be put again."""

    @property
    def bad(self) -> bool:
        """Whether an output is wrong."""
        return any(verdict.bad for verdict in self.verdicts.values())


class Plan:
    """What the checks of one session have done and found so far."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.oracle = Oracle(session.reference, session.task, session.seeds[0])
        self.calls = 0
        self.orders: set[str] = set()
        """Grid orders that calls were made in."""
        self.reports = 0
        self.configs = 1
        """Autotune configurations that the hooks saw a kernel to have."""
        self.stopped: str | None = None
        """Why no further call is made."""
        self.first: Trial | None = None
        """The very first call, on the first seed of the smallest case."""
        self.played: dict[str, CaseResult] = {}
        """The rounds of each case, by its name, as far as they were played."""
        self.plain_good = False
        """Whether every output of every plain call was good: stress may charge only then."""
        self.accepted_ratios: dict[str, float] = {}
        """By output that is unexplained but within the task's tolerance: its error over the twin's."""
        self.fills = _two_fills(session.seeds)
        self._known: dict[str, set[tuple[str | None, str]]] = {}
        self._pending: list[Finding] = []

    # ---- questions ---------------------------------------------------------------------------------------------

    def seed(self, which: int, *labels: str | int) -> int:
        """A seed derived from the first (0) or second (1) secret seed."""
        return derive_seed(self.session.seeds[which], *labels)

    def question(self, case: Case, which: int) -> Question:
        """The plain draw of ``case`` for one of the two secret seeds."""
        return self.oracle.ask(case, self.oracle.inputs(case, self.seed(which, "inputs", case.name)))

    # ---- calls -------------------------------------------------------------------------------------------------

    def place(self, question: Question) -> Slot:
        """New shared memory that holds the question's inputs."""
        return self.session.candidate().place(question.inputs)

    def run(
        self,
        asked: Sequence[tuple[Slot, Question]],
        *,
        hold: bool = False,
        order: str = "forward",
        fill: int = 0,
        config: int = 0,
        checked: bool = True,
        worker: Worker | None = None,
        during: str | None = None,
    ) -> tuple[Trial, ...]:
        """Call once per question; raises Stopped when there are no outputs.

        Contents are written anew before the calls: a candidate may have changed them, by right or not.
        """
        at_home = worker is None
        worker = worker or self.session.candidate()
        for slot, question in asked:
            worker.rewrite(slot, question.inputs)
        options: dict[str, Any] = {"fill": self.fills[fill]}
        if self.session.interpreted:
            options["order"] = order
            options["config"] = config
            self.orders.add(order)
            if order == "shuffle":
                options["order_seed"] = self.seed(1, "order") & 0x7FFFFFFF
        batch = worker.run(
            [slot for slot, _ in asked],
            [question.spec for _, question in asked],
            checked=checked,
            hold=hold,
            options=options,
        )
        self.calls += len(asked)
        words = during or f"in case {names_case(asked[0][1].case)}"
        self._note_reports(batch.reports)
        for (_, question), call in zip(asked, batch.calls, strict=False):
            self._note_call(question, call)
        if batch.failure is not None:
            raise Stopped(batch.failure, words)
        return tuple(
            Trial(question, slot, call, self.oracle.judge(question, call.outputs), order, at_home)
            for (slot, question), call in zip(asked, batch.calls, strict=True)
        )

    def again(self, trial: Trial, *, order: str = "forward", fill: int = 0, config: int = 0) -> Trial:
        """The same question in the same place once more."""
        during = f"in case {names_case(trial.question.case)}" + (f", configuration {config}" if config else "")
        return self.run([(trial.slot, trial.question)], order=order, fill=fill, config=config, during=during)[0]

    def elsewhere(self, question: Question) -> Trial | None:
        """The question put to a process that has seen nothing else; None when that process fails."""
        worker = self.session.fresh("candidate")
        try:
            if worker.load() is not None:
                return None
            return self.run([(worker.place(question.inputs), question)], worker=worker)[0]
        except Stopped:
            return None
        finally:
            worker.close()

    def release(self, *trials: Trial) -> None:
        """Give memory back, but that of the very first call."""
        kept = self.first.slot if self.first is not None else None
        slots = {id(trial.slot): trial.slot for trial in trials if trial.at_home and trial.slot is not kept}
        self.session.candidate().release(list(slots.values()))

    def progress(self, panel: PanelName, done: int, total: int, text: str) -> None:
        """Tell the console how far a panel is."""
        self.session.emit(Progress(panel, done, total, text))

    # ---- findings ----------------------------------------------------------------------------------------------

    def find(
        self, code: str, summary: str, *, where: Place | None = None, detail: Mapping[str, Any] | None = None
    ) -> None:
        """Record a finding, once per code and place (or per code and summary where there is no place)."""
        key = (str(where) if where else None, "" if where else summary)
        known = self._known.setdefault(code, set())
        if key not in known and len(known) < MAX_FINDINGS_PER_CODE:
            known.add(key)
            self._pending.append(make_finding(code, summary, where=where, detail=detail))

    def found(self, code: str) -> bool:
        """Whether a finding of this code was recorded."""
        return code in self._known

    def _note_reports(self, reports: Sequence[Report]) -> None:
        for report in reports:
            self.reports += 1
            configs = report.detail.get("configs")
            if isinstance(configs, int):
                self.configs = max(self.configs, configs)
            self.find(report.code, report.summary, where=report.where, detail=report.detail)

    def _note_call(self, question: Question, call: Call) -> None:
        self._note_reports(call.reports)
        case = names_case(question.case)
        for mutation in call.mutations:
            # One finding per argument: the first case that shows it is named.
            if ("mutated", mutation.name) not in self._known.setdefault("", set()):
                self._known[""].add(("mutated", mutation.name))
                at = f", the first at {list(mutation.first_index)}" if mutation.first_index else ""
                self.find(
                    "integrity/input-mutated",
                    f"{mutation.elements} elements of the argument {mutation.name} were changed{at} (case {case})",
                    detail={"argument": mutation.name, "elements": mutation.elements, "case": question.case.name},
                )
        for name in call.broken_guards:
            if ("guard", name) not in self._known.setdefault("", set()):
                self._known[""].add(("guard", name))
                self.find(
                    "memory/out-of-bounds-write",
                    f"bytes beside {name} were changed (case {case})",
                    detail={"beside": name, "case": question.case.name},
                )

    # ---- panels ------------------------------------------------------------------------------------------------

    def guarded(self, judge: Callable[[Plan, dict[str, Any]], tuple[PanelStatus, str | None]]) -> CheckResult:
        """Run one check: what stops it becomes a finding or a reason, and what it found until then is kept."""
        facts: dict[str, Any] = {}
        if self.stopped is not None:
            return CheckResult(self._take(), PanelResult(status="not-checked", reason=self.stopped))
        try:
            status, reason = judge(self, facts)
        except Stopped as stop:
            failure = stop.failure
            self.find(
                failure.code, f"{failure.summary} ({stop.during})", where=failure.where, detail=dict(failure.detail)
            )
            self.stopped = f"stopped by {failure.code} {stop.during}"
            status, reason = "not-checked", self.stopped
        except ReferenceError as error:
            self.stopped = f"a fault of the task: {error}"
            status, reason = "not-checked", self.stopped
        except MemoryError as error:
            self.stopped = f"the inputs do not fit into the task's memory limit: {error}"
            status, reason = "not-checked", self.stopped
        return CheckResult(self._take(), PanelResult(status=status, reason=reason, facts=facts))

    def _take(self) -> tuple[Finding, ...]:
        taken, self._pending = tuple(self._pending), []
        return taken


_plans: WeakKeyDictionary[Session, Plan] = WeakKeyDictionary()


def plan_of(session: Session) -> Plan:
    """The session's plan, made on first use."""
    plan = _plans.get(session)
    if plan is None:
        plan = _plans[session] = Plan(session)
    return plan


def smallest_case(session: Session) -> Case:
    """The case with the fewest elements by its integer arguments; the first of equals."""

    def size(case: Case) -> int:
        product = 1
        for value in case.args.values():
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                product *= value
        return product

    return min(session.task.cases, key=size)


def can_rewrite(slot: Slot, question: Question) -> bool:
    """Whether the question's inputs fit where the slot lies."""
    return same_layout(slot.inputs, question.inputs)


def same_bits(one: torch.Tensor, two: torch.Tensor) -> torch.Tensor:
    """Where two tensors of one shape and dtype hold the same bytes (bool; a complex number counts as one)."""
    if one.is_complex():
        return same_bits(components(one), components(two)).all(-1)
    width = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[one.element_size()]
    return one.contiguous().view(width) == two.contiguous().view(width)


def _two_fills(seeds: tuple[int, int]) -> tuple[int, int]:
    """Two secret 16-bit fills whose patterns differ in every dtype that has more than one."""
    first = derive_seed(seeds[0], "fill") & 0xFFFF
    second = derive_seed(seeds[1], "fill") & 0xFFFF
    while any(
        element_pattern(dtype, first) == element_pattern(dtype, second)
        for dtype in (torch.bool, torch.float8_e4m3fn, torch.float8_e5m2, torch.int8, torch.bfloat16)
    ):
        second = (second + 1) & 0xFFFF
    return first, second
