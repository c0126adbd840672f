"""Git processes: their environment, their time and how much they may say."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Literal

import msgspec

from console.exchange.errors import ExchangeError, GitRefused
from console.exchange.text import git_words

READ_SECONDS = 60.0
NETWORK_SECONDS = 180.0
MAX_OUT = 256 * 1024 * 1024
MAX_ERR = 256 * 1024
GRACE_SECONDS = 0.5
"""How long output may still come from what a finished process left behind, such as a daemon that a hook started."""

NO_TERMINAL = "/nonexistent/terminal"

Arg = str | bytes | os.PathLike[str]

_EMPTY_TREE = {
    "sha1": "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "sha256": "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}

# What says where a repository is, or changes what git reads, never comes from outside; what says who the user is and
# how to reach a host is theirs to set.
_CONFIG = (
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CONFIG_COUNT",
    "GIT_CEILING_DIRECTORIES",
)
_CONFIG_PREFIXES = ("GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_")
_REACH = (
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_SSH_VARIANT",
    "GIT_ASKPASS",
    "GIT_PROXY_COMMAND",
    "GIT_HTTP_PROXY_AUTHMETHOD",
)
_REACH_PREFIXES = ("GIT_SSL_",)
_PERSON = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL")

Purpose = Literal["read", "user"]


def environment(purpose: Purpose, *, attended: bool = False, outside: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment of a git process.

    ``read`` is for the private clone: no configuration but its own, no attributes, no locks. ``user`` is for what git
    does in the grader's name: their configuration, identity and ways to reach a host, and nobody to ask unless
    ``attended``: no terminal prompt, no editor, and no terminal for gpg's pinentry, which would draw over the screen.
    """
    clean = {key: value for key, value in outside.items() if not key.startswith("GIT_")}
    if purpose == "read":
        clean |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_OPTIONAL_LOCKS": "0"}
        clean |= {"GIT_ATTR_NOSYSTEM": "1", "GIT_NO_REPLACE_OBJECTS": "1", "GIT_NO_LAZY_FETCH": "1"}
        clean |= {"GIT_DEFAULT_REF_FORMAT": "files"}
    else:
        for key, value in outside.items():
            if key in _CONFIG + _REACH + _PERSON or key.startswith(_CONFIG_PREFIXES + _REACH_PREFIXES):
                clean[key] = value
    clean |= {"GIT_PAGER": "cat", "GIT_EDITOR": ":", "GIT_SEQUENCE_EDITOR": ":", "GIT_LFS_SKIP_SMUDGE": "1"}
    # Words are matched in a few places; only the C locale keeps them.
    clean |= {"LC_ALL": "C.UTF-8", "LANGUAGE": ""}
    if not attended:
        clean["GIT_TERMINAL_PROMPT"] = "0"
        clean["GCM_INTERACTIVE"] = "never"
        # Not unset: gpg-agent would fall back to the terminal it was started from; and no device: pinentry waits on
        # any that opens. A pinentry with a window of its own, a cached passphrase or a token without a PIN still work.
        clean["GPG_TTY"] = NO_TERMINAL
    return clean


def with_config(env: dict[str, str], settings: Sequence[tuple[str, str]]) -> dict[str, str]:
    """``env`` with further git settings that win over files; in the environment, where ``ps`` does not show them."""
    start = int(env.get("GIT_CONFIG_COUNT") or 0)
    added = dict(env)
    for number, (key, value) in enumerate(settings, start):
        added[f"GIT_CONFIG_KEY_{number}"] = key
        added[f"GIT_CONFIG_VALUE_{number}"] = value
    added["GIT_CONFIG_COUNT"] = str(start + len(settings))
    return added


