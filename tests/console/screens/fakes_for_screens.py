"""An exchange, runs and drafts without git, processes or a state folder; texts come from the samples."""

from __future__ import annotations

import difflib
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path

from textual.pilot import Pilot

from console.config import Config
from console.drafts import Drafts
from console.exchange.diff import Diff, FileDiff, Hunk, Line
from console.exchange.errors import GitRefused
from console.exchange.model import (
    FileView,
    Grader,
    Pending,
    Preview,
    Published,
    Revision,
    Snapshot,
    Submission,
    Task,
)
from console.runs import PanelView, RunState, with_evidence
from console.screens.shell import ConsoleApp
from runners.contract import parse_task
from runners.evidence import (
    Evidence,
    Finding,
    PanelResult,
    Place,
    SubmissionRef,
    TaskRef,
    make_finding,
    number_findings,
)

ROOT = Path(__file__).parents[3]
SAMPLES = ROOT / "sample_submissions"

TASK_TOML = b"""
schema = 1
title = "Row softmax"
kind = "generation"
frameworks = ["triton"]
entry = "softmax"
[[cases]]
name = "odd-width"
args = { rows = 33, cols = 781, dtype = "float16" }
"""

KERNEL = """import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    \"\"\"One program
    per row.\"\"\"
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + offsets, mask=offsets < cols, other=0.0)
    y = tl.exp(x) / tl.sum(tl.exp(x), axis=0)  # no maximum taken: overflows
    tl.store(y_ptr + row * cols + offsets, y, mask=offsets < cols)


def softmax(x):
    y = torch.empty_like(x)
    kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=1024)
    return y
"""

SCENARIO = """# Row softmax

Write a Triton kernel `softmax` that takes a matrix in **float16** and returns the softmax of each row.

- any number of columns up to 1024
- rows may be offset by large values

```python
y = softmax(x)
```
"""

ZERO = "0" * 40


def oid(number: int) -> str:
    return f"{number:040x}"


class FakeExchange:
    """In memory. ``refusal`` is raised by the next publish."""

    def __init__(self, snapshot: Snapshot, texts: Mapping[str, str]) -> None:
        self.name = "demo"
        self.id = "fake"
        self.needs_trust = False
        self.grader = Grader("Ann Lee", "ann-lee@example.org", "ann-lee")
        self._snapshot = snapshot
        self.texts = dict(texts)
        self.published: list[tuple[dict[str, bytes], str]] = []
        self.refusal: Exception | None = None
        self.hold: threading.Event | None = None
        self.changed = False
        self.changed_references: set[str] = set()
        self.kept: tuple[Pending, ...] = ()

    def fetch(self) -> bool:
        changed, self.changed = self.changed, False
        return changed

    def snapshot(self) -> Snapshot:
        return self._snapshot

    def set(self, snapshot: Snapshot) -> None:
        self._snapshot, self.changed = snapshot, True

    def files(self, tree: str) -> tuple[FileView, ...]:
        return (FileView("kernel.py", "text", self.texts.get(tree, KERNEL)),)

    def revisions(self, submission: Submission) -> tuple[Revision, ...]:
        return (
            Revision(commit=submission.revision, tree=submission.tree, author="m", when=2, subject="second"),
            Revision(commit=oid(7), tree=oid(8), author="m", when=1, subject="first"),
        )

    def diff(self, submission: Submission, against: str) -> Diff:
        new = self.texts.get(submission.tree, KERNEL).splitlines()
        old = [] if against == "starter" else [line.replace("exp", "expo") for line in new if "empty" not in line]
        return diff_of("kernel.py", old, new)

    def rubric(self, task: Task) -> bytes:
        return (ROOT / "rubrics" / "kernel.toml").read_bytes()

    def preview(self, files: Mapping[str, bytes], message: str) -> Preview:
        return Preview(
            name="Ann Lee",
            email="ann-lee@example.org",
            signing="none",
            hooks=("commit-msg",),
            hooks_dir="/hooks",
            target="origin (git@example.org:exchange), branch main",
            remote="origin",
            branch="main",
            message=message,
            files=dict(files),
        )

    def publish(
        self,
        files: Mapping[str, bytes],
        message: str,
        on_progress: Callable[[str], None],
        *,
        attended: bool = False,
    ) -> Published:
        on_progress("pushing")
        if self.hold is not None:
            self.hold.wait(10)
        if self.refusal is not None:
            error, self.refusal = self.refusal, None
            if isinstance(error, GitRefused) and error.pending:
                self.kept = (Pending(id=error.pending, commit=oid(97), subject="a review", when=1, paths=()),)
            raise error
        self.published.append((dict(files), message))
        return Published(commit=oid(99), pushed_to="origin main", tries=1)

    def reference_changed(self, task: Task) -> bool:
        return task.name in self.changed_references

    def confirm_reference(self, task: Task) -> None:
        self.changed_references.discard(task.name)

    def trust(self) -> None:
        self.needs_trust = False

    def pending(self) -> tuple[Pending, ...]:
        return self.kept

    def retry_pending(
        self, pending: str, on_progress: Callable[[str], None] = print, *, attended: bool = False
    ) -> Published:
        self.kept = ()
        self.published.append(({}, pending))
        return Published(commit=oid(98), pushed_to="origin main", tries=2)


