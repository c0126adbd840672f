"""A session whose candidate is a plain Python function in this process: fast, and able to cheat in every way."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import settings

from runners.checks import all_checks
from runners.checks.families import layout_copy
from runners.contract import parse_task
from runners.evidence import Finding, PanelResult, outcome_of, settle_panel
from runners.patterns import element_pattern
from runners.reference import Reference
from runners.session import Batch, Call, Failure, Mutation, Report

settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
# Threads that wait for each other over tiny tensors cost seconds where cores are shared.
torch.set_num_threads(1)

Candidate = Callable[..., Any]


class FakeSlot:
    def __init__(self, inputs: Mapping[str, Any]) -> None:
        self.inputs = dict(inputs)
        self.lent = {n: layout_copy(v) if isinstance(v, torch.Tensor) else v for n, v in inputs.items()}


def _fill(tensor: torch.Tensor, fill: int) -> torch.Tensor:
    unit = torch.frombuffer(bytearray(element_pattern(tensor.dtype, fill)), dtype=torch.uint8)
    if tensor.numel():
        tensor.view(-1).view(torch.uint8).copy_(unit.repeat(tensor.numel()))
    return tensor


def _is_fill(tensor: torch.Tensor, fill: int) -> torch.Tensor:
    unit = torch.frombuffer(bytearray(element_pattern(tensor.dtype, fill)), dtype=torch.uint8)
    return (tensor.contiguous().view(-1).view(torch.uint8).view(-1, len(unit)) == unit).all(1).view(tensor.shape)


@contextmanager
def _filled_memory(fill: int):
    empty, empty_like = torch.empty, torch.empty_like
    torch.empty = lambda *a, **k: _fill(empty(*a, **k), fill)
    torch.empty_like = lambda *a, **k: _fill(empty_like(*a, **k), fill)
    try:
        yield
    finally:
        torch.empty, torch.empty_like = empty, empty_like


class FakeWorker:
    """Calls ``make()``'s function; a new worker is a new "process" with a new function."""

    def __init__(self, session: FakeSession, make: Callable[[], Candidate]) -> None:
        self.session, self.entry = session, make()
        self.dead = False
        self.pid = 1

    def load(self) -> Failure | None:
        return self.session.load_failure

    def planted(self) -> bool | None:
        return self.session.planted

    def place(self, inputs: Mapping[str, Any]) -> FakeSlot:
        return FakeSlot(inputs)

    def rewrite(self, slot: FakeSlot, inputs: Mapping[str, Any]) -> None:
        slot.inputs = dict(inputs)
        for name, value in inputs.items():
            if isinstance(value, torch.Tensor):
                assert value.stride() == slot.lent[name].stride()
                slot.lent[name].copy_(value)
            else:
                assert value == slot.lent[name]

    def run(
        self, slots: Sequence[FakeSlot], expect: Any, *, checked: bool = True, hold: bool = False, options: Any = None
    ) -> Batch:
        options = dict(options or {})
        self.session.calls += len(slots)
        self.session.options.append(options)
        fill, inplace = options.get("fill", 0), self.session.task.inplace
        results, calls = [], []
        for slot, specs in zip(slots, expect, strict=True):
            self.session.watched, self.session.order = checked, options.get("order", "forward")
            try:
                with _filled_memory(fill):
                    result = self.entry(*slot.lent.values())
            except Exception as error:
                return Batch((), Failure("build/launch", f"{type(error).__name__}: {error}"))
            results.append(result)
            if not hold:
                made = self._call(slot, specs, result, fill, inplace, checked)
                if isinstance(made, Failure):
                    return Batch((), made)
                calls.append(made)
        if hold:
            for slot, specs, result in zip(slots, expect, results, strict=True):
                made = self._call(slot, specs, result, fill, inplace, checked)
                if isinstance(made, Failure):
                    return Batch((), made)
                calls.append(made)
        return Batch(tuple(calls))

    def _call(self, slot, specs, result, fill, inplace, checked) -> Call | Failure:
        if isinstance(result, torch.Tensor) and type(result) is not torch.Tensor:
            return Failure("integrity/lazy", f"the result is a {type(result).__name__}")
        items = result if isinstance(result, tuple) else () if result is None else (result,)
        named = dict(result) if isinstance(result, dict) else {str(i): v for i, v in enumerate(items)}
        named.update({name: slot.lent[name] for name in inplace})
        outputs, untouched, mutations = {}, {}, []
        for name, spec in specs.items():
            got = named.get(name)
            if not isinstance(got, torch.Tensor) or tuple(got.shape) != spec.shape or got.dtype != spec.dtype:
                return Failure("build/contract", f"output {name} is {getattr(got, 'dtype', type(got))}")
            outputs[name] = got.clone()
            if checked and name not in inplace:
                untouched[name] = _is_fill(got, fill)
        for name, value in slot.inputs.items():
            if isinstance(value, torch.Tensor) and name not in inplace:
                changed = (slot.lent[name].view(torch.uint8) != value.view(torch.uint8)).nonzero()
                if len(changed):
                    mutations.append(Mutation(name, len(changed), tuple(changed[0].tolist())))
                    slot.lent[name].copy_(value)
        return Call(outputs, untouched, tuple(mutations), tuple(self.session.reports), tuple(self.session.broken))

    def release(self, slots: Any) -> None:
        for slot in slots:
            slot.lent = {}

    def close(self) -> tuple[Report, ...]:
        return ()


