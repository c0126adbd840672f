"""The judge: draws secret inputs, knows the expected outputs, and decides. No foreign code runs in its process."""

from __future__ import annotations

import contextlib
import os
import time
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from runners.channel import Channel
from runners.checks import Check, CheckResult, all_checks
from runners.contract import (
    Device,
    Found,
    Framework,
    PanelDone,
    PanelStarted,
    RunEnded,
    RunEvent,
    RunRequest,
    TaskSpec,
    Waiting,
)
from runners.evidence import (
    Evidence,
    Finding,
    PanelResult,
    SubmissionRef,
    TaskRef,
    make_finding,
    not_checked,
    number_findings,
    outcome_of,
    settle_panel,
)
from runners.findings import PANELS, PanelName
from runners.protocol import (
    Account,
    Accounted,
    Close,
    Emit,
    FromSupervisor,
    Inspect,
    NotOpened,
    Open,
    Opened,
    Seen,
    Signal,
    clip,
)
from runners.reference import Reference, ReferenceError  # noqa: A004 - the field's word
from runners.session import Report, Role, Unavailable
from runners.timing import lock
from runners.worker import ProcessWorker

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(FromSupervisor).decode
_encode_event = msgspec.json.Encoder().encode

SEED_BYTES = 6
"""Seeds stay below 2**53, so that every JSON reader keeps them exactly."""
SOURCE_BYTES = 1 << 20
SUPERVISOR_S = 60.0


class RunSession:
    """One run as the checks see it; see :class:`runners.session.Session`."""

    def __init__(self, request: RunRequest, channel: Channel, interpreted: bool, reference: Reference) -> None:
        self._request = request
        self._channel = channel
        self._interpreted = interpreted
        self._reference = reference
        replayed = request.replay_seeds[:2]
        self._seeds = (replayed[0], replayed[1]) if len(replayed) == 2 else (_new_seed(), _new_seed())
        self._shared: ProcessWorker | None = None
        self._workers: list[ProcessWorker] = []
        self._source = (
            (Path(request.submission_dir) / "kernel.py").read_bytes()[:SOURCE_BYTES].decode("utf-8", "replace")
            if (Path(request.submission_dir) / "kernel.py").is_file()
            else ""
        )
        self.facts: dict[str, Any] = {}

    @property
    def task(self) -> TaskSpec:
        """The task."""
        return self._request.task

    @property
    def framework(self) -> Framework:
        """The submission's framework."""
        return self._request.framework

    @property
    def device(self) -> Device:
        """Where the candidate's tensors live."""
        return self._request.device

    @property
    def interpreted(self) -> bool:
        """True when kernels run through an interpreter."""
        return self._interpreted

    @property
    def reference(self) -> Reference:
        """The loaded reference."""
        return self._reference

    @property
    def seeds(self) -> tuple[int, int]:
        """Two secret seeds."""
        return self._seeds

    @property
    def source(self) -> str:
        """The candidate's file."""
        return self._source

    def candidate(self) -> ProcessWorker:
        """The process that the checks share."""
        if self._shared is None or self._shared.dead:
            self._shared = self._open("candidate", None, pinned=False)
            self._shared.load()
        return self._shared

    def fresh(self, role: Role, *, name: str | None = None) -> ProcessWorker:
        """A process of its own, pinned for timing."""
        return self._open(role, name, pinned=True)

    def emit(self, event: RunEvent) -> None:
        """Tell the console."""
        self._channel.send(_encode(Emit(_encode_event(event))))

    def close(self) -> tuple[Report, ...]:
        """End every process; what the supervisor saw of each, without repeats."""
        seen: dict[tuple[str, str], Report] = {}
        for worker in self._workers:
            for report in worker.close():
                seen.setdefault((report.code, report.summary), report)
        return tuple(seen.values())

    def _open(self, role: Role, name: str | None, *, pinned: bool) -> ProcessWorker:
        reply = self._ask(Open(role, name, pinned))
        if isinstance(reply, NotOpened):
            raise Unavailable(reply.reason)
        assert isinstance(reply, Opened)
        channel_fd, heartbeat_fd, dump_fd = self._channel.take_fds()
        import socket

        self.facts.setdefault("sandbox", reply.sandbox)
        if role == "candidate":
            self.facts["profile"] = reply.profile
        number = reply.process

        def asked(kind: type[Inspect] | type[Close]) -> Seen:
            answer = self._ask(kind(number))
            assert isinstance(answer, Seen)
            return answer

        worker = ProcessWorker(
            pid=reply.pid,
            channel=Channel(socket.socket(fileno=channel_fd)),
            heartbeat_fd=heartbeat_fd,
            dump_fd=dump_fd,
            folder=Path(self._request.submission_dir if role == "candidate" else self._request.task_dir),
            inplace=self._request.task.inplace,
            wall_seconds=self._request.task.limits.wall_seconds,
            memory_bytes=self._request.task.limits.memory_mib << 20,
            seed=int.from_bytes(os.urandom(4), "little"),
            inspect=lambda: asked(Inspect),
            end=lambda: asked(Close),
            account=lambda: self._accounted(number),
            signal_process=lambda what: self._ask(Signal(number, what)),
        )
        self._workers.append(worker)
        return worker

    def _accounted(self, number: int) -> int:
        answer = self._ask(Account(number))
        assert isinstance(answer, Accounted)
        return answer.cpu_ns

    def _ask(self, message: Open | Inspect | Close | Signal | Account) -> FromSupervisor:
        self._channel.send(_encode(message))
        return _decode(self._channel.receive(SUPERVISOR_S))


