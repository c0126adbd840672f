"""One pass over the tip of an exchange: tasks, submissions, reviews, and what is wrong with each."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from console.exchange.errors import ExchangeError
from console.exchange.folders import Folder, folders
from console.exchange.history import History, load_history
from console.exchange.kept import code_version, read_kept, write_kept
from console.exchange.mirror import Mirror, Tips
from console.exchange.model import ReviewRecord, Snapshot, Submission, Task
from console.exchange.objects import Entry, Objects
from console.exchange.reviews import ReviewReader
from console.exchange.submissions import FactsCache, submission_of
from console.exchange.text import decode, visible
from runners.contract import MAX_TASK_TOML_BYTES, TaskError, TaskSpec, parse_task

MAX_SCENARIO = 256 * 1024
MAX_SUBMISSIONS = 50_000
MAX_PROBLEMS = 200


class _Kept(msgspec.Struct, frozen=True, array_like=True):
    """The tasks and submissions of a commit."""

    base: str
    shallow: bool
    tasks: tuple[Task, ...]
    submissions: tuple[Submission, ...]


class SnapshotReader:
    """Makes snapshots; what has been read is remembered by content. Safe between threads."""

    def __init__(self, mirror: Mirror, objects: Objects) -> None:
        self._mirror, self._objects = mirror, objects
        self._reviews = ReviewReader(objects, mirror.home / "reviews.msgpack")
        self._facts = FactsCache(objects, mirror.home / "facts.msgpack")
        self._kept_file = mirror.home / "submissions.msgpack"
        self._tasks: dict[tuple[str, str], Task] = {}
        self._lock = threading.Lock()
        self._last: tuple[Tips, int, Snapshot] | None = None
        self._histories: tuple[History, ...] = ()

    def read(self) -> Snapshot:
        """The exchange as last fetched."""
        with self._lock:
            tips = self._mirror.tips()
            unpushed = self._mirror.unpushed(tips.base)
            if self._last is None or self._last[:2] != (tips, unpushed):
                self._last = (tips, unpushed, self._build(tips, unpushed))
            return self._last[2]

    def history(self) -> History:
        """The history of the head that :meth:`read` shows."""
        self.read()
        return self._histories[0] if self._histories else History()

    def histories(self) -> tuple[History, ...]:
        """That history, and the one of unmerged reviews where there are any."""
        self.read()
        return self._histories

    def _build(self, tips: Tips, unpushed: int) -> Snapshot:
        problems = list(self._states(tips))
        if not tips.base:
            return Snapshot(head="", branch=tips.branch, problems=tuple(problems))
        git, home = self._mirror.git, self._mirror.home
        history = load_history(git, tips.base, self._mirror.history_cache)
        below: dict[bytes, list[Entry]] = defaultdict(list)
        kept = self._kept(tips)
        roots = ("reviews",) if kept is not None else ("tasks", "reviews", "submissions")
        for entry in self._objects.tree(tips.base, *roots, trees=True):
            below[entry.path.partition(b"/")[0]].append(entry)
        if kept is None:
            found = {folder.name: self._task(folder) for folder in folders(below[b"tasks"], 2).values()}
            listed = self._submissions(below[b"submissions"], found, history)
            kept = _Kept(tips.base, tips.shallow, tuple(found.values()), listed)
            write_kept(self._kept_file, self._version(), kept)
        tasks, submissions = {task.name: task for task in kept.tasks}, kept.submissions
        if not tasks and not submissions:
            problems.append("this repository has neither tasks/ nor submissions/: it is no exchange yet")
        problems += [f"tasks/{visible(name)}: {task.problem}" for name, task in tasks.items() if task.problem]
        problems += _same_but_for_case(submissions)
        histories, reviews = [history], self._reviews.records(below[b"reviews"], history)
        triage, broken = self._reviews.triage(below[b"reviews"])
        if tips.overlay and git.try_run("merge-base", "--is-ancestor", tips.overlay, tips.base).code != 0:
            histories.append(load_history(git, tips.overlay, home / "overlay.msgpack"))
            entries = self._objects.tree(tips.overlay, "reviews")
            reviews = _newest(reviews, self._reviews.records(entries, histories[1]))
            marks, more = self._reviews.triage(entries)
            triage, broken = [*triage, *marks], [*broken, *more]
        problems += dict.fromkeys(broken)
        problems += [f"{record.path}: {record.problem}" for record in reviews if record.problem]
        if len(problems) > MAX_PROBLEMS:
            problems[MAX_PROBLEMS:] = [f"\u2026 and {len(problems) - MAX_PROBLEMS} more"]
        self._histories = tuple(histories)
        return Snapshot(
            head=tips.base,
            branch=tips.branch,
            tasks=tasks,
            submissions=submissions,
            reviews=tuple(reviews),
            # The overlay's marks come last, and win.
            triage=tuple({mark.key: mark for mark in triage}.values()),
            problems=tuple(problems),
            unpushed=unpushed,
        )

    def _kept(self, tips: Tips) -> _Kept | None:
        """What this very commit has, from an earlier start."""
        kept = read_kept(self._kept_file, self._version(), _Kept)
        return kept if kept and (kept.base, kept.shallow) == (tips.base, tips.shallow) else None

    def _version(self) -> str:
        return code_version(__name__, submission_of.__module__, load_history.__module__, parse_task.__module__)

    def _states(self, tips: Tips) -> Iterable[str]:
        where = self._mirror.location.shown
        if not tips.base:
            yield f"{where}: {f'branch {visible(tips.branch)} has' if tips.branch else 'it has'} no commits yet"
        elif not tips.branch:
            yield f"{where}: HEAD is detached, so its commit {tips.base[:12]} is read, and no branch"
        if tips.shallow:
            yield f"{visible(self._mirror.location.where)}: history is cut off (shallow): older revisions are not known"

    def _task(self, folder: Folder) -> Task:
        known = self._tasks.get((folder.name, folder.oid))
        if known is None:
            known = self._tasks[folder.name, folder.oid] = self._read_task(folder)
        return known

    def _read_task(self, folder: Folder) -> Task:
        spec, problem = (None, folder.problem) if folder.problem else self._spec(folder)
        return Task(
            name=folder.name,
            tree=folder.oid,
            spec=spec,
            scenario=self._scenario(folder),
            has_starter=folder.has_folder("starter"),
            problem=problem,
        )

    def _spec(self, folder: Folder) -> tuple[TaskSpec | None, str | None]:
        file = folder.file("task.toml")
        if file is None:
            return None, "no task.toml"
        if file.size > MAX_TASK_TOML_BYTES:
            return None, f"task.toml: larger than {MAX_TASK_TOML_BYTES} bytes"
        try:
            return parse_task(self._objects.blob(file.oid)), None
        except TaskError as error:
            return None, visible(str(error))

    def _scenario(self, folder: Folder) -> str:
        file = folder.file("scenario.md")
        if file is None:
            return ""
        text = decode(self._objects.head_of(file.oid, MAX_SCENARIO)).text.replace("\r\n", "\n")
        return text if file.size <= MAX_SCENARIO else f"{text}\n\u2026 (the first {MAX_SCENARIO} of {file.size} bytes)"

    def _submissions(
        self, entries: Sequence[Entry], tasks: dict[str, Task], history: History
    ) -> tuple[Submission, ...]:
        found = folders(entries, 3)
        if len(found) > MAX_SUBMISSIONS:
            raise ExchangeError(f"more than {MAX_SUBMISSIONS} submissions: split the exchange")
        places = [(names[0], folder) for names, folder in found.items()]
        return tuple(
            submission_of(place, facts, history)
            for place, facts in zip(places, self._facts.of(places, tasks), strict=True)
        )


def _same_but_for_case(submissions: Iterable[Submission]) -> Iterable[str]:
    """Names that a file system without a sense for case cannot hold side by side."""
    seen: dict[str, str] = {}
    for one in submissions:
        twin = seen.setdefault(one.key.casefold(), one.key)
        if twin != one.key:
            yield f"submissions/{visible(one.key)} and submissions/{visible(twin)} differ in case only"


def _newest(base: Iterable[ReviewRecord], overlay: Iterable[ReviewRecord]) -> list[ReviewRecord]:
    """One record per path; where the two branches differ, the one committed last."""
    found = {record.path: record for record in base}
    for record in overlay:
        there = found.get(record.path)
        if there is None or (there.oid != record.oid and record.when >= there.when):
            found[record.path] = record
    return [found[path] for path in sorted(found)]
