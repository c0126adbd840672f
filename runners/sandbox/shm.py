"""A /dev/shm of the process's own, where the kernel lets it have one.

Shared memory by name, which ``Tensor.share_memory_()`` uses, lies in one folder for all programs of a user. A process
that may write there could change theirs and leave messages for later runs, so it gets an empty folder that dies with
it, or none. Root needs CAP_SYS_ADMIN for that, others a user namespace that keeps its capabilities.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from runners.sandbox import kernel
from runners.sandbox.syscalls import ARCHITECTURES

FOLDER = Path("/dev/shm")  # noqa: S108 - the name that the C library uses

_CLONE_NEWNS, _CLONE_NEWUSER = 0x00020000, 0x10000000
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REC, _MS_PRIVATE = 2, 4, 8, 0x4000, 0x40000
_MAX_FILES = 4096


def make_private(mebibytes: int) -> bool:
    """Put an empty file system of at most ``mebibytes`` MiB on /dev/shm, seen by this process and what it starts.

    The process must have one thread. False where that is not to be had; a user namespace may then remain, so ask a
    forked child first whether it works.
    """
    machine = ARCHITECTURES.get(kernel.machine())
    if machine is None or not FOLDER.is_dir():
        return False
    unshare = machine.numbers["unshare"]
    try:
        try:
            kernel.call(unshare, _CLONE_NEWNS)
        except OSError:
            _become_oneself_in_a_namespace(unshare)
        mount = machine.numbers["mount"]
        kernel.call(mount, None, _text("/"), None, _MS_REC | _MS_PRIVATE, None)
        options = _text(f"size={mebibytes}m,nr_inodes={_MAX_FILES},mode=0700")
        flags = _MS_NOSUID | _MS_NODEV | _MS_NOEXEC
        kernel.call(mount, _text("tmpfs"), _text(str(FOLDER)), _text("tmpfs"), flags, options)
    except OSError:
        return False
    return True


def _become_oneself_in_a_namespace(unshare: int) -> None:
    user, group = os.getuid(), os.getgid()
    kernel.call(unshare, _CLONE_NEWUSER | _CLONE_NEWNS)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def _text(value: str) -> ctypes.Array[ctypes.c_char]:
    return ctypes.create_string_buffer(value.encode())
