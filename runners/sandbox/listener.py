"""The supervisor's end of a system call filter: hears of each refused call, refuses it, and says what it was.

Structures and requests: ``struct seccomp_notif`` and ``SECCOMP_IOCTL_NOTIF_*`` of Linux's ``uapi/linux/seccomp.h``.
Nothing is ever continued and no memory of the caller is read, so there is nothing to race. One kind of call is carried
out on behalf of the caller: a signal to a process of its own tree, which compiler drivers and pools send each other.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import select
import signal
import struct
from pathlib import Path

import msgspec

from runners.sandbox import tree
from runners.sandbox.meaning import Meaning, RefusalSeverity, meaning_of
from runners.sandbox.syscalls import ARCHITECTURES

_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_NOTIFICATION = struct.Struct("=QIIiIQ6Q")
"""id, pid of the calling thread, flags; system call number, AUDIT_ARCH, instruction pointer, six arguments."""
_RESPONSE = struct.Struct("=QqiI")
"""id, return value, error, flags."""

MAX_PER_POLL = 256
"""A flood of refused calls holds a poll loop up no longer than so many of them take."""


class Refusal(msgspec.Struct, frozen=True):
    """A system call that was refused. ``escape`` is an attempt to leave, ``info`` what honest code does as well."""

    syscall: str
    severity: RefusalSeverity
    summary: str


class Listener:
    """Reads and refuses. Owns ``descriptor``; ``root`` is the first process under the filter.

    Without ``root`` a process counts as the caller's own tree only with what descends from it.
    """

    def __init__(self, descriptor: int, root: int | None = None) -> None:
        self._descriptor = descriptor
        self._root = root
        self._names = {arch.audit: arch.names() for arch in ARCHITECTURES.values()}
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLIN)
        self.closed = False
        """True once nobody is left under the filter, or after :meth:`close`."""

    def fileno(self) -> int:
        """The descriptor, for a poll loop; readable when a call waits, and hung up when :attr:`closed` will be true."""
        return self._descriptor

    def poll(self) -> list[Refusal]:
        """Refuse the calls that wait, at most :data:`MAX_PER_POLL`, and say which. Never blocks.

        Callers stay blocked until this is called. Raises OSError where the kernel breaks its own interface.
        """
        refusals: list[Refusal] = []
        for _ in range(MAX_PER_POLL):
            if self.closed:
                break
            events = dict(self._poll.poll(0)).get(self._descriptor, 0)
            if not events & select.POLLIN:
                self.closed = bool(events & (select.POLLHUP | select.POLLERR | select.POLLNVAL))
                break
            notification = bytearray(_NOTIFICATION.size)
            try:
                fcntl.ioctl(self._descriptor, _RECEIVE, notification, True)
            except OSError as error:
                if error.errno in (errno.ENOENT, errno.EINTR):  # the caller died or was interrupted meanwhile
                    continue
                raise
            refusal = self._settle(notification)
            if refusal is not None:
                refusals.append(refusal)
        return refusals

    def close(self) -> None:
        """Give the descriptor up: from here on the kernel answers ENOSYS to every refused call."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1
        self.closed = True

    def _settle(self, notification: bytearray) -> Refusal | None:
        identity, thread, _flags, number, architecture, _pointer, *arguments = _NOTIFICATION.unpack(notification)
        name = self._names.get(architecture, {}).get(number, "")
        if name in ("kill", "tgkill"):
            outcome = self._signal(name, thread, arguments)
            if outcome is not None:
                self._respond(identity, outcome)
                return None
        meaning: Meaning = meaning_of(name, arguments, lambda pid: pid == 0 or pid in _threads(thread))
        self._respond(identity, meaning.error)
        return Refusal(name or "foreign", meaning.severity, meaning.summary)

    def _respond(self, identity: int, error: int) -> None:
        response = bytearray(_RESPONSE.pack(identity, 0, -error, 0))
        try:
            fcntl.ioctl(self._descriptor, _SEND, response, True)
        except OSError as failure:
            if failure.errno not in (errno.ENOENT, errno.EINPROGRESS):  # nobody waits for this answer any more
                raise

    def _signal(self, name: str, thread: int, arguments: list[int]) -> int | None:
        """Send a signal that stays in the tree; the errno for the caller (0: sent), None where it aims outside."""
        target = _signed(arguments[0])
        number = arguments[2 if name == "tgkill" else 1] & 0xFFFFFFFF
        if number > 64:
            return errno.EINVAL
        caller = _process_of(thread)
        members = {*tree.descendants(self._root or caller), self._root or caller}
        if target > 0:
            if target not in members and not tree.alive(target):
                return 0 if Path(f"/proc/{target}").exists() else errno.ESRCH
            return _deliver(target, number, members)
        if target == -1 or name == "tgkill":
            return None
        with contextlib.suppress(OSError):
            group = -target or os.getpgid(caller)
            in_group = {pid for pid in _everybody() if _group_of(pid) == group}
            if in_group and in_group <= members:
                return min(filter(None, (_deliver(pid, number, members) for pid in in_group)), default=0)
        return None


def _deliver(target: int, number: int, members: set[int]) -> int | None:
    """Signal ``target`` if it is a member, by a descriptor that still means it after the check."""
    if target not in members:
        return None
    try:
        descriptor = os.pidfd_open(target)
    except OSError as error:
        return error.errno
    try:
        signal.pidfd_send_signal(descriptor, number)
    except OSError as error:
        return error.errno
    finally:
        os.close(descriptor)
    return 0


def _signed(value: int) -> int:
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def _threads(thread: int) -> set[int]:
    """All threads of the process that ``thread`` belongs to, the process id among them."""
    with contextlib.suppress(OSError):
        return {int(entry) for entry in os.listdir(f"/proc/{thread}/task")}  # noqa: PTH208
    return {thread}


def _process_of(thread: int) -> int:
    """The process id of a thread, itself where the thread is gone."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path(f"/proc/{thread}/status").read_bytes().splitlines():
            if line.startswith(b"Tgid:"):
                return int(line.split()[1])
    return thread


def _everybody() -> list[int]:
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]  # noqa: PTH208


def _group_of(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except OSError:
        return -1
