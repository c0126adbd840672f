"""Trees of processes: who descends from whom, and ending all of them, whatever they do to get away.

A process that leaves its group, its session or its parent is still a descendant of the nearest *subreaper* above it,
so the supervisor of a run is one. A signal goes to the process that was seen, never to another one that has come to
its number since.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from runners.sandbox import kernel, limits

_PR_GET_CHILD_SUBREAPER = 37
_FREEZE_ROUNDS = 50
_PATIENCE_S = 30.0
"""How long to go on killing: only a process inside the kernel, on broken storage say, lives longer."""
_PAUSE_S = 0.002
_QUICK_LOOKS = 2000


@dataclass(frozen=True)
class _Process:
    pid: int
    group: int
    session: int
    started: int
    """Ticks since boot: with the pid, it names a process once and for all."""


def become_subreaper() -> None:
    """Adopt every descendant whose parent ends. Raises OSError."""
    kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)


def descendants(pid: int, *, without: Collection[int] = ()) -> list[int]:
    """Pids of the living descendants of ``pid``, children before grandchildren; ``without`` those trees."""
    return [process.pid for process in _walk([pid], without) if process.pid != pid]


def count_descendants(pid: int) -> int:
    """How many living descendants ``pid`` has."""
    return len(descendants(pid))


def tree_memory(pid: int) -> int:
    """Bytes of memory that ``pid`` and its descendants hold; see :func:`runners.sandbox.limits.memory_of`."""
    return limits.memory_of([pid, *descendants(pid)])


def tree_cpu_ns(pid: int) -> int:
    """On-CPU time of ``pid``, of its living descendants, and of those that they have waited for."""
    return sum(_cpu_ns(process) for process in _walk([pid], ()))


def signal_below(pid: int, number: signal.Signals) -> None:
    """Signal every descendant of ``pid``, those too that are born meanwhile."""
    signalled: set[_Process] = set()
    for _ in range(_FREEZE_ROUNDS):
        fresh = [process for process in _walk([pid], ()) if process.pid != pid and process not in signalled]
        if not fresh:
            return
        for process in fresh:
            _signal(process, number)
        signalled.update(fresh)


def alive(pid: int) -> bool:
    """Whether the process ``pid`` is there and has not ended, waited for or not."""
    return _look(pid) is not None


def orphans(workers: Collection[int]) -> list[int]:
    """The caller's living children other than ``workers``: what those left behind. Buries the dead ones.

    For a subreaper between rounds; the caller must not have children of another kind.
    """
    left = []
    for child in _children(os.getpid()):
        if child not in workers:
            _bury(child)
            if alive(child):
                left.append(child)
    return left


def end_tree(pid: int, *, keep: Collection[int] = ()) -> int:
    """End ``pid`` and all its descendants but the trees of ``keep``; how many are left, 0 when all is well.

    With the caller's own pid: all its descendants, not itself. Descendants that the caller has adopted are buried;
    ``pid`` is left for the caller to wait for. From a subreaper, also what it adopts meanwhile is ended, so that a
    process which forks and dies faster than one can look does not get away.
    """
    own = os.getpid()
    adopts = pid != own and _is_subreaper()
    # Children that the caller had before are none of this tree's; nor is a pid that it will wait for itself.
    spared = {own, *keep, *(_children(own) if adopts else ())}
    hunt = _Hunt(spared - {pid})
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        hunt.freeze([pid, *(_children(own) if adopts else ())], without={*spared} - {pid, own})
        hunt.kill()
        for gone in hunt.seen:
            if gone != pid:
                _bury(gone)
        left = hunt.living()
        if not left and (pid == own or adopts):
            # One that was born after the look, of a parent that died before it, is a child of the caller now.
            left = _hit_children(spared | {pid})
        if not left:
            return 0
        if time.monotonic() > deadline:
            return left
        time.sleep(_PAUSE_S)


class _Hunt:
    """Stops and kills the processes of a tree; remembers them, as a parent's death hides whose they were."""

    def __init__(self, spared: Collection[int]) -> None:
        self.seen: dict[int, _Process] = {}
        self._foreign_sessions = {os.getsid(0)}
        for pid in spared:
            with contextlib.suppress(OSError):
                self._foreign_sessions.add(os.getsid(pid))

    def freeze(self, roots: Collection[int], without: Collection[int]) -> None:
        """Stop each process as it is found, until a look finds nobody new: what is stopped cannot run away."""
        stopped: set[_Process] = set()
        for _ in range(_FREEZE_ROUNDS):
            fresh = 0
            known = [process.pid for process in self.seen.values() if _same(process)]
            for process in _walk([*roots, *known], without):
                if process.pid != os.getpid() and process not in stopped:
                    self._send(process, signal.SIGSTOP)
                    self.seen[process.pid] = process
                    stopped.add(process)
                    fresh += 1
            if not fresh:
                return

    def kill(self) -> None:
        """Kill all that was seen."""
        for process in self.seen.values():
            self._send(process, signal.SIGKILL)

    def living(self) -> int:
        """How many of those that were seen are there."""
        return sum(_same(process) for process in self.seen.values())

    def _send(self, process: _Process, number: signal.Signals) -> None:
        """Signal the process, and its group where that lies in the tree: a group is hit whole, even as it forks."""
        if process.session not in self._foreign_sessions and _same(process):
            with contextlib.suppress(OSError):
                os.killpg(process.group, number)
        _signal(process, number)


