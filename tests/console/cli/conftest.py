from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from console.exchange.model import Submission, Task
from console.runs import RunState, with_evidence
from console.verbs import common
from runners.evidence import (
    Evidence,
    PanelResult,
    Place,
    SubmissionRef,
    TaskRef,
    make_finding,
    number_findings,
    outcome_of,
    settle_panel,
)
from runners.findings import PANELS

TASK = """
schema = 1
title = "Row softmax"
kind = "generation"
frameworks = ["triton"]
entry = "softmax"
[[cases]]
name = "small"
args = { rows = 3 }
"""
KERNEL = "import triton\n\n\n@triton.jit\ndef softmax(x):\n    return x\n"


def git(folder: Path, *args: str) -> str:
    return subprocess.run(["git", "-C", str(folder), *args], check=True, capture_output=True, text=True).stdout


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(home / name))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for name in ("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"):
        monkeypatch.setenv(name, "2026-03-01T12:00:00Z")
    (home / ".gitconfig").write_text(
        "[user]\nname = Ann Lee\nemail = ann.lee@example.org\n[init]\ndefaultBranch = main\n"
    )
    return home


@pytest.fixture
def clone(home: Path, tmp_path: Path) -> Path:
    """A clone of a bare remote with one task and two submissions, one of them of a hostile author."""
    remote, clone = tmp_path / "remote.git", tmp_path / "clone"
    git(tmp_path, "init", "-q", "--bare", str(remote))
    git(tmp_path, "init", "-q", str(clone))
    for path, text in {
        "tasks/softmax/task.toml": TASK,
        "tasks/softmax/scenario.md": "Write a softmax.",
        "tasks/softmax/reference.py": "def make_inputs(case, draw): ...\ndef reference(**inputs): ...\n",
        "submissions/softmax/good/kernel.py": KERNEL,
        "submissions/softmax/good/submission.toml": 'author = "model-a"\n',
        "submissions/softmax/bad/kernel.py": KERNEL.replace("return x", "return x * 2  # \x1b[31m"),
        "submissions/softmax/bad/submission.toml": 'author = "model-\\u001b[31mb"\n',
    }.items():
        file = clone / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    git(clone, "add", "-A")
    git(clone, "commit", "-qm", "tasks and submissions")
    git(clone, "remote", "add", "origin", str(remote))
    git(clone, "push", "-q", "origin", "main")
    git(clone, "remote", "set-head", "origin", "main")
    return clone


class FakeRuns:
    """Runs that end at once with the findings given by submission name."""

    findings: dict[str, tuple[str, ...]] = {}  # noqa: RUF012 - set per test
    fails: dict[str, str] = {}  # noqa: RUF012 - set per test
    stored: set[str] = set()  # noqa: RUF012 - set per test
    opened: list[dict[str, Any]] = []  # noqa: RUF012 - set per test

    def __init__(self, **options: Any) -> None:
        self.options = options
        self.states: dict[str, RunState] = {}
        self.callbacks: list[Callable[[str], None]] = []
        self.started: list[str] = []
        self.closed = False
        self.replay: tuple[int, ...] = ()

    def adopt(self, snapshot: Any) -> None:
        for one in snapshot.submissions:
            if one.name in self.stored:
                self.states[one.key] = self._done(snapshot.tasks[one.task], one)

    def state(self, key: str) -> RunState:
        return self.states.get(key, RunState(key=key))

    def subscribe(self, callback: Callable[[str], None]) -> None:
        self.callbacks.append(callback)

    def start(self, task: Task, submission: Submission, *, fresh: bool = False, replay: tuple[int, ...] = ()) -> None:
        self.started.append(submission.key)
        self.replay = replay
        if submission.name in self.fails:
            message = self.fails[submission.name]
            self.states[submission.key] = RunState(key=submission.key, phase="failed", message=message)
        else:
            self.states[submission.key] = self._done(task, submission)
        for callback in self.callbacks:
            callback(submission.key)

    def close(self) -> None:
        self.closed = True

    def _done(self, task: Task, submission: Submission) -> RunState:
        evidence = evidence_of(task, submission, self.findings.get(submission.name, ()), self.replay or (7, 8))
        return with_evidence(RunState(key=submission.key, started=0.0), evidence, None)


def evidence_of(task: Task, submission: Submission, codes: tuple[str, ...], seeds: tuple[int, ...]) -> Evidence:
    findings = number_findings(
        make_finding(code, f"what {code} found \u202e", where=Place("kernel.py", 6)) for code in codes
    )
    panels = {name: settle_panel(name, PanelResult(status="pass"), findings) for name in PANELS}
    panels["timing"] = PanelResult(status="not-checked", reason="not measured: interpreted")
    return Evidence(
        task=TaskRef(task.name, task.tree),
        submission=SubmissionRef(submission.name, submission.tree, submission.revision),
        environment={"python": "3.11", "torch": "2.13.0"},
        seeds=seeds,
        outcome=outcome_of(panels, findings),
        panels=panels,
        findings=findings,
    )


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[FakeRuns]:
    """The fake runs that a verb has made, after it has made them."""
    made: list[FakeRuns] = []

    @contextmanager
    def runs_on(exchange: Any, config: Any, **options: Any) -> Iterator[FakeRuns]:
        fake = FakeRuns(**options)
        made.append(fake)
        try:
            yield fake
        finally:
            fake.close()

    monkeypatch.setattr(common, "runs_on", runs_on)
    monkeypatch.setattr(FakeRuns, "findings", {"bad": ("numerics/mismatch", "integrity/input-mutated")})
    monkeypatch.setattr(FakeRuns, "fails", {})
    monkeypatch.setattr(FakeRuns, "stored", set())
    return made
