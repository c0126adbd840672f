"""One run's supervisor: subreaper of the judge and of every process that holds foreign code.

It forks them before any seed exists and never learns one. It watches memory, output and refused system calls, answers
the judge's questions about what became of a process, and leaves nothing alive behind it.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import mmap
import os
import random
import re
import resource
import select
import shutil
import signal
import socket
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import msgspec
import torch
from numpy import random as numpy_random

from runners import candidate, judge, sandbox
from runners.arena import sealed_memory
from runners.channel import Channel, ChannelClosed, ChannelError, pair
from runners.contract import RunEnded, RunRequest
from runners.evidence import Evidence, PanelResult, SubmissionRef, TaskRef, not_checked
from runners.findings import PANELS
from runners.protocol import (
    Account,
    Accounted,
    Emit,
    FromSupervisor,
    Inspect,
    NotOpened,
    Open,
    Opened,
    ProcessPlan,
    Seen,
    Signal,
    Standing,
    ToSupervisor,
    clip,
)
from runners.timing import lock

TICK_S = 0.05
OUTPUT_KEPT_BYTES = 64 * 1024
OUTPUT_LIMIT_BYTES = 16 * 1024 * 1024
HINTS_KEPT = 40
"""Kinds of harmless refused calls that are told; attempts to leave are told all, as their kinds are few."""
PROCESS_LIMIT = 128
"""Descendants of one process under the compiler profile; a parallel build needs tens."""
SETUP_S = 20.0
STOP_S = 0.5
"""How long a process may take to stand still; it takes microseconds unless the kernel is in a long call."""
JUDGE_MEMORY = 4
"""The judge may hold this many times what the task allows a candidate: it draws the inputs, keeps copies and truths in
float64, and sees the shared memory of three processes while it times."""
JUDGE_SILENCE_S = 900.0
"""A judge that says nothing for so long is stuck in the task's own code."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(ToSupervisor).decode
_COMPILES = re.compile(r"torch\s*\.\s*compile|cpp_extension|load_inline|_inductor|torch\._dynamo|triton\.compile")
_PR_SET_PDEATHSIG = 1


@dataclass
class _Process:
    number: int
    pid: int
    pidfd: int
    output_fd: int
    scratch: Path
    untrusted: bool = False
    may_fork: bool = False
    listener: sandbox.Listener | None = None
    refusals: dict[tuple[str, str, str], int] = field(default_factory=dict)
    output: bytearray = field(default_factory=bytearray)
    output_bytes: int = 0
    peak_bytes: int = 0
    measure_at: float = 0.0
    ended_for: str = ""
    status: int | None = None
    left: int = 0

    def seen(self) -> Seen:
        exit_code = os.waitstatus_to_exitcode(self.status) if self.status is not None else None
        return Seen(
            exit_code=exit_code if exit_code is not None and exit_code >= 0 else None,
            signal=-exit_code if exit_code is not None and exit_code < 0 else None,
            ended_for=self.ended_for,  # type: ignore[arg-type]
            refusals=tuple((s, call, words, times) for (s, call, words), times in self.refusals.items()),  # type: ignore[misc]
            output=clip(self.output.decode("utf-8", "replace")),
            output_bytes=self.output_bytes,
            peak_bytes=self.peak_bytes,
            left=self.left,
        )


