"""What will be committed, exactly, as blocks; what keeps it from being committed comes first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from console.exchange.text import visible, visible_block
from console.grading.draft import Draft, DraftError
from console.grading.message import commit_message
from console.grading.problems import Problem
from console.grading.review import Review, format_review
from console.grading.rubric import Rubric
from console.grading.suggest import Suggestion
from console.view.blocks import Block
from console.view.spans import Line, Span, wrap
from runners.evidence import Evidence, encode

if TYPE_CHECKING:
    from console.exchange.model import Preview


@dataclass(frozen=True)
class Proposal:
    """A review ready to go: the files by path, and the commit's message."""

    review: Review
    files: Mapping[str, bytes]
    message: str


@dataclass(frozen=True)
class Refusal:
    """Who refused what, in their words; ``committed`` where there is a local commit that is kept."""

    what: str
    words: str
    committed: bool


def propose(
    draft: Draft,
    rubric: Rubric,
    evidence: Evidence | None,
    suggestions: Mapping[str, Suggestion],
    grader: str,
) -> Proposal | None:
    """The proposal; None while something that a review must have is missing."""
    if evidence is None:
        return None
    try:
        review = draft.with_suggestions(suggestions).to_review(rubric, evidence, grader)
    except DraftError:
        return None
    files = {review.path: format_review(review).encode(), review.evidence_path: encode(evidence)}
    return Proposal(review, files, commit_message(review, rubric))


def blocks(
    width: int,
    problems: Sequence[Problem],
    proposal: Proposal | None,
    preview: Preview | None,
    refusal: Refusal | None,
    progress: str,
    current: str,
) -> list[Block]:
    """Refusal, problems, commit, files."""
    made: list[Block] = []
    if progress:
        made.append(Block("progress", [(Span(f"» {visible(progress)}", "accent"),), ()]))
    if refusal is not None:
        made.append(Block("refusal", [*_refusal(refusal, width), ()]))
    if problems:
        count = "1 thing keeps" if len(problems) == 1 else f"{len(problems)} things keep"
        made.append(Block("", [(Span(f"{count} this from being committed", "warn"),)]))
        for number, problem in enumerate(problems):
            made.append(Block(f"problem:{number}", list(_problem(problem, width, f"problem:{number}" == current))))
        made.append(Block("", [()]))
    if preview is not None:
        made.append(Block("commit", [*_terms(preview, width), ()]))
    if proposal is not None:
        made.append(Block("message", [*_text("commit message", proposal.message, width), ()]))
        for path, data in proposal.files.items():
            if path.endswith(".md"):
                made.append(Block(path, [*_text(path, data.decode("utf-8", "replace"), width), ()]))
            else:
                size = Span(f"  {len(data):,} bytes, {evidence_word(proposal.review.evidence)}", "dim")
                made.append(Block(path, [(Span(visible(path), "title"), size), ()]))
    return made


def evidence_word(digest: str) -> str:
    """A digest, short."""
    return digest[:19]


def _refusal(refusal: Refusal, width: int) -> Iterator[Line]:
    yield (Span(f"✗ {visible(refusal.what)}", "bad"),)
    for text in wrap(visible_block(refusal.words), max(10, width - 4)):
        yield (Span(f"    {text}", "text"),)
    kept = "The draft and the local commit are kept." if refusal.committed else "No commit was made; the draft is kept."
    yield (Span(f"  {kept}", "dim"),)


def _problem(problem: Problem, width: int, current: bool) -> Iterator[Line]:
    head = f"{visible(problem.where):<12} "
    for turn, text in enumerate(wrap(visible(problem.message), max(10, width - len(head) - 2))):
        yield (
            Span("! " if not turn else "  ", "warn"),
            Span(head if not turn else " " * len(head), "strong"),
            Span(text),
        )
    if current and problem.cites:
        yield (Span(" " * (len(head) + 2)), Span("a ", "key"), Span(f"cites {', '.join(problem.cites)}", "dim"))


def _terms(preview: Preview, width: int) -> Iterator[Line]:
    yield (Span("commit", "title"),)
    rows = (
        ("author", f"{preview.name} <{preview.email}>"),
        ("signed", "no" if preview.signing == "none" else preview.signing),
        ("hooks", ", ".join(preview.hooks) or "none"),
        ("to", preview.target),
    )
    for name, value in rows:
        for turn, text in enumerate(wrap(visible(value), max(10, width - 10))):
            yield (Span(f"  {name if not turn else '':<7} ", "dim"), Span(text))
    if preview.problem:
        for text in wrap(visible_block(preview.problem), max(10, width - 10)):
            yield (Span("  ✗ git    ", "bad"), Span(text, "bad"))


def _text(title: str, text: str, width: int) -> Iterator[Line]:
    yield (Span(visible(title), "title"),)
    front = 0
    for raw in visible_block(text, lines=5_000).rstrip("\n").split("\n"):
        if raw == "+++":
            front += 1
        tone = "dim" if front == 1 or raw == "+++" else "text"
        for part in wrap(raw, max(10, width - 2)):
            yield (Span(f"  {part}", "dim" if tone == "dim" else "text"),)
