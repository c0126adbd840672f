"""Processes that exist only in numbers: a clock that moves when they run; sides that are slow, noisy or dishonest."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from runners.evidence import Finding, make_finding
from runners.session import Batch, Call, Failure, Mutation, OutputSpec, Report, Slot, Value, Worker
from runners.timing.protocol import Comparison
from runners.timing.samples import Side

RELEASE_NS = 50_000
EXPECT = {"0": OutputSpec((2,), torch.float32)}


class World:
    """Simulated time, in ns, and a source of noise."""

    def __init__(self, seed: int = 0) -> None:
        self.now = 0
        self.rng = np.random.default_rng(seed)
        self.open = 0
        self.most_open = 0

    def seconds(self) -> float:
        return self.now / 1e9

    def pass_ns(self, ns: float) -> None:
        self.now += int(ns)


@dataclass
class Nature:
    """How a side behaves."""

    call_ns: float = 500_000
    first_ns: float = 0
    noise: float = 0.0
    between_processes: float = 0.0
    drift: float = 0.0
    """Relative slow-down per simulated second."""
    bursts: float = 0.0
    """Share of batches that a neighbour makes three times as long."""
    cpu_share: float = 1.0
    outside_share: float = 0.0
    self_share: float = 0.9
    answer: str = "honest"
    room: int = 1_000_000
    load: Failure | None = None
    fails_after: int | None = None
    load_ns: float = 20e6
    reports: tuple[Report, ...] = ()


@dataclass
class FakeSlot:
    inputs: Mapping[str, Value]
    first: torch.Tensor | None = None


def right(inputs: Mapping[str, Value]) -> torch.Tensor:
    return torch.stack([inputs["x"] * 2, inputs["x"] + 1])


@dataclass
class FakeWorker:
    world: World
    nature: Nature
    pid: int = 0
    cpu: int = 0
    owed: int = 0
    """Work for slots given back: nobody waits for it, and it is done before the next batch."""
    batches: int = 0
    placed: int = 0
    closed: bool = False
    factor: float = 1.0
    spied: list[Collection[int] | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.factor = float(np.exp(self.world.rng.normal(0, self.nature.between_processes)))
        self.world.open += 1
        self.world.most_open = max(self.world.most_open, self.world.open)

    def cpu_ns(self) -> int:
        return self.cpu

    def load(self) -> Failure | None:
        self.world.pass_ns(self.nature.load_ns)
        return self.nature.load

    def place(self, inputs: Mapping[str, Value]) -> Slot:
        if self.placed >= self.nature.room:
            raise MemoryError
        self.placed += 1
        self.world.pass_ns(20_000)
        return FakeSlot(inputs)

    def rewrite(self, slot: Slot, inputs: Mapping[str, Value]) -> None:
        assert isinstance(slot, FakeSlot)
        slot.inputs = inputs
        self.world.pass_ns(5_000)

    def run(
        self,
        slots: Sequence[Slot],
        expect: Sequence[Mapping[str, OutputSpec]],
        *,
        checked: bool = True,
        hold: bool = False,
        options: Mapping[str, Any] | None = None,
        copy: Collection[int] | None = None,
    ) -> Batch:
        self.batches += 1
        self.cpu, self.owed = self.cpu + self.owed, 0
        nature, world = self.nature, self.world
        if nature.fails_after is not None and self.batches > nature.fails_after:
            return Batch((), Failure("build/crash", "ended by SIGSEGV"))
        self.spied.append(copy)
        drift = max(0.1, 1 + nature.drift * world.seconds())
        work = len(slots) * nature.call_ns * self.factor * drift * float(np.exp(world.rng.normal(0, nature.noise)))
        if world.rng.random() < nature.bursts:
            work *= 3
        if self.batches == 1:
            work += nature.first_ns
        window = int(work + 40_000 + world.rng.integers(2_000))
        outputs = [self._answer(slot, checked, index) for index, slot in enumerate(slots)]
        world.pass_ns(window)
        cpu = int(nature.cpu_share * window)
        self.cpu += cpu + int(nature.outside_share * window)
        chosen = range(len(slots)) if copy is None else copy
        mutations = (Mutation("x", 1, (0,)),) if nature.answer == "mutates" else ()
        calls = tuple(
            Call({"0": outputs[index]}, mutations=mutations) if index in chosen else Call({})
            for index in range(len(slots))
        )
        each = int(nature.self_share * window / max(1, len(slots)))
        return Batch(calls, None, window, cpu, (each,) * len(slots))

    def _answer(self, slot: Slot, checked: bool, index: int) -> torch.Tensor:
        assert isinstance(slot, FakeSlot)
        truth = right(slot.inputs)
        if slot.first is None:
            slot.first = truth
        timed = not checked and self.batches > 1
        if self.nature.answer == "replays" and timed:
            return slot.first
        if self.nature.answer == "puts-off" and timed:
            return torch.full_like(truth, float("nan"))
        if self.nature.answer == "skips-some" and timed and index % 3 == 1:
            return truth + 1
        if self.nature.answer == "wrong":
            return truth + 1
        return truth

    def planted(self) -> bool | None:
        return None

    def release(self, slots: Sequence[Slot]) -> None:
        self.placed -= len(slots)
        self.owed += len(slots) * RELEASE_NS

    def close(self) -> tuple[Report, ...]:
        assert not self.closed
        self.closed = True
        self.world.open -= 1
        return self.nature.reports


class FakeContents:
    bytes_per_call = 4096

    def draw(self, count: int, rng: np.random.Generator) -> list[Mapping[str, Value]]:
        return [{"x": torch.tensor(float(rng.random()))} for _ in range(count)]


def verify(inputs: Mapping[str, Value], outputs: Mapping[str, torch.Tensor]) -> list[Finding]:
    if torch.equal(outputs["0"], right(inputs)):
        return []
    return [make_finding("numerics/mismatch", "wrong")]


@dataclass
class Bench:
    """A comparison between two natures, in a world of its own."""

    candidate: Nature
    baseline: Nature = field(default_factory=Nature)
    seed: int = 0
    workers: list[tuple[Side, FakeWorker]] = field(default_factory=list)

    def comparison(self, **more: Any) -> Comparison:
        self.world = World(self.seed)

        def start(side: Side) -> Worker:
            worker = FakeWorker(self.world, self.candidate if side == "candidate" else self.baseline)
            self.workers.append((side, worker))
            return worker

        check: Callable[..., list[Finding]] = more.pop("verify", verify)
        return Comparison(
            start=start,
            contents=FakeContents(),
            expect=EXPECT,
            verify=check,
            seed=self.seed,
            clock=self.world.seconds,
            **more,
        )
