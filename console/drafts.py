"""Drafts on disk: one file per submission, written whole or not at all, never lost to another console."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from console.config import state_dir
from console.exchange.kept import name_file
from console.schema import Strict

if TYPE_CHECKING:
    from console.grading.draft import Draft

LOCK_SECONDS = 10.0


class _Kept(Strict, frozen=True, kw_only=True):
    writer: str
    """Names the console that wrote the file, so that two on one draft are told apart."""
    draft: msgspec.Raw


class _Name(msgspec.Struct, frozen=True):
    task: str
    submission: str


class Loaded(msgspec.Struct, frozen=True):
    """A draft, where there is one; ``notice`` says in words what had to be set aside."""

    draft: Draft | None
    notice: str = ""


class Drafts:
    """The drafts of one exchange. Every change is on disk when :meth:`save` returns."""

    def __init__(self, exchange_id: str, root: Path | None = None) -> None:
        self._folder = (root or state_dir() / "drafts") / _file_name(exchange_id)
        self._writer = secrets.token_hex(4)
        self._seen: dict[Path, bytes] = {}

    def path(self, task: str, submission: str) -> Path:
        """Where a draft lies: readable, unique whatever the names are."""
        return self._folder / f"{_file_name(task, submission)}.json"

    def keys(self) -> frozenset[str]:
        """``TASK/NAME`` of every draft that can be read."""
        found = set()
        for path in self._folder.glob("*.json"):
            with contextlib.suppress(OSError, msgspec.DecodeError, UnicodeDecodeError):
                name = msgspec.json.decode(msgspec.json.decode(path.read_bytes(), type=_Kept).draft, type=_Name)
                found.add(f"{name.task}/{name.submission}")
        return frozenset(found)

    def load(self, task: str, submission: str) -> Loaded:
        """The draft as it was last saved. One that cannot be read is set aside and named. Raises OSError."""
        from console.grading.draft import Draft, DraftError  # the queue needs no more than the drafts' names

        path = self.path(task, submission)
        with self._locked():
            try:
                data = path.read_bytes()
            except FileNotFoundError:
                return Loaded(None)
            try:
                draft = Draft.from_json(bytes(msgspec.json.decode(data, type=_Kept).draft))
            except (DraftError, msgspec.DecodeError, UnicodeDecodeError) as error:
                kept = _free(path, "unreadable")
                path.replace(kept)
                return Loaded(None, f"the draft cannot be read ({error}); it is kept as {kept}")
            if (draft.task, draft.submission) != (task, submission):
                kept = _free(path, "unreadable")
                path.replace(kept)
                return Loaded(None, f"the draft is of another submission; it is kept as {kept}")
            self._seen[path] = data
            return Loaded(draft)

    def save(self, draft: Draft) -> str:
        """Write a draft; an empty one leaves no file. The newest wins.

        A draft that another console has written since is kept beside it, the last of each console; the text returned
        says where, and is empty otherwise. Raises OSError, and TimeoutError when another console holds the lock.
        """
        path = self.path(draft.task, draft.submission)
        kept = _Kept(writer=self._writer, draft=msgspec.Raw(msgspec.json.encode(draft)))
        data = msgspec.json.format(msgspec.json.encode(kept), indent=1)
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._locked():
            notice = self._keep_other(path)
            if draft.empty:
                path.unlink(missing_ok=True)
                self._seen.pop(path, None)
            else:
                _write(path, data)
                self._seen[path] = data
        return notice

    def discard(self, task: str, submission: str) -> None:
        """Remove a draft, because its review has been committed."""
        path = self.path(task, submission)
        with self._locked():
            self._keep_other(path)
            path.unlink(missing_ok=True)
            self._seen.pop(path, None)

    def _keep_other(self, path: Path) -> str:
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return ""
        if data == self._seen.get(path):
            return ""
        try:
            writer = msgspec.json.decode(data, type=_Kept).writer
        except (msgspec.DecodeError, UnicodeDecodeError):
            aside = _free(path, "unreadable")
        else:
            if writer == self._writer:
                return ""
            aside = path.with_name(f"{path.name}.of-{_file_name(writer)}")
        path.replace(aside)
        return f"another console has worked on this draft; its state is kept as {aside}"

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        if not self._folder.is_dir():
            yield
            return
        from filelock import FileLock

        with FileLock(self._folder / ".lock", timeout=LOCK_SECONDS):
            yield


def _file_name(*names: str) -> str:
    readable = "~".join(re.sub(r"[^A-Za-z0-9._-]", "_", name)[:60] for name in names)
    digest = hashlib.sha256("\0".join(names).encode("utf-8", "surrogatepass")).hexdigest()
    return f"{readable}-{digest[:12]}"


def _free(path: Path, word: str) -> Path:
    number = 1
    while (candidate := path.with_name(f"{path.name}.{word}-{number}")).exists():
        number += 1
    return candidate


def _write(path: Path, data: bytes) -> None:
    """Put ``data`` at ``path`` so that a crash leaves either the old file or the new one."""
    descriptor, temporary = tempfile.mkstemp(prefix=".new-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException as error:
        with contextlib.suppress(FileNotFoundError):
            Path(temporary).unlink()
        name_file(error, path)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
