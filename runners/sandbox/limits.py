"""Limits that the kernel keeps for one process, and how much memory a tree of processes holds."""

from __future__ import annotations

import contextlib
import os
import resource
import stat
from functools import cache
from pathlib import Path

OPEN_FILES = 1024
OPEN_FILES_COMPILER = 4096
EXTRA_PROCESSES = 1024
"""How many threads of its user a process may come to beyond those there are now: a fork bomb needs more, a build less.
The kernel does not hold root to it."""

MIB = 1 << 20


def apply(*, memory_mib: int, cpu_seconds: int, compiler: bool = False) -> None:
    """Set soft and hard limits on the calling process; a limit that is already lower stays.

    ``memory_mib`` comes on top of what the process holds when called, as a fork of a preloaded parent holds its
    libraries; it also bounds each file, memfds included. Address space is never limited: CUDA reserves more of it than
    there is memory.
    """
    memory = memory_mib * MIB
    _lower(resource.RLIMIT_CPU, cpu_seconds, cpu_seconds + 1)
    _lower(resource.RLIMIT_DATA, _data_bytes() + memory)
    _lower(resource.RLIMIT_FSIZE, memory)
    _lower(resource.RLIMIT_NOFILE, OPEN_FILES_COMPILER if compiler else OPEN_FILES)
    _lower(resource.RLIMIT_CORE, 0)
    if compiler:
        _lower(resource.RLIMIT_NPROC, _threads_of(os.getuid()) + EXTRA_PROCESSES)


def _lower(which: int, soft: int, hard: int | None = None) -> None:
    _, present = resource.getrlimit(which)
    limit = soft if hard is None else hard
    limit = limit if present == resource.RLIM_INFINITY else min(limit, present)
    resource.setrlimit(which, (min(soft, limit), limit))


def _data_bytes() -> int:
    """What RLIMIT_DATA counts of the calling process: private writable mappings (VmData of proc(5))."""
    return _status(os.getpid()).get("VmData", 0)


def _threads_of(user: int) -> int:
    total = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError):
                if entry.stat().st_uid == user:
                    total += int((entry / "stat").read_bytes().rpartition(b")")[2].split()[17])
    return total


def memory_of(pids: list[int]) -> int:
    """Bytes of memory that the processes hold together: private, swapped out and shared, each page once.

    Shared memory counts whether it is mapped or only open (a memfd that was written to). Libraries and other files do
    not count: the kernel can drop those. A process that has ended counts nothing.
    """
    private = shared = 0
    open_files: dict[tuple[int, int], int] = {}
    for pid in pids:
        one, mapped = _status_memory(pid) if len(pids) == 1 else _proportional_memory(pid)
        private += one
        shared += mapped
        open_files.update(_open_shared_memory(pid))
    # What is open may be mapped as well, so the larger figure is the one that can be vouched for.
    return private + max(shared, sum(open_files.values()))


def _status_memory(pid: int) -> tuple[int, int]:
    fields = _status(pid)
    return fields.get("RssAnon", 0) + fields.get("VmSwap", 0), fields.get("RssShmem", 0)


def _proportional_memory(pid: int) -> tuple[int, int]:
    """Each page divided by the number of processes that map it, so that forks do not count twice."""
    try:
        fields = _fields(Path(f"/proc/{pid}/smaps_rollup"))
    except OSError:
        return _status_memory(pid)
    if "Pss_Anon" not in fields:
        return _status_memory(pid)
    return fields["Pss_Anon"] + fields.get("SwapPss", 0), fields.get("Pss_Shmem", 0)


def _status(pid: int) -> dict[str, int]:
    try:
        return _fields(Path(f"/proc/{pid}/status"))
    except OSError:
        return {}


def _fields(path: Path) -> dict[str, int]:
    """The lines ``Name:  123 kB`` of a file in /proc, in bytes."""
    fields = {}
    for line in path.read_bytes().splitlines():
        parts = line.split()
        if len(parts) == 3 and parts[2] == b"kB" and parts[1].isdigit():
            fields[parts[0].rstrip(b":").decode("ascii", "replace")] = int(parts[1]) * 1024
    return fields


def _open_shared_memory(pid: int) -> dict[tuple[int, int], int]:
    """Bytes in memory of each memfd and each file of /dev/shm that the process has open, by device and inode."""
    sizes = {}
    try:
        entries = os.listdir(f"/proc/{pid}/fd")  # noqa: PTH208 - names alone, often
    except OSError:
        return {}
    for entry in entries:
        with contextlib.suppress(OSError):
            found = os.stat(f"/proc/{pid}/fd/{entry}")  # noqa: PTH116
            if stat.S_ISREG(found.st_mode) and found.st_dev in _memory_devices():
                sizes[found.st_dev, found.st_ino] = found.st_blocks * 512
    return sizes


@cache
def _memory_devices() -> frozenset[int]:
    devices = set()
    descriptor = os.memfd_create("probe", os.MFD_CLOEXEC)
    try:
        devices.add(os.fstat(descriptor).st_dev)
    finally:
        os.close(descriptor)
    with contextlib.suppress(OSError):
        devices.add(Path("/dev/shm").stat().st_dev)  # noqa: S108 - asked about, not written to
    return frozenset(devices)