def diff_of(path: str, old: list[str], new: list[str]) -> Diff:
    """A diff in the exchange's form, made with difflib."""
    hunks = []
    for group in difflib.SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(3):
        lines: list[Line] = []
        for tag, a, b, c, d in group:
            if tag == "equal":
                lines += [Line("same", a + n + 1, c + n + 1, new[c + n]) for n in range(b - a)]
            else:
                lines += [Line("del", n + 1, 0, old[n]) for n in range(a, b)]
                lines += [Line("add", 0, n + 1, new[n]) for n in range(c, d)]
        hunks.append(Hunk(group[0][1] + 1, group[0][3] + 1, "def kernel", tuple(lines)))
    file = FileDiff(
        path=path,
        old_path=path,
        status="modified" if old else "added",
        kind="text",
        old_mode="100644",
        new_mode="100644",
        old_oid=oid(1),
        new_oid=oid(2),
        hunks=tuple(hunks),
    )
    return Diff(old="starter", new="submission", files=(file,), whole=not old)


class FakeRuns:
    """Runs that end when the test says so."""

    def __init__(self) -> None:
        self.states: dict[str, RunState] = {}
        self.started: list[tuple[str, bool]] = []
        self.cancelled: list[str] = []
        self.callbacks: list[Callable[[str], None]] = []
        self.closed = False

    def adopt(self, snapshot: Snapshot) -> None:
        pass

    def state(self, key: str) -> RunState:
        return self.states.get(key, RunState(key=key))

    def start(self, task: Task, submission: Submission, *, fresh: bool = False, replay: tuple[int, ...] = ()) -> None:
        self.started.append((submission.key, fresh))
        self.put(RunState(key=submission.key, phase="queued", panels={"build": PanelView()}))

    def put(self, state: RunState) -> None:
        self.states[state.key] = state
        thread = threading.Thread(target=lambda: [callback(state.key) for callback in self.callbacks])
        thread.start()
        thread.join()

    def cancel(self, key: str) -> None:
        self.cancelled.append(key)
        self.put(RunState(key=key, phase="cancelled"))

    def cancel_all(self) -> None:
        for key in [key for key, state in self.states.items() if state.phase in ("queued", "running")]:
            self.cancel(key)

    def active(self) -> int:
        return sum(state.phase in ("queued", "running") for state in self.states.values())

    def subscribe(self, callback: Callable[[str], None]) -> None:
        self.callbacks.append(callback)

    def close(self) -> None:
        self.closed = True