class Supervisor:
    """Runs one request to its end."""

    def __init__(self, request: RunRequest, events: Channel, interpreted: bool) -> None:
        self._request = request
        self._events = events
        self._interpreted = interpreted
        self._level = sandbox.level()
        self._folder = Path(tempfile.mkdtemp(prefix=_prefix(os.getpid())))
        self._processes: dict[int, _Process] = {}
        self._count = 0
        self._cancelled = False
        self._ended = False
        self._heard = time.monotonic()
        self._house_at = 0.0

    def run(self) -> None:
        """Fork the judge, serve it, and end everything."""
        if not self._level.reached and not self._request.unsafe:
            missing = ", ".join(self._level.missing) or "unknown"
            self._end_with(
                f"the sandbox floor is not reached here ({missing}); --unsafe runs without it", "not-checked"
            )
            return
        sandbox.become_subreaper()
        mine, theirs = pair(accept_fds=(False, True))
        the_judge = self._fork_judge(theirs)
        theirs.close()
        try:
            self._serve(the_judge, mine)
        finally:
            for process in list(self._processes.values()):
                self._finish(process)
            self._finish(the_judge)
            sandbox.end_tree(os.getpid())
            shutil.rmtree(self._folder, ignore_errors=True)
        if not self._ended and not self._cancelled:
            self._end_with(f"the judge ended before its verdict: {self._last_words(the_judge)}", "error")

    def _last_words(self, the_judge: _Process) -> str:
        if the_judge.ended_for == "memory":
            return (
                f"the task's inputs and truths took more than {self._memory_mib(0)} MiB, "
                f"{JUDGE_MEMORY} times its limit for a candidate or what this machine can spare"
            )
        if the_judge.ended_for == "silence":
            return f"the task's own code gave no sign of life for {JUDGE_SILENCE_S:g} s"
        words = clip(the_judge.output.decode("utf-8", "replace").strip()[-600:])
        return words or the_judge.ended_for or "no words"

    # ---- the loop ----------------------------------------------------------------------------------------------

    def _serve(self, the_judge: _Process, channel: Channel) -> None:
        while True:
            poll = select.poll()
            poll.register(self._events.fileno(), select.POLLIN)
            poll.register(channel.fileno(), select.POLLIN)
            watched = [the_judge, *self._processes.values()]
            for process in watched:
                poll.register(process.output_fd, select.POLLIN) if process.output_fd >= 0 else None
                if process.listener is not None:
                    poll.register(process.listener.fileno(), select.POLLIN)
                if process.status is None:
                    poll.register(process.pidfd, select.POLLIN)
            ready = {fd for fd, _ in poll.poll(TICK_S * 1000)}
            if self._events.fileno() in ready and self._console_left():
                self._cancelled = True
                return
            for process in watched:
                self._watch(process, ready)
            self._keep_house(watched)
            if channel.fileno() in ready:
                try:
                    messages = channel.drain()
                except (ChannelClosed, ChannelError):
                    return
                self._heard = time.monotonic()
                for message in messages:
                    self._answer(_decode(message), channel)
            if the_judge.status is not None and channel.fileno() not in ready:
                return
            if time.monotonic() - self._heard > JUDGE_SILENCE_S:
                the_judge.ended_for = "silence"
                return

    def _console_left(self) -> bool:
        try:
            self._events.drain()
        except (ChannelClosed, ChannelError):
            return True
        return False

    def _watch(self, process: _Process, ready: set[int]) -> None:
        if process.listener is not None and process.listener.fileno() in ready:
            self._note_refusals(process)
        if process.output_fd in ready:
            self._read_output(process)
        if process.pidfd in ready:
            self._reap(process)
        if process.status is None and time.monotonic() >= process.measure_at:
            process.measure_at = time.monotonic() + TICK_S
            self._measure(process)

    def _measure(self, process: _Process) -> None:
        used = sandbox.tree_memory(process.pid)
        process.peak_bytes = max(process.peak_bytes, used)
        if used > self._memory_mib(process.number) << 20:
            self._kill(process, "memory")
        elif sandbox.count_descendants(process.pid) > PROCESS_LIMIT:
            self._kill(process, "processes")

    def _memory_mib(self, number: int) -> int:
        """What a process may hold; the judge, number 0, is trusted, and only kept from filling the machine."""
        mine = self._request.task.limits.memory_mib
        if number:
            return mine
        machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20
        return max(mine, min(mine * JUDGE_MEMORY, machine * 3 // 4))

    def _keep_house(self, watched: Sequence[_Process]) -> None:
        """End daemons: what outlives its parent is nobody's any more. At most once a tick, as looking costs."""
        if time.monotonic() < self._house_at:
            return
        self._house_at = time.monotonic() + TICK_S
        workers = [process.pid for process in watched]
        if sandbox.orphans(workers):
            sandbox.end_tree(os.getpid(), keep=workers)

    def _answer(self, message: ToSupervisor, channel: Channel) -> None:
        if isinstance(message, Emit):
            self._ended = self._ended or message.event.startswith(b'{"type":"run-ended"')
            with contextlib.suppress(ChannelClosed):
                self._events.send(message.event)
            return
        reply: FromSupervisor
        fds: tuple[int, ...] = ()
        if isinstance(message, Open):
            reply, fds = self._open(message)
        elif isinstance(message, Inspect):
            process = self._processes[message.process]
            self._wait(process, 5.0)
            reply = process.seen()
        elif isinstance(message, Signal):
            reply = self._signal(self._processes[message.process], message.what)
        elif isinstance(message, Account):
            reply = Accounted(_cpu_ns(self._processes[message.process]))
        else:
            process = self._processes.pop(message.process)
            self._finish(process)
            reply = process.seen()
        with contextlib.suppress(ChannelClosed):
            channel.send(_encode(reply), fds)
        for fd in fds:
            os.close(fd)

    def _signal(self, process: _Process, what: str) -> Standing:
        number = {"stop": signal.SIGSTOP, "continue": signal.SIGCONT, "dump": signal.SIGUSR2}[what]
        if process.status is None:
            os.kill(process.pid, number)
        if what != "dump" and process.may_fork:
            sandbox.signal_below(process.pid, number)  # else they go on with the work while the judge reads
        deadline = time.monotonic() + STOP_S
        while what == "stop" and process.status is None and time.monotonic() < deadline:
            pid, status = os.waitpid(process.pid, os.WNOHANG | os.WUNTRACED)
            if pid and os.WIFSTOPPED(status):
                return Standing(True)
            if pid:
                process.status = status
            elif process.listener is not None:
                self._note_refusals(process)  # a call that waits for its answer cannot be stopped
        return Standing(process.status is not None)

    # ---- one process -------------------------------------------------------------------------------------------

    def _note_refusals(self, process: _Process) -> None:
        assert process.listener is not None
        for refusal in process.listener.poll():
            key = (refusal.severity, refusal.syscall, refusal.summary)
            hints = sum(severity == "info" for severity, _, _ in process.refusals)
            if key in process.refusals or refusal.severity == "escape" or hints < HINTS_KEPT:
                process.refusals[key] = process.refusals.get(key, 0) + 1
        if process.listener.closed:
            process.listener.close()
            process.listener = None

    def _read_output(self, process: _Process) -> None:
        try:
            data = os.read(process.output_fd, 1 << 16)
        except BlockingIOError:
            return
        if not data:
            os.close(process.output_fd)
            process.output_fd = -1
            return
        process.output_bytes += len(data)
        process.output += data[: max(0, OUTPUT_KEPT_BYTES - len(process.output))]
        if process.output_bytes > OUTPUT_LIMIT_BYTES and process.status is None:
            self._kill(process, "output")

    def _kill(self, process: _Process, why: str) -> None:
        process.ended_for = process.ended_for or why
        process.left = sandbox.end_tree(process.pid)
        self._reap(process)

    def _reap(self, process: _Process) -> None:
        if process.status is not None:
            return
        with contextlib.suppress(ChildProcessError):
            pid, status = os.waitpid(process.pid, os.WNOHANG)
            if pid:
                process.status = status

    def _wait(self, process: _Process, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while process.status is None and time.monotonic() < deadline:
            fds = [fd for fd in (process.output_fd, process.pidfd) if fd >= 0]
            if process.listener is not None:
                fds.append(process.listener.fileno())
            ready = set(select.select(fds, [], [], TICK_S)[0])
            self._watch(process, ready)
        if process.status is None:
            self._kill(process, "")

    def _finish(self, process: _Process) -> None:
        if process.listener is not None:
            self._note_refusals(process)
        process.left = sandbox.end_tree(process.pid)
        deadline = time.monotonic() + 5.0
        while process.status is None and time.monotonic() < deadline:
            select.select([process.pidfd], [], [], TICK_S)
            self._reap(process)
        while process.output_fd >= 0 and select.select([process.output_fd], [], [], 0)[0]:
            self._read_output(process)
            if process.output_bytes > OUTPUT_LIMIT_BYTES:
                break
        for fd in (process.output_fd, process.pidfd):
            if fd >= 0:
                os.close(fd)
        process.output_fd = process.pidfd = -1
        if process.listener is not None:
            process.listener.close()
            process.listener = None
        shutil.rmtree(process.scratch, ignore_errors=True)

    # ---- forks -------------------------------------------------------------------------------------------------

    def _fork_judge(self, channel: Channel) -> _Process:
        scratch = self._scratch("judge")
        reader, writer = _output_pipe()
        pid = os.fork()
        if pid == 0:
            _child(lambda: self._be_judge(channel, scratch), writer, (channel.fileno(),))
        os.close(writer)
        return _Process(0, pid, os.pidfd_open(pid), reader, scratch)

    def _be_judge(self, channel: Channel, scratch: Path) -> None:
        _settle(scratch, threads=1)
        request = self._request
        sandbox.restrict(
            sandbox.Profile.JUDGE,
            read=(*sandbox.readable_paths(), Path(request.task_dir), Path(request.submission_dir)),
            write=(scratch, lock.FOLDER),
            memory_mib=self._memory_mib(0),
            cpu_seconds=3600,
            unsafe=request.unsafe,
        )
        judge.judge(request, channel, self._interpreted)

    def _open(self, message: Open) -> tuple[FromSupervisor, tuple[int, ...]]:
        self._count += 1
        number = self._count
        folder = self._request.task_dir if message.role == "baseline" else self._request.submission_dir
        plan = ProcessPlan(
            role=message.role,
            framework=self._request.framework if message.role == "candidate" else "torch",
            device=self._request.device,
            interpreted=self._interpreted and message.role == "candidate",
            folder=folder,
            entry=self._request.task.entry,
            baseline=message.name,
            threads=self._request.task.timing.threads,
        )
        profile = self._profile(folder)
        scratch = self._scratch(f"{message.role}-{number}")
        to_judge, to_process = pair(accept_fds=(False, True))
        setup_mine, setup_theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        heartbeat = sealed_memory("heartbeat", mmap.PAGESIZE)
        dump = os.memfd_create("stack", os.MFD_CLOEXEC)
        reader, writer = _output_pipe()
        cpus = self._cpus(message.pinned)
        pid = os.fork()
        if pid == 0:
            keep = (to_process.fileno(), setup_theirs.fileno(), heartbeat, dump)
            _child(
                lambda: self._be_process(plan, profile, scratch, to_process, setup_theirs, heartbeat, dump, cpus),
                writer,
                keep,
            )
        os.close(writer)
        to_process.close()
        setup_theirs.close()
        process = _Process(number, pid, os.pidfd_open(pid), reader, scratch)
        process.untrusted = message.role == "candidate"
        process.may_fork = profile is not sandbox.Profile.STRICT
        words = self._take_listener(process, setup_mine)
        setup_mine.close()
        if words:
            for fd in (heartbeat, dump):
                os.close(fd)
            to_judge.close()
            self._finish(process)
            output = process.output.decode("utf-8", "replace").strip()[-400:]
            return NotOpened(clip(f"{words} {output}".strip())), ()
        self._processes[number] = process
        opened = Opened(number, pid, profile.name.lower(), self._level.label)
        return opened, (to_judge.detach().detach(), heartbeat, dump)

    def _take_listener(self, process: _Process, setup: socket.socket) -> str:
        """The seccomp listener of a new process; empty words when all is well."""
        setup.settimeout(SETUP_S)
        try:
            data, fds, _flags, _address = socket.recv_fds(setup, 16, 1)
        except (TimeoutError, OSError) as error:
            return f"a process did not get ready: {error}"
        if data != b"ready":
            return "a process could not be closed in."
        process.listener = sandbox.Listener(fds[0], process.pid) if fds else None
        return ""

    def _be_process(
        self,
        plan: ProcessPlan,
        profile: sandbox.Profile,
        scratch: Path,
        channel: Channel,
        setup: socket.socket,
        heartbeat: int,
        dump: int,
        cpus: Sequence[int],
    ) -> None:
        _settle(scratch, plan.threads)
        os.sched_setaffinity(0, cpus)
        limits = self._request.task.limits
        fd = sandbox.restrict(
            profile,
            read=(*sandbox.readable_paths(), Path(plan.folder)),
            write=(scratch,),
            memory_mib=limits.memory_mib,
            cpu_seconds=int(limits.wall_seconds * 20) + 60,
            devices=_gpu_devices() if plan.device == "cuda" else (),
            unsafe=self._request.unsafe,
        )
        socket.send_fds(setup, [b"ready"], [fd] if fd is not None else [])
        if fd is not None:
            os.close(fd)
        setup.close()
        candidate.serve(plan, channel, heartbeat, dump)

    def _profile(self, folder: str) -> sandbox.Profile:
        if self._request.device == "cuda":
            return sandbox.Profile.COMPILER
        for path in sorted(Path(folder).rglob("*.py"))[:200]:
            with contextlib.suppress(OSError):
                if _COMPILES.search(path.read_bytes()[: 1 << 20].decode("utf-8", "replace")):
                    return sandbox.Profile.COMPILER
        return sandbox.Profile.STRICT

    def _cpus(self, pinned: bool) -> list[int]:
        everything = sorted(os.sched_getaffinity(0))
        return everything[-self._request.task.timing.threads :] if pinned else everything

    def _scratch(self, name: str) -> Path:
        path = self._folder / name
        path.mkdir(mode=0o700)
        return path

    # ---- words -------------------------------------------------------------------------------------------------

    def _end_with(self, reason: str, status: str) -> None:
        request = self._request
        panels = not_checked(reason, PANELS)
        if status == "error":
            panels["build"] = PanelResult(status="error", reason=reason)
        evidence = Evidence(
            task=TaskRef(request.task_name, request.task_tree),
            submission=SubmissionRef(request.submission_name, request.submission_tree, request.revision),
            environment={**request.environment, "sandbox": self._level.label},
            outcome="not-determined",
            panels=panels,
        )
        with contextlib.suppress(ChannelClosed):
            self._events.send(msgspec.json.encode(RunEnded(evidence)))


def _cpu_ns(process: _Process) -> int:
    """A process's tree; to an untrusted one is charged, too, what ran on without a parent and ended here."""
    mine = sandbox.tree_cpu_ns(process.pid)
    if process.untrusted:
        waited = resource.getrusage(resource.RUSAGE_CHILDREN)
        mine += int((waited.ru_utime + waited.ru_stime) * 1e9)
    return mine


def remove_folders(pid: int) -> None:
    """Remove what the supervisor with this number left in the folder for temporary files, as it was killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_prefix(pid)}*"):
        shutil.rmtree(folder, ignore_errors=True)


def _prefix(pid: int) -> str:
    return f"kernel-review-run-{pid}-"


def _output_pipe() -> tuple[int, int]:
    reader, writer = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(reader, False)
    return reader, writer


def _gpu_devices() -> tuple[Path, ...]:
    return (*sorted(Path("/dev").glob("nvidia*")), Path("/dev/shm"))  # noqa: S108 - CUDA's own shared memory


def _child(body: object, writer: int, keep: Sequence[int]) -> NoReturn:
    """The rest of a forked child's life: lose every inherited descriptor, run ``body``, never return."""
    code = 70
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        os.setsid()
        for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD, signal.SIGPIPE):
            signal.signal(name, signal.SIG_DFL)
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(writer, 1)
        os.dup2(writer, 2)
        wanted = {0, 1, 2, *keep}
        for fd in [int(entry) for entry in os.listdir("/proc/self/fd")]:  # noqa: PTH208
            if fd not in wanted:
                with contextlib.suppress(OSError):
                    os.close(fd)
        gc.enable()
        body()  # type: ignore[operator]
        code = 0
    except BaseException:  # noqa: BLE001 - the last frame of a forked child: nothing above it may run
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _settle(scratch: Path, threads: int) -> None:
    """An environment, a folder and random state of its own."""
    os.environ.update(
        HOME=str(scratch),
        TMPDIR=str(scratch),
        TRITON_CACHE_DIR=str(scratch / "triton"),
        TORCHINDUCTOR_CACHE_DIR=str(scratch / "inductor"),
        XDG_CACHE_HOME=str(scratch / "cache"),
    )
    tempfile.tempdir = str(scratch)
    os.chdir(scratch)
    random.seed(os.urandom(16))
    numpy_random.seed(int.from_bytes(os.urandom(4), "little"))
    torch.default_generator.manual_seed(int.from_bytes(os.urandom(7), "little"))
    torch.set_num_threads(threads)
