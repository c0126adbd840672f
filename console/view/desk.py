"""What lies before the grader: one submission, its files, rubric, evidence, and the draft that grows from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from console.exchange.text import visible
from console.grading.cites import finding_cite, line_cite, panel_cite, parse_cite
from console.grading.draft import CriterionDraft, Draft, evidence_digest
from console.grading.problems import Problem, check
from console.grading.quote import quotation
from console.grading.suggest import Suggestion, VerdictHint, suggest, suggest_verdict
from console.view.rubric import BODY, Form
from runners.evidence import Finding
from runners.findings import SEVERITY_RANK, Severity

if TYPE_CHECKING:
    from console.exchange.model import FileView, Submission, Task
    from console.grading.review import Review
    from console.grading.rubric import Rubric
    from console.runs import RunState

MAX_UNDO = 200


def draft_of(review: Review) -> Draft:
    """A committed review as a draft again, to be changed."""
    return Draft(
        task=review.task,
        submission=review.submission,
        revision=review.revision,
        tree=review.tree,
        rubric=review.rubric.digest,
        evidence=review.evidence,
        outcome=review.outcome,
        mechanism=review.mechanism,
        criteria=tuple(
            CriterionDraft(id=one.id, level=one.level, suggested=one.suggested, note=one.note, cites=one.cites)
            for one in review.criteria
        ),
        overruled=review.overruled,
        body=review.body,
    )


def begun(submission: Submission, rubric: Rubric, kept: Draft | None, review: Review | None) -> tuple[Draft, str]:
    """The draft to go on with, and what the grader must be told about it."""
    draft, told = kept, "draft restored"
    if draft is None and review is not None:
        draft, told = draft_of(review), "your committed review, to be changed"
    if draft is None:
        fresh = Draft.begin(submission.task, submission.name, submission.revision, submission.tree, rubric)
        return fresh, ""
    if draft.tree != submission.tree:
        draft = draft.for_revision(submission.revision, submission.tree)
        told += " from an earlier revision: look at the panels again"
    if draft.rubric != rubric.digest:
        draft = draft.for_rubric(rubric)
        told += "; the rubric has changed since"
    return draft, told


@dataclass
class Desk:
    """The state of one review. ``save`` is called with every new draft."""

    task: Task
    submission: Submission
    rubric: Rubric
    files: Sequence[FileView]
    draft: Draft
    state: RunState
    save: Callable[[Draft], object]
    _undo: list[Draft] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.texts: Mapping[str, Sequence[str] | None] = {
            file.path: file.lines if file.kind in ("text", "too-large") else None for file in self.files
        }
        self._judge()

    def _judge(self) -> None:
        """What the evidence suggests; kept, since every key asks for it."""
        evidence = self.state.evidence
        codes = self.draft.overruled_codes
        self.suggestions: Mapping[str, Suggestion] = suggest(self.rubric, evidence, codes) if evidence else {}
        self.hint: VerdictHint | None = suggest_verdict(evidence, codes) if evidence else None

    # ---- the draft

    def change(self, draft: Draft) -> bool:
        """Take a new draft; False when nothing is different. It is saved before anything else happens."""
        if draft == self.draft:
            return False
        self._undo = [*self._undo[-MAX_UNDO:], self.draft]
        self._take(draft)
        return True

    def retype(self, draft: Draft) -> None:
        """Take a draft that only differs by more typing: saved, but no step of its own to undo."""
        if draft != self.draft:
            self._take(draft)

    def undo(self) -> bool:
        """The draft before the last change; False when there is none."""
        if not self._undo:
            return False
        self._take(self._undo.pop())
        return True

    def mark(self) -> None:
        """The draft of now is a place to come back to."""
        if not self._undo or self._undo[-1] != self.draft:
            self._undo.append(self.draft)

    def _take(self, draft: Draft) -> None:
        judged = draft.overruled_codes != self.draft.overruled_codes
        self.draft = draft
        if judged:
            self._judge()
        self.save(draft)

    # ---- the evidence

    def update(self, state: RunState) -> None:
        """The run has something new."""
        same = state.evidence is self.state.evidence
        self.state = state
        if not same:
            self._judge()

    @property
    def unseen(self) -> bool:
        """True when there is evidence that the draft does not rest on yet."""
        evidence = self.state.evidence
        return evidence is not None and self.draft.evidence != evidence_digest(evidence)

    def see(self) -> None:
        """The grader looks at the evidence: from here the draft rests on it."""
        if self.unseen and not self.state.stale:
            assert self.state.evidence is not None
            self._take(self.draft.with_evidence(self.state.evidence))

    def marks(self) -> dict[tuple[str, int], Severity]:
        """The worst severity at each line that a finding names."""
        worst: dict[tuple[str, int], Severity] = {}
        for finding in self.state.findings:
            if finding.where is not None and finding.code not in self.draft.overruled_codes:
                place = (finding.where.file, finding.where.line)
                if place not in worst or SEVERITY_RANK[finding.severity] > SEVERITY_RANK[worst[place]]:
                    worst[place] = finding.severity
        return worst

    def cited(self) -> frozenset[tuple[str, int]]:
        """The lines that the draft cites."""
        places = set()
        for one in self.draft.criteria:
            for text in one.cites:
                cite = parse_cite(text)
                if cite.kind == "line":
                    places.add((cite.target, cite.line))
        return frozenset(places)

    # ---- the form

    def form(self) -> Form:
        """What the rubric pane shows."""
        return Form(self.rubric, self.draft, self.suggestions, self.hint, self.quoted)

    def text(self, file: str, line: int) -> str | None:
        """A line of the submission; None where there is none."""
        lines = self.texts.get(file)
        return lines[line - 1] if lines is not None and 0 < line <= len(lines) else None

    def quoted(self, cite: str) -> str:
        """The words behind a cite, safe to show: the line, or the finding's summary."""
        parsed = parse_cite(cite)
        if parsed.kind == "line":
            return visible(self.text(parsed.target, parsed.line) or "")
        if parsed.kind == "finding":
            return next((visible(one.summary) for one in self.state.findings if one.id == parsed.target), "")
        return ""

    def criterion_at(self, key: str) -> str:
        """The criterion that ``a`` attaches to when the form's cursor is at ``key``: that one, else the first that
        has no level yet, else the first.
        """
        if key in self.rubric.ids:
            return key
        return next((one.id for one in self.draft.criteria if one.level is None), self.rubric.ids[0])

    def attach_line(self, key: str, file: str, line: int, text: str) -> tuple[Draft, str]:
        """The draft with a line cited, its text quoted in the summary; and where it went."""
        draft = self.draft
        whole = self.text(file, line)
        quote = quotation(file, line, [text if whole is None else whole])
        if quote not in draft.body:
            draft = draft.with_body(f"{draft.body}\n\n{quote}" if draft.body else quote)
        if key == BODY:
            return draft, "summary"
        target = self.criterion_at(key)
        return draft.attach(target, line_cite(file, line)), target

    def attach_finding(self, key: str, finding: Finding) -> tuple[Draft, str]:
        """The draft with a finding cited; and where it went."""
        target = self.criterion_at(key)
        return self.draft.attach(target, finding_cite(finding.id)), target

    def attach_panel(self, key: str, panel: str) -> tuple[Draft, str]:
        """The draft with a panel cited; and where it went."""
        target = self.criterion_at(key)
        return self.draft.attach(target, panel_cite(panel)), target

    def note_of(self, key: str) -> tuple[str, str, str]:
        """Title, text and hint of what ``c`` writes at ``key``: a criterion's note, else the summary."""
        if key in self.rubric.ids:
            criterion = self.rubric.criterion(key)
            one = self.draft.criterion(key)
            hint = ""
            if one.level is not None:
                level = criterion.levels[one.level]
                hint = f"{one.level} {visible(level.name)}: {visible(level.anchor)}"
            return f"note on {key}", one.note, hint
        body = self.draft.body
        if body.rpartition("\n")[2].startswith(">"):
            body += "\n\n"  # what is written at its end belongs to the prose, not to the quoted line
        return "summary: what decided it, and what would change the verdict", body, ""

    def with_note(self, key: str, text: str) -> Draft:
        """The draft with that text changed."""
        if key in self.rubric.ids:
            return self.draft.with_note(key, text)
        return self.draft.with_body(text)

    def problems(self) -> tuple[Problem, ...]:
        """What still keeps the draft from being committed."""
        texts = {path: None if lines is None else "\n".join(lines) + "\n" for path, lines in self.texts.items()}
        return check(self.draft, self.rubric, self.state.evidence, texts, stale=self.state.stale)
