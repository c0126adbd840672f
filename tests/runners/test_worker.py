"""The judge's handle on a process, against a real forked process without the sandbox."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from runners import candidate
from runners.channel import pair
from runners.frameworks.reports import Reports
from runners.protocol import ProcessPlan, Seen
from runners.session import OutputSpec
from runners.worker import ProcessWorker


class PlainHooks:
    name = "plain"

    def install(self, device: str, interpreted: bool) -> None:
        pass

    @contextmanager
    def watch(self, arguments: Any, options: Any, heartbeat: Callable[[], None]) -> Iterator[Reports]:
        heartbeat()
        yield Reports()

    def place(self, arguments: Any) -> Any:
        return arguments

    def collect(self, result: Any, placed: Any, arguments: Any) -> Any:
        return result

    def planted(self) -> bool | None:
        return None


Opener = Callable[..., ProcessWorker]


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Opener]:
    monkeypatch.setattr(candidate, "hooks_for", lambda framework: PlainHooks())
    children: list[int] = []
    workers: list[ProcessWorker] = []

    def open_worker(source: str, inplace: tuple[str, ...] = (), wall: float = 3.0) -> ProcessWorker:
        (tmp_path / "kernel.py").write_text("import os, sys, time, torch\n" + source)
        mine, theirs = pair(accept_fds=(False, True))
        heartbeat, dump = os.memfd_create("h"), os.memfd_create("d")
        os.ftruncate(heartbeat, 4096)
        pid = os.fork()
        if pid == 0:
            try:
                plan = ProcessPlan("candidate", "torch", "cpu", False, str(tmp_path), "entry", None, 1)
                candidate.serve(plan, theirs, heartbeat, dump)
            finally:
                os._exit(0)
        theirs.close()
        children.append(pid)

        def ended() -> Seen:
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            children.remove(pid)
            return Seen(exit_code=code if code >= 0 else None, signal=-code if code < 0 else None)

        def end() -> Seen:
            if pid not in children:
                return Seen()
            os.kill(pid, signal.SIGKILL)
            return ended()

        def send(what: str) -> None:
            os.kill(pid, {"stop": signal.SIGSTOP, "continue": signal.SIGCONT, "dump": signal.SIGUSR2}[what])

        worker = ProcessWorker(
            pid=pid,
            channel=mine,
            heartbeat_fd=heartbeat,
            dump_fd=dump,
            folder=tmp_path,
            inplace=inplace,
            wall_seconds=wall,
            memory_bytes=1 << 28,
            seed=5,
            inspect=ended,
            end=end,
            signal_process=send,
        )
        workers.append(worker)
        worker.load()
        return worker

    yield open_worker
    for worker in workers:
        worker.close()
    for pid in children:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def like(*tensors: torch.Tensor) -> dict[str, OutputSpec]:
    return {str(index): OutputSpec(tuple(tensor.shape), tensor.dtype) for index, tensor in enumerate(tensors)}


def test_outputs_come_back_as_private_copies(opened: Opener):
    worker = opened("def entry(x, k): return x * k, (x > 0)\n")
    assert worker.load() is None
    x = torch.randn(4, 3)
    slot = worker.place({"x": x, "k": 3})
    batch = worker.run([slot], [like(x, x > 0)])
    assert batch.failure is None
    assert torch.equal(batch.calls[0].outputs["0"], x * 3)
    assert torch.equal(batch.calls[0].outputs["1"], x > 0)
    assert batch.window_ns > 0
    assert len(batch.self_reported_ns) == 1


def test_layouts_arrive_as_they_are(opened: Opener):
    worker = opened(
        "def entry(x):\n    return torch.tensor([*x.stride(), x.storage_offset(), x.data_ptr() % 16]), x.contiguous()\n"
    )
    x = torch.randn(40)[1:].view(3, 13).T
    slot = worker.place({"x": x})
    facts = torch.tensor([0, 0, 0, 0])
    call = worker.run([slot], [like(facts, x.contiguous())]).calls[0]
    assert call.outputs["0"].tolist() == [1, 13, 1, 4]
    assert torch.equal(call.outputs["1"], x)


def test_rewriting_keeps_object_and_address(opened: Opener):
    worker = opened("seen = {}\ndef entry(x): return seen.setdefault((id(x), x.data_ptr()), x * 2)\n")
    x = torch.randn(8)
    slot = worker.place({"x": x})
    first = worker.run([slot], [like(x)]).calls[0].outputs["0"]
    worker.rewrite(slot, {"x": x + 1})
    second = worker.run([slot], [like(x)]).calls[0].outputs["0"]
    assert torch.equal(first, x * 2)
    assert torch.equal(second, first), "the cheat must see the same object at the same address"


def test_a_changed_input_is_a_mutation_and_mended(opened: Opener):
    worker = opened("def entry(x):\n    x[1, 2] += 1\n    return x * 1\n")
    x = torch.randn(3, 4)
    slot = worker.place({"x": x})
    call = worker.run([slot], [like(x)]).calls[0]
    assert [(one.name, one.elements, one.first_index) for one in call.mutations] == [("x", 1, (1, 2))]
    assert len(worker.run([slot], [like(x)]).calls[0].mutations) == 1


def test_an_argument_given_in_place_is_an_output(opened: Opener):
    worker = opened("def entry(x): x.mul_(2)\n", inplace=("x",))
    x = torch.randn(5)
    call = worker.run([worker.place({"x": x})], [{"x": OutputSpec((5,), x.dtype)}]).calls[0]
    assert torch.equal(call.outputs["x"], x * 2)
    assert call.mutations == ()


def test_holding_shows_a_shared_buffer(opened: Opener):
    worker = opened("out = torch.empty(4)\ndef entry(x): return torch.mul(x, 2, out=out)\n")
    x, y = torch.randn(4), torch.randn(4)
    slots = [worker.place({"x": x}), worker.place({"x": y})]
    one, two = worker.run(slots, [like(x), like(y)], hold=True).calls
    assert torch.equal(one.outputs["0"], two.outputs["0"])


def test_a_write_beside_a_tensor_breaks_a_guard(opened: Opener):
    worker = opened(
        "import ctypes\ndef entry(x):\n    ctypes.memset(x.data_ptr() + x.numel() * 4, 1, 8)\n    return x * 2\n"
    )
    x = torch.randn(8)
    call = worker.run([worker.place({"x": x})], [like(x)]).calls[0]
    assert call.broken_guards == ("x",)


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("def entry(x): return x[:2]\n", "build/contract"),
        ("def entry(x): return x.half()\n", "build/contract"),
        ("def entry(x): return x.numpy()\n", "build/contract"),
        ("def entry(x): return x, x\n", "build/contract"),
        ("def entry(x): return None\n", "build/contract"),
        ("class T(torch.Tensor): pass\ndef entry(x): return (x * 2).as_subclass(T)\n", "integrity/lazy"),
        ("def entry(x): raise ValueError('no')\n", "build/launch"),
        ("def entry(x): sys.exit(0)\n", "integrity/forged-result"),
        ("def entry(x): os._exit(0)\n", "integrity/forged-result"),
        ("def entry(x): os._exit(3)\n", "build/crash"),
        ("import ctypes\ndef entry(x): ctypes.string_at(0)\n", "build/crash"),
    ],
)
def test_what_is_no_result_is_a_failure(opened: Opener, source: str, code: str):
    worker = opened(source)
    x = torch.randn(4)
    failure = worker.run([worker.place({"x": x})], [like(x)]).failure if worker.load() is None else worker.load()
    assert failure is not None
    assert failure.code == code, failure
    assert failure.summary


def test_a_hang_names_the_line(opened: Opener):
    worker = opened("def entry(x):\n    y = 1\n    while True: y += 1\n", wall=0.6)
    x = torch.randn(4)
    worker.load()
    failure = worker.run([worker.place({"x": x})], [like(x)]).failure
    assert failure is not None and failure.code == "build/hang"
    assert str(failure.where) == "kernel.py:4"
    assert worker.run([], []).failure is not None, "a lost process gives no more results"


def test_only_the_calls_that_are_picked_are_copied(opened: Opener):
    worker = opened("def entry(x): return x * 2\n")
    x = torch.randn(4)
    slots = [worker.place({"x": x}) for _ in range(5)]
    batch = worker.run(slots, [like(x)] * 5, checked=False, copy={3})
    assert [sorted(call.outputs) for call in batch.calls] == [[], [], [], ["0"], []]


def test_slots_come_and_go_within_the_limit(opened: Opener):
    worker = opened("def entry(x): return x.sum(dtype=torch.float64).reshape(1)\n")
    x = torch.ones(1 << 22)
    spec = {"0": OutputSpec((1,), torch.float64)}
    for _ in range(30):
        slot = worker.place({"x": x})
        assert worker.run([slot], [spec]).calls[0].outputs["0"].item() == x.numel()
        worker.release([slot])
