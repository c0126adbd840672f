"""What a run costs: warm fork against cold process, and all panels of a small interpreted submission.

Run it as ``python tests/benchmarks/warm.py``. Prints; asserts nothing.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from runners.client import Runner
from runners.contract import RunRequest, parse_task

ROUNDS = 7

KERNEL = """
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_rows(out, x, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    values = tl.load(x + row * columns + at, mask=inside, other=-float("inf"))
    values = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * columns + at, values / tl.sum(values, axis=0), mask=inside)


def softmax(x):
    out = torch.empty_like(x)
    softmax_rows[(x.shape[0],)](out, x, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out
"""

TASK = """
schema = 1
title = "Row softmax"
kind = "generation"
frameworks = ["triton"]
entry = "softmax"
[[cases]]
name = "odd"
args = { rows = 33, columns = 781, dtype = "float32" }
[[cases]]
name = "short"
args = { rows = 3, columns = 100, dtype = "float32" }
"""

REFERENCE = """
import torch

def make_inputs(case, draw):
    return {"x": draw.normal((case.rows, case.columns), case.dtype)}

def reference(x):
    return torch.softmax(x.double(), 1)

BASELINES = {"eager": lambda x: torch.softmax(x, 1)}
"""


def request(folder: Path, text: str, panels: tuple[str, ...]) -> RunRequest:
    """A request for the kernel ``text``."""
    for name, file, content in (("task", "reference.py", REFERENCE), ("submission", "kernel.py", text)):
        (folder / name).mkdir(exist_ok=True)
        (folder / name / file).write_text(content)
    return RunRequest(
        task=parse_task(TASK.encode()),
        task_name="row-softmax",
        task_tree="0",
        task_dir=str(folder / "task"),
        submission_name="m",
        submission_tree="0",
        revision="0",
        submission_dir=str(folder / "submission"),
        framework="triton",
        panels=panels,  # type: ignore[arg-type]
    )


def seconds(body: Callable[[], object]) -> float:
    """Wall time of one call."""
    begun = time.perf_counter()
    body()
    return time.perf_counter() - begun


def main() -> None:
    """Measure, warm and cold turn by turn, and print."""
    runner = Runner()
    folder = Path(tempfile.mkdtemp())
    cold_script = folder / "cold.py"
    cold_script.write_text(
        KERNEL + "\nx = torch.randn(33, 781)\nassert torch.allclose(softmax(x), torch.softmax(x, 1))\n"
    )
    environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    runner.run(request(folder, KERNEL, ("build",)))
    warm, cold, full = [], [], []
    for round_number in range(ROUNDS):
        text = f"{KERNEL}\n# round {round_number}\n"
        warm.append(seconds(lambda text=text: runner.run(request(folder, text, ("build",)))))
        cold.append(seconds(lambda: subprocess.run([sys.executable, str(cold_script)], env=environment, check=True)))
        panels = ("build", "correctness", "integrity", "timing", "resources", "scope")
        full.append(seconds(lambda text=text, panels=panels: runner.run(request(folder, text, panels))))
    runner.close()
    for name, samples in (("warm: fork, sandbox, build panel", warm), ("cold: a process that runs it once", cold)):
        print(f"{name:38} median {statistics.median(samples) * 1e3:8.0f} ms   min {min(samples) * 1e3:8.0f} ms")
    print(f"{'cold / warm':38} {statistics.median(cold) / statistics.median(warm):8.1f} x   (goal: at least 10)")
    print(f"{'all panels, warm, changed text':38} median {statistics.median(full) * 1e3:8.0f} ms   (goal: 1500)")


if __name__ == "__main__":
    main()
