"""Evidence on disk, by content: what was judged, by which runner, on what machine, with which options.

One file an entry, one folder a submission. A file's name holds its key and the digest of its bytes, so that an entry
that was cut short or changed is noticed; it is then treated as absent, and named in :attr:`EvidenceStore.problems`.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from runners import environment
from runners.contract import RunRequest
from runners.evidence import Evidence, decode, encode

MAX_ENTRY_BYTES = 64 * 1024 * 1024
KEEP = 20
"""Entries kept for one submission; what a review rests on is committed beside it and needs no store."""
MAX_PROBLEMS = 100

_NAME = re.compile(r"^([0-9a-f]{32})\.([0-9a-f]{64})\.json$")


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """What evidence depends on. Two runs with equal keys may differ in nothing but their seeds and the weather."""

    task: str
    task_tree: str
    submission: str
    submission_tree: str
    runner: str
    fingerprint: str
    options: dict[str, object]

    @property
    def digest(self) -> str:
        """128 bits that stand for the key in a file's name."""
        return hashlib.sha256(msgspec.json.encode(self, order="sorted")).hexdigest()[:32]


class Stored(msgspec.Struct, frozen=True):
    """An entry: the evidence, its bytes as a review commits them, and their digest as a review cites it."""

    evidence: Evidence
    data: bytes
    sha: str
    """``sha256:`` and the hexadecimal digest of ``data``."""


class BadEntry(msgspec.Struct, frozen=True):
    """A file in the store that is not what its name says."""

    path: str
    reason: str


def key_of(request: RunRequest, fingerprint: str) -> Key:
    """The key of a run: ``fingerprint`` is that of :func:`runners.environment.describe`; folders do not count."""
    return Key(
        task=request.task_name,
        task_tree=request.task_tree,
        submission=request.submission_name,
        submission_tree=request.submission_tree,
        runner=environment.runner_version(),
        fingerprint=fingerprint,
        options={
            "framework": request.framework,
            "device": request.device,
            "panels": sorted(request.panels),
            "replay_seeds": list(request.replay_seeds),
            "unsafe": request.unsafe,
        },
    )


def digest_of(data: bytes) -> str:
    """The digest of an evidence file's bytes, in the form that reviews cite."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


class EvidenceStore:
    """Evidence under ``root``, a folder of the user's own. Several processes may use one root at a time."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._problems: deque[BadEntry] = deque(maxlen=MAX_PROBLEMS)

    @property
    def problems(self) -> tuple[BadEntry, ...]:
        """Entries that were found broken since this store was opened, each once."""
        return tuple(dict.fromkeys(self._problems))

    def get(self, key: Key) -> Evidence | None:
        """The evidence for ``key``; None where there is none, or it is broken."""
        stored = self.find(key)
        return None if stored is None else stored.evidence

    def sha(self, key: Key) -> str | None:
        """The digest of the entry for ``key``, as reviews cite it."""
        stored = self.find(key)
        return None if stored is None else stored.sha

    def knows(self, task: str, submission: str) -> bool:
        """Whether there was ever an entry for ``TASK/NAME``: quickly told, where most have none."""
        return self._folder(task, submission).is_dir()

    def find(self, key: Key) -> Stored | None:
        """The entry for ``key``: the newest whole one."""
        folder = self._folder(key.task, key.submission)
        return self._first_whole(path for path in _newest_first(folder) if path.name.startswith(key.digest + "."))

    def latest(self, task: str, submission: str) -> Stored | None:
        """The newest whole entry for ``TASK/NAME``, whatever else its key says: it may be stale."""
        return self._first_whole(_newest_first(self._folder(task, submission)))

    def put(self, key: Key, evidence: Evidence) -> str:
        """Keep ``evidence`` and return the digest of its bytes. Replaces the key's earlier entry. Raises OSError."""
        data = encode(evidence)
        sha = digest_of(data)
        folder = self._folder(key.task, key.submission)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = folder / f"{key.digest}.{sha.removeprefix('sha256:')}.json"
        _write_whole(path, data)
        entries = _newest_first(folder)
        replaced = [one for one in entries if one.name.startswith(key.digest + ".") and one != path]
        rest = [one for one in entries if one not in replaced]
        for old in (*replaced, *rest[KEEP:]):
            with suppress(FileNotFoundError):
                old.unlink()
        return sha

    def _folder(self, task: str, submission: str) -> Path:
        """Names come from an exchange and may be anything, so a folder's name is their digest."""
        return self._root / hashlib.sha256(f"{task}\0{submission}".encode("utf-8", "surrogatepass")).hexdigest()[:32]

    def _first_whole(self, paths: Iterable[Path]) -> Stored | None:
        for path in paths:
            stored = self._read(path)
            if stored is not None:
                return stored
        return None

    def _read(self, path: Path) -> Stored | None:
        try:
            if path.stat().st_size > MAX_ENTRY_BYTES:
                self._bad(path, f"larger than {MAX_ENTRY_BYTES} bytes")
                return None
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            self._bad(path, error.strerror or str(error))
            return None
        sha = digest_of(data)
        if path.name.split(".")[1] != sha.removeprefix("sha256:"):
            self._bad(path, "its bytes are not those that were written")
            return None
        try:
            return Stored(decode(data), data, sha)
        except msgspec.MsgspecError as error:
            self._bad(path, f"not evidence: {error}")
            return None

    def _bad(self, path: Path, reason: str) -> None:
        self._problems.append(BadEntry(str(path), reason))


def _newest_first(folder: Path) -> list[Path]:
    """The entries of a folder; ties in time are broken by name, so that the order is one."""
    found = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if _NAME.match(entry.name):
                    with suppress(FileNotFoundError):
                        found.append((entry.stat(follow_symlinks=False).st_mtime_ns, entry.name))
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [folder / name for _, name in sorted(found, reverse=True)]


def _write_whole(path: Path, data: bytes) -> None:
    """Write so that a reader, or a crash at any moment, sees the whole file or none."""
    hidden = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with open(hidden, "xb") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        hidden.replace(path)
    except BaseException:
        with suppress(FileNotFoundError):
            hidden.unlink()
        raise
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
