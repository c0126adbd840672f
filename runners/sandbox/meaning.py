"""What a refused system call means: whether it is an attempt to leave, its errno, and words for a reviewer.

Judged by number and register arguments alone: memory that a pointer names could change between a look and the call.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

RefusalSeverity = Literal["escape", "info"]

AF_UNIX = 1
_FAMILIES = {0: "unspecified", 2: "AF_INET", 10: "AF_INET6", 16: "AF_NETLINK", 17: "AF_PACKET", 38: "AF_ALG"}
_FAMILIES |= {40: "AF_VSOCK", 44: "AF_XDP"}

F_SETOWN, F_SETSIG, F_SETOWN_EX, F_SETLEASE, F_NOTIFY = 8, 10, 15, 1024, 1026
FIOSETOWN, SIOCSPGRP, TIOCSTI, TIOCLINUX = 0x8901, 0x8902, 0x5412, 0x541C
FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR = 0x40086602, 0x401C5820
PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SCHED_CORE = 4, 22, 62
PRIO_PROCESS, IOPRIO_WHO_PROCESS = 0, 1


@dataclass(frozen=True)
class Meaning:
    """How a refused call ends and what is said of it. ``summary`` names no number that a caller could vary."""

    severity: RefusalSeverity
    error: int
    summary: str


def _group(severity: RefusalSeverity, error: int, summary: str, names: str) -> dict[str, Meaning]:
    return {name: Meaning(severity, error, summary) for name in names.split()}


METADATA = (
    "chmod",
    "fchmod",
    "fchmodat",
    "fchmodat2",
    "chown",
    "fchown",
    "lchown",
    "fchownat",
    "utime",
    "utimes",
    "utimensat",
    "futimesat",
    "setxattr",
    "lsetxattr",
    "fsetxattr",
    "setxattrat",
    "removexattr",
    "lremovexattr",
    "fremovexattr",
    "removexattrat",
    "file_setattr",
)
"""Landlock does not cover a file's mode, owner, times and attributes, so the whole disk would be open to these."""

FIXED: dict[str, Meaning] = {
    **_group("escape", errno.EACCES, "reaches for a socket's address", "connect bind sendto"),
    **_group(
        "escape",
        errno.EPERM,
        "reaches into another process",
        "ptrace process_vm_readv process_vm_writev process_madvise process_mrelease kcmp"
        " pidfd_open pidfd_getfd pidfd_send_signal",
    ),
    **_group("escape", errno.EPERM, "asks for io_uring", "io_uring_setup io_uring_enter io_uring_register"),
    **_group(
        "escape",
        errno.EPERM,
        "changes mounts, namespaces or the root",
        "mount umount2 pivot_root chroot open_tree move_mount fsopen fsconfig fsmount fspick mount_setattr"
        " open_tree_attr unshare setns",
    ),
    **_group(
        "escape",
        errno.EPERM,
        "asks for a privileged kernel facility",
        "bpf perf_event_open userfaultfd add_key request_key keyctl lookup_dcookie open_by_handle_at fanotify_init"
        " fanotify_mark iopl ioperm modify_ldt uselib lsm_set_self_attr nfsservctl",
    ),
    **_group(
        "escape",
        errno.EACCES,
        "shares memory or messages with other processes",
        "shmget shmat shmctl shmdt semget semop semtimedop semctl msgget msgsnd msgrcv msgctl mq_open mq_unlink",
    ),
    **_group(
        "escape",
        errno.EPERM,
        "administers the machine",
        "kexec_load kexec_file_load init_module finit_module delete_module reboot swapon swapoff acct syslog quotactl"
        " quotactl_fd settimeofday clock_settime clock_adjtime adjtimex sethostname setdomainname vhangup",
    ),
    **_group(
        "escape",
        errno.EPERM,
        "changes its identity or privileges",
        "setuid setgid setreuid setregid setresuid setresgid setgroups setfsuid setfsgid capset",
    ),
    **_group("escape", errno.EPERM, "changes its own system call filter", "seccomp"),
    **_group("escape", errno.EPERM, "starts a process", "fork vfork clone execve execveat"),
    **_group("escape", errno.EPERM, "signals another process", "kill tgkill tkill rt_sigqueueinfo rt_tgsigqueueinfo"),
    **_group(
        "escape",
        errno.EPERM,
        "changes the settings of another process",
        "sched_setaffinity sched_setscheduler sched_setparam sched_setattr setpriority ioprio_set prlimit64"
        " migrate_pages move_pages",
    ),
    **_group("info", errno.EPERM, "changes a file's mode, owner, times or attributes", " ".join(METADATA)),
    **_group("info", errno.EACCES, "truncates a file by its name", "truncate open openat"),
    **_group("info", errno.EPERM, "changes its own limits", "setrlimit"),
    **_group("info", errno.EPERM, "changes its execution domain", "personality"),
    **_group("info", errno.EACCES, "watches files", "inotify_add_watch"),
    **_group("info", errno.EPERM, "flushes every file system", "sync syncfs"),
}

