"""A lock for the whole machine, shared by every user of it: runs share it, a timing window has it alone.

Two files in one common folder carry it by ``flock``, which the kernel releases when its holder dies, however it dies
(and, as with any flock, its forks too: fork nothing that outlives you while you hold it). The *room* is held shared by
runs and exclusively by timing. The *turnstile* is passed, one at a time, on the way in; who wants the room alone keeps
it while it waits, so that a stream of newcomers cannot starve it.

The folder is writable by all, so what lies in it is hostile: links are never followed, only regular files are opened,
descriptions are bounded and decoded tolerantly, and a user's name comes from the file's owner, not from its contents.
"""

from __future__ import annotations

import fcntl
import os
import pwd
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

POLL_SECONDS = 0.02
MAX_DESCRIPTION_BYTES = 400
MAX_HOLDERS_READ = 64

_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_FOR_ALL = 0o1777


class LockError(Exception):
    """The lock's folder or files cannot be used; says which, and what to do."""


def lock_folder() -> Path:
    """The folder that every user of this machine derives alike: in /run/lock where all may write, else /tmp."""
    run = Path("/run/lock")
    with suppress(OSError):
        mode = run.stat().st_mode
        if stat.S_ISDIR(mode) and mode & 0o1002 == 0o1002:
            return run / "kernel-review"
    return Path("/tmp/kernel-review-locks")  # noqa: S108 - one name for all users is the point; links are refused


FOLDER = lock_folder()


@contextmanager
def shared(
    describe: str, on_wait: Callable[[str], None] | None = None, *, folder: Path | None = None
) -> Iterator[None]:
    """Hold the machine together with other runs. ``describe`` is what others read while they wait for it.

    ``on_wait`` gets the holders in words whenever they change while this call waits; an exception from it ends the
    wait. Raises LockError. Not reentrant: a process that holds the lock shared must let go before it asks for it alone.
    """
    with _held(describe, on_wait, folder, fcntl.LOCK_SH):
        yield


@contextmanager
def exclusive(
    describe: str, on_wait: Callable[[str], None] | None = None, *, folder: Path | None = None
) -> Iterator[None]:
    """Hold the machine alone. Else like :func:`shared`."""
    with _held(describe, on_wait, folder, fcntl.LOCK_EX):
        yield


def holders(*, folder: Path | None = None) -> tuple[str, ...]:
    """Who holds the lock or is next, in words (``ann (pid 12): timing of x``), those who want it alone first."""
    return tuple(text for _, text in _read_holders(folder or FOLDER))


@contextmanager
def _held(describe: str, on_wait: Callable[[str], None] | None, folder: Path | None, kind: int) -> Iterator[None]:
    where = folder or FOLDER
    prepare(where)
    with ExitStack() as inside:
        with ExitStack() as passing:
            passing.enter_context(_flocked(where, "turnstile", fcntl.LOCK_EX, on_wait))
            mine = inside.enter_context(_announced(where, describe, alone=True)) if kind == fcntl.LOCK_EX else None
            inside.enter_context(_flocked(where, "room", kind, on_wait, mine))
            if kind == fcntl.LOCK_SH:
                inside.enter_context(_announced(where, describe, alone=False))
        yield


def prepare(folder: Path = FOLDER) -> None:
    """Make the folder, or make sure that it is one; a sandbox that lets a process lock needs it to exist before.

    Raises LockError.
    """
    if not folder.is_dir():  # looked at first: within a sandbox, making even what is there already is refused
        try:
            folder.mkdir(mode=0o700)
            folder.chmod(_FOR_ALL)  # apart from mkdir, so that no umask shuts others out
        except FileExistsError:
            pass
        except OSError as error:
            raise LockError(f"{folder} cannot be made: {error.strerror}") from error
    try:
        found = folder.lstat()
    except OSError as error:
        raise LockError(f"{folder} cannot be read: {error.strerror}") from error
    if not stat.S_ISDIR(found.st_mode):
        raise LockError(f"{folder} is not a folder; remove it")


