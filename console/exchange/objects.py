"""Objects of the private clone, through one long-lived ``git cat-file --batch`` and one ``--batch-check``.

GitPython's object database does the same with one pair of processes per ``Repo``, but is not safe between threads and
takes five times as long for many small blobs.
"""

from __future__ import annotations

import re
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from console.exchange.errors import GitRefused
from console.exchange.process import Git, end, run

MAX_BLOB = 64 * 1024 * 1024
"""Bytes of one object that are ever read whole."""
_CHUNK = 400
"""Names asked for at once: fewer bytes than a pipe holds, so that neither side waits for the other."""
_BLOBS = 64
"""Contents that are held at once."""

_NAME = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


class Entry(NamedTuple):
    """One line of a tree listing; ``path`` in bytes as git has it, ``size`` -1 for trees and submodules."""

    mode: str
    kind: str
    oid: str
    size: int
    path: bytes


class _Batch:
    """One ``git cat-file`` process that answers requests until it is closed; started anew when it died."""

    def __init__(self, folder: Path, env: Callable[[], dict[str, str]], mode: str) -> None:
        self._folder, self._env, self._mode = folder, env, mode
        self._process: subprocess.Popen[bytes] | None = None

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        self.close()
        self._process = subprocess.Popen(
            ["git", "cat-file", self._mode],
            cwd=self._folder,
            env=self._env(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        return self._process

    def ask(self, names: Sequence[str], contents: bool) -> list[tuple[str, bytes] | None]:
        """Kind and content (or size as text) of each name, None where there is no such object."""
        for last in (False, True):
            try:
                return self._ask(names, contents)
            except (OSError, EOFError) as error:
                self.close()
                if last:
                    raise GitRefused("git cat-file", f"ended unexpectedly, twice ({error})") from None
            except BaseException:
                # Half an answer in the pipe would be taken for the next one.
                self.close()
                raise
        raise AssertionError("unreachable")

    def _ask(self, names: Sequence[str], contents: bool) -> list[tuple[str, bytes] | None]:
        process = self._running()
        assert process.stdin is not None and process.stdout is not None
        answers: list[tuple[str, bytes] | None] = []
        for start in range(0, len(names), _CHUNK):
            chunk = names[start : start + _CHUNK]
            process.stdin.write(("\n".join(chunk) + "\n").encode("ascii"))
            process.stdin.flush()
            for _ in chunk:
                header = process.stdout.readline()
                if not header.endswith(b"\n"):
                    raise EOFError("no answer")
                parts = header.split()
                if len(parts) != 3:
                    answers.append(None)
                elif not contents:
                    answers.append((parts[1].decode("ascii"), parts[2]))
                else:
                    size = int(parts[2])
                    body = process.stdout.read(size + 1)
                    if len(body) != size + 1:
                        raise EOFError("half an answer")
                    answers.append((parts[1].decode("ascii"), body[:-1]))
        return answers

    def close(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        end(process, group=True)
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:
                    continue


class Objects:
    """Blobs, trees and sizes by id; safe between threads."""

    def __init__(self, git: Git) -> None:
        self._git = git
        self._lock = threading.Lock()
        self._closed = False
        self._contents = _Batch(git.folder, git.env, "--batch")
        self._sizes = _Batch(git.folder, git.env, "--batch-check")

    def _ask(self, batch: _Batch, names: Sequence[str], contents: bool) -> list[tuple[str, bytes] | None]:
        for name in names:
            if not _NAME.fullmatch(name):
                raise ValueError(f"{name!r} is not an object id")
        with self._lock:
            if self._closed:
                raise GitRefused("git cat-file", "the exchange is closed")
            return batch.ask(names, contents) if names else []

    def sizes(self, oids: Sequence[str]) -> list[int | None]:
        """Size in bytes of each object, None where it is not here."""
        return [None if one is None else int(one[1]) for one in self._ask(self._sizes, oids, False)]

    def blob(self, oid: str) -> bytes:
        """The content of a blob of at most 64 MiB. Raises GitRefused where it is larger, missing or no blob."""
        size = self.sizes([oid])[0]
        if size is None or size > MAX_BLOB:
            raise GitRefused("git cat-file", f"{oid} is missing" if size is None else f"{oid} has {size} bytes")
        answer = self._ask(self._contents, [oid], True)[0]
        if answer is None or answer[0] != "blob":
            raise GitRefused("git cat-file", f"{oid} is not a blob")
        return answer[1]

    def blobs(self, oids: Sequence[str]) -> Iterator[bytes | None]:
        """The contents of many small blobs, whose sizes the caller knows; None for what is no blob or not here."""
        for start in range(0, len(oids), _BLOBS):
            for answer in self._ask(self._contents, oids[start : start + _BLOBS], True):
                yield answer[1] if answer is not None and answer[0] == "blob" else None

    def head_of(self, oid: str, size: int) -> bytes:
        """The first ``size`` bytes of a blob, however large it is."""
        if not _NAME.fullmatch(oid):
            raise ValueError(f"{oid!r} is not an object id")
        whole = self.sizes([oid])[0]
        if whole is not None and whole <= size:
            return self.blob(oid)
        result = run(["cat-file", "blob", oid], cwd=self._git.folder, env=self._git.env(), limit=max(size, 1))
        if result.code != 0 and not result.cut:
            raise GitRefused("git cat-file", result.words)
        return result.out[:size]

    def tree(self, tree: str, *paths: str, trees: bool = False) -> list[Entry]:
        """The files below a tree or commit, in git's order; with ``trees``, its folders as well."""
        flags = ("-t",) if trees else ()
        out = self._git.out("ls-tree", "-r", *flags, "-l", "-z", "--full-tree", tree, "--", *paths)
        return [_entry(line) for line in out.split(b"\0") if line]

    def close(self) -> None:
        """End both processes."""
        with self._lock:
            self._closed = True
            self._contents.close()
            self._sizes.close()


def _entry(line: bytes) -> Entry:
    head, _, path = line.partition(b"\t")
    mode, kind, oid, size = head.split()
    return Entry(
        mode.decode("ascii"),
        kind.decode("ascii"),
        oid.decode("ascii"),
        int(size) if size.isdigit() else -1,
        path,
    )
