"""The floor between foreign code and the rest of the machine; it needs Linux and no privilege.

A forked child that is about to run foreign code calls :func:`restrict`; its supervisor listens for refused calls with
:class:`Listener`, watches :func:`tree_memory` and ends everything with :func:`end_tree`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from runners.sandbox import capabilities, landlock, limits, paths, seccomp, shm
from runners.sandbox.kernel import SandboxError
from runners.sandbox.level import SandboxLevel, level
from runners.sandbox.listener import Listener, Refusal
from runners.sandbox.paths import listable_paths, readable_paths
from runners.sandbox.policy import Profile
from runners.sandbox.tree import (
    become_subreaper,
    count_descendants,
    descendants,
    end_tree,
    orphans,
    signal_below,
    tree_cpu_ns,
    tree_memory,
)

__all__ = [
    "Listener",
    "Profile",
    "Refusal",
    "SandboxError",
    "SandboxLevel",
    "become_subreaper",
    "count_descendants",
    "descendants",
    "end_tree",
    "level",
    "listable_paths",
    "orphans",
    "readable_paths",
    "restrict",
    "signal_below",
    "tree_cpu_ns",
    "tree_memory",
]


def restrict(
    profile: Profile,
    *,
    read: Sequence[Path],
    write: Sequence[Path],
    memory_mib: int,
    cpu_seconds: int,
    devices: Sequence[Path] = (),
    exclude: Sequence[Path] = (),
    unsafe: bool = False,
) -> int | None:
    """Hold the calling process, and all that it starts, to ``profile``. There is no way back.

    Call it in a forked child that has one thread, no descriptor that foreign code must not have, and no datagram
    socket (through one, any named local socket can be written to). ``memory_mib`` comes on top of what the process
    holds. Where :func:`level` says so, /dev/shm is the process's own. ``exclude`` must be what
    :func:`readable_paths` was given.

    Returns the descriptor of the listener, to be sent to the supervisor (SCM_RIGHTS) and closed before foreign code
    runs; until then make no call that the profile refuses, as nobody would answer. None for the judge's profile.

    Raises SandboxError, an OSError, where a part is not to be had; with ``unsafe`` what is to be had is applied.
    """
    threads = len(os.listdir("/proc/self/task"))  # noqa: PTH208
    if threads != 1:
        raise SandboxError(f"the sandbox holds one thread, this process has {threads}")
    os.umask(0o077)
    limits.apply(memory_mib=memory_mib, cpu_seconds=cpu_seconds, compiler=profile is not Profile.STRICT)
    private = profile is not Profile.JUDGE and level().private_shm and shm.make_private(memory_mib)
    access = landlock.Access(
        read=(*read, *(map(Path, paths.GPU) if devices else ())),
        listed=listable_paths(exclude),
        write=(*write, shm.FOLDER) if private else write,
        devices=(*map(Path, paths.WRITABLE_DEVICES), *devices),
    )
    abi = 0
    listener: int | None = None
    try:
        abi = landlock.enforce(access)
    except SandboxError:
        if not unsafe:
            raise
    try:
        capabilities.drop()
        listener = seccomp.install(profile, pid=os.getpid(), landlock_abi=abi)
    except SandboxError:
        if not unsafe:
            raise
    return listener