_AIMED_AT = {
    "process_vm_readv": 0,
    "process_vm_writev": 0,
    "pidfd_open": 0,
    "tkill": 0,
    "rt_sigqueueinfo": 0,
    "rt_tgsigqueueinfo": 0,
    "sched_setaffinity": 0,
    "sched_setscheduler": 0,
    "sched_setparam": 0,
    "sched_setattr": 0,
    "prlimit64": 0,
    "migrate_pages": 0,
    "move_pages": 0,
}
"""Which argument names the process that a call is aimed at; aimed at oneself the call is harmless, though refused."""


def _aimed_at_self(name: str, arguments: Sequence[int], is_self: Callable[[int], bool]) -> bool:
    if name == "setpriority":
        return _int(arguments[0]) == PRIO_PROCESS and is_self(_int(arguments[1]))
    if name == "ioprio_set":
        return _int(arguments[0]) == IOPRIO_WHO_PROCESS and is_self(_int(arguments[1]))
    if name == "kcmp":
        return is_self(_int(arguments[0])) and is_self(_int(arguments[1]))
    return name in _AIMED_AT and is_self(_int(arguments[_AIMED_AT[name]]))


def meaning_of(name: str, arguments: Sequence[int], is_self: Callable[[int], bool]) -> Meaning:
    """What the refused call ``name`` with its six register ``arguments`` means.

    ``is_self`` tells whether a pid or thread id is the caller's own (0 is). An unknown name is an attempt to leave.
    """
    if name in ("socket", "socketpair"):
        family = _int(arguments[0])
        if family == AF_UNIX:
            return Meaning("info", errno.EACCES, "asks for a local socket, as look-ups of users and hosts do")
        return Meaning("escape", errno.EACCES, f"asks for a network socket ({_FAMILIES.get(family, 'other family')})")
    if name == "fcntl":
        return _fcntl(arguments, is_self)
    if name == "ioctl":
        return _ioctl(_int(arguments[1]))
    if name == "prctl":
        if _int(arguments[0]) == PR_SET_SECCOMP:
            return FIXED["seccomp"]
        if _int(arguments[0]) == PR_SET_DUMPABLE:
            return Meaning("info", errno.EPERM, "hides its memory from the accounts")
        return Meaning("escape", errno.EPERM, FIXED["setpriority"].summary)
    fixed = FIXED.get(name) or Meaning("escape", errno.ENOSYS, "uses system calls of another architecture")
    if fixed.severity == "escape" and _aimed_at_self(name, arguments, is_self):
        return Meaning("info", fixed.error, "aims at itself a call that could be aimed at other processes")
    return fixed


def _fcntl(arguments: Sequence[int], is_self: Callable[[int], bool]) -> Meaning:
    command, value = _int(arguments[1]), _int(arguments[2])
    if command in (F_SETLEASE, F_NOTIFY):
        return FIXED["inotify_add_watch"]
    if command == F_SETOWN and value > 0 and is_self(value):
        return Meaning("info", errno.EPERM, "asks for signals about a descriptor")
    return Meaning("escape", errno.EPERM, "has a descriptor signal another process")


def _ioctl(request: int) -> Meaning:
    if request in (FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR):
        return FIXED["chmod"]
    if request in (TIOCSTI, TIOCLINUX):
        return Meaning("escape", errno.EPERM, "types into a terminal")
    return Meaning("escape", errno.EPERM, "has a descriptor signal another process")


def errno_of(names: Iterable[str]) -> dict[str, int]:
    """The errno of each call where nobody looks at its arguments."""
    odd = {"socket": errno.EACCES, "socketpair": errno.EACCES}
    return {name: odd.get(name) or (FIXED[name].error if name in FIXED else errno.EPERM) for name in names}


def _int(value: int) -> int:
    """A register as the kernel reads an ``int`` from it."""
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value
