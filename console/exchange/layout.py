"""Paths and names in an exchange, and the triage mark's file."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from console.exchange.errors import ExchangeError
from console.exchange.model import TriageMark

MAX_NAME = 100

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_SLUG = re.compile(r"[a-z0-9]+(?:[-_][a-z0-9]+)*")


def name_problem(name: str) -> str | None:
    """Why a task or submission cannot have this name; None when it can. The text may hold the name: show it safely."""
    if not _NAME.fullmatch(name):
        return "names have letters, digits, '.', '_' and '-' only, and begin with a letter or digit"
    if len(name) > MAX_NAME:
        return f"names have at most {MAX_NAME} characters"
    if ".." in name or name.endswith((".", ".lock")):
        return "names have no '..' and end neither with '.' nor with '.lock'"
    return None


def require_name(name: str) -> str:
    """``name``, checked. Raises ExchangeError."""
    problem = name_problem(name)
    if problem:
        raise ExchangeError(f"{name[:200]!a}: {problem}")
    return name


def slug_problem(slug: str) -> str | None:
    """Why a grader cannot have this slug."""
    if not _SLUG.fullmatch(slug) or len(slug) > MAX_NAME:
        return "a grader's slug has small letters and digits, with single '-' or '_' between them"
    return None


_NOREPLY = re.compile(r"(?:\d+\+)?(?P<user>[^@]+)@users\.noreply\.")


def slug_of(email: str) -> str:
    """A grader's slug from an address: its local part, without a forge's number. Empty where nothing is left."""
    match = _NOREPLY.match(email)
    local = match["user"] if match else email.partition("@")[0]
    return re.sub(r"[^a-z0-9]+", "-", local.lower()).strip("-")[:MAX_NAME].strip("-")


def submission_path(task: str, name: str) -> str:
    """The folder of a submission."""
    return f"submissions/{require_name(task)}/{require_name(name)}"


def review_path(task: str, name: str, grader: str) -> str:
    """The review file."""
    return f"{_review_folder(task, name)}/{_require_slug(grader)}.md"


def evidence_path(task: str, name: str, grader: str) -> str:
    """What the review rests on."""
    return f"{_review_folder(task, name)}/{_require_slug(grader)}.evidence.json"


def triage_path(task: str, name: str) -> str:
    """The triage mark."""
    return f"{_review_folder(task, name)}/triage.toml"


def _review_folder(task: str, name: str) -> str:
    return f"reviews/{require_name(task)}/{require_name(name)}"


def _require_slug(grader: str) -> str:
    problem = slug_problem(grader)
    if problem:
        raise ExchangeError(f"{grader[:200]!a}: {problem}")
    return grader


ReviewFileKind = Literal["review", "evidence", "triage"]


class ReviewFile(msgspec.Struct, frozen=True):
    """What a path under reviews/ is; ``grader`` is empty for a triage mark."""

    kind: ReviewFileKind
    task: str
    submission: str
    grader: str = ""


def review_file(path: str) -> ReviewFile | None:
    """Read a path under reviews/; None for every other path, also for one with names that cannot be."""
    parts = path.split("/")
    if len(parts) != 4 or parts[0] != "reviews" or name_problem(parts[1]) or name_problem(parts[2]):
        return None
    task, name, file = parts[1:]
    if file == "triage.toml":
        return ReviewFile("triage", task, name)
    for ending, kind in ((".evidence.json", "evidence"), (".md", "review")):
        grader = file.removesuffix(ending)
        if grader != file and not slug_problem(grader):
            return ReviewFile("evidence" if kind == "evidence" else "review", task, name, grader)
    return None


def parse_triage(data: bytes, task: str, submission: str) -> TriageMark:
    """Read ``triage.toml`` of a submission. Raises SchemaError that says what is wrong."""
    from console.grading import triage

    file = triage.parse_triage(data)
    return TriageMark(
        task=task, submission=submission, mark=file.mark, reason=file.reason, grader=file.grader, tree=file.tree
    )


def format_triage(mark: TriageMark) -> bytes:
    """The bytes of ``triage.toml``: what :func:`parse_triage` reads back."""
    from console.grading import triage

    files = triage.triage_file(mark.task, mark.submission, mark.mark, mark.reason, mark.grader, mark.tree)
    return files[triage_path(mark.task, mark.submission)]
