"""System calls that the standard library lacks, through libc, with failures as OSError."""

from __future__ import annotations

import ctypes
import os
import platform

PR_SET_NO_NEW_PRIVS = 38
PR_SET_CHILD_SUBREAPER = 36

_libc = ctypes.CDLL(None, use_errno=True)


class SandboxError(OSError):
    """The kernel refused or lacks a part of the sandbox; the message names the part."""


def machine() -> str:
    """``x86_64``, ``aarch64`` or what else the kernel calls its architecture."""
    return platform.machine()


def call(number: int, *arguments: int | ctypes.Array[ctypes.c_char] | None) -> int:
    """System call ``number``; each argument is an integer, a buffer or a null pointer. Raises OSError."""
    converted = [
        ctypes.c_void_p(argument) if argument is None or isinstance(argument, int) else argument
        for argument in arguments
    ]
    function = _libc.syscall
    function.restype = ctypes.c_long
    result = int(function(ctypes.c_long(number), *converted))
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


def prctl(option: int, *arguments: int) -> int:
    """``prctl(2)``. Raises OSError."""
    values = [ctypes.c_ulong(value) for value in (*arguments, 0, 0, 0, 0)[:4]]
    result = int(_libc.prctl(option, *values))
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result
