"""A triage mark: one word on a submission before anyone reviews it, and why."""

from __future__ import annotations

from typing import Literal, get_args

from console.grading.review import ObjectId, escape_front
from console.grading.text import one_line, storable
from console.schema import Strict, convert, load_toml

Mark = Literal["wants-review", "reject", "environment"]
MARKS: tuple[Mark, ...] = get_args(Mark)


class TriageFile(Strict, frozen=True, kw_only=True):
    """``triage.toml``: true of one tree of a submission."""

    mark: Mark
    reason: str
    grader: str
    tree: ObjectId


def triage_path(task: str, submission: str) -> str:
    """Where the mark lies in the exchange."""
    return f"reviews/{task}/{submission}/triage.toml"


def triage_file(task: str, submission: str, mark: Mark, reason: str, grader: str, tree: str) -> dict[str, bytes]:
    """The file to commit, by its path."""
    import tomlkit  # slow to import, and only who marks needs it

    document = tomlkit.document()
    for key, value in (("mark", mark), ("reason", storable(reason).strip()), ("grader", grader), ("tree", tree)):
        document.add(key, tomlkit.item(value))
    return {triage_path(task, submission): escape_front(tomlkit.dumps(document)).encode()}


def triage_message(task: str, submission: str, mark: Mark, reason: str) -> str:
    """The commit message of a mark; the reason cannot add a line or a trailer to it."""
    task, submission, reason = one_line(task), one_line(submission), one_line(reason)
    subject = f"triage({task}/{submission}): {mark}" + (f", {reason}" if reason else "")
    return f"{subject}\n\nReview-Task: {task}\nReview-Submission: {submission}\nReview-Triage: {mark}\n"


def parse_triage(data: bytes, file: str = "triage.toml") -> TriageFile:
    """Read ``triage.toml``. Raises SchemaError."""
    return convert(load_toml(data, file), TriageFile, file)
