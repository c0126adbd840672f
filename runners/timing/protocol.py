"""How a candidate's time is measured against a baseline's: fresh processes, alternating batches, the judge's clock.

Three processes live at a time: candidate, baseline, and a second baseline as the A/A control. In a *round* each runs
one batch of the same N calls on the same contents; rounds come in twos, the second in the reverse of the first's drawn
order, so that no side is always first. After some rounds the three are replaced by fresh ones: a *process pair* and
its control. An unpredictable share of the candidate's timed calls is compared with the truth.
"""

from __future__ import annotations

import math
import statistics
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from runners.evidence import Finding
from runners.session import Batch, Call, Failure, OutputSpec, Slot, Value, Worker
from runners.timing.contents import Contents
from runners.timing.samples import SIDES, Measurement, Side, WrongCall

if TYPE_CHECKING:
    import torch

GUARDED_BYTES = 8192
"""What guard zones and alignment add to each tensor in shared memory, roughly."""


class Verify(Protocol):
    """Compares one call's outputs with the truth for its inputs; the findings that this gives."""

    def __call__(self, inputs: Mapping[str, Value], outputs: Mapping[str, torch.Tensor]) -> Sequence[Finding]:
        """Findings of severity ``fail`` mean that the outputs are wrong."""
        ...


class SideFailed(Exception):
    """A call of one side gave no outputs."""

    def __init__(self, side: Side, failure: Failure, *, loading: bool = False) -> None:
        super().__init__(f"{side}: {failure.summary}")
        self.side, self.failure, self.loading = side, failure, loading


class TooSlow(Exception):
    """The least that a comparison needs would take far longer than its budget."""


@dataclass(frozen=True)
class Plan:
    """How much to measure. Times in seconds unless named ns."""

    seconds: float = 8.0
    patience: float = 5.0
    """The least that is needed may take this many budgets; beyond, the case is too slow to time."""
    window_ns: int = 10_000_000
    round_trips: int = 100
    """A window is at least this many times an empty batch, so that the way to the process and back is within 1 %."""
    min_pairs: int = 5
    max_pairs: int = 20
    min_rounds: int = 2
    max_rounds: int = 8
    max_calls: int = 2048
    narrow: float = 0.01
    """An interval of this half-width, on both ratio and control, is good enough to stop before the budget ends."""
    checked_share: float = 0.2
    max_bytes: int = 1 << 31
    """Shared memory that one process's slots may take."""


_TIMED: tuple[Side, ...] = ("candidate", "baseline")
_GROWTHS = 3
_KEPT_OUTPUTS = 64
_KEPT_TIMES = 4000


