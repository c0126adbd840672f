"""What a finished draft puts into the exchange: the review, its evidence and the commit message."""

from __future__ import annotations

from dataclasses import dataclass

from console.grading.draft import Draft
from console.grading.message import commit_message
from console.grading.review import Review, format_review
from console.grading.rubric import Rubric
from runners.evidence import Evidence, encode


@dataclass(frozen=True)
class Commit:
    """Exactly what is previewed and published."""

    review: Review
    files: dict[str, bytes]
    message: str


def prepare(draft: Draft, rubric: Rubric, evidence: Evidence, grader: str) -> Commit:
    """The commit for a draft without problems. Raises DraftError when something is missing."""
    review = draft.to_review(rubric, evidence, grader)
    files = {review.path: format_review(review).encode(), review.evidence_path: encode(evidence)}
    return Commit(review, files, commit_message(review, rubric))
