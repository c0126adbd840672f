"""The exchange: everything that screens and verbs ask of a repository of tasks, submissions and reviews."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import msgspec

from console.exchange.consent import Consents
from console.exchange.errors import ExchangeError
from console.exchange.layout import evidence_path, slug_of, slug_problem
from console.exchange.location import locate
from console.exchange.mirror import Mirror
from console.exchange.model import (
    FileView,
    Grader,
    Pending,
    Preview,
    Published,
    ReviewRecord,
    Revision,
    Snapshot,
    Submission,
    Task,
)
from console.exchange.objects import Objects
from console.exchange.process import empty_tree
from console.exchange.reviews import MAX_EVIDENCE
from console.exchange.snapshot import SnapshotReader
from console.exchange.submissions import MAIN_FILE
from console.exchange.text import visible

if TYPE_CHECKING:
    # The queue is on the screen before anyone compares or publishes: their parts are imported when they are needed.
    from console.exchange.diff import Diff
    from console.exchange.publish import Publisher

MAX_RUBRIC = 1024 * 1024

_COMMIT = re.compile(r"[0-9a-f]{4,64}")
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def _quiet(_: str) -> None:
    return None


class Exchange:
    """One exchange, through a private clone; the grader's own work tree is never touched. Safe between threads."""

    def __init__(self, mirror: Mirror, consents: Consents, grader: str | None) -> None:
        self._mirror = mirror
        self._consents = consents
        self._slug = grader
        self._grader: Grader | None = None
        self._objects = Objects(mirror.git)
        self._reader = SnapshotReader(mirror, self._objects)

    @classmethod
    def open(cls, where: str, *, trust: bool = False, state: Path | None = None, grader: str | None = None) -> Exchange:
        """Open a path (clone, bare repository, work tree, a folder in one) or an address.

        ``state`` is where private clones are kept; ``grader`` is a slug that goes before the one from git's identity;
        ``trust`` lets the code of an address run, from now on. A clone that was opened before is shown as last
        fetched: call :meth:`fetch` for what is new. Raises ExchangeError, or GitRefused in git's words.
        """
        if grader is not None and slug_problem(grader):
            raise ExchangeError(f"grader {visible(grader, 100)!r}: {slug_problem(grader)}")
        if state is None:
            from console.config import state_dir

            state = state_dir()
        mirror = Mirror(locate(where), state)
        mirror.prepare()
        exchange = cls(mirror, Consents(state / "consent.json"), grader)
        if trust:
            exchange.trust()
        return exchange

    def __enter__(self) -> Exchange:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the processes that read objects."""
        self._objects.close()

    @property
    def name(self) -> str:
        """A short name for people."""
        return self._mirror.location.name

    @property
    def id(self) -> str:
        """A name, fit for a folder, that stays the same between sessions and differs between places."""
        return self._mirror.location.id

    @property
    def source(self) -> str:
        """What is fetched from, without secrets."""
        return self._mirror.location.shown

    @property
    def grader(self) -> Grader:
        """Git's identity here, and the grader's slug; empty where git knows none. Read anew before each commit."""
        if self._grader is None:
            name, email = self._mirror.identity()
            self._grader = Grader(name, email, self._slug or slug_of(email))
        return self._grader

    # ---- consent

    @property
    def needs_trust(self) -> bool:
        """Whether this is an address whose code has not been allowed to run. A path is consent in itself."""
        return self._mirror.location.kind == "url" and not self._consents.trusts(self.id)

    def trust(self) -> None:
        """Let its code run, from now on."""
        self._consents.trust(self.id)

    def reference_changed(self, task: Task) -> bool:
        """Whether ``reference.py`` differs from the one that was confirmed; the first one seen counts as that."""
        now = self._reference_oid(task)
        seen = self._consents.reference(self.id, task.name)
        if seen is None and now and not self.needs_trust:
            self._consents.confirm(self.id, task.name, now)
            return False
        return seen != (now or None)

    def confirm_reference(self, task: Task) -> None:
        """Remember that the grader has seen this ``reference.py``."""
        self._consents.confirm(self.id, task.name, self._reference_oid(task))

    def _reference_oid(self, task: Task) -> str:
        return next((entry.oid for entry in self._objects.tree(task.tree, "reference.py")), "")

    # ---- reading

    def fetch(self) -> bool:
        """Bring the private clone up to date; True when something changed. Raises GitRefused in git's words.

        May run in a thread of its own while everything else is used.
        """
        return self._mirror.fetch()

    def snapshot(self) -> Snapshot:
        """Everything as last fetched; made once per state."""
        return self._reader.read()

    def files(self, tree: str) -> tuple[FileView, ...]:
        """The files of a tree, decoded and bounded."""
        from console.exchange.views import file_views

        return file_views(self._objects, tree)

    def revisions(self, submission: Submission) -> tuple[Revision, ...]:
        """The states of a submission, newest first, through renames that its history shows."""
        return tuple(
            Revision(
                commit=commit.oid,
                tree=state.tree,
                author=commit.author,
                when=commit.when,
                subject=commit.subject,
                moved_from=state.moved_from,
            )
            for commit, state in self._reader.history().states(submission.key, submission.tree)
        )

    def materialise(self, tree: str, into: Path) -> None:
        """Write the regular files of ``tree`` below ``into``, which must be empty or absent."""
        from console.exchange.materialise import materialise

        materialise(self._objects, tree, into)

    def rubric(self, task: Task) -> bytes:
        """The rubric that the task names: a file beside ``task.toml``, else an installed one. Raises ExchangeError."""
        name = task.spec.rubric if task.spec else "kernel"
        if not _FILE_NAME.fullmatch(name):
            raise ExchangeError(f"tasks/{visible(task.name)}: rubric {visible(name, 100)!r} is not a file's name")
        files = (name, name.removesuffix(".toml") + ".toml")
        for entry in self._objects.tree(task.tree, *dict.fromkeys(files)):
            if entry.mode.startswith("100"):
                if entry.size > MAX_RUBRIC:
                    raise ExchangeError(f"tasks/{task.name}/{name}: larger than {MAX_RUBRIC} bytes")
                return self._objects.blob(entry.oid)
        installed = _installed_rubrics() / files[1]
        if not installed.is_file():
            known = ", ".join(sorted(path.stem for path in _installed_rubrics().glob("*.toml"))) or "none"
            raise ExchangeError(f"tasks/{visible(task.name)}: no rubric {name!r} beside it; installed are: {known}")
        return installed.read_bytes()

    def evidence(self, record: ReviewRecord) -> bytes | None:
        """The evidence that stands beside a review; None where there is none of a readable size."""
        path = evidence_path(record.task, record.submission, record.grader)
        tips = self._mirror.tips()
        for tip in filter(None, (tips.overlay, tips.base)):
            entries = {
                entry.path.decode("utf-8", "replace"): entry for entry in self._objects.tree(tip, record.path, path)
            }
            beside = entries.get(path)
            # The two branches may hold different reviews of one grader: the evidence is the one beside this review.
            if beside is not None and record.path in entries and entries[record.path].oid == record.oid:
                regular = beside.mode.startswith("100") and beside.size <= MAX_EVIDENCE
                return self._objects.blob(beside.oid) if regular else None
        return None

    # ---- comparing

    def diff(self, submission: Submission, against: str) -> Diff:
        """What changed: against ``starter``, ``previous``, ``reviewed``, ``reference`` or a commit.

        Where there is nothing to compare with, all lines count as new and the note says why. Raises ExchangeError for
        a commit that is not here or does not have the submission.
        """
        from console.exchange.comparing import compare

        if not submission.files and submission.problem:
            raise ExchangeError(f"submissions/{submission.key}: {submission.problem}")
        if against == "starter":
            old, name, why = self._starter(submission), "the starter", "the task has no starter files"
        elif against == "previous":
            older = self.revisions(submission)[1:2]
            old = older[0].tree if older else ""
            name = f"revision {older[0].commit[:9]}" if older else ""
            why = "this is the first revision"
        elif against == "reviewed":
            (old, name), why = self._reviewed(submission), "no earlier review"
        elif against == "reference":
            old, name, why = self._reference(submission), "the reference", "the task has no reference.py"
        elif _COMMIT.fullmatch(against):
            old, name, why = self._at(submission, against), f"commit {against[:9]}", ""
        else:
            raise ExchangeError(
                f"compare with starter, previous, reviewed, reference or a commit, not {visible(against, 60)!r}"
            )
        empty = empty_tree(self._mirror.object_format)
        return compare(
            self._mirror.git,
            self._objects,
            (old or empty, submission.tree),
            (name if old else "nothing", f"{visible(submission.key)} at {submission.revision[:9]}"),
            note="" if old else f"{why}: whole files are shown",
            whole=not old,
        )

    def _resolve(self, name: str) -> str:
        """An object id, or the empty string."""
        found = self._mirror.git.try_run("rev-parse", "--verify", "--quiet", "--end-of-options", name)
        return found.out.decode("ascii").strip() if found.code == 0 else ""

    def _starter(self, submission: Submission) -> str:
        task = self.snapshot().tasks.get(submission.task)
        return self._resolve(f"{task.tree}:starter") if task is not None and task.has_starter else ""

    def _reviewed(self, submission: Submission) -> tuple[str, str]:
        """The tree that was reviewed last, by this grader where they did, else by anyone."""
        own = self.grader.slug
        records = [one for one in self.snapshot().reviews if one.key == submission.key and one.review is not None]
        records.sort(key=lambda one: (one.grader == own, one.when), reverse=True)
        for record in records:
            assert record.review is not None
            tree = self._resolve(f"{record.review.tree}^{{tree}}")
            if tree:
                return tree, f"what {visible(record.grader)} reviewed, {record.review.revision[:9]}"
        return "", ""

    def _reference(self, submission: Submission) -> str:
        """A tree in which the reference stands where the submission's own file does."""
        task = self.snapshot().tasks.get(submission.task)
        oid = self._reference_oid(task) if task is not None else ""
        if not oid:
            return ""
        name = MAIN_FILE.get(submission.framework, "kernel.py") if submission.framework else "kernel.py"
        return self._mirror.git.out("mktree", stdin=f"100644 blob {oid}\t{name}\n".encode()).decode("ascii").strip()

    def _at(self, submission: Submission, commit: str) -> str:
        full = self._resolve(f"{commit}^{{commit}}")
        if not full:
            raise ExchangeError(f"commit {commit} is not here, or is not the only one that begins so")
        known = next((one.tree for one in self.revisions(submission) if one.commit == full), "")
        tree = known or self._resolve(f"{full}:submissions/{submission.key}")
        if not tree:
            raise ExchangeError(f"commit {commit} has no submissions/{visible(submission.key)}")
        return tree

    # ---- writing

    def _publisher(self) -> Publisher:
        from console.exchange.publish import Publisher

        return Publisher(self._mirror)

    def preview(self, files: Mapping[str, bytes], message: str) -> Preview:
        """What :meth:`publish` would do, and what is known to stand against it. Raises ExchangeError for bad files."""
        self._grader = None
        preview = self._publisher().preview(files, message, self.grader)
        clash = self._clash()
        return msgspec.structs.replace(preview, problem=clash) if clash else preview

    def publish(
        self,
        files: Mapping[str, bytes],
        message: str,
        on_progress: Callable[[str], None] = _quiet,
        *,
        attended: bool = False,
    ) -> Published:
        """Commit ``files`` (bytes by path) with ``git commit`` as the grader's own repository would, and push.

        ``attended`` lets git, gpg and hooks use the terminal: the caller has taken its screen off it. Raises
        ExchangeError for what may not be published, GitRefused in the words of git, a hook or the other side; once
        there is a commit it is kept, under :attr:`GitRefused.pending`.
        """
        self._grader = None
        clash = self._clash()
        if clash:
            raise ExchangeError(clash)
        return self._publisher().publish(files, message, self.grader, on_progress, attended=attended)

    def pending(self) -> tuple[Pending, ...]:
        """Commits that were made and have not arrived, oldest first."""
        return self._publisher().pending()

    def retry_pending(
        self, identity: str, on_progress: Callable[[str], None] = _quiet, *, attended: bool = False
    ) -> Published:
        """Send one of them again. Raises like :meth:`publish`."""
        return self._publisher().retry(identity, on_progress, attended=attended)

    def _clash(self) -> str:
        """Why this slug is not ours to write under; empty when it is."""
        who = self.grader
        if not who.email:
            return ""
        if slug_problem(who.slug):
            return f"no slug can be made of {visible(who.email)}: set `grader` in the configuration"
        name = f"/{who.slug}.md"
        emails: set[str] = set()
        for history in self._reader.histories():
            for path in history.reviews:
                if path.endswith(name):
                    emails |= history.emails(path)
        if not emails or who.email.casefold() in emails:
            return ""
        others = ", ".join(visible(email, 100) for email in sorted(emails)[:3])
        return (
            f"reviews by {who.slug!r} are already here, committed by {others}, and you are {visible(who.email)}: "
            "set another `grader` in the configuration"
        )


def _installed_rubrics() -> Path:
    """The rubrics that travel with the package; in a checkout they lie beside it."""
    package = Path(__file__).resolve().parent.parent
    packaged = package / "data" / "rubrics"
    return packaged if packaged.is_dir() else package.parent / "rubrics"