class Comparison:
    """One case's comparison. Build it, call :meth:`run` once."""

    def __init__(
        self,
        *,
        start: Callable[[Side], Worker],
        contents: Contents,
        expect: Mapping[str, OutputSpec],
        verify: Verify,
        seed: int,
        plan: Plan | None = None,
        clock: Callable[[], float] = time.monotonic,
        progress: Callable[[int, int, str], None] = lambda done, total, text: None,
    ) -> None:
        self._start, self._contents, self._expect, self._verify = start, contents, expect, verify
        self._plan = plan or Plan()
        self._clock, self._progress = clock, progress
        self._rng = np.random.default_rng(seed)
        self._seed = seed
        self._result = Measurement()
        self._workers: dict[Side, Worker] = {}
        self._slots: dict[Side, list[Slot]] = {}
        self._recent: deque[tuple[Mapping[str, Value], Mapping[str, torch.Tensor]]] = deque(maxlen=_KEPT_OUTPUTS)

    def run(self) -> Measurement:
        """Measure until the intervals are narrow or the budget ends; stop at the first wrong call.

        Raises SideFailed, TooSlow, MemoryError where not even one call has room, and what ``start`` raises.
        """
        plan, result = self._plan, self._result
        begun = self._clock()
        while True:
            pair_begun = self._clock()
            self._pair(begun)
            now = self._clock()
            result.seconds = now - begun
            self._lengthen()
            if result.wrong is not None or result.pairs >= plan.max_pairs:
                return result
            if result.pairs >= plan.min_pairs:
                if now + (now - pair_begun) > begun + plan.seconds:
                    return result
                if all(e.interval.half_width <= plan.narrow for e in result.estimates(self._seed)):
                    return result

    # ---- one process pair and its control ------------------------------------------------------------------------

    def _pair(self, begun: float) -> None:
        """Start the three, prepare them, run the rounds; all three end with the pair."""
        result, plan = self._result, self._plan
        number = result.pairs
        self._progress(number, plan.min_pairs, f"process pair {number + 1}")
        with ExitStack() as living:
            set_up = self._clock()
            order = self._drawn_order()
            self._workers, self._slots = {}, {side: [] for side in SIDES}
            for side in order:
                worker = self._start(side)
                living.callback(self._close, side, worker)
                self._workers[side] = worker
                failure = worker.load()
                if failure is not None:
                    raise SideFailed(side, failure, loading=True)
            for side in order:
                self._warm_first_call(side)
            if number == 0:
                self._calibrate()
            self._place(result.calls)
            set_up = self._clock() - set_up
            cost = self._warm_up(order)
            if number == 0:
                cost = self._grow_to_target(order, cost)
                cost *= self._fit_budget(begun, set_up, cost)
            if result.wrong is None:
                self._rounds(self._how_many(begun, set_up, cost))

    def _drawn_order(self) -> list[Side]:
        return [SIDES[index] for index in self._rng.permutation(len(SIDES))]

    def _warm_up(self, order: Sequence[Side]) -> float:
        """A round that is not counted; how long it took in all, in seconds."""
        begun = self._clock()
        for side, batch in self._round(order, counted=False).items():
            self._result.sides[side].warm_up.append(batch.window_ns // self._result.calls)
        return max(1e-9, self._clock() - begun)

    def _close(self, side: Side, worker: Worker) -> None:
        reports = worker.close()
        if side == "candidate":
            self._result.reports.extend(reports)

    def _rounds(self, count: int) -> None:
        result = self._result
        for side in SIDES:
            self._batch(side, (), ())  # slots given back have no answer: their memory may still be on its way out
        before = {side: self._workers[side].cpu_ns() for side in SIDES}
        batches: dict[Side, list[Batch]] = {side: [] for side in SIDES}
        order: list[Side] = []
        for number in range(count):
            order = order[::-1] if number % 2 else self._drawn_order()
            for side, batch in self._round(order, counted=True).items():
                batches[side].append(batch)
            if result.wrong is not None:
                return
        result.calls_by_pair.append(result.calls)
        for side in SIDES:
            samples, mine = result.sides[side], batches[side]
            inside = sum(batch.cpu_ns for batch in mine)
            samples.windows.append([batch.window_ns for batch in mine])
            samples.on_cpu.append([batch.cpu_ns for batch in mine])
            samples.outside.append(max(0, self._workers[side].cpu_ns() - before[side] - inside))

    def _round(self, order: Sequence[Side], *, counted: bool) -> dict[Side, Batch]:
        """One batch of each side on the same contents. The candidate's picked calls are compared afterwards."""
        result, calls = self._result, self._result.calls
        inputs = self._contents.draw(calls, self._rng)
        picked = sorted(
            int(index)
            for index in self._rng.choice(calls, size=math.ceil(calls * self._plan.checked_share), replace=False)
        )
        earlier = {index: self._slots["candidate"][index].inputs for index in picked}
        batches: dict[Side, Batch] = {}
        for side in order:
            worker, slots = self._workers[side], self._slots[side]
            for slot, value in zip(slots, inputs, strict=True):
                worker.rewrite(slot, value)
            batches[side] = self._batch(side, slots, picked)  # copied on every side, so that all are treated alike
            if counted:
                self._note_self_reported(side, batches[side])
        if counted:
            result.timed_calls += calls
        for index in picked:
            call = batches["candidate"].calls[index]
            if counted:
                result.compared_calls += 1
            self._check(index, inputs[index], earlier[index], call)
            if result.wrong is not None:
                break
        return batches

    def _batch(self, side: Side, slots: Sequence[Slot], picked: Sequence[int]) -> Batch:
        batch = self._workers[side].run(slots, [self._expect] * len(slots), checked=False, copy=picked)
        if side == "candidate":
            self._result.reports.extend(batch.reports)
        if batch.failure is not None:
            raise SideFailed(side, batch.failure)
        return batch

    def _note_self_reported(self, side: Side, batch: Batch) -> None:
        samples = self._result.sides[side]
        if len(batch.self_reported_ns) == len(batch.calls) and batch.window_ns > 0:
            samples.self_share.append(sum(batch.self_reported_ns) / batch.window_ns)
            samples.self_reported.extend(batch.self_reported_ns[: _KEPT_TIMES - len(samples.self_reported)])

    # ---- verify what is timed ------------------------------------------------------------------------------------

    def _check(self, index: int, inputs: Mapping[str, Value], earlier: Mapping[str, Value], call: Call) -> None:
        result = self._result
        if call.mutations or call.broken_guards:
            result.broken.append(call)
        wrong = [finding for finding in self._verify(inputs, call.outputs) if finding.severity == "fail"]
        if wrong:
            if not self._is_right("baseline", index, inputs, checked=False):
                result.disputed_calls += 1
                return
            replayed = self._is_replay(inputs, earlier, call)
            watched = self._is_right("candidate", index, inputs, checked=True)
            result.wrong = WrongCall(tuple(wrong), replayed, watched)
        self._recent.append((inputs, call.outputs))

    def _is_replay(self, inputs: Mapping[str, Value], earlier: Mapping[str, Value], call: Call) -> bool:
        """Whether wrong outputs are right for what lay in the slot before, or equal those of another recent call."""
        if not any(finding.severity == "fail" for finding in self._verify(earlier, call.outputs)):
            return True
        return any(_same_bits(call.outputs, outputs) for other, outputs in self._recent if other is not inputs)

    def _is_right(self, side: Side, index: int, inputs: Mapping[str, Value], *, checked: bool) -> bool:
        """Whether ``side`` gives right outputs for these inputs in one call of its own, outside any measurement."""
        worker, slot = self._workers[side], self._slots[side][index]
        worker.rewrite(slot, inputs)
        batch = worker.run([slot], [self._expect], checked=checked)
        if batch.failure is not None:
            return False
        return not any(finding.severity == "fail" for finding in self._verify(inputs, batch.calls[0].outputs))

    # ---- how many calls, how many rounds --------------------------------------------------------------------------

    def _warm_first_call(self, side: Side) -> None:
        self._grow(side, self._contents.draw(1, self._rng))
        batch = self._batch(side, self._slots[side], ())
        self._result.sides[side].first_call.append(batch.window_ns)

    def _calibrate(self) -> None:
        """The way to the process and back, the window that follows from it, and a first guess at N."""
        result, plan = self._result, self._plan
        trips = [self._batch(side, (), ()).window_ns for _ in range(5) for side in _TIMED]
        result.round_trip_ns = int(statistics.median(trips))
        result.target_ns = max(plan.window_ns, plan.round_trips * result.round_trip_ns)
        self._take(result.target_ns / min(self._call_ns(side) for side in _TIMED))

    def _grow_to_target(self, order: Sequence[Side], cost: float) -> float:
        """More calls until the faster side's window, warm by now, reaches the target; a round's seconds then."""
        result = self._result
        for _ in range(_GROWTHS):
            if result.limited_by is not None or result.wrong is not None:
                break
            warm = [result.sides[side].warm_up[-1] for side in _TIMED]
            if min(warm) * result.calls >= result.target_ns:
                break
            self._take(result.target_ns / max(1, min(warm)))
            self._place(result.calls)
            for side in SIDES:
                result.sides[side].warm_up.pop()
            cost = self._warm_up(order)
        return cost

    def _lengthen(self) -> None:
        """More calls for the next pair where the last one's windows fell short: a first guess under load is too low."""
        result = self._result
        if result.limited_by is None and result.pairs > 0:
            windows = [statistics.median(result.sides[side].windows[-1]) for side in _TIMED]
            if min(windows) < result.target_ns:
                self._take(result.target_ns * result.calls / min(windows))

    def _take(self, needed: float) -> None:
        """Set N to what is needed with a quarter to spare, within the limits."""
        result, plan, most = self._result, self._plan, self._room()
        wanted = math.ceil(1.25 * needed)
        result.calls = max(1, min(wanted, plan.max_calls, most))
        if result.calls < wanted:
            result.limited_by = "memory" if most < plan.max_calls else "calls"

    def _room(self) -> int:
        outputs = sum(math.prod(spec.shape) * spec.dtype.itemsize for spec in self._expect.values())
        tensors = len(self._expect) + 4
        return max(1, self._plan.max_bytes // (self._contents.bytes_per_call + outputs + tensors * GUARDED_BYTES))

    def _call_ns(self, side: Side) -> float:
        """The time of one call in a batch, from batches that grow until one lasts a quarter of the target."""
        count, most = 1, min(self._room(), self._plan.max_calls)
        while True:
            batch = self._batch(side, self._slots[side][:count], ())
            net = max(1, batch.window_ns - self._result.round_trip_ns)
            if net >= self._result.target_ns / 4 or count >= most:
                return net / count
            count = min(most, count * 8, math.ceil(count * self._result.target_ns / 3 / net) + 1)
            self._grow(side, self._contents.draw(count - len(self._slots[side]), self._rng))
            if len(self._slots[side]) < count:
                return net / max(1, len(self._slots[side]))

    def _grow(self, side: Side, inputs: Sequence[Mapping[str, Value]]) -> None:
        """Place further slots, as far as memory goes; raises MemoryError where not even one has room."""
        for value in inputs:
            try:
                self._slots[side].append(self._workers[side].place(value))
            except MemoryError:
                if not self._slots[side]:
                    raise
                return

    def _place(self, calls: int) -> None:
        """The same number of slots on every side: fewer where one has no room for all."""
        for side in SIDES:
            self._grow(side, self._contents.draw(max(0, calls - len(self._slots[side])), self._rng))
        fewest = min(calls, *(len(slots) for slots in self._slots.values()))
        if fewest < calls:
            self._result.limited_by = "memory"
        self._shrink(fewest)

    def _shrink(self, calls: int) -> None:
        self._result.calls = calls
        for side in SIDES:
            self._workers[side].release(self._slots[side][calls:])
            del self._slots[side][calls:]

    def _fit_budget(self, begun: float, set_up: float, cost: float) -> float:
        """Take fewer calls where all pairs would not fit into the budget; the share of calls that is kept.

        ``set_up`` and ``cost`` are the seconds that a pair's processes and one round took. Raises TooSlow.
        """
        result, plan = self._result, self._plan
        others = set_up * (plan.min_pairs - 1)
        left = max(0.0, begun + plan.seconds - self._clock() - others)
        needed = cost * plan.min_pairs * (plan.min_rounds + 1)
        if needed <= left:
            return 1.0
        before = result.calls
        kept = max(1, math.floor(before * left / needed))
        least = needed * kept / before + others
        if least > plan.patience * plan.seconds:
            raise TooSlow(f"{least:.0f} s at least, where {plan.patience * plan.seconds:.0f} s are allowed")
        if kept < before:
            self._shrink(kept)
            result.limited_by = "budget"
        return kept / before

    def _how_many(self, begun: float, set_up: float, cost: float) -> int:
        """Rounds for this pair, an even number: what is left of the budget, over the pairs that are still due."""
        plan = self._plan
        due = max(1, plan.min_pairs - self._result.pairs)
        left = begun + plan.seconds - self._clock()
        rounds = (left - (due - 1) * (set_up + cost)) / due / cost
        return max(plan.min_rounds, min(plan.max_rounds, int(rounds)) // 2 * 2)


def _same_bits(one: Mapping[str, torch.Tensor], two: Mapping[str, torch.Tensor]) -> bool:
    import torch

    return one.keys() == two.keys() and all(
        torch.equal(value.contiguous().view(-1).view(torch.uint8), two[name].contiguous().view(-1).view(torch.uint8))
        for name, value in one.items()
    )