def _hit_children(spared: Collection[int]) -> int:
    """Kill and bury the caller's children but ``spared``, over and over, as one that forks and dies has to be met
    between the two. How many were left at the last look; none at a look means that there are none.

    Their numbers cannot have passed to others, as nobody else buries them.
    """
    left: list[int] = []
    for _ in range(_QUICK_LOOKS):
        left = [child for child in _children(os.getpid()) if child not in spared]
        if not left:
            break
        for child in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            _bury(child)
    return len(left)


def _is_subreaper() -> bool:
    answer = ctypes.c_int(0)
    kernel.prctl(_PR_GET_CHILD_SUBREAPER, ctypes.addressof(answer))
    return bool(answer.value)


def _signal(process: _Process, number: signal.Signals) -> None:
    try:
        descriptor = os.pidfd_open(process.pid)
    except OSError:  # gone
        return
    try:
        if _same(process):
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(descriptor, number)
    finally:
        os.close(descriptor)


def _bury(pid: int) -> None:
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def _walk(roots: Iterable[int], without: Collection[int]) -> Iterator[_Process]:
    """The living among ``roots`` and all below them, each as soon as it is found."""
    waiting = deque(roots)
    visited = set(without)
    while waiting:
        pid = waiting.popleft()
        if pid in visited:
            continue
        visited.add(pid)
        process = _look(pid)
        if process is not None:
            yield process
        waiting.extend(_children(pid))


def _children(pid: int) -> list[int]:
    """Children of all threads of ``pid``."""
    children: list[int] = []
    try:
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - names alone, often
    except OSError:
        return []
    for thread in threads:
        with contextlib.suppress(OSError):
            children += map(int, Path(f"/proc/{pid}/task/{thread}/children").read_bytes().split())
    return children


def _look(pid: int) -> _Process | None:
    """The process ``pid``; None when it has ended, even if nobody has waited for it yet."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        state, threads = fields[0], int(fields[17])
        group, session, started = (int(fields[at]) for at in (2, 3, 19))
    except (OSError, IndexError, ValueError):
        return None
    # The first thread may have ended while others of its process go on.
    if state in (b"Z", b"X") and threads <= 1:
        return None
    return _Process(pid, group, session, started)


def _cpu_ns(process: _Process) -> int:
    """By the precise clock of clock_getcpuclockid(3), and in ticks what /proc tells of children waited for."""
    tick = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    waited = 0
    with contextlib.suppress(OSError, IndexError, ValueError):
        fields = Path(f"/proc/{process.pid}/stat").read_bytes().rpartition(b")")[2].split()
        waited = int(fields[13]) + int(fields[14])
    try:
        return time.clock_gettime_ns((~process.pid << 3) | 2) + waited * tick
    except OSError:  # gone
        return 0


def _same(process: _Process) -> bool:
    """Whether it is still there, under whatever parent."""
    now = _look(process.pid)
    return now is not None and now.started == process.started
