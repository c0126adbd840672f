"""Committed reviews and triage marks, read tolerantly: a broken one is a row that says so."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from console.exchange.history import History
from console.exchange.layout import parse_triage, review_file
from console.exchange.model import ReviewRecord, TriageMark
from console.exchange.objects import Entry, Objects
from console.exchange.text import decode, decode_name, visible
from console.schema import SchemaError

if TYPE_CHECKING:
    from console.grading.review import Review

MAX_REVIEW = 1024 * 1024
MAX_EVIDENCE = 32 * 1024 * 1024


class ReviewReader:
    """Reads review files; keeps what it has parsed, by content."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._parsed: dict[str, tuple[Review | None, str | None]] = {}

    def records(self, entries: Iterable[Entry], history: History) -> list[ReviewRecord]:
        """The reviews among the files below reviews/, in git's order."""
        found = []
        for entry in entries:
            path = decode_name(entry.path)
            what = review_file(path)
            if what is not None and what.kind == "review":
                found.append((entry, path, what))
        self._parse(entry for entry, _, _ in found)
        records = []
        for entry, path, what in found:
            review, problem = self._parsed[entry.oid]
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

    def _parse(self, entries: Iterable[Entry]) -> None:
        wanted = {}
        for entry in entries:
            if entry.oid in self._parsed:
                continue
            if not entry.mode.startswith("100") or entry.size > MAX_REVIEW:
                why = f"larger than {MAX_REVIEW} bytes" if entry.mode.startswith("100") else "not a regular file"
                self._parsed[entry.oid] = (None, why)
            else:
                wanted[entry.oid] = entry
        if not wanted:
            return
        # The writer that comes with the parser is slow to import: only for those who have reviews.
        from console.grading.review import parse_review

        for oid, data in zip(wanted, self._objects.blobs(list(wanted)), strict=True):
            try:
                self._parsed[oid] = (parse_review(decode(data or b"").text, "review"), None)
            except SchemaError as error:
                self._parsed[oid] = (None, visible(str(error)))

    def triage(self, entries: Iterable[Entry]) -> tuple[list[TriageMark], list[str]]:
        """The marks below reviews/, and what is wrong with those that cannot be read."""
        found = []
        for entry in entries:
            what = review_file(decode_name(entry.path))
            if what is not None and what.kind == "triage" and entry.mode.startswith("100") and entry.size <= MAX_REVIEW:
                found.append((entry, what))
        marks, problems = [], []
        for (entry, what), data in zip(found, self._objects.blobs([entry.oid for entry, _ in found]), strict=True):
            try:
                marks.append(parse_triage(data or b"", what.task, what.submission))
            except SchemaError as error:
                problems.append(f"{decode_name(entry.path)}: {visible(str(error))}")
        return marks, problems


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
