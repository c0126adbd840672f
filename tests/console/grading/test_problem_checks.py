from __future__ import annotations

import msgspec
import pytest

from console.grading.draft import Draft
from console.grading.problems import Problem, check
from console.grading.rubric import Rubric
from console.grading.suggest import suggest
from runners.evidence import Evidence, SubmissionRef, make_finding

from .conftest import FILES, REVISION, TREE, evidence_with


def told(problems: tuple[Problem, ...]) -> list[tuple[str, str]]:
    return [(problem.where, problem.message) for problem in problems]


@pytest.fixture
def fine() -> Evidence:
    return evidence_with()


@pytest.fixture
def good(small: Rubric, fine: Evidence) -> Draft:
    draft = Draft.begin("t", "m-1", REVISION, TREE, small, fine).take_suggestions(suggest(small, fine))
    return draft.with_level("clear", 1).with_outcome("correct").with_mechanism("sound")


def test_a_whole_review_has_no_problems(good: Draft, small: Rubric, fine: Evidence) -> None:
    assert check(good, small, fine, FILES) == ()


def test_an_empty_one_names_all_that_is_missing(small: Rubric) -> None:
    problems = check(Draft.begin("t", "m-1", REVISION, TREE, small), small, None, FILES)
    assert told(problems) == [
        ("outcome", "not set"),
        ("mechanism", "not set"),
        ("evidence", "there is none yet: run the panels"),
        ("right", "no level"),
        ("clear", "no level"),
    ]


def test_a_lost_point_needs_a_note_or_a_cited_finding_or_line(good: Draft, small: Rubric, fine: Evidence) -> None:
    lost = good.with_level("clear", 0)
    assert told(check(lost, small, fine, FILES)) == [("clear", "a point is lost without a note or a cited finding")]
    assert check(lost.with_note("clear", "names"), small, fine, FILES) == ()
    assert check(lost.attach("clear", "kernel.py:6"), small, fine, FILES) == ()
    assert check(lost.attach("clear", "panel:build"), small, fine, FILES)


def test_needs_must_be_cited_and_the_problem_says_how(good: Draft, small: Rubric, fine: Evidence) -> None:
    (problem,) = check(good.detach("right", "panel:correctness"), small, fine, FILES)
    assert (problem.where, problem.cites) == ("right", ("panel:correctness",))


def test_a_finding_of_the_panel_is_as_good(good: Draft, small: Rubric) -> None:
    odd = evidence_with(make_finding("numerics/unexplained", "odd"))
    cited = good.detach("right", "panel:correctness").attach("right", "finding:numerics/unexplained#1")
    assert check(cited.with_evidence(odd), small, odd, FILES) == ()


@pytest.mark.parametrize(
    ("cite", "message"),
    [
        ("kernel.py:7", "kernel.py:7: the file has 6 lines"),
        ("other.py:1", "other.py:1: this revision has no such file"),
        ("plot.png:1", "plot.png:1: the file is not text"),
        ("finding:numerics/unstable#1", "cites finding:numerics/unstable#1, which is not in the evidence"),
        ("panel:speed", "cites panel:speed, which is not in the evidence"),
    ],
)
def test_what_is_cited_must_be_there(good: Draft, small: Rubric, fine: Evidence, cite: str, message: str) -> None:
    assert told(check(good.attach("clear", cite), small, fine, FILES)) == [("clear", message)]


def test_lines_named_in_notes_and_prose_must_be_there(good: Draft, small: Rubric, fine: Evidence) -> None:
    noted = good.with_note("clear", "see kernel.py:99").with_body("As kernel.py:6 shows, and gone.py:3 too.")
    assert told(check(noted, small, fine, FILES)) == [
        ("clear", "kernel.py:99: the file has 6 lines"),
        ("body", "gone.py:3: this revision has no such file"),
    ]


def test_a_quotation_must_be_what_the_line_says(good: Draft, small: Rubric, fine: Evidence) -> None:
    right = good.with_body("`kernel.py:5`\n> def softmax(x):\n>     m = tl.max(x)\n")
    assert check(right, small, fine, FILES) == ()
    wrong = good.with_body("`kernel.py:5`\n> def softmax(x):\n> m = tl.max(y)\n")
    assert told(check(wrong, small, fine, FILES)) == [
        ("body", "kernel.py:6 is quoted, but that line reads otherwise in this revision")
    ]


