from __future__ import annotations

import pytest

from console.grading.draft import Draft, DraftError, evidence_digest
from console.grading.rubric import Rubric, digest_of, parse_rubric
from console.grading.suggest import suggest
from console.grading.verdict import VerdictError
from runners.evidence import Evidence, encode

from .conftest import REVISION, SMALL, TREE, evidence_with


@pytest.fixture
def draft(small: Rubric) -> Draft:
    return Draft.begin("t", "m-1", REVISION, TREE, small)


def test_it_begins_empty_and_knows_what_it_is_for(draft: Draft, small: Rubric) -> None:
    assert draft.empty
    assert draft.levels == {"right": None, "clear": None}
    assert (draft.revision, draft.tree, draft.rubric, draft.evidence) == (REVISION, TREE, small.digest, None)


def test_every_change_is_a_new_draft(draft: Draft) -> None:
    changed = draft.with_level("right", 1).with_note("right", " because ").attach("right", "kernel.py:6")
    one = changed.criterion("right")
    assert (one.level, one.note, one.cites) == (1, "because", ("kernel.py:6",))
    assert draft.empty
    assert changed.attach("right", "kernel.py:6") == changed
    assert changed.detach("right", "kernel.py:6").criterion("right").cites == ()
    assert changed.with_level("right", None).levels["right"] is None


def test_what_is_no_cite_or_no_criterion_is_refused(draft: Draft) -> None:
    with pytest.raises(ValueError, match="neither"):
        draft.attach("right", "somewhere")
    with pytest.raises(KeyError):
        draft.with_level("wrong", 1)


def test_suggestions_never_overwrite_the_grader(draft: Draft, small: Rubric, unstable: Evidence) -> None:
    suggestions = suggest(small, unstable)
    decided = draft.with_level("right", 2).take_suggestions(suggestions)
    assert (decided.criterion("right").level, decided.criterion("right").suggested) == (2, 0)
    taken = draft.take_suggestions(suggestions).criterion("right")
    assert (taken.level, taken.suggested) == (0, 0)
    assert taken.cites == ("finding:numerics/unstable#1", "panel:correctness")
    assert draft.with_suggestions(suggestions).empty
    assert draft.take_suggestions(suggestions).with_suggestions({}).criterion("right").suggested is None


def test_outcome_and_mechanism_never_contradict(draft: Draft) -> None:
    flawed = draft.with_outcome("incorrect").with_mechanism("flawed")
    assert flawed.with_outcome("correct").mechanism is None
    assert flawed.with_outcome("not-determined").mechanism == "flawed"
    with pytest.raises(VerdictError):
        draft.with_outcome("correct").with_mechanism("flawed")
    with pytest.raises(VerdictError):
        draft.with_outcome("incorrect").with_mechanism("coincidental")


def test_overruling_and_taking_it_back(draft: Draft) -> None:
    twice = draft.overrule("memory/uninitialised", "first").overrule("memory/uninitialised", " the mask covers it ")
    assert [(one.code, one.reason) for one in twice.overruled] == [("memory/uninitialised", "the mask covers it")]
    assert twice.overruled_codes == {"memory/uninitialised"}
    assert twice.accept("memory/uninitialised") == draft


def test_json_gives_the_same_draft_back(draft: Draft) -> None:
    full = (
        draft.take_suggestions({}).with_outcome("incorrect").with_body("a\x1bb\n").overrule("build/hang", "slow \ud800")
    )
    assert Draft.from_json(full.to_json()) == full
    assert full.body == "a\\x1bb"


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"\xff", b'{"task": 1}', b'{"outcome": "correct", "mechanism": "flawed"}', b"[]"]
)
def test_json_that_is_no_draft(data: bytes) -> None:
    with pytest.raises(DraftError):
        Draft.from_json(data)


def test_a_contradiction_on_disk_is_refused(draft: Draft) -> None:
    data = draft.with_outcome("incorrect").with_mechanism("flawed").to_json()
    with pytest.raises(DraftError, match="cannot be"):
        Draft.from_json(data.replace(b'"incorrect"', b'"correct"'))


def test_another_revision_rests_on_no_evidence(draft: Draft, unstable: Evidence) -> None:
    seen = draft.with_evidence(unstable).with_note("clear", "kept")
    assert seen.evidence == evidence_digest(unstable) == digest_of(encode(unstable))
    moved = seen.for_revision("d" * 40, "e" * 40)
    assert (moved.revision, moved.tree, moved.evidence, moved.criterion("clear").note) == (
        "d" * 40,
        "e" * 40,
        None,
        "kept",
    )


def test_another_rubric_keeps_what_fits(draft: Draft) -> None:
    changed = parse_rubric(
        SMALL.replace(b'id = "clear"', b'id = "brief"')
        .replace(b', { name = "yes", anchor = "all" }', b"")
        .replace(b"level = 2", b"level = 1")
    )
    moved = draft.with_level("right", 2).with_note("right", "n").with_level("clear", 1).for_rubric(changed)
    assert moved.levels == {"right": None, "brief": None}
    assert moved.criterion("right").note == "n"
    assert moved.rubric == changed.digest


def test_a_review_needs_everything(draft: Draft, small: Rubric) -> None:
    evidence = evidence_with()
    partial = draft.with_level("right", 2).with_outcome("correct").with_mechanism("sound")
    with pytest.raises(DraftError):
        partial.to_review(small, evidence, "ann")
    with pytest.raises(DraftError):
        draft.with_level("right", 2).with_level("clear", 0).to_review(small, evidence, "ann")
    review = partial.with_level("clear", 0).with_suggestions(suggest(small, evidence)).to_review(small, evidence, "ann")
    assert (review.score, review.evidence, review.grader) == (7.5, evidence_digest(evidence), "ann")
    assert [(c.id, c.level, c.suggested) for c in review.criteria] == [("right", 2, 2), ("clear", 0, None)]
    assert (review.rubric.name, review.rubric.version, review.rubric.digest) == ("small", 3, small.digest)
