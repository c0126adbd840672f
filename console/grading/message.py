"""The commit message of a review: a subject, the first paragraph of the prose, and trailers."""

from __future__ import annotations

import re
import textwrap

from console.grading.review import Review
from console.grading.rubric import Rubric
from console.grading.score import score
from console.grading.text import one_line

WIDTH = 72
MAX_PARAGRAPH = 2000

_READ_BY_GIT = re.compile(r"#|---|[\w-]*-[\w-]*\s*:", re.ASCII)
"""Comments, the divider that ends a message, and what could be taken for a trailer."""


def commit_message(review: Review, rubric: Rubric) -> str:
    """The message. No text in the review can add a line, a trailer or a comment to it."""
    gates = score(rubric, review.levels).failed_gates
    key = f"{one_line(review.task)}/{one_line(review.submission)}"
    subject = f"review({key}): {review.outcome}, {review.mechanism}, {review.score:.1f}/10"
    if gates:
        subject += f", gate{'s' if len(gates) > 1 else ''} {', '.join(gates)} failed"
    trailers = [
        ("Review-Task", review.task),
        ("Review-Submission", f"{review.submission}@{review.revision}"),
        ("Review-Outcome", review.outcome),
        ("Review-Mechanism", review.mechanism),
        ("Review-Score", f"{review.score:.1f}"),
        *(("Review-Gate-Failed", gate) for gate in gates),
        ("Review-Rubric", f"{review.rubric.name}@{review.rubric.version}"),
        ("Review-Evidence", review.evidence),
    ]
    parts = [subject, first_paragraph(review.body), "\n".join(f"{name}: {one_line(value)}" for name, value in trailers)]
    return "\n\n".join(part for part in parts if part) + "\n"


def first_paragraph(body: str) -> str:
    """The first paragraph that is not a heading, filled; lines that git would read for itself are indented."""
    for paragraph in re.split(r"\n[ \t]*\n", body):
        text = one_line(" ".join(line for line in paragraph.split("\n") if not re.match(r"#{1,6} ", line)))
        if text:
            lines = textwrap.wrap(
                textwrap.shorten(text, MAX_PARAGRAPH, placeholder=" …"),
                WIDTH,
                break_long_words=False,
                break_on_hyphens=False,
            )
            return "\n".join(f" {line}" if _READ_BY_GIT.match(line) else line for line in lines)
    return ""