def findings_of() -> tuple[Finding, ...]:
    return number_findings(
        (
            make_finding(
                "numerics/unstable",
                "wrong for rows with an offset of 1e3: the maximum is not taken",
                where=Place("kernel.py", 13),
                detail={
                    "case": "odd-width",
                    "family": "offset",
                    "worst": [
                        {"index": [0, 3], "expected": 0.0123, "got": float("inf"), "abs": float("inf"), "ulp": 9000},
                        {"index": [7, 99], "expected": 0.5, "got": 0.25, "abs": 0.25, "ulp": 512},
                    ],
                },
            ),
            make_finding("integrity/hint", "a bare number in the launch", where=Place("kernel.py", 20)),
        )
    )


def evidence_of(submission: Submission, *, fail: bool = True) -> Evidence:
    findings = findings_of() if fail else ()
    return Evidence(
        task=TaskRef(submission.task, oid(5)),
        submission=SubmissionRef(submission.name, submission.tree, submission.revision),
        environment={"fingerprint": "f", "python": "3.11", "torch": "2.13.0", "triton": "3.7.1", "device": "cpu"},
        seeds=(0xDEADBEEF, 0x1234ABCD),
        outcome="fail" if fail else "pass",
        panels={
            "build": PanelResult(status="pass", seconds=0.41),
            "correctness": PanelResult(
                status="fail" if fail else "pass",
                seconds=1.93,
                facts={"summary": "12 of 14 draws right", "ratio to twin": 3.2, "cases": 2},
            ),
            "integrity": PanelResult(status="pass", seconds=0.7, facts={"planted": "reported"}),
            "timing": PanelResult(status="not-checked", reason="not measured: interpreted"),
            "resources": PanelResult(status="not-checked", reason="needs a GPU"),
            "scope": PanelResult(status="warn", facts={"cases": 1}),
        },
        findings=findings,
    )


def submission_of(name: str, number: int, *, author: str = "model-a", task: str = "row-softmax") -> Submission:
    return Submission(
        task=task,
        name=name,
        tree=oid(1000 + number),
        revision=oid(0xABC0000 + number),
        author=author,
        when=1_700_000_000 + number,
        framework="triton",
        files=(),
    )


def snapshot_of(*submissions: Submission) -> Snapshot:
    spec = parse_task(TASK_TOML)
    names = {one.task for one in submissions}
    tasks = {
        name: Task(name=name, tree=oid(5), spec=spec, scenario=SCENARIO, has_starter=False) for name in sorted(names)
    }
    return Snapshot(head=oid(3), branch="main", tasks=tasks, submissions=submissions)


class Bench:
    """Everything a screen test needs."""

    def __init__(self, snapshot: Snapshot, folder: Path) -> None:
        self.exchange = FakeExchange(snapshot, {})
        self.runs = FakeRuns()
        self.folder = folder

    def app(self, config: Config | None = None) -> ConsoleApp:
        first: Future[Snapshot] = Future()
        first.set_result(self.exchange.snapshot())
        drafts = Drafts("fake", self.folder)
        return ConsoleApp(self.exchange, config or Config(), self.runs, drafts, first=first)  # type: ignore[arg-type]

    def finish(self, key: str, *, fail: bool = True) -> None:
        submission = self.exchange.snapshot().submission(key)
        assert submission is not None
        evidence = evidence_of(submission, fail=fail)
        self.runs.put(with_evidence(RunState(key=key), evidence, "sha256:" + "0" * 64))


async def settle(pilot: Pilot[int]) -> None:
    """Until threads have reported and the screen has been drawn."""
    for _ in range(3):
        await pilot.app.workers.wait_for_complete()
        await pilot.pause(0.05)


def screen_text(pilot: Pilot[int]) -> str:
    """What stands on the screen."""
    strips = pilot.app.screen._compositor.render_strips()[: pilot.app.size.height]
    return "\n".join("".join(segment.text for segment in strip) for strip in strips)
