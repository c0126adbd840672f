"""Which system calls each profile refuses, as pure data: the floor between foreign code and the rest of the machine.

A deny list: honest code needs too many harmless calls for an allow list, and calls newer than the table do not exist
for it (ENOSYS, for which libraries are prepared).
"""

from __future__ import annotations

import errno
import resource
from collections.abc import Callable
from enum import Enum

from runners.sandbox import meaning
from runners.sandbox.bpf import ALLOW, NOTIFY, Clause, Condition, Rule, assemble, error
from runners.sandbox.syscalls import NEWEST, Architecture

_NEW_NAMESPACES = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET."""
_CLONE_THREAD, _CLONE_PARENT = 0x00010000, 0x00008000
_O_TRUNC, _O_ACCMODE = 0o1000, 3
_SOCK_STREAM, _SOCK_SEQPACKET, _SOCK_KIND = 1, 5, 0xF
_PERSONALITY_QUERY = 0xFFFFFFFF
_ABI_TRUNCATE, _ABI_SCOPES = 3, 6

_NEW_PROCESS = ("fork", "vfork", "execve", "execveat")


class Profile(Enum):
    """How closely a process is held."""

    STRICT = "strict"
    """No new process and no exec: interpreted and plain CPU runs."""
    COMPILER = "compiler"
    """Processes may be started, for compilers."""
    JUDGE = "judge"
    """The task's own code: like COMPILER, nobody is told, and files it may write may change their mode."""


def rules(profile: Profile, *, pid: int, landlock_abi: int) -> dict[str, Rule]:
    """What the profile does with each call that it does not plainly allow, for the process ``pid``.

    ``landlock_abi`` says what else holds the process: before ABI 3 nothing else stops truncation.
    """
    errors = meaning.errno_of((*meaning.FIXED, "socket", "socketpair", "fcntl", "ioctl", "prctl"))

    def refused(name: str) -> int:
        return error(errors[name]) if profile is Profile.JUDGE else NOTIFY

    def refuse(name: str, *unless: tuple[Condition, ...]) -> Rule:
        return Rule(refused(name), tuple(Clause(conditions, ALLOW) for conditions in unless))

    def refuse_only(name: str, *when: tuple[Condition, ...]) -> Rule:
        return Rule(ALLOW, tuple(Clause(conditions, refused(name)) for conditions in when))

    table = {name: refuse(name) for name in (*meaning.FIXED, "socket")}
    own = Condition(0, pid)
    table["kill"] = refuse("kill", (own,))
    table["tgkill"] = refuse("tgkill", (own,))
    table["clone3"] = Rule(error(errno.ENOSYS))  # its flags lie in memory; libraries then fall back to clone
    table["socketpair"] = refuse(
        "socketpair",
        *((Condition(0, meaning.AF_UNIX), Condition(1, kind, _SOCK_KIND)) for kind in (_SOCK_STREAM, _SOCK_SEQPACKET)),
    )  # a datagram pair could still send to any named socket
    table["sendto"] = refuse("sendto", (Condition(4, 0, wide=True),))
    table["personality"] = refuse("personality", (Condition(0, _PERSONALITY_QUERY),))
    read_only = Condition(2, 0, wide=True)
    table["prlimit64"] = refuse("prlimit64", (Condition(0, 0), read_only), (own, read_only))
    table["move_pages"] = refuse("move_pages", (Condition(0, 0),), (own,))
    table["fcntl"] = refuse_only("fcntl", *((Condition(1, command),) for command in _FCNTL))
    table["ioctl"] = refuse_only("ioctl", *((Condition(1, request),) for request in _IOCTL))
    table["prctl"] = refuse_only(
        "prctl",
        (Condition(0, meaning.PR_SET_SECCOMP),),
        (Condition(0, meaning.PR_SCHED_CORE),),
        (Condition(0, meaning.PR_SET_DUMPABLE), Condition(1, 0)),
    )
    _truncation(table, landlock_abi, refused)
    if profile is Profile.STRICT:
        table["clone"] = refuse("clone", (Condition(0, _CLONE_THREAD, _CLONE_THREAD | _NEW_NAMESPACES),))
        return table
    for name in _NEW_PROCESS:
        del table[name]
    table["clone"] = refuse("clone", (Condition(0, 0, _CLONE_PARENT | _NEW_NAMESPACES),))
    # Compiler drivers raise their stack's soft limit.
    stack = (Condition(0, 0), Condition(1, resource.RLIMIT_STACK))
    table["prlimit64"] = refuse("prlimit64", (Condition(0, 0), read_only), (own, read_only), stack)
    if profile is Profile.JUDGE:
        for name in meaning.METADATA:
            del table[name]
        if landlock_abi >= _ABI_SCOPES:
            del table["kill"], table["tgkill"]
    return table


_FCNTL = (meaning.F_SETOWN, meaning.F_SETOWN_EX, meaning.F_SETSIG, meaning.F_SETLEASE, meaning.F_NOTIFY)
_IOCTL = (
    meaning.FIOSETOWN,
    meaning.SIOCSPGRP,
    meaning.TIOCSTI,
    meaning.TIOCLINUX,
    meaning.FS_IOC_SETFLAGS,
    meaning.FS_IOC_FSSETXATTR,
)


def _truncation(table: dict[str, Rule], landlock_abi: int, refused: Callable[[str], int]) -> None:
    """Before ABI 3 a file that may only be read, or not even that, can be emptied by name or by O_TRUNC."""
    if landlock_abi >= _ABI_TRUNCATE:
        for name in ("truncate", "open", "openat"):
            del table[name]
        return
    table["openat2"] = Rule(error(errno.ENOSYS))
    for name, flags in (("open", 1), ("openat", 2)):
        emptying = (Condition(flags, _O_TRUNC | access, _O_TRUNC | _O_ACCMODE) for access in (0, _O_ACCMODE))
        table[name] = Rule(ALLOW, tuple(Clause((condition,), refused(name)) for condition in emptying))


def filter_for(profile: Profile, architecture: Architecture, *, pid: int, landlock_abi: int) -> bytes:
    """The profile's filter in the kernel's form."""
    by_name = rules(profile, pid=pid, landlock_abi=landlock_abi)
    numbers = architecture.numbers
    return assemble(
        {numbers[name]: rule for name, rule in by_name.items() if name in numbers},
        architecture=architecture.audit,
        first_foreign=architecture.first_foreign,
        newest=NEWEST,
        foreign=error(errno.ENOSYS) if profile is Profile.JUDGE else NOTIFY,
        unknown=error(errno.ENOSYS),
    )
