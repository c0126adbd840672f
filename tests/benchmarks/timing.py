"""How honest the timing panel's intervals are: a candidate that is the baseline, beside neighbours that come in bursts.

Prints each run's interval and the two goals: how many contain 1.00, and how many were called different. Run it with
``python tests/benchmarks/timing.py``; ``--full`` makes the 40 runs that the goal is stated for.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from runners.client import Runner
from runners.contract import RunRequest, parse_task

FULL_RUNS, FEW_RUNS = 40, 4
GOAL_CONTAIN, GOAL_DIFFERENT = 0.9, 1 / 40

TASK = b"""
schema = 1
title = "A/A"
kind = "optimization"
frameworks = ["torch"]
entry = "normalise"
[[cases]]
name = "block"
args = { rows = 64, cols = 512 }
[timing]
baseline = "eager"
"""
BODY = """
def {name}(x):
    centred = x - x.mean(dim=1, keepdim=True)
    return centred * torch.rsqrt((centred * centred).mean(dim=1, keepdim=True) + 1e-5)
"""
REFERENCE = (
    "import torch\n\n\ndef make_inputs(case, draw):\n"
    '    return {"x": draw.normal((case.rows, case.cols), torch.float32)}\n\n\n'
    "def reference(x):\n    return eager(x.double())\n\n"
    + BODY.format(name="eager")
    + '\n\nBASELINES = {"eager": eager}\n'
)
NEIGHBOUR = """
import random, select, sys, time
while not select.select([sys.stdin], [], [], random.uniform(0.02, 0.3))[0]:
    end = time.monotonic() + random.uniform(0.02, 0.3)
    block = bytearray(1 << 22)
    while time.monotonic() < end:
        block[:] = bytes(len(block))
"""


@contextmanager
def neighbours(count: int) -> Iterator[None]:
    """``count`` processes that compute in bursts; they end with their standard input."""
    started = [subprocess.Popen([sys.executable, "-c", NEIGHBOUR], stdin=subprocess.PIPE) for _ in range(count)]
    try:
        yield
    finally:
        for process in started:
            assert process.stdin is not None
            process.stdin.close()
        for process in started:
            process.wait()


def one_run(runner: Runner, folder: Path) -> dict[str, Any]:
    """The facts of the one timed case."""
    evidence = runner.run(
        RunRequest(
            task=parse_task(TASK),
            task_name="aa",
            task_tree="",
            task_dir=str(folder / "task"),
            submission_name="same",
            submission_tree="",
            revision="",
            submission_dir=str(folder / "submission"),
            framework="torch",
            panels=("timing",),
        )
    )
    assert evidence is not None
    panel = evidence.panels["timing"]
    if not panel.facts.get("cases"):
        raise SystemExit(f"no time: {panel.status}: {panel.reason}")
    case: dict[str, Any] = panel.facts["cases"][0]
    if "interval" not in case:
        raise SystemExit(f"no time: {case.get('reason')}")
    return case


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=FEW_RUNS)
    parser.add_argument("--full", action="store_true", help=f"{FULL_RUNS} runs")
    parser.add_argument("--neighbours", type=int, default=2)
    options = parser.parse_args()
    runs = FULL_RUNS if options.full else options.runs
    cases = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part, file, text in (
            ("task", "reference.py", REFERENCE),
            ("submission", "kernel.py", "import torch\n\n" + BODY.format(name="normalise")),
        ):
            (folder / part).mkdir()
            (folder / part / file).write_text(text)
        runner = Runner()
        try:
            with neighbours(options.neighbours):
                for number in range(runs):
                    begun = time.monotonic()
                    case = one_run(runner, folder)
                    cases.append(case)
                    low, high = case["interval"]
                    print(
                        f"{number + 1:3d}  ratio {case['ratio']:.4f}  [{low:.4f}, {high:.4f}]  {case['verdict']:13s} "
                        f"control [{case['control']['interval'][0]:.4f}, {case['control']['interval'][1]:.4f}]  "
                        f"{case['pairs']} pairs, {case['rounds']} rounds of {case['calls_per_batch']} calls, "
                        f"{time.monotonic() - begun:.1f} s",
                        flush=True,
                    )
        finally:
            runner.close()
    contain = sum(case["interval"][0] <= 1.0 <= case["interval"][1] for case in cases)
    different = sum(case["verdict"] in ("faster", "slower") for case in cases)
    width = statistics.median(case["interval"][1] / case["interval"][0] - 1 for case in cases)
    print(f"{contain} of {runs} intervals contain 1.00 (goal: {GOAL_CONTAIN:.0%})")
    print(f"{different} of {runs} called different at {cases[0]['margin']:.0%} (goal: {GOAL_DIFFERENT:.1%} at most)")
    print(f"median width of an interval {width:.1%}; {os.cpu_count()} CPUs, {options.neighbours} bursty neighbours")


if __name__ == "__main__":
    main()
