"""Installing a system call filter, with or without a listener that is told of what it refuses."""

from __future__ import annotations

import ctypes
import struct

from runners.sandbox import kernel
from runners.sandbox.bpf import NOTIFY
from runners.sandbox.kernel import SandboxError
from runners.sandbox.policy import Profile, filter_for
from runners.sandbox.syscalls import ARCHITECTURES, Architecture

_SET_MODE_FILTER, _GET_ACTION_AVAIL = 1, 2
_FLAG_NEW_LISTENER = 1 << 3


def architecture() -> Architecture:
    """This machine's numbers. Raises SandboxError where there is no table for it."""
    name = kernel.machine()
    if name not in ARCHITECTURES:
        raise SandboxError(f"seccomp: no system call table for {name}")
    return ARCHITECTURES[name]


def notifies() -> bool:
    """Whether the kernel can hand refused calls to a supervisor; changes nothing."""
    try:
        kernel.call(
            architecture().numbers["seccomp"],
            _GET_ACTION_AVAIL,
            0,
            ctypes.create_string_buffer(struct.pack("=I", NOTIFY), 4),
        )
    except OSError:
        return False
    return True


def install(profile: Profile, *, pid: int, landlock_abi: int) -> int | None:
    """Put the calling thread, and all that it starts, under ``profile``; there is no way back.

    Returns the descriptor of the listener, None for the judge's profile. Raises SandboxError.
    """
    machine = architecture()
    code = filter_for(profile, machine, pid=pid, landlock_abi=landlock_abi)
    buffer = ctypes.create_string_buffer(code, len(code))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(code) // 8, ctypes.addressof(buffer)), 16)
    flags = 0 if profile is Profile.JUDGE else _FLAG_NEW_LISTENER
    try:
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        descriptor = kernel.call(machine.numbers["seccomp"], _SET_MODE_FILTER, flags, program)
    except OSError as error:
        raise SandboxError(error.errno, f"seccomp: {error.strerror}") from None
    return None if profile is Profile.JUDGE else descriptor
