"""What submissions say of themselves: author, framework, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from console.exchange.folders import Folder
from console.exchange.history import History
from console.exchange.kept import code_version, read_kept, write_kept
from console.exchange.model import Submission, Task
from console.exchange.objects import Objects
from console.exchange.text import decode, visible
from console.exchange.views import lfs_note
from runners.contract import Framework, SubmissionFile, TaskError, choose_framework, parse_submission

MAX_TOML = 256 * 1024
MAX_SOURCE = 256 * 1024
"""Bytes of a kernel that are searched for ``@triton.jit``; a larger one is taken for the task's first framework."""

_AT_ONCE = 128

MAIN_FILE: dict[Framework, str] = {
    "torch": "kernel.py",
    "triton": "kernel.py",
    "pallas": "kernel.py",
    "nki": "kernel.py",
    "cuda": "kernel.cu",
    "answer": "answer.md",
}
"""The file that a submission is judged by; a serving task names no one file."""

Place = tuple[str, Folder]
"""A submission's task and folder."""


class Facts(msgspec.Struct, frozen=True, array_like=True):
    """What the content of one submission says, seen against the content of its task."""

    author: str
    framework: Framework | None
    problem: str | None


class FactsCache:
    """Facts by content, in memory and on disk: only what is new is read."""

    def __init__(self, objects: Objects, file: Path) -> None:
        self._objects, self._file = objects, file
        self._known: dict[str, Facts] | None = None

    def of(self, places: Sequence[Place], tasks: Mapping[str, Task]) -> list[Facts]:
        """The facts of each submission, in order."""
        version = code_version(__name__, parse_submission.__module__)
        known = self._known if self._known is not None else read_kept(self._file, version, dict[str, Facts]) or {}
        keys = [
            f"{tasks[task].tree if task in tasks else ''}:{folder.mode}:{folder.oid}:{task}/{folder.name}"
            for task, folder in places
        ]
        new = {key: place for key, place in zip(keys, places, strict=True) if key not in known}
        fresh = dict(zip(new, _read_facts(self._objects, list(new.values()), tasks), strict=True))
        current = {key: fresh[key] if key in fresh else known[key] for key in keys}
        if fresh or len(current) != len(known):
            write_kept(self._file, version, current)
        self._known = current
        return [current[key] for key in keys]


def submission_of(place: Place, facts: Facts, history: History) -> Submission:
    """One row of the queue. Its revision is the commit that made its tree what it is."""
    task, folder = place
    states = history.states(f"{task}/{folder.name}", folder.oid)
    commit = states[0][0] if states else None
    return Submission(
        task=task,
        name=folder.name,
        tree=folder.oid,
        revision=commit.oid if commit else history.tip,
        author=facts.author or (commit.author if commit else ""),
        when=commit.when if commit else 0,
        framework=facts.framework,
        files=folder.files(),
        problem=facts.problem,
    )


def _read_facts(objects: Objects, places: Sequence[Place], tasks: Mapping[str, Task]) -> Iterator[Facts]:
    """Facts of many submissions, some at a time, since each may bring half a MiB."""
    for start in range(0, len(places), _AT_ONCE):
        some = places[start : start + _AT_ONCE]
        files = _read(objects, some, ["submission.toml"] * len(some), MAX_TOML)
        names = [_telling_name(tasks[task]) if task in tasks else "" for task, _ in some]
        sources = _read(objects, some, names, MAX_SOURCE)
        for (task, folder), toml, name, source in zip(some, files, names, sources, strict=True):
            yield _facts(folder, task, tasks.get(task), toml, name, source)


def _telling_name(task: Task) -> str:
    """The file whose source tells the framework: Triton's where that is a choice."""
    if task.spec is None:
        return ""
    return MAIN_FILE.get("triton" if "triton" in task.spec.frameworks else task.spec.frameworks[0], "")


def _read(objects: Objects, places: Sequence[Place], names: Sequence[str], limit: int) -> list[bytes | None]:
    """The named file of each folder; None where there is none, or where it is too large."""
    entries = [folder.file(name) if name else None for (_, folder), name in zip(places, names, strict=True)]
    oids = [entry.oid for entry in entries if entry is not None and entry.size <= limit]
    contents = dict(zip(oids, objects.blobs(oids), strict=True))
    return [None if entry is None else contents.get(entry.oid) for entry in entries]


def _facts(
    folder: Folder, task_name: str, task: Task | None, toml: bytes | None, telling: str, source: bytes | None
) -> Facts:
    if folder.problem:
        return Facts("", None, folder.problem)
    declared, problem = SubmissionFile(), None
    if toml is not None:
        try:
            declared = parse_submission(toml)
        except TaskError as error:
            problem = visible(str(error))
    elif folder.file("submission.toml") is not None:
        problem = f"submission.toml: larger than {MAX_TOML} bytes"
    author = declared.author
    if task is None:
        return Facts(author, None, f"no task {visible(task_name)} on the default branch")
    if task.spec is None:
        return Facts(author, None, f"tasks/{visible(task_name)}: {task.problem}")
    if problem:
        return Facts(author, None, problem)
    try:
        framework = choose_framework(task.spec, declared.framework, decode(source or b"").text)
    except ValueError as error:
        return Facts(author, None, visible(f"submission.toml: {error}"))
    main = MAIN_FILE.get(framework, "")
    if main and folder.file(main) is None:
        return Facts(author, framework, f"no {main}; there is {_listed(folder)}")
    pointer = lfs_note(source) if source is not None and main == telling else None
    return Facts(author, framework, f"{main}: {pointer}" if pointer else None)


def _listed(folder: Folder) -> str:
    names = [visible(file.path, 60) for file in folder.files()]
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more if names else "nothing"
