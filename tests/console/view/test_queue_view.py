"""Rows, filter and order of the queue."""

from __future__ import annotations

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from console.exchange.model import ReviewRecord, Snapshot, Submission, Task, TriageMark
from console.grading.review import Review, RubricRef
from console.view.glyphs import PANEL_MARKS, REVIEW_MARKS
from console.view.queue import (
    SORT_MODES,
    Filter,
    QueueRow,
    columns_for,
    heading,
    row_line,
    rows_of,
    sort_rows,
    worst_of,
)
from console.view.spans import plain, width_of
from runners.evidence import make_finding, number_findings

ROW = QueueRow(
    key="softmax/m-1",
    task="softmax",
    name="m-1",
    author="model-a",
    revision="abcdef0",
    when=1,
    state="todo",
    others=0,
    problem="",
)


def submission(name: str, tree: str = "1" * 40, problem: str | None = None) -> Submission:
    return Submission(
        task="softmax",
        name=name,
        tree=tree,
        revision="a" * 40,
        author="model\x1b[31m",
        when=1,
        framework="triton",
        files=(),
        problem=problem,
    )


def review(tree: str, grader: str = "ann") -> ReviewRecord:
    written = Review(
        task="softmax",
        submission="m-1",
        revision="a" * 40,
        tree=tree,
        grader=grader,
        outcome="correct",
        mechanism="sound",
        score=9.0,
        rubric=RubricRef(name="kernel", version=1, digest="sha256:" + "0" * 64),
        evidence="sha256:" + "0" * 64,
    )
    return ReviewRecord(
        task="softmax",
        submission="m-1",
        grader=grader,
        path="reviews/softmax/m-1/ann.md",
        commit="b" * 40,
        author=grader,
        when=2,
        review=written,
    )


def snapshot(**changes: object) -> Snapshot:
    task = Task(name="softmax", tree="2" * 40, spec=None, scenario="", has_starter=False)
    base = Snapshot(head="3" * 40, branch="main", tasks={"softmax": task}, submissions=(submission("m-1"),))
    return msgspec.structs.replace(base, **changes)


def only(snap: Snapshot, drafts: tuple[str, ...] = ()) -> QueueRow:
    (row,) = rows_of(snap, grader="ann", drafts=drafts)
    return row


def test_hostile_names_are_shown_not_obeyed() -> None:
    assert "\x1b" not in only(snapshot()).author


def test_review_states() -> None:
    tree = "1" * 40
    mark = TriageMark(task="softmax", submission="m-1", mark="reject", reason="r", grader="bo", tree=tree)
    assert only(snapshot()).state == "todo"
    assert only(snapshot(), drafts=("softmax/m-1",)).state == "draft"
    assert only(snapshot(reviews=(review(tree),))).state == "reviewed"
    assert only(snapshot(reviews=(review("9" * 40),))).state == "outdated"
    assert only(snapshot(triage=(mark,))).state == "reject"
    assert only(snapshot(triage=(msgspec.structs.replace(mark, tree="9" * 40),))).state == "todo"
    assert only(snapshot(reviews=(review(tree, "bo"),))).others == 1
    assert only(snapshot(reviews=(review(tree, "bo"),))).state == "todo"


def test_a_broken_row_says_what_and_where() -> None:
    broken = Task(name="softmax", tree="2" * 40, spec=None, scenario="", has_starter=False, problem="task.toml: cases")
    row = only(snapshot(tasks={"softmax": broken}))
    assert row.state == "broken"
    assert "task.toml: cases" in plain(row_line(row, columns_for([row], 79)))
    assert only(snapshot(tasks={})).problem == "no such task"


def test_filter_words_and_fields() -> None:
    rows = [
        ROW,
        replace(ROW, key="b", name="m-2", author="model-b", codes=("numerics/unstable",), state="reviewed"),
        replace(ROW, key="c", name="m-3", task="matmul", phase="running"),
    ]
    assert [row.key for row in Filter("author:model-b")(rows)] == ["b"]
    assert [row.key for row in Filter("finding:unstable")(rows)] == ["b"]
    assert [row.key for row in Filter("state:running")(rows)] == ["c"]
    assert [row.key for row in Filter("task:matmul m-3")(rows)] == ["c"]
    assert Filter("task:matmul m-2")(rows) == []
    assert Filter("")(rows) == rows
    assert Filter("nosuchfield:x")(rows) == []


def test_worst_comes_first() -> None:
    rows = [
        replace(ROW, key="none"),
        replace(ROW, key="warn", severity="warn", worst="numerics/unexplained"),
        replace(ROW, key="fail", severity="fail", worst="numerics/mismatch"),
    ]
    assert [row.key for row in sort_rows(rows, "worst finding")] == ["fail", "warn", "none"]


def test_worst_finding_by_severity_then_panel() -> None:
    findings = number_findings(
        (
            make_finding("integrity/hint", "h"),
            make_finding("integrity/replay", "i"),
            make_finding("numerics/mismatch", "n"),
        )
    )
    worst = worst_of(findings)
    assert worst is not None
    assert worst.code == "numerics/mismatch"
    assert worst_of(()) is None


@given(st.permutations([replace(ROW, key=str(n), name=str(n), when=n % 3) for n in range(6)]))
def test_every_order_is_stable(rows: list[QueueRow]) -> None:
    for mode in SORT_MODES:
        assert sort_rows(rows, mode) == sort_rows(list(reversed(rows)), mode)


@given(
    st.integers(60, 220),
    st.text(max_size=60).filter(str.isprintable),
    st.sampled_from(list(REVIEW_MARKS)),
    st.sampled_from([None, *PANEL_MARKS]),
)
@example(60, "", "wants-review", None)
@example(60, "a" * 60, "outdated", None)
def test_rows_are_as_wide_as_the_screen(width: int, text: str, state: object, phase: object) -> None:
    row = replace(
        ROW,
        task=text,
        name=text,
        summary=text,
        worst="memory/out-of-bounds-write",
        severity="fail",
        state=state,  # type: ignore[arg-type]
        panels=(phase,) * 6,  # type: ignore[arg-type]
    )
    columns = columns_for([row], width)
    assert width_of(row_line(row, columns)) == width_of(heading(columns)) <= width
