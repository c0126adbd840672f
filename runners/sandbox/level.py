"""How much of the sandbox this machine's kernel can give, tried out and not read off a version."""

from __future__ import annotations

import os
import sys
from functools import cache

import msgspec

from runners.sandbox import landlock, seccomp, shm
from runners.sandbox.policy import Profile

_ABI_TCP, _ABI_SCOPES = 4, 6


class SandboxLevel(msgspec.Struct, frozen=True):
    """What the sandbox reaches here. ``missing`` says in words what is lacking, also above the floor."""

    landlock_abi: int
    seccomp_notify: bool
    scoping: bool
    missing: tuple[str, ...]
    private_shm: bool = False
    """Whether a process gets a /dev/shm of its own; without one, shared memory by name is closed to it."""

    @property
    def reached(self) -> bool:
        """Whether the floor is reached: files held by Landlock, refused calls reported by seccomp."""
        return self.landlock_abi >= 1 and self.seccomp_notify

    @property
    def label(self) -> str:
        """Short, for evidence: ``landlock-7+seccomp-notify``, or ``none``."""
        parts = [f"landlock-{self.landlock_abi}"] if self.landlock_abi else []
        parts += ["seccomp-notify"] if self.seccomp_notify else []
        return "+".join(parts) or "none"


@cache
def level() -> SandboxLevel:
    """The level reached here, probed once in a forked child."""
    if sys.platform != "linux":
        return SandboxLevel(0, False, False, ("runs need Linux",))
    abi = landlock.abi()
    held, heard, private_shm = _probe(abi)
    return level_of(abi if held else 0, heard, private_shm)


def level_of(abi: int, notifies: bool, private_shm: bool = True) -> SandboxLevel:
    """The level for a Landlock ABI (0: none), and whether refused calls are reported and /dev/shm can be private."""
    missing = []
    if abi < 1:
        missing.append("Landlock, which closes files (Linux 5.13 and switched on)")
    else:
        if abi < _ABI_TCP:
            missing.append("Landlock's closing of TCP (Linux 6.7); seccomp refuses sockets all the same")
        if abi < _ABI_SCOPES:
            missing.append("Landlock's scoping of signals and abstract sockets (Linux 6.12); seccomp refuses them")
    if not notifies:
        missing.append("seccomp with notifications (Linux 5.0, x86_64 or aarch64)")
    if not private_shm:
        missing.append("a private /dev/shm (user namespaces), so Tensor.share_memory_() is refused")
    return SandboxLevel(abi, notifies, abi >= _ABI_SCOPES, tuple(missing), private_shm)


def _probe(abi: int) -> tuple[bool, bool, bool]:
    """Whether Landlock really closes files, a filter with a listener can be installed, /dev/shm can be private."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        answer = b""
        try:
            answer += b"S" if shm.make_private(1) else b"-"
            answer += b"F" if abi and _closes_files() else b"-"
            answer += b"N" if _listens(abi) else b"-"
            os.write(writer, answer)
        finally:
            os._exit(0)
    os.close(writer)
    try:
        answer = os.read(reader, 3)
    finally:
        os.close(reader)
        os.waitpid(child, 0)
    return b"F" in answer, b"N" in answer, b"S" in answer


def _closes_files() -> bool:
    try:
        landlock.enforce(landlock.Access(proc_self=False))
    except OSError:
        return False
    try:
        os.close(os.open("/", os.O_RDONLY | os.O_DIRECTORY))
    except PermissionError:
        return True
    return False


def _listens(abi: int) -> bool:
    try:
        return seccomp.install(Profile.STRICT, pid=os.getpid(), landlock_abi=abi) is not None
    except OSError:
        return False
