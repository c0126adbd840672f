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
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from runners.sandbox import kernel, limits

_PR_GET_CHILD_SUBREAPER = 37
_FREEZE_ROUNDS = 50
_PATIENCE_S = 10.0
"""How long to go on killing: only a process inside the kernel, on broken storage say, lives longer."""
_PAUSE_S = 0.002


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
    return [process.pid for process in _walk([pid], without).values() if process.pid != pid]


def count_descendants(pid: int) -> int:
    """How many living descendants ``pid`` has."""
    return len(descendants(pid))


def tree_memory(pid: int) -> int:
    """Bytes of memory that ``pid`` and its descendants hold; see :func:`runners.sandbox.limits.memory_of`."""
    return limits.memory_of([pid, *descendants(pid)])


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
    spared = {own, *keep}
    adopts = pid != own and _is_subreaper()
    before = set(_children(own)) if adopts else set()
    seen: dict[int, _Process] = {}
    deadline = time.monotonic() + _PATIENCE_S

    def living() -> dict[int, _Process]:
        roots = [pid, *(known.pid for known in seen.values() if _same(known))]
        if adopts:
            roots += [child for child in _children(own) if child not in before]
        found = _walk(roots, keep)
        found.pop(own, None)
        seen.update(found)
        return found

    while True:
        found = _freeze(living, spared)
        if not found:
            break
        _send(found.values(), signal.SIGKILL, spared)
        for gone in seen:
            if gone != pid:
                _bury(gone)
        if time.monotonic() > deadline:
            return len(living())
        time.sleep(_PAUSE_S)
    for gone in {*seen, *(_children(own) if pid == own or adopts else ())} - before - spared - {pid}:
        _bury(gone)
    return 0


def _is_subreaper() -> bool:
    answer = ctypes.c_int(0)
    kernel.prctl(_PR_GET_CHILD_SUBREAPER, ctypes.addressof(answer))
    return bool(answer.value)


def _freeze(look: Callable[[], dict[int, _Process]], spared: Collection[int]) -> dict[int, _Process]:
    """Stop all that is alive, until a look finds nobody new: what is stopped neither forks nor runs away."""
    stopped: dict[int, _Process] = {}
    living = look()
    for _ in range(_FREEZE_ROUNDS):
        fresh = [process for process in living.values() if stopped.get(process.pid) is None]
        if not fresh:
            break
        _send(fresh, signal.SIGSTOP, spared)
        stopped.update({process.pid: process for process in fresh})
        living = look()
    return living


def _send(processes: Iterable[_Process], number: signal.Signals, spared: Collection[int]) -> None:
    """Signal each process, and first its group where that lies in the tree: a group is hit whole, even as it forks."""
    processes = list(processes)
    not_ours = {os.getsid(0)}
    for pid in spared:
        with contextlib.suppress(OSError):
            not_ours.add(os.getsid(pid))
    for group in {process.group for process in processes if process.session not in not_ours}:
        with contextlib.suppress(OSError):
            os.killpg(group, number)
    for process in processes:
        _signal(process, number)


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


def _walk(roots: Iterable[int], without: Collection[int]) -> dict[int, _Process]:
    """The living among ``roots`` and all below them, by pid."""
    found: dict[int, _Process] = {}
    waiting = deque(roots)
    visited = set(without)
    while waiting:
        pid = waiting.popleft()
        if pid in visited:
            continue
        visited.add(pid)
        process = _look(pid)
        if process is not None:
            found[pid] = process
        waiting.extend(_children(pid))
    return found


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


def _same(process: _Process) -> bool:
    """Whether it is still there, under whatever parent."""
    now = _look(process.pid)
    return now is not None and now.started == process.started
