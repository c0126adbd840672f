"""Runs in the background: queued, followed, cancelled, remembered. Knows no screen; callbacks come from its threads."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec

from console.errors import words
from console.exchange.model import Snapshot, Submission, Task
from runners.client import Runner, is_linux
from runners.contract import (
    RUNNABLE,
    Device,
    Found,
    PanelDone,
    PanelStarted,
    Progress,
    RunEnded,
    RunEvent,
    RunRequest,
    Waiting,
)
from runners.environment import Environment, describe, device_of
from runners.evidence import (
    Evidence,
    Finding,
    PanelResult,
    PanelStatus,
    SubmissionRef,
    TaskRef,
    not_checked,
    number_findings,
)
from runners.findings import PANELS, PanelName
from runners.selfcheck import Ledger, SelfCheck, self_check, told, unproven
from runners.store import EvidenceStore, key_of

Phase = Literal["idle", "queued", "running", "done", "failed", "cancelled"]
Stage = PanelStatus | Literal["waiting", "running"]


class PanelView(msgspec.Struct, frozen=True):
    """One panel as a screen shows it; ``done`` of ``total`` steps while it runs (total 0: unknown)."""

    status: Stage = "waiting"
    done: int = 0
    total: int = 0
    text: str = ""
    result: PanelResult | None = None


class RunState(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one submission's run. ``evidence_sha`` is what a review cites."""

    key: str
    phase: Phase = "idle"
    panels: dict[PanelName, PanelView] = {}
    findings: tuple[Finding, ...] = ()
    evidence: Evidence | None = None
    evidence_sha: str | None = None
    stale: bool = False
    """True when the evidence is of another revision, task, machine or runner than now."""
    message: str = ""
    started: float | None = None
    """Seconds of the monotonic clock."""


class Source(Protocol):
    """Where trees come from: an exchange."""

    @property
    def id(self) -> str:
        """A name for this exchange that stays the same between sessions."""
        ...

    def materialise(self, tree: str, into: Path) -> None:
        """Write the regular files of ``tree`` below ``into``."""
        ...


def after(state: RunState, event: RunEvent) -> RunState:
    """The state that follows from ``state`` and an event of the runner."""
    change = msgspec.structs.replace
    panels = dict(state.panels)
    if isinstance(event, PanelStarted):
        panels[event.panel] = PanelView("running")
        return change(state, panels=panels, message="")
    if isinstance(event, Progress):
        panels[event.panel] = PanelView("running", event.done, event.total, event.text)
        return change(state, panels=panels)
    if isinstance(event, PanelDone):
        panels[event.panel] = PanelView(event.result.status, result=event.result)
        return change(state, panels=panels)
    if isinstance(event, Found):
        return change(state, findings=number_findings((*state.findings, event.finding)))
    if isinstance(event, Waiting):
        return change(state, message=f"waits for {event.holder}")
    return with_evidence(state, event.evidence, None)


def with_evidence(state: RunState, evidence: Evidence, sha: str | None, *, stale: bool = False) -> RunState:
    """The state of a run that is done."""
    views = {name: PanelView(result.status, result=result) for name, result in evidence.panels.items()}
    return msgspec.structs.replace(
        state,
        phase="done",
        panels=views,
        findings=evidence.findings,
        evidence=evidence,
        evidence_sha=sha,
        stale=stale,
        message="",
    )