# For every process that reads: nothing that a repository or its owner configured may start a program.
READ_SETTINGS: tuple[tuple[str, str], ...] = (
    ("core.hooksPath", os.devnull),
    ("core.fsmonitor", "false"),
    ("core.attributesFile", os.devnull),
    ("core.quotePath", "true"),
    ("core.pager", "cat"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("protocol.ext.allow", "never"),
)


def reading(object_format: str = "sha1") -> dict[str, str]:
    """The environment for reading the private clone. Attributes come from the empty tree: none can hide a change."""
    env = with_config(environment("read"), READ_SETTINGS)
    return env | {"GIT_ATTR_SOURCE": _EMPTY_TREE[object_format]}


def empty_tree(object_format: str) -> str:
    """The id of the tree without entries."""
    return _EMPTY_TREE[object_format]


class Result(msgspec.Struct, frozen=True):
    """How a process ended. ``cut`` is True when it was stopped for saying too much."""

    code: int
    out: bytes
    err: bytes
    cut: bool = False
    late: bool = False

    @property
    def words(self) -> str:
        """Its complaint, safe to show; what it printed where it complained on stdout."""
        return git_words(self.err) or git_words(self.out) or f"git ended with status {self.code} and said nothing"


def end(process: subprocess.Popen[bytes], *, group: bool) -> None:
    """End a process, and its group where it leads one, and reap it."""
    if process.poll() is None or group:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if group:
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
    process.wait()


def run(
    args: Sequence[Arg],
    *,
    cwd: Path,
    env: Mapping[str, str],
    stdin: bytes = b"",
    seconds: float = READ_SECONDS,
    limit: int = MAX_OUT,
    attended: bool = False,
) -> Result:
    """Run ``git ARGS``: bounded in time and output, without a terminal unless ``attended``.

    Raises ExchangeError when git is not installed or the folder is gone.
    """
    try:
        process = subprocess.Popen(
            ["git", *args],
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=not attended,
        )
    except FileNotFoundError:
        if not cwd.is_dir():
            raise ExchangeError(f"{cwd}: no such folder") from None
        raise ExchangeError("git is not installed, or not on PATH") from None
    except (PermissionError, NotADirectoryError) as error:
        raise ExchangeError(f"{cwd}: {error.strerror}") from None
    try:
        return _converse(process, stdin, seconds, limit)
    finally:
        end(process, group=not attended)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()


def _converse(process: subprocess.Popen[bytes], stdin: bytes, seconds: float, limit: int) -> Result:
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    out, err = bytearray(), bytearray()
    until = time.monotonic() + seconds
    ended: float | None = None
    rest = memoryview(stdin)
    with selectors.DefaultSelector() as selector:
        for stream, buffer in ((process.stdout, out), (process.stderr, err)):
            os.set_blocking(stream.fileno(), False)
            selector.register(stream, selectors.EVENT_READ, buffer)
        if rest:
            os.set_blocking(process.stdin.fileno(), False)
            selector.register(process.stdin, selectors.EVENT_WRITE)
        else:
            process.stdin.close()
        while selector.get_map():
            now = time.monotonic()
            if now > until:
                return Result(-1, bytes(out), bytes(err), late=True)
            if process.poll() is not None:
                ended = ended or now
                if now - ended > GRACE_SECONDS:
                    break
            for key, _ in selector.select(0.05 if ended else min(0.5, until - now)):
                if key.data is None:
                    rest = _feed(selector, process.stdin, rest)
                elif key.data is err:
                    _drain(selector, key)
                    del err[: max(0, len(err) - MAX_ERR)]
                else:
                    _drain(selector, key)
                    if len(out) > limit:
                        return Result(-1, bytes(out[:limit]), bytes(err), cut=True)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(max(0.0, until - time.monotonic()))
    code = process.poll()
    return Result(-1, bytes(out), bytes(err), late=True) if code is None else Result(code, bytes(out), bytes(err))


def _feed(selector: selectors.BaseSelector, stdin: IO[bytes], rest: memoryview) -> memoryview:
    try:
        rest = rest[os.write(stdin.fileno(), rest[:65_536]) :]
    except BlockingIOError:
        return rest
    except BrokenPipeError:
        rest = rest[:0]
    if not rest:
        selector.unregister(stdin)
        with contextlib.suppress(BrokenPipeError):
            stdin.close()
    return rest


def _drain(selector: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
    try:
        chunk = os.read(key.fd, 1 << 20)
    except BlockingIOError:
        return
    if not chunk:
        selector.unregister(key.fileobj)
    buffer: bytearray = key.data
    buffer += chunk


class Git:
    """Git on one repository: a folder, an environment, and words for failures."""

    def __init__(self, folder: Path, env: Callable[[], dict[str, str]]) -> None:
        self.folder = folder
        self.env = env

    def try_run(self, *args: Arg, stdin: bytes = b"", seconds: float = READ_SECONDS, limit: int = MAX_OUT) -> Result:
        """Run and say how it ended."""
        return run(args, cwd=self.folder, env=self.env(), stdin=stdin, seconds=seconds, limit=limit)

    def out(self, *args: Arg, stdin: bytes = b"", seconds: float = READ_SECONDS, limit: int = MAX_OUT) -> bytes:
        """Run and return stdout. Raises GitRefused with git's words, also for too much output or time."""
        return checked(self.try_run(*args, stdin=stdin, seconds=seconds, limit=limit), f"git {args[0]!s}", seconds)

    def text(self, *args: Arg) -> str:
        """Run and return stdout as one text without the newline at its end."""
        return self.out(*args).decode("utf-8", "backslashreplace").rstrip("\n")


def checked(result: Result, what: str, seconds: float = READ_SECONDS, *, pending: str | None = None) -> bytes:
    """The output of a process that succeeded. Raises GitRefused otherwise."""
    if result.late:
        words = git_words(result.err)
        raise GitRefused(
            what, f"not done after {seconds:g} s, ended" + (f"; it said: {words}" if words else ""), pending=pending
        )
    if result.cut:
        raise GitRefused(what, "more output than the limit, ended", pending=pending)
    if result.code != 0:
        raise GitRefused(what, result.words, pending=pending)
    return result.out
