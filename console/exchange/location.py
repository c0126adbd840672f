"""Where an exchange is: a path or an address, and what it stands for."""

from __future__ import annotations

import functools
import hashlib
import re
from pathlib import Path
from typing import Literal

import msgspec

from console.exchange.errors import ExchangeError, GitRefused
from console.exchange.process import Arg, Result, environment, run, with_config
from console.exchange.text import visible, without_secrets

OLDEST_GIT = (2, 34)
"""The git of Ubuntu 22.04; ``--diff-merges=first-parent`` and ``--path-format`` need 2.31."""

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://|(?:[^/\s]+@)?[A-Za-z0-9._-]+:[^\s]")
_VERSION = re.compile(rb"git version (\d+)\.(\d+)")

# Run in a repository that may not be the reader's own: it must not start what that repository configures.
_CAREFUL = (("core.fsmonitor", "false"),)


class Location(msgspec.Struct, frozen=True, kw_only=True):
    """A place, resolved. ``folder`` is where git runs in the grader's repository, None for an address."""

    kind: Literal["clone", "path", "bare", "url"]
    """``clone``: a path with an origin, which stands for that; ``path`` and ``bare`` stand for themselves."""
    where: str
    name: str
    id: str
    source: str
    """What is fetched from: origin's address as git has it, the path, or the address."""
    folder: Path | None = None
    git_dir: Path | None = None
    head: str = ""
    """The branch of HEAD, for a ``path``; empty when detached."""
    shallow: bool = False
    object_format: str = "sha1"

    @property
    def local(self) -> bool:
        """Whether fetching needs no network and no one's permission."""
        return self.kind in ("path", "bare")

    @property
    def shown(self) -> str:
        """The source for people: no secrets, safe to print."""
        return visible(without_secrets(self.source))


@functools.cache
def require_git() -> None:
    """Raises ExchangeError where git is missing or too old."""
    out = run(["version"], cwd=Path("/"), env=environment("read")).out
    found = _VERSION.match(out)
    if found is None or (int(found[1]), int(found[2])) < OLDEST_GIT:
        said = visible(out.decode("utf-8", "replace").strip())
        raise ExchangeError(f"git {OLDEST_GIT[0]}.{OLDEST_GIT[1]} or newer is needed; this is {said!r}")


def ask(folder: Path, *args: Arg) -> Result:
    """Ask the grader's own repository something, without changing it."""
    env = with_config(environment("user"), _CAREFUL) | {"GIT_OPTIONAL_LOCKS": "0"}
    return run(args, cwd=folder, env=env, limit=16 * 1024 * 1024)


def _line(result: Result) -> str:
    return result.out.decode("utf-8", "surrogateescape").rstrip("\n") if result.code == 0 else ""


def locate(where: str) -> Location:
    """Resolve a path or an address.

    Raises ExchangeError for what is no repository, GitRefused where git will not read one (its owner, its format).
    """
    if not where or "\0" in where or "\n" in where:
        raise ExchangeError("name a path or the address of a git repository")
    path = Path(where).expanduser()
    try:
        exists = path.exists()
    except OSError as error:
        raise ExchangeError(f"{visible(where)}: {error.strerror}") from None
    if exists:
        return _locate_path(path)
    if _ADDRESS.match(where):
        return _locate_address(where)
    raise ExchangeError(f"{visible(where)}: no such path, and not the address of a repository")


def _locate_address(where: str) -> Location:
    require_git()
    # Importing GitPython costs as much as opening a path; only an address needs its list of unsafe protocols.
    from git.cmd import Git as GitPython
    from git.exc import UnsafeProtocolError

    try:
        GitPython.check_unsafe_protocols(where)
    except UnsafeProtocolError:
        raise ExchangeError(f"{visible(where)}: this kind of address may run programs, so it is not opened") from None
    bare = without_secrets(where)
    name = re.split(r"[/:]", where.rstrip("/"))[-1].removesuffix(".git")
    return Location(kind="url", where=where, name=visible(name) or "exchange", id=_identify(name, bare), source=where)


def _locate_path(path: Path) -> Location:
    where = str(path)
    if not path.is_dir():
        raise ExchangeError(f"{visible(where)}: not a folder")
    facts = ask(
        path,
        "rev-parse",
        "--path-format=absolute",
        "--is-bare-repository",
        "--is-inside-git-dir",
        "--is-shallow-repository",
        "--show-object-format",
        "--absolute-git-dir",
        "--git-common-dir",
        # Last: git answers it only where there is a work tree, and fails after it has answered all others.
        "--show-toplevel",
    )
    answers = facts.out.decode("utf-8", "surrogateescape").split("\n")
    if answers[0] not in ("true", "false"):
        require_git()  # an old git repeats what it does not know
        if b"not a git repository" in facts.err and b"must be" not in facts.err:
            raise ExchangeError(f"{visible(where)}: not a git repository, nor inside one; `git init` makes one")
        raise GitRefused(f"git will not read {visible(where)}", facts.words)
    bare, inside, shallow, object_format, git_dir, common, top = answers[:7]
    folder = Path(git_dir if bare == "true" or inside == "true" else top or git_dir)
    origin = _origin(folder)
    kind: Literal["clone", "path", "bare"] = "clone" if origin else "bare" if bare == "true" else "path"
    name = (folder.parent if folder.name == ".git" else folder).name.removesuffix(".git") or "exchange"
    return Location(
        kind=kind,
        where=where,
        name=visible(name),
        id=_identify(name, f"{common}\0{origin or git_dir}"),
        source=origin or str(folder),
        folder=folder,
        git_dir=Path(git_dir),
        head=_line(ask(folder, "symbolic-ref", "-q", "--short", "HEAD")) if kind == "path" else "",
        shallow=shallow == "true",
        object_format=object_format,
    )


def _origin(folder: Path) -> str:
    """The address of ``origin`` as configured; a relative path is made absolute. Empty where there is none."""
    raw = _line(ask(folder, "config", "--get", "remote.origin.url"))
    if not raw or "://" in raw or _ADDRESS.match(raw) or Path(raw).is_absolute():
        return raw
    # An ``insteadOf`` rule may turn what looks like a path into an address.
    rewritten = _line(ask(folder, "remote", "get-url", "origin"))
    return raw if rewritten != raw else str((folder / raw).resolve())


def _identify(name: str, place: str) -> str:
    """A folder name: readable, and different for different places."""
    readable = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-").lower()[:40] or "exchange"
    return f"{readable}-{hashlib.sha256(place.encode('utf-8', 'surrogateescape')).hexdigest()[:12]}"
