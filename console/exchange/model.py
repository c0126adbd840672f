"""What an exchange holds at one moment, as frozen data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from runners.contract import Framework, TaskSpec

if TYPE_CHECKING:
    from console.grading.review import Review

Mark = Literal["wants-review", "reject", "environment"]
FileKind = Literal["text", "binary", "symlink", "submodule", "lfs", "too-large"]


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """A task of the default branch. ``problem`` says what is wrong with it; then ``spec`` is None."""

    name: str
    tree: str
    spec: TaskSpec | None
    scenario: str
    has_starter: bool
    problem: str | None = None


class FileEntry(msgspec.Struct, frozen=True):
    """A file of a tree: path below it, git's mode (``100644``), object id, size in bytes (-1: no content here)."""

    path: str
    mode: str
    oid: str
    size: int


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """The newest revision of a submission. ``problem`` says why it cannot be judged as it is."""

    task: str
    name: str
    tree: str
    revision: str
    author: str
    when: int
    """Seconds since 1970, of the revision's commit."""
    framework: Framework | None
    files: tuple[FileEntry, ...]
    problem: str | None = None

    @property
    def key(self) -> str:
        """``TASK/NAME``."""
        return f"{self.task}/{self.name}"


class Revision(msgspec.Struct, frozen=True, kw_only=True):
    """One state of a submission. ``moved_from`` names the key it had before, when this commit renamed it."""

    commit: str
    tree: str
    author: str
    when: int
    subject: str
    moved_from: str = ""


class ReviewRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A committed review. ``review`` is None where it cannot be read, and ``problem`` says why."""

    task: str
    submission: str
    grader: str
    path: str
    commit: str
    author: str
    when: int
    review: Review | None
    problem: str | None = None
    oid: str = ""
    """Object id of the review file."""

    @property
    def key(self) -> str:
        """``TASK/NAME``."""
        return f"{self.task}/{self.submission}"


class TriageMark(msgspec.Struct, frozen=True, kw_only=True):
    """A triager's word on a submission, true of one tree of it."""

    task: str
    submission: str
    mark: Mark
    reason: str
    grader: str
    tree: str

    @property
    def key(self) -> str:
        """``TASK/NAME``."""
        return f"{self.task}/{self.submission}"


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Everything an exchange holds at ``head``, the empty string where there is no commit yet."""

    head: str
    branch: str
    tasks: dict[str, Task] = {}
    submissions: tuple[Submission, ...] = ()
    reviews: tuple[ReviewRecord, ...] = ()
    triage: tuple[TriageMark, ...] = ()
    problems: tuple[str, ...] = ()
    unpushed: int = 0
    """Commits of the grader's clone that its origin does not have."""

    def submission(self, key: str) -> Submission | None:
        """The submission ``TASK/NAME``, or None."""
        return next((one for one in self.submissions if one.key == key), None)


class Grader(msgspec.Struct, frozen=True):
    """Who reviews: git's identity, and the slug that names the review's file. Empty where git knows none."""

    name: str
    email: str
    slug: str


class FileView(msgspec.Struct, frozen=True):
    """A file as it can be shown: decoded and bounded, yet still hostile; lines end in LF."""

    path: str
    kind: FileKind
    text: str
    note: str = ""
    size: int = 0
    mode: str = "100644"

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines as git counts them."""
        return tuple(self.text.removesuffix("\n").split("\n")) if self.text else ()


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """What publishing would do, said beforehand."""

    name: str
    email: str
    signing: str
    """``"none"``, else the format and the key."""
    hooks: tuple[str, ...]
    """Names of the hooks that will run, in their order."""
    hooks_dir: str
    target: str
    """For people: where the commit goes."""
    remote: str
    branch: str
    message: str
    files: dict[str, bytes]
    problem: str = ""
    """Why git would refuse already, in its own words; empty when nothing is known against it."""


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """A commit that arrived."""

    commit: str
    pushed_to: str
    tries: int
    merge_hint: str = ""
    """The command that merges the review branch, where the target is not the branch people read."""
    changed_by_hooks: tuple[str, ...] = ()
    """Published paths whose bytes a hook of the grader changed."""


class Pending(msgspec.Struct, frozen=True, kw_only=True):
    """A commit that was made and has not arrived yet."""

    id: str
    commit: str
    subject: str
    when: int
    paths: tuple[str, ...]