def _open_regular(path: Path, flags: int) -> int:
    descriptor = os.open(path, flags, 0o644)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise LockError(f"{path} is not a regular file; remove it")
    return descriptor


def _open_lock(path: Path) -> int:
    """Open a lock file, made on first use. Reading is enough for flock, so nobody needs to write another's file."""
    while True:
        try:
            return _open_regular(path, _OPEN)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise LockError(f"{path} cannot be opened: {error.strerror}; remove it") from error
        try:
            # O_EXCL, because fs.protected_regular refuses O_CREAT on another user's file in a sticky folder.
            descriptor = _open_regular(path, _OPEN | os.O_CREAT | os.O_EXCL)
        except FileExistsError:
            continue
        except OSError as error:
            raise LockError(f"{path} cannot be made: {error.strerror}") from error
        os.fchmod(descriptor, 0o644)
        return descriptor


@contextmanager
def _flocked(
    folder: Path, name: str, kind: int, on_wait: Callable[[str], None] | None, mine: str | None = None
) -> Iterator[None]:
    path = folder / name
    told: str | None = None
    while True:
        descriptor = _open_lock(path)
        try:
            while not _try_flock(descriptor, kind):
                text = _words(folder, mine)
                if on_wait is not None and text != told:
                    told = text
                    on_wait(text)
                time.sleep(POLL_SECONDS)
            if _same_file(descriptor, path):
                yield
                return
        finally:
            os.close(descriptor)


def _try_flock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _same_file(descriptor: int, path: Path) -> bool:
    """Whether the path still names the file that is locked; it may have been replaced while we waited."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


@contextmanager
def _announced(folder: Path, describe: str, *, alone: bool) -> Iterator[str]:
    """A file that says who is here, locked for as long as that is true."""
    name = f"{'alone' if alone else 'with'}-{os.getpid()}-{secrets.token_hex(4)}"
    path, hidden = folder / name, folder / f".{name}"
    try:
        descriptor = os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise LockError(f"{hidden} cannot be made: {error.strerror}") from error
    try:
        # Locked and filled before it has a name that others look for: an unlocked announcement counts as left behind.
        _try_flock(descriptor, fcntl.LOCK_EX)
        os.fchmod(descriptor, 0o644)
        os.write(descriptor, describe.encode("utf-8", "replace")[:MAX_DESCRIPTION_BYTES])
        hidden.rename(path)
        yield name
    finally:
        for left in (hidden, path):
            with suppress(FileNotFoundError):
                left.unlink()
        os.close(descriptor)


def _words(folder: Path, mine: str | None) -> str:
    others = [text for name, text in _read_holders(folder) if name != mine]
    if not others:
        return "another process"
    more = f"; and {len(others) - 1} more" if len(others) > 1 else ""
    return others[0] + more


def _read_holders(folder: Path) -> list[tuple[str, str]]:
    """(file name, words) of each live announcement. A file that nobody locks was left by a killed process."""
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry, _ in zip(entries, range(1000), strict=False)]
    except FileNotFoundError:
        return []
    found = []
    for name in sorted(name for name in names if name.startswith(("alone-", "with-"))):
        text = _read_announcement(folder / name)
        if text is not None:
            found.append((name, text))
        if len(found) == MAX_HOLDERS_READ:
            break
    return found


def _read_announcement(path: Path) -> str | None:
    try:
        descriptor = _open_regular(path, _OPEN)
    except (OSError, LockError):
        return None
    try:
        if _try_flock(descriptor, fcntl.LOCK_SH):
            if os.fstat(descriptor).st_uid == os.geteuid():
                with suppress(OSError):
                    path.unlink()
            return None
        what = os.read(descriptor, MAX_DESCRIPTION_BYTES).decode("utf-8", "replace")
        what = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in what)
        owner = os.fstat(descriptor).st_uid
    finally:
        os.close(descriptor)
    try:
        user = pwd.getpwuid(owner).pw_name
    except KeyError:
        user = f"uid {owner}"
    pid = path.name.split("-")[1] if path.name.split("-")[1].isdigit() else "?"
    return f"{user} (pid {pid[:10]}): {what}"
