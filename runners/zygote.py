"""A preloaded parent: imports torch and triton once, then forks one supervisor per run.

Started by the client with an allow-listed environment, so that no descendant's ``/proc/self/environ`` holds a secret.
It never touches CUDA and never runs foreign code. What a supervisor that was killed leaves behind becomes its own, and
is ended; so is the folder that a killed console left.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
import traceback
from pathlib import Path

import msgspec

from runners.channel import Channel, ChannelClosed, ChannelError
from runners.contract import RunRequest


class Hello(msgspec.Struct, frozen=True):
    """What the zygote says once it is ready to fork."""

    pid: int
    python: str
    torch: str
    triton: str


def main(control_fd: int, interpreted: bool, package: str) -> None:
    """Serve until the console hangs up."""
    import socket

    import torch

    torch.set_num_threads(1)
    from runners.frameworks import preload

    preload("torch", interpreted)
    triton_version = ""
    if sys.platform == "linux":
        with contextlib.suppress(ImportError):
            preload("triton", interpreted)
            import triton

            triton_version = triton.__version__
    from runners import sandbox, supervisor
    from runners.checks import all_checks
    from runners.timing import lock

    sandbox.level()  # probed once, known to every fork
    sandbox.readable_paths()
    lock.prepare()  # the judge may write in it but not make it
    all_checks()

    control = Channel(socket.socket(fileno=control_fd), accept_fds=True)
    supervisors: set[int] = set()
    with contextlib.suppress(OSError):
        sandbox.become_subreaper()
    signal.signal(signal.SIGCHLD, lambda _signal, _frame: _bury(supervisors))
    gc.collect()
    gc.freeze()
    python = ".".join(map(str, sys.version_info[:3]))
    control.send(msgspec.json.encode(Hello(os.getpid(), python, str(torch.__version__), triton_version)))
    while True:
        try:
            message = control.receive()
        except (ChannelClosed, ChannelError):
            _remove(package)
            return
        fds = control.take_fds()
        # Not while one that has just been forked is unknown: it would be taken for what another has left.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
        pid = os.fork()
        if pid == 0:
            _supervise(supervisor, message, control, fds, interpreted)
        supervisors.add(pid)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        for fd in fds:
            os.close(fd)


def _bury(supervisors: set[int]) -> None:
    """Wait for what has ended; after a supervisor that did not end by itself, end what it had started."""
    from runners import sandbox, supervisor

    with contextlib.suppress(OSError):  # ChildProcessError: none is left
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            if pid in supervisors:
                supervisors.discard(pid)
                if os.WIFSIGNALED(status):
                    sandbox.end_tree(os.getpid(), keep=supervisors)
                    supervisor.remove_folders(pid)


def _remove(package: str) -> None:
    """The client's folder with the link to this package: it removes it itself, unless it was killed."""
    with contextlib.suppress(OSError):
        (Path(package) / "runners").unlink()
        Path(package).rmdir()


def _supervise(supervisor: object, message: bytes, control: Channel, fds: list[int], interpreted: bool) -> None:
    import socket

    code = 70
    try:
        os.setsid()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        control.close()
        events = Channel(socket.socket(fileno=fds[0]))
        request = msgspec.json.decode(message, type=RunRequest)
        supervisor.Supervisor(request, events, interpreted).run()  # type: ignore[attr-defined]
        code = 0
    except BaseException:  # noqa: BLE001 - the last frame of a forked child
        traceback.print_exc()
    finally:
        os._exit(code)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2] == "interpreted", sys.argv[3])
