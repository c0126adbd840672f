"""Landlock: which files a process may still open, whom it may signal, and that it opens no TCP connection.

Rights, structures and the ABI that brought each: Linux's ``uapi/linux/landlock.h`` and
``Documentation/userspace-api/landlock.rst``.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from runners.sandbox import kernel
from runners.sandbox.kernel import SandboxError
from runners.sandbox.syscalls import ARCHITECTURES

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
MAKE_CHAR, MAKE_SOCK, MAKE_BLOCK = 1 << 6, 1 << 9, 1 << 11
_FIRST_RIGHTS = (1 << 13) - 1
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_LATER_RIGHTS = {2: REFER, 3: TRUNCATE, 5: IOCTL_DEV}
_TCP_BIND_AND_CONNECT, _ABI_TCP = 3, 4
_SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS, _ABI_SCOPES = 3, 6
_OF_A_FILE = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV

_VERSION_QUERY, _PATH_BENEATH = 1, 1

_kept: list[int] = []
"""Descriptors of rules that the kernel forgets with the inode, as with an entry of /proc."""


@dataclass(frozen=True)
class Access:
    """Which paths may be used and how; what does not exist is left out. Symbolic links count as what they point to."""

    read: Sequence[Path] = ()
    """Read and execute; folders with all that lies beneath."""
    listed: Sequence[Path] = ()
    """Folders whose names may be listed; their files stay closed."""
    write: Sequence[Path] = ()
    """Everything but devices and sockets."""
    devices: Sequence[Path] = ()
    """Device nodes: read, write and ioctl."""
    proc_self: bool = True
    """Reading the process's own folder in /proc."""


def abi() -> int:
    """The kernel's Landlock ABI, 0 where it has none or it is switched off."""
    machine = ARCHITECTURES.get(kernel.machine())
    if machine is None:
        return 0
    try:
        return kernel.call(machine.numbers["landlock_create_ruleset"], None, 0, _VERSION_QUERY)
    except OSError:
        return 0


def handled_rights(version: int) -> int:
    """Every right on files that ABI ``version`` can withhold."""
    rights = _FIRST_RIGHTS
    for since, right in _LATER_RIGHTS.items():
        rights |= right if version >= since else 0
    return rights


def ruleset_attributes(version: int) -> bytes:
    """``struct landlock_ruleset_attr``, as long as ABI ``version`` knows it: files, TCP, scopes."""
    attributes = struct.pack("=Q", handled_rights(version))
    if version >= _ABI_TCP:
        attributes += struct.pack("=Q", _TCP_BIND_AND_CONNECT)
    if version >= _ABI_SCOPES:
        attributes += struct.pack("=Q", _SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS)
    return attributes


def enforce(access: Access) -> int:
    """Hold the calling thread, and all that it starts, to ``access``; there is no way back.

    Returns the ABI used. Raises SandboxError where the kernel has no Landlock.
    """
    version = abi()
    if version < 1:
        raise SandboxError("landlock: this kernel has none, or it is switched off")
    numbers = ARCHITECTURES[kernel.machine()].numbers
    attributes = ruleset_attributes(version)
    try:
        ruleset = kernel.call(
            numbers["landlock_create_ruleset"],
            ctypes.create_string_buffer(attributes, len(attributes)),
            len(attributes),
            0,
        )
        try:
            for path, rights in _rules(access, handled_rights(version)):
                _kept.extend(_add(numbers["landlock_add_rule"], ruleset, path, rights))
            kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
            kernel.call(numbers["landlock_restrict_self"], ruleset, 0)
        finally:
            os.close(ruleset)
    except SandboxError:
        raise
    except OSError as error:
        raise SandboxError(error.errno, f"landlock: {error.strerror}") from None
    return version


def _rules(access: Access, handled: int) -> Iterable[tuple[Path, int]]:
    for path in access.read:
        yield path, READ_FILE | READ_DIR | EXECUTE
    for path in access.listed:
        yield path, READ_DIR
    for path in access.write:
        yield path, handled & ~(MAKE_CHAR | MAKE_BLOCK | MAKE_SOCK | IOCTL_DEV)
    for path in access.devices:
        yield path, handled & (READ_FILE | WRITE_FILE | READ_DIR | TRUNCATE | IOCTL_DEV)
    if access.proc_self:
        yield Path(f"/proc/{os.getpid()}"), READ_FILE | READ_DIR


def _add(number: int, ruleset: int, path: Path, rights: int) -> list[int]:
    """One rule; the descriptors that must stay open for it to live on."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:  # what the process cannot reach anyway needs no permission
        return []
    keep = path.parts[:2] == ("/", "proc")
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            rights &= _OF_A_FILE
        if rights:
            attributes = struct.pack("=Qi", rights, descriptor)
            buffer = ctypes.create_string_buffer(attributes, len(attributes))
            kernel.call(number, ruleset, _PATH_BENEATH, buffer, 0)
    except OSError as error:
        keep = False
        raise SandboxError(error.errno, f"landlock: no rule for {path}: {error.strerror}") from None
    finally:
        if not keep:
            os.close(descriptor)
    return [descriptor] if keep else []
