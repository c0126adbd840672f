"""Committed reviews and triage marks, read tolerantly: a broken one is a row that says so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from console.exchange.history import History
from console.exchange.kept import code_version, read_kept, write_kept
from console.exchange.layout import parse_triage, review_file
from console.exchange.model import ReviewRecord, TriageMark
from console.exchange.objects import Entry, Objects
from console.exchange.text import decode, decode_name, visible
from console.schema import SchemaError

if TYPE_CHECKING:
    from console.grading.review import Review

    Parsed = tuple[Review | None, str | None]

MAX_REVIEW = 1024 * 1024
MAX_EVIDENCE = 32 * 1024 * 1024


class ReviewReader:
    """Reads review files; keeps what it has parsed, by content, in memory and on disk."""

    def __init__(self, objects: Objects, cache: Path) -> None:
        self._objects = objects
        self._cache = cache
        self._parsed: dict[str, Parsed] | None = None

    def records(self, entries: Iterable[Entry], history: History) -> list[ReviewRecord]:
        """The reviews among the files below reviews/, in git's order."""
        found = []
        for entry in entries:
            path = decode_name(entry.path)
            what = review_file(path)
            if what is not None and what.kind == "review":
                found.append((entry, path, what))
        parsed = self._parse([entry for entry, _, _ in found if _regular(entry)])
        records = []
        for entry, path, what in found:
            review, problem = parsed[entry.oid] if _regular(entry) else (None, "not a regular file")
            if review is not None:
                problem = _mismatch(review, what.task, what.submission, what.grader)
            commit = history.last_change(path)
            records.append(
                ReviewRecord(
                    task=what.task,
                    submission=what.submission,
                    grader=what.grader,
                    path=path,
                    commit=commit.oid if commit else "",
                    author=commit.author if commit else "",
                    when=commit.when if commit else 0,
                    review=None if problem else review,
                    problem=problem,
                    oid=entry.oid,
                )
            )
        return records

    def _parse(self, entries: Sequence[Entry]) -> dict[str, Parsed]:
        if not entries:
            return {}
        # The writer that comes with the parser is slow to import: only for those who have reviews.
        from console.grading.review import Review, parse_review

        version = code_version(__name__, parse_review.__module__)
        known = self._parsed
        if known is None:
            known = read_kept(self._cache, version, dict[str, tuple[Review | None, str | None]]) or {}
        new = {entry.oid: entry for entry in entries if entry.oid not in known}
        readable = [oid for oid, entry in new.items() if entry.size <= MAX_REVIEW]
        fresh: dict[str, Parsed] = dict.fromkeys(new, (None, f"larger than {MAX_REVIEW} bytes"))
        for oid, data in zip(readable, self._objects.blobs(readable), strict=True):
            try:
                fresh[oid] = (parse_review(decode(data or b"").text), None)
            except SchemaError as error:
                fresh[oid] = (None, visible(str(error)))
        self._parsed = known | fresh
        if fresh:
            write_kept(self._cache, version, self._parsed)
        return self._parsed

    def triage(self, entries: Iterable[Entry]) -> tuple[list[TriageMark], list[str]]:
        """The marks below reviews/, and what is wrong with those that cannot be read."""
        found = []
        for entry in entries:
            what = review_file(decode_name(entry.path))
            if what is not None and what.kind == "triage" and _regular(entry) and entry.size <= MAX_REVIEW:
                found.append((entry, what))
        marks, problems = [], []
        for (entry, what), data in zip(found, self._objects.blobs([entry.oid for entry, _ in found]), strict=True):
            try:
                marks.append(parse_triage(data or b"", what.task, what.submission))
            except SchemaError as error:
                problems.append(f"{decode_name(entry.path)}: {visible(str(error))}")
        return marks, problems


def _regular(entry: Entry) -> bool:
    return entry.mode.startswith("100")


def _mismatch(review: Review, task: str, submission: str, grader: str) -> str | None:
    """A review speaks only for the place it stands in: a copy elsewhere counts for nothing."""
    for name, inside, outside in (
        ("task", review.task, task),
        ("submission", review.submission, submission),
        ("grader", review.grader, grader),
    ):
        if inside != outside:
            return visible(f"{name} is {inside!r}, but the file stands under {outside!r}")
    return None