def test_evidence_that_is_not_what_the_grader_saw(good: Draft, small: Rubric, fine: Evidence) -> None:
    newer = msgspec.structs.replace(fine, seeds=(3, 4))
    assert told(check(good, small, newer, FILES)) == [
        ("evidence", "has changed since the levels were set: look at the panels again")
    ]
    assert check(good.with_evidence(newer), small, newer, FILES) == ()
    assert "stale" in check(good, small, fine, FILES, stale=True)[0].message
    other = msgspec.structs.replace(fine, submission=SubmissionRef("m-1", "f" * 40, REVISION))
    assert "another revision" in check(good.with_evidence(other), small, other, FILES)[0].message
    foreign = msgspec.structs.replace(fine, submission=SubmissionRef("m-2", TREE, REVISION))
    assert "another submission" in check(good.with_evidence(foreign), small, foreign, FILES)[0].message


def test_a_changed_rubric_is_a_problem(good: Draft, small: Rubric, fine: Evidence) -> None:
    newer = msgspec.structs.replace(small, digest="sha256:" + "0" * 64)
    assert told(check(good, newer, fine, FILES)) == [("rubric", "the rubric has changed since this draft was begun")]


def test_a_level_that_the_rubric_does_not_have(good: Draft, small: Rubric, fine: Evidence) -> None:
    assert told(check(good.with_level("clear", 5), small, fine, FILES)) == [("clear", "level 5 is not between 0 and 1")]


def test_overruling_needs_a_reason(good: Draft, small: Rubric, fine: Evidence) -> None:
    problems = check(good.overrule("memory/uninitialised", "  "), small, fine, FILES)
    assert told(problems) == [("overruled", "memory/uninitialised: say why it is overruled")]


def judged(small: Rubric, evidence: Evidence) -> Draft:
    draft = Draft.begin("t", "m-1", REVISION, TREE, small, evidence).take_suggestions(suggest(small, evidence))
    draft = draft.with_level("clear", 1)
    return (
        draft
        if draft.levels["right"] is not None
        else draft.with_level("right", 2).attach("right", "panel:correctness")
    )


@pytest.mark.parametrize("outcome", ["correct", "not-determined"])
def test_a_failed_run_is_only_contradicted_by_overruling(small: Rubric, unstable: Evidence, outcome: str) -> None:
    draft = judged(small, unstable).with_outcome(outcome).with_mechanism("sound")  # type: ignore[arg-type]
    assert told(check(draft, small, unstable, FILES)) == [
        ("outcome", f"`{outcome}`, but the run failed: overrule numerics/unstable")
    ]
    assert check(draft.overrule("numerics/unstable", "outside the promised range"), small, unstable, FILES) == ()


def test_right_numbers_by_a_hack_contradict_nothing(small: Rubric) -> None:
    hacked = evidence_with(make_finding("integrity/replay", "kept by pointer"))
    draft = judged(small, hacked).with_outcome("correct")
    assert check(draft.with_mechanism("hacked"), small, hacked, FILES) == ()
    assert check(draft.with_mechanism("sound"), small, hacked, FILES)
    both = evidence_with(make_finding("integrity/replay", "r"), make_finding("numerics/mismatch", "m"))
    draft = judged(small, both).with_outcome("correct").with_mechanism("hacked")
    assert told(check(draft, small, both, FILES)) == [
        ("outcome", "`correct`, but the run failed: overrule numerics/mismatch")
    ]


def test_a_passed_run_is_only_contradicted_with_words(good: Draft, small: Rubric, fine: Evidence) -> None:
    wrong = good.with_outcome("incorrect").with_mechanism("flawed")
    assert told(check(wrong, small, fine, FILES)) == [
        ("outcome", "`incorrect`, but the run passed: say in the summary what it missed")
    ]
    assert check(wrong.with_body("A grid of 65,536 rows is cut."), small, fine, FILES) == ()


def test_what_was_not_determined_contradicts_no_verdict(small: Rubric) -> None:
    open_run = evidence_with(unchecked=("integrity",))
    for outcome in ("correct", "incorrect", "not-determined"):
        draft = judged(small, open_run).with_outcome(outcome).with_mechanism("sound")  # type: ignore[arg-type]
        assert check(draft, small, open_run, FILES) == ()
