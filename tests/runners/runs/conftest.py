"""Whole runs: a small task, a candidate's text, and the evidence that the real process tree gives for it."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runners.client import Runner
from runners.contract import RunRequest, TaskSpec, parse_task
from runners.evidence import Evidence

TASK = """
schema = 1
title = "Scale by two"
kind = "generation"
frameworks = ["torch", "triton"]
entry = "scale"
[[cases]]
name = "small"
args = { n = 65, dtype = "float32" }
[[cases]]
name = "tail"
args = { n = 130, dtype = "float32" }
use = ["correctness"]
[tolerance]
rule = "exact"
[limits]
wall_seconds = 4
memory_mib = 1024
"""

REFERENCE = """
import torch

def make_inputs(case, draw):
    return {"x": draw.normal((case.n,), case.dtype)}

def reference(x):
    return x.double() * 2

BASELINES = {"eager": lambda x: x * 2}
"""

GOOD = """
import torch

def scale(x):
    out = torch.empty_like(x)
    torch.mul(x, 2, out=out)
    return out
"""

Judge = Callable[..., Evidence]


@pytest.fixture(scope="session")
def runner() -> Iterator[Runner]:
    made = Runner()
    yield made
    made.close()


def request_for(
    folder: Path,
    source: str,
    *,
    task: str = TASK,
    reference: str = REFERENCE,
    framework: str = "torch",
    **changes: object,
) -> RunRequest:
    """Write the trees and build the request."""
    spec: TaskSpec = parse_task(task.encode())
    for name, files in {
        "task": {"task.toml": task, "reference.py": textwrap.dedent(reference)},
        "submission": {"kernel.py": textwrap.dedent(source)},
    }.items():
        (folder / name).mkdir(exist_ok=True)
        for path, text in files.items():
            (folder / name / path).write_text(text)
    return RunRequest(
        task=spec,
        task_name="scale",
        task_tree="1",
        task_dir=str(folder / "task"),
        submission_name="m-001",
        submission_tree="2",
        revision="3",
        submission_dir=str(folder / "submission"),
        framework=framework,  # type: ignore[arg-type]
        **changes,  # type: ignore[arg-type]
    )


@pytest.fixture
def judged(runner: Runner, tmp_path: Path) -> Judge:
    """``judged(source, …)`` → evidence; build, correctness and integrity only, unless asked otherwise."""

    def run(source: str, **changes: object) -> Evidence:
        changes.setdefault("panels", ("build", "correctness", "integrity"))
        evidence = runner.run(request_for(tmp_path, source, **changes))  # type: ignore[arg-type]
        assert evidence is not None
        return evidence

    return run


@pytest.fixture
def request_of(tmp_path: Path) -> Callable[[str], RunRequest]:
    """``request_of(source)`` → a request for the small task."""
    return lambda source: request_for(tmp_path, source, panels=("build", "correctness", "integrity"))
