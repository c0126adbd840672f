"""The queue as data: one row per submission, filtered, sorted and laid out in columns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Literal

import msgspec
from rich.cells import cell_len

from console.exchange.text import visible
from console.view.glyphs import NO_RUN, PANEL_LETTERS, PANEL_MARKS, REVIEW_MARKS, Mark, PanelPhase, ReviewState
from console.view.spans import Line, Span, Tone, fit
from runners.evidence import Finding
from runners.findings import PANELS, SEVERITY_RANK, Severity

if TYPE_CHECKING:
    from console.exchange.model import ReviewRecord, Snapshot, Submission, TriageMark
    from console.runs import RunState

SortMode = Literal["worst finding", "review state", "task", "author", "newest"]
SORT_MODES: tuple[SortMode, ...] = ("worst finding", "review state", "task", "author", "newest")

_STATE_ORDER: tuple[ReviewState, ...] = (
    "draft",
    "outdated",
    "wants-review",
    "todo",
    "broken",
    "environment",
    "reject",
    "reviewed",
)


class QueueRow(msgspec.Struct, frozen=True):
    """One submission, ready to be shown: every text in it is safe for the terminal."""

    key: str
    task: str
    name: str
    author: str
    revision: str
    when: int
    state: ReviewState
    others: int
    """Reviews of this very tree by other graders."""
    problem: str
    """What is wrong with the task or the submission, and where; empty when nothing is."""
    panels: tuple[PanelPhase | None, ...] = (None,) * len(PANELS)
    phase: str = "idle"
    worst: str = ""
    severity: Severity | None = None
    summary: str = ""
    codes: tuple[str, ...] = ()
    moved: bool = False
    """A new revision came in while the console was open."""

    @property
    def words(self) -> str:
        """What the filter searches."""
        return " ".join((self.task, self.name, self.author, self.revision, *self.codes, self.problem)).lower()


def worst_of(findings: Iterable[Finding]) -> Finding | None:
    """The finding that a row shows: the most severe, the earliest panel first among equals; information is none."""
    return min(
        (finding for finding in findings if finding.severity != "info"),
        key=lambda finding: (-SEVERITY_RANK[finding.severity], PANELS.index(finding.panel)),
        default=None,
    )


def review_state(
    submission: Submission,
    broken: bool,
    has_draft: bool,
    triage: TriageMark | None,
    reviews: Sequence[ReviewRecord],
    grader: str,
) -> ReviewState:
    """Where this submission stands for this grader. A mark or a review counts for the tree that it was made for."""
    if broken:
        return "broken"
    if has_draft:
        return "draft"
    mine = [record for record in reviews if record.grader == grader]
    if any(record.review is not None and record.review.tree == submission.tree for record in mine):
        return "reviewed"
    if triage is not None and triage.tree == submission.tree:
        return triage.mark
    return "outdated" if mine else "todo"


def rows_of(
    snapshot: Snapshot, *, grader: str, drafts: Collection[str] = (), moved: Collection[str] = ()
) -> list[QueueRow]:
    """A row per submission, without what runs have to say: :func:`with_run` adds that."""
    reviews: dict[str, list[ReviewRecord]] = {}
    for record in snapshot.reviews:
        reviews.setdefault(f"{record.task}/{record.submission}", []).append(record)
    marks = {f"{mark.task}/{mark.submission}": mark for mark in snapshot.triage}
    task_problem: dict[str, str] = {}
    rows = []
    for submission in snapshot.submissions:
        if submission.task not in task_problem:
            task = snapshot.tasks.get(submission.task)
            text = "no such task" if task is None else (task.problem or "")
            task_problem[submission.task] = visible(text)
        problem = task_problem[submission.task] or visible(submission.problem or "")
        own = reviews.get(submission.key, ())
        rows.append(
            QueueRow(
                key=submission.key,
                task=visible(submission.task),
                name=visible(submission.name),
                author=visible(submission.author),
                revision=visible(submission.revision[:7]),
                when=submission.when,
                state=review_state(
                    submission, bool(problem), submission.key in drafts, marks.get(submission.key), own, grader
                ),
                others=sum(
                    1
                    for record in own
                    if record.grader != grader and record.review is not None and record.review.tree == submission.tree
                ),
                problem=problem,
                moved=submission.key in moved,
            )
        )
    return rows


def with_run(row: QueueRow, state: RunState) -> QueueRow:
    """The row with what its run shows now."""
    worst = worst_of(state.findings)
    return msgspec.structs.replace(
        row,
        panels=tuple(state.panels[name].status if name in state.panels else None for name in PANELS),
        phase=state.phase,
        worst="" if worst is None else visible(worst.code),
        severity=None if worst is None else worst.severity,
        summary="" if worst is None else visible(worst.summary),
        codes=tuple(sorted({finding.code for finding in state.findings})),
    )


class Filter(msgspec.Struct, frozen=True):
    """What ``/`` understands: plain words, and ``task: author: state: finding:`` before a word. All must hold."""

    text: str = ""

    FIELDS = ("task", "author", "state", "finding")

    def tests(self) -> tuple[Callable[[QueueRow], bool], ...]:
        """One test per word."""
        return tuple(_test(token) for token in self.text.lower().split())

    def __call__(self, rows: Iterable[QueueRow]) -> list[QueueRow]:
        """The rows for which every word holds."""
        tests = self.tests()
        return [row for row in rows if all(test(row) for test in tests)]


def _test(token: str) -> Callable[[QueueRow], bool]:
    field, colon, value = token.partition(":")
    if colon and field in Filter.FIELDS:
        if field == "task":
            return lambda row: value in row.task.lower()
        if field == "author":
            return lambda row: value in row.author.lower()
        if field == "finding":
            return lambda row: any(value in code for code in row.codes)
        return lambda row: any(value in word for word in (row.state, REVIEW_MARKS[row.state].word, row.phase))
    return lambda row: token in row.words


def sort_rows(rows: Iterable[QueueRow], mode: SortMode) -> list[QueueRow]:
    """Rows in the order of ``mode``; equal ones by task and name, so that nothing jumps about."""
    keys: dict[SortMode, Callable[[QueueRow], tuple[object, ...]]] = {
        "worst finding": lambda row: (-1 - SEVERITY_RANK[row.severity] if row.severity else 0, row.worst),
        "review state": lambda row: (_STATE_ORDER.index(row.state),),
        "task": lambda row: (),
        "author": lambda row: (row.author.lower(),),
        "newest": lambda row: (-row.when,),
    }
    key = keys[mode]
    return sorted(rows, key=lambda row: (key(row), row.task, row.name))


class Columns(msgspec.Struct, frozen=True):
    """Widths in cells, one blank between columns."""

    task: int
    name: int
    author: int
    revision: int
    panels: int
    worst: int
    state: int

    @property
    def spaced(self) -> bool:
        """Whether panel glyphs stand apart."""
        return self.panels > len(PANELS)


def columns_for(rows: Sequence[QueueRow], width: int) -> Columns:
    """Columns that use ``width`` cells: each as wide as it needs, the finding takes what is left."""
    panels = 2 * len(PANELS) - 1 if width >= 110 else len(PANELS)
    need = {
        "task": max((cell_len(row.task) for row in rows), default=4),
        "name": max((cell_len(row.name) for row in rows), default=10),
        "author": max((cell_len(row.author) for row in rows), default=6),
        "state": max((cell_len(_state_text(row)) for row in rows), default=6),
    }
    # Together with the four cells that the finding keeps, these fill sixty columns, the narrowest screen.
    least = {"task": 10, "name": 8, "author": 5, "state": min(need["state"], 14)}
    most = {"task": 30, "name": 30, "author": 20, "state": 17}
    sizes = {name: min(max(need[name], least[name]), most[name]) for name in need}
    room = width - 6 - 7 - panels  # six blanks between seven columns, and a short revision
    codes = max((cell_len(row.problem or row.worst) for row in rows), default=0)
    worst = min(max(codes, 20), 27 if width < 110 else 60)
    # The widest column gives first, until the finding has its room or all are at their least.
    while room - sum(sizes.values()) < worst:
        name = max(sizes, key=lambda one: sizes[one] - least[one])
        if sizes[name] <= least[name]:
            break
        sizes[name] -= 1
    left = max(4, room - sum(sizes.values()))
    return Columns(sizes["task"], sizes["name"], sizes["author"], 7, panels, left, sizes["state"])


def heading(columns: Columns) -> Line:
    """The row above the table; it is also the legend of the panel glyphs."""
    letters = (" " if columns.spaced else "").join(PANEL_LETTERS[name] for name in PANELS)
    cells = (
        fit("task", columns.task),
        fit("submission" if columns.name >= 10 else "name", columns.name),
        fit("author", columns.author),
        fit("rev", columns.revision),
        fit(letters, columns.panels),
        fit("worst finding", columns.worst),
        fit("review", columns.state),
    )
    return (Span(" ".join(cells), "dim"),)


def _panel_mark(phase: PanelPhase | None) -> Mark:
    return NO_RUN if phase is None else PANEL_MARKS[phase]


def row_line(row: QueueRow, columns: Columns) -> Line:
    """One row of the table."""
    quiet = row.state in ("reviewed", "reject")
    name: Tone = "dim" if quiet else "strong"
    spans = [
        Span(fit(row.task, columns.task) + " ", "dim" if quiet else "text"),
        Span(fit(row.name, columns.name) + " ", name),
        Span(fit(row.author, columns.author) + " ", "dim"),
        Span(fit(row.revision, columns.revision) + " ", "warn" if row.moved else "faint"),
    ]
    for number, phase in enumerate(row.panels):
        mark = _panel_mark(phase)
        if number and columns.spaced:
            spans.append(Span(" "))
        spans.append(Span(mark.glyph, mark.tone))
    spans.append(Span(" "))
    spans += _worst(row, columns.worst)
    spans.append(Span(" "))
    spans.append(Span(fit(_state_text(row), columns.state), REVIEW_MARKS[row.state].tone))
    return tuple(spans)


def _state_text(row: QueueRow) -> str:
    mark = REVIEW_MARKS[row.state]
    return f"{mark.glyph} {mark.word}" + (f" +{row.others}" if row.others else "")


def _worst(row: QueueRow, width: int) -> list[Span]:
    if row.problem:
        return [Span(fit(row.problem, width), "bad")]
    if not row.worst or row.severity is None:
        words = {"idle": "", "queued": "queued", "running": "running", "failed": "run failed", "cancelled": "cancelled"}
        text = words.get(row.phase, "no finding" if row.phase == "done" else row.phase)
        return [Span(fit(text, width), "accent" if row.phase in ("queued", "running") else "dim")]
    tone: Tone = {"fail": "bad", "warn": "warn", "info": "dim"}[row.severity]  # type: ignore[assignment]
    code = fit(row.worst, min(width, max(27, cell_len(row.worst))))
    rest = width - cell_len(code)
    spans = [Span(code, tone)]
    if rest > 3:
        spans.append(Span(" " + fit(row.summary, rest - 1), "dim"))
    elif rest > 0:
        spans.append(Span(" " * rest))
    return spans


def legend() -> Line:
    """Which letter is which panel, which glyph is which state."""
    spans: list[Span] = []
    for name in PANELS:
        spans += [Span(PANEL_LETTERS[name], "strong"), Span(f" {name}  ", "dim")]
    for mark in (*PANEL_MARKS.values(), NO_RUN):
        spans += [Span(mark.glyph, mark.tone), Span(f" {mark.word}  ", "dim")]
    return tuple(spans)
