"""A supervisor in miniature: runs a function under a profile, as root or as an ordinary user, and says what it saw."""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import socket
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from runners import sandbox
from runners.sandbox import kernel

NOBODY = 65534
PATIENCE_S = 60.0


@dataclass
class Outcome:
    """What became of the function: its value or its error, what was refused, how the process ended, who is left."""

    value: Any = None
    error: str = ""
    status: int = 0
    refusals: list[sandbox.Refusal] = field(default_factory=list)
    left: int = -1

    @property
    def escapes(self) -> set[str]:
        return {refusal.syscall for refusal in self.refusals if refusal.severity == "escape"}

    @property
    def hints(self) -> set[str]:
        return {refusal.syscall for refusal in self.refusals if refusal.severity == "info"}


def become(user: int) -> None:
    if user != os.getuid():
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
        kernel.prctl(4, 1)  # PR_SET_DUMPABLE: without it /proc/self belongs to root


@dataclass(frozen=True)
class Cage:
    """Runs functions under the sandbox; they must not rely on imports that an ordinary user cannot read."""

    user: int
    scratch: Path

    def run(
        self,
        function: Callable[[], Any],
        profile: sandbox.Profile = sandbox.Profile.STRICT,
        *,
        memory_mib: int = 2048,
        read: tuple[Path, ...] = (),
        before: Callable[[], None] = lambda: None,
    ) -> Outcome:
        reader, writer = os.pipe()
        supervisor = os.fork()
        if supervisor == 0:
            code = 1
            try:
                os.close(reader)
                os.setsid()
                become(self.user)
                before()
                outcome = self._supervise(function, profile, memory_mib, read)
                with os.fdopen(writer, "wb") as file:
                    pickle.dump(outcome, file)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        os.close(writer)
        with os.fdopen(reader, "rb") as file:
            data = file.read()
        os.waitpid(supervisor, 0)
        return pickle.loads(data)

    def _supervise(self, function, profile, memory_mib, read) -> Outcome:
        sandbox.become_subreaper()
        outcome = Outcome()
        mine, theirs = socket.socketpair()
        reader, writer = os.pipe()
        worker = os.fork()
        if worker == 0:
            code = 1
            try:
                self._work(function, profile, memory_mib, read, theirs, writer, (mine.fileno(), reader))
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        theirs.close()
        os.close(writer)
        _, descriptors, _, _ = socket.recv_fds(mine, 16, 1)
        mine.close()
        listener = sandbox.Listener(descriptors[0], worker) if descriptors else None
        answer = b""
        deadline = time.monotonic() + PATIENCE_S
        status: int | None = None
        while time.monotonic() < deadline:
            waiting = [reader] if listener is None else [reader, listener.fileno()]
            ready = select.select(waiting, [], [], 0.02)[0]
            if listener is not None and not listener.closed:
                outcome.refusals += listener.poll()[: max(0, 2000 - len(outcome.refusals))]
                if listener.closed:
                    listener.close()
                    listener = None
            if reader in ready:
                chunk = os.read(reader, 1 << 16)
                answer += chunk
            pid, code = os.waitpid(worker, os.WNOHANG)
            if pid:
                status = code
                while chunk := (os.read(reader, 1 << 16) if select.select([reader], [], [], 0)[0] else b""):
                    answer += chunk
                break
        outcome.left = sandbox.end_tree(os.getpid())
        outcome.status = os.waitstatus_to_exitcode(status) if status is not None else -999
        if answer:
            outcome.value, outcome.error = pickle.loads(answer)
        return outcome

    def _work(self, function, profile, memory_mib, read, setup, writer, close) -> None:
        os.setsid()
        for descriptor in close:
            os.close(descriptor)
        os.environ.update(HOME=str(self.scratch), TMPDIR=str(self.scratch))
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(self.scratch / "inductor")
        tempfile.tempdir = str(self.scratch)
        os.chdir(self.scratch)
        value, error = None, ""
        descriptor = sandbox.restrict(
            profile,
            read=(*sandbox.readable_paths(), *read),
            write=(self.scratch,),
            memory_mib=memory_mib,
            cpu_seconds=100,
        )
        socket.send_fds(setup, [b"ready"], [descriptor] if descriptor is not None else [])
        if descriptor is not None:
            os.close(descriptor)
        setup.close()
        try:
            value = function()
        except BaseException as caught:
            error = f"{type(caught).__name__}: {caught}"
        os.write(writer, pickle.dumps((value, error)))


@pytest.fixture(params=["root", "ordinary"])
def cage(request: pytest.FixtureRequest) -> Iterator[Cage]:
    if not sys.platform.startswith("linux") or not sandbox.level().reached:
        pytest.skip("needs Linux with Landlock and seccomp notifications")
    sandbox.readable_paths()  # an ordinary user may be unable to read root's Python, so all is looked up before
    mine = os.getuid()
    if request.param == "root" and mine != 0:
        pytest.skip("the tests do not run as root")
    user = NOBODY if mine == 0 and request.param == "ordinary" else mine
    scratch = Path(tempfile.mkdtemp(prefix="cage-"))
    os.chown(scratch, user, -1)
    yield Cage(user, scratch)
    import shutil

    shutil.rmtree(scratch, ignore_errors=True)


@pytest.fixture
def bystander() -> Iterator[int]:
    """A process outside the sandbox that somebody may want to harm."""
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            if os.getuid() == 0:
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            while True:
                time.sleep(1)
        os._exit(0)
    yield child
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
