"""Giving up root's powers for good, as far as a run does not need them."""

from __future__ import annotations

import ctypes
import struct

from runners.sandbox import kernel
from runners.sandbox.kernel import SandboxError
from runners.sandbox.syscalls import ARCHITECTURES

CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 1, 2

_VERSION_3 = 0x20080522


def drop() -> None:
    """Leave the process no capability but to read files that belong to others, within what Landlock leaves open.

    Root needs that where a Python lies in a user's private home. Without the rest root cannot kill, trace, raise
    limits or administer the machine; exec brings nothing back under no_new_privs. Raises SandboxError.
    """
    keep = (1 << CAP_DAC_OVERRIDE) | (1 << CAP_DAC_READ_SEARCH)
    header = ctypes.create_string_buffer(struct.pack("=Ii", _VERSION_3, 0), 8)
    data = ctypes.create_string_buffer(24)
    machine = ARCHITECTURES.get(kernel.machine())
    if machine is None:
        raise SandboxError(f"capabilities: no system call table for {kernel.machine()}")
    try:
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        kernel.call(machine.numbers["capget"], header, data)
        effective, permitted = struct.unpack("=2I", data.raw[:8])
        data = ctypes.create_string_buffer(struct.pack("=6I", effective & keep, permitted & keep, 0, 0, 0, 0), 24)
        kernel.call(machine.numbers["capset"], header, data)
    except OSError as error:
        raise SandboxError(error.errno, f"capabilities: {error.strerror}") from None