class FakeSession:
    def __init__(self, task: Any, reference: Reference, make: Callable[[], Candidate], interpreted: bool) -> None:
        self.task, self.reference, self.interpreted = task, reference, interpreted
        self.device = "cpu"
        self.framework = "triton" if interpreted else "torch"
        self.seeds = (1234567, 7654321)
        self.source = ""
        self.calls = 0
        self.options: list[dict[str, Any]] = []
        self.events: list[Any] = []
        self.load_failure: Failure | None = None
        self.planted: bool | None = True
        self.reports: list[Report] = []
        self.broken: list[str] = []
        self.watched, self.order = True, "forward"
        self._make = make
        self._shared: FakeWorker | None = None

    def candidate(self) -> FakeWorker:
        self._shared = self._shared or FakeWorker(self, self._make)
        return self._shared

    def fresh(self, role: str, *, name: str | None = None) -> FakeWorker:
        return FakeWorker(self, self._make)

    def emit(self, event: Any) -> None:
        self.events.append(event)


class Judged:
    """The settled panels and findings of one session."""

    def __init__(self, session: FakeSession) -> None:
        self.session = session
        self.findings: list[Finding] = []
        self.panels: dict[str, PanelResult] = {}
        self.results: list[tuple[str, PanelResult]] = []
        for check in all_checks():
            if check.panel == "timing":
                continue
            outcome = check.run(session)
            self.findings += outcome.findings
            self.results.append((type(check).__name__, outcome.result))
            before = self.panels.get(check.panel)
            if before is None or before.status == "not-checked":
                self.panels[check.panel] = outcome.result
        self.panels = {name: settle_panel(name, panel, self.findings) for name, panel in self.panels.items()}
        self.outcome = outcome_of(self.panels, self.findings)

    @property
    def codes(self) -> set[str]:
        return {finding.code for finding in self.findings if not finding.code.startswith("scope/")}

    def fact(self, check: str) -> dict[str, Any]:
        return next(result.facts for name, result in self.results if name == check)


SOFTMAX = """
import torch

def make_inputs(case, draw):
    return {"x": draw.normal((case.rows, case.cols), case.dtype, std=3)}

def reference(x):
    return torch.softmax(x.double(), dim=-1)

def eager(x):
    return torch.softmax(x, dim=-1)

BASELINES = {"eager": eager}
"""

SOFTMAX_TASK = """
schema = 1
title = "softmax"
kind = "generation"
frameworks = ["triton", "torch"]
entry = "softmax"
[[cases]]
name = "tail"
args = { rows = 5, cols = 77, dtype = "float32" }
[[cases]]
name = "wide"
args = { rows = 4, cols = 130, dtype = "float16" }
"""


@pytest.fixture
def make_session(tmp_path: Path) -> Callable[..., FakeSession]:
    def build(
        make: Callable[[], Candidate] | None = None,
        *,
        task: str = SOFTMAX_TASK,
        reference: str = SOFTMAX,
        interpreted: bool = True,
        stateless: Candidate | None = None,
    ) -> FakeSession:
        (tmp_path / "reference.py").write_text(textwrap.dedent(reference))
        spec = parse_task(textwrap.dedent(task).encode())
        chosen = make if make is not None else lambda: stateless
        return FakeSession(spec, Reference.load(tmp_path, spec), chosen, interpreted)

    return build


@pytest.fixture
def judge(make_session: Callable[..., FakeSession]) -> Callable[..., Judged]:
    def run(make: Any = None, **kwargs: Any) -> Judged:
        return Judged(make_session(make, **kwargs))

    return run