def _new_seed() -> int:
    return int.from_bytes(os.urandom(SEED_BYTES), "little")


def report_findings(reports: Iterable[Report]) -> tuple[Finding, ...]:
    """Reports as findings: a hint is information, the rest has the table's severity."""
    return tuple(
        make_finding(report.code, report.summary, where=report.where, detail=report.detail) for report in reports
    )


def _run_check(check: Check, session: RunSession) -> CheckResult:
    if check.panel == "timing":
        return check.run(session)
    who = f"{session.task.title}: {check.panel}"
    with lock.shared(who, lambda holder: session.emit(Waiting(holder))):
        return check.run(session)


def _merge(one: PanelResult, two: PanelResult) -> PanelResult:
    """Two checks of one panel: not-checked only while all of them are, the first reason wins."""
    order = {"error": 3, "fail": 3, "warn": 2, "pass": 1, "not-checked": 0}
    status = one.status if order[one.status] >= order[two.status] else two.status
    return PanelResult(
        status=status,
        reason=one.reason or two.reason,
        seconds=(one.seconds or 0.0) + (two.seconds or 0.0),
        facts={**one.facts, **two.facts},
    )


def judge(request: RunRequest, channel: Channel, interpreted: bool) -> None:
    """Judge one submission and emit the evidence; the process ends after it."""

    def emit(event: RunEvent) -> None:
        channel.send(_encode(Emit(_encode_event(event))))

    def conclude(
        panels: dict[PanelName, PanelResult],
        findings: Iterable[Finding],
        seeds: tuple[int, ...],
        environment: dict[str, Any],
    ) -> None:
        numbered = number_findings(findings)
        settled = {name: settle_panel(name, panels[name], numbered) for name in PANELS if name in panels}
        emit(
            RunEnded(
                Evidence(
                    task=TaskRef(request.task_name, request.task_tree),
                    submission=SubmissionRef(request.submission_name, request.submission_tree, request.revision),
                    environment={**request.environment, **environment},
                    options={"device": request.device, "framework": request.framework, "unsafe": request.unsafe},
                    seeds=seeds,
                    outcome=outcome_of(settled, numbered),
                    panels=settled,
                    findings=numbered,
                )
            )
        )

    try:
        reference = Reference.load(Path(request.task_dir), request.task)
    except ReferenceError as error:
        conclude(not_checked(f"the task's reference.py cannot be used: {error}"), (), (), {})
        return
    session = RunSession(request, channel, interpreted, reference)
    panels: dict[PanelName, PanelResult] = {}
    findings: list[Finding] = []
    checks = [check for check in all_checks() if check.panel in request.panels]
    for index, check in enumerate(checks):
        if index == 0 or checks[index - 1].panel != check.panel:
            emit(PanelStarted(check.panel))
        begun = time.monotonic()
        try:
            outcome = _run_check(check, session)
        except Unavailable as error:
            outcome = CheckResult((), PanelResult(status="error", reason=f"no process can be opened: {error}"))
        except ReferenceError as error:
            outcome = CheckResult((), PanelResult(status="not-checked", reason=f"the task's reference fails: {error}"))
        except Exception as error:  # noqa: BLE001 - a fault of the judge is an error of the panel, never a pass
            where = traceback.extract_tb(error.__traceback__)[-1]
            words = clip(f"the judge failed: {type(error).__name__}: {error} ({where.name}:{where.lineno})", 600)
            traceback.print_exc()
            outcome = CheckResult((), PanelResult(status="error", reason=words))
        took = time.monotonic() - begun
        result = msgspec.structs.replace(outcome.result, seconds=round(took, 4))
        panels[check.panel] = _merge(panels[check.panel], result) if check.panel in panels else result
        findings.extend(outcome.findings)
        for finding in outcome.findings:
            emit(Found(finding))
        if index + 1 == len(checks) or checks[index + 1].panel != check.panel:
            emit(PanelDone(check.panel, settle_panel(check.panel, panels[check.panel], findings)))
    late = report_findings(session.close())
    known = {(finding.code, finding.summary) for finding in findings}
    for finding in late:
        if (finding.code, finding.summary) not in known:
            findings.append(finding)
            emit(Found(finding))
    for name in PANELS:
        if name not in panels:
            panels[name] = PanelResult(status="not-checked", reason="not asked for")
    with contextlib.suppress(OSError):
        session.facts["load"] = round(os.getloadavg()[0], 2)
    conclude(panels, findings, session.seeds, session.facts)