class Runs:
    """Runs submissions of one exchange, as many at once as the machine has cores.

    Closing it, or the death of this process, ends every run: the runner hangs on its connection.
    """

    def __init__(
        self,
        exchange: Source,
        *,
        store: EvidenceStore,
        runner: Runner | None = None,
        python: str | None = None,
        device: Device | None = None,
        panels: tuple[PanelName, ...] = PANELS,
        unsafe: bool = False,
        workers: int | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        self._exchange = exchange
        self._store = store
        self._runner = runner or Runner(python)
        self._python = python
        self._asked_device = device
        self._panels = panels
        self._unsafe = unsafe
        self._ledger = ledger
        self._proving = threading.Lock()
        self._pool = ThreadPoolExecutor(workers or os.cpu_count() or 1, thread_name_prefix="run")
        self._lock = threading.Lock()
        self._states: dict[str, RunState] = {}
        self._pairs: dict[str, tuple[Task, Submission]] = {}
        self._cancels: dict[str, threading.Event] = {}
        self._futures: OrderedDict[str, Future[None]] = OrderedDict()
        self._callbacks: list[Callable[[str], None]] = []
        self._environment: Environment | None = None
        self._environment_lock = threading.Lock()

    # ---- what is known -----------------------------------------------------------------------------------------

    def adopt(self, snapshot: Snapshot) -> None:
        """Learn the tasks and submissions of a snapshot, so that stored evidence can be told from stale."""
        pairs = {one.key: (snapshot.tasks[one.task], one) for one in snapshot.submissions if one.task in snapshot.tasks}
        with self._lock:
            changed = [
                key
                for key, (task, submission) in pairs.items()
                if key in self._pairs
                and (self._pairs[key][0].tree, self._pairs[key][1].tree) != (task.tree, submission.tree)
                and key not in self._futures
            ]
            self._pairs = pairs
            for key in changed:
                self._states.pop(key, None)

    def state(self, key: str) -> RunState:
        """What is known of ``TASK/NAME``: a run of this session, else what the store has."""
        with self._lock:
            known = self._states.get(key)
            pair = self._pairs.get(key)
        if known is not None:
            return known
        if pair is None:
            return RunState(key=key)
        state = self._recall(*pair)
        with self._lock:
            return self._states.setdefault(key, state)

    def active(self) -> int:
        """How many runs are queued or going."""
        with self._lock:
            return len(self._futures)

    def subscribe(self, callback: Callable[[str], None]) -> None:
        """Call ``callback`` with the key whenever a state changes; it is called from a worker thread."""
        with self._lock:
            self._callbacks.append(callback)

    # ---- what is done ------------------------------------------------------------------------------------------

    def start(self, task: Task, submission: Submission, *, fresh: bool = False, replay: tuple[int, ...] = ()) -> None:
        """Queue a run. What the store has is taken unless ``fresh`` or ``replay``; a queued run stays as it is."""
        key = submission.key
        with self._lock:
            if key in self._futures:
                return
            self._pairs[key] = (task, submission)
            cancelled = self._cancels[key] = threading.Event()
            self._states[key] = RunState(key=key, phase="queued", panels={name: PanelView() for name in self._panels})
            self._futures[key] = self._pool.submit(self._work, task, submission, fresh, replay, cancelled)
        self._tell(key)

    def wait(self, key: str, timeout: float | None = None) -> RunState:
        """Wait until the run of ``key`` has ended, and give its state. Raises TimeoutError."""
        with self._lock:
            future = self._futures.get(key)
        if future is not None:
            future.result(timeout)
        return self.state(key)

    def cancel(self, key: str) -> None:
        """End the run of ``key``, queued or going."""
        with self._lock:
            cancelled = self._cancels.get(key)
            if cancelled is not None:
                cancelled.set()

    def cancel_all(self) -> None:
        """End every run."""
        with self._lock:
            for cancelled in self._cancels.values():
                cancelled.set()

    def close(self) -> None:
        """End every run and the runner."""
        self.cancel_all()
        self._runner.close()
        self._pool.shutdown(wait=True, cancel_futures=True)

    # ---- threads -----------------------------------------------------------------------------------------------

    def _work(
        self, task: Task, submission: Submission, fresh: bool, replay: tuple[int, ...], cancelled: threading.Event
    ) -> None:
        key = submission.key
        try:
            if cancelled.is_set():
                state = RunState(key=key, phase="cancelled")
            else:
                state = self._one(task, submission, fresh, replay, cancelled)
        except Exception as error:  # noqa: BLE001 - a thread's last frame: the words reach the screen, not a log
            state = RunState(key=key, phase="failed", message=words(error))
        with self._lock:
            self._states[key] = state
            self._futures.pop(key, None)
            self._cancels.pop(key, None)
        self._tell(key)

    def _one(
        self, task: Task, submission: Submission, fresh: bool, replay: tuple[int, ...], cancelled: threading.Event
    ) -> RunState:
        state = RunState(key=submission.key, phase="running", started=time.monotonic())
        reason = why_not_run(task, submission) or self._without_device()
        if reason is not None:
            return with_evidence(state, self._not_run(task, submission, reason), None)
        environment = self._described()
        request = self._request(task, submission, replay, environment)
        key = key_of(request, environment.fingerprint)
        if not fresh and not replay:
            stored = self._store.find(key)
            if stored is not None:
                return with_evidence(state, stored.evidence, stored.sha)
        state = msgspec.structs.replace(state, panels={name: PanelView() for name in self._panels})
        self._set(state)
        proof = self._prove(state, request, environment, cancelled)
        request = msgspec.structs.replace(request, environment=told(request.environment, proof))
        folder = Path(tempfile.mkdtemp(prefix="kernel-review-trees-"))
        try:
            self._exchange.materialise(task.tree, folder / "task")
            self._exchange.materialise(submission.tree, folder / "submission")
            placed = msgspec.structs.replace(
                request, task_dir=str(folder / "task"), submission_dir=str(folder / "submission")
            )
            evidence = self._runner.run(placed, lambda event: self._hear(submission.key, event), cancelled)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        if evidence is None:
            return RunState(key=submission.key, phase="cancelled")
        if proof is not None and not proof.passed:
            return with_evidence(state, unproven(evidence, proof), None)
        sha = None if replay else self._store.put(key, evidence)
        return with_evidence(state, evidence, sha)

    def _prove(
        self, state: RunState, request: RunRequest, environment: Environment, cancelled: threading.Event
    ) -> SelfCheck | None:
        """The self-check's outcome for this machine and framework, made on first use; None without a ledger."""
        if self._ledger is None:
            return None
        where = (f"{environment.fingerprint}-{environment.runner}", request.framework, request.device)
        with self._proving:
            outcome = self._ledger.find(*where)
            if outcome is None or not outcome.passed:
                first = f"self-check: the first {request.framework} run on this machine"
                self._set(msgspec.structs.replace(state, message=first))
                outcome = self_check(
                    lambda sample: self._runner.run(
                        msgspec.structs.replace(sample, unsafe=self._unsafe), cancelled=cancelled
                    ),
                    request.framework,
                    request.device,
                )
                if not cancelled.is_set():
                    self._ledger.keep(*where, outcome)
                self._set(state)
        return outcome

    def _without_device(self) -> str | None:
        """Why the device that was asked for cannot be used: no fault of any submission."""
        environment = self._described()
        if self._asked_device != "cuda" or device_of(environment) == "cuda":
            return None
        here = "there is no GPU" if environment.device == "cpu" else f"torch {environment.torch} cannot use the GPU"
        return f"device cuda was asked for, but {here}; `kernel-review doctor` says more"

    def _hear(self, key: str, event: RunEvent) -> None:
        if isinstance(event, RunEnded):
            return  # not yet kept, nor seen against the self-check: what :meth:`_one` makes of it is the end
        with self._lock:
            self._states[key] = after(self._states[key], event)
        self._tell(key)

    def _set(self, state: RunState) -> None:
        with self._lock:
            self._states[state.key] = state
        self._tell(state.key)

    def _tell(self, key: str) -> None:
        with self._lock:
            callbacks = list(self._callbacks)
        for callback in callbacks:
            callback(key)

    # ---- requests and the store --------------------------------------------------------------------------------

    def _described(self) -> Environment:
        with self._environment_lock:
            if self._environment is None:
                self._environment = describe(self._python)
            return self._environment

    def _request(
        self, task: Task, submission: Submission, replay: tuple[int, ...], environment: Environment
    ) -> RunRequest:
        assert task.spec is not None
        assert submission.framework is not None
        return RunRequest(
            task=task.spec,
            task_name=task.name,
            task_tree=task.tree,
            task_dir="",
            submission_name=submission.name,
            submission_tree=submission.tree,
            revision=submission.revision,
            submission_dir="",
            framework=submission.framework,
            device=self._asked_device or device_of(environment),
            environment=msgspec.to_builtins(environment),
            panels=self._panels,
            replay_seeds=replay,
            unsafe=self._unsafe,
        )

    def _not_run(self, task: Task, submission: Submission, reason: str) -> Evidence:
        environment: Mapping[str, Any] = msgspec.to_builtins(self._described())
        return Evidence(
            task=TaskRef(task.name, task.tree),
            submission=SubmissionRef(submission.name, submission.tree, submission.revision),
            environment=dict(environment),
            outcome="not-determined",
            panels=not_checked(reason),
        )

    def _recall(self, task: Task, submission: Submission) -> RunState:
        state = RunState(key=submission.key)
        if not self._store.knows(task.name, submission.name):
            return state
        if why_not_run(task, submission) is None:
            environment = self._described()
            key = key_of(self._request(task, submission, (), environment), environment.fingerprint)
            stored = self._store.find(key)
            if stored is not None:
                return with_evidence(state, stored.evidence, stored.sha)
        latest = self._store.latest(task.name, submission.name)
        if latest is not None:
            return with_evidence(state, latest.evidence, latest.sha, stale=True)
        return state


def why_not_run(task: Task, submission: Submission) -> str | None:
    """Why no panel can run for this pair; None when they can."""
    if task.spec is None:
        return f"the task is broken: {task.problem}"
    if submission.problem is not None or submission.framework is None:
        return f"the submission is broken: {submission.problem or 'no framework'}"
    if submission.framework in ("answer", "serving"):
        return f"{submission.framework} submissions are read, not run"
    if submission.framework not in RUNNABLE:
        return f"{submission.framework} is not run in this version"
    if not is_linux():
        return "runs need Linux"
    return None
