from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.grading.review import (
    CriterionScore,
    Overruled,
    Review,
    RubricRef,
    canonical_body,
    format_review,
    parse_review,
)
from console.grading.verdict import MECHANISMS, OUTCOMES, allowed
from console.schema import SchemaError

REVIEW = Review(
    task="fused-softmax-fp8",
    submission="m-042",
    revision="a" * 40,
    tree="b" * 40,
    grader="ann-lee",
    outcome="incorrect",
    mechanism="flawed",
    score=3.0,
    rubric=RubricRef(name="kernel", version=3, digest="sha256:" + "1" * 64),
    evidence="sha256:" + "2" * 64,
    criteria=(
        CriterionScore(
            id="numerics",
            level=0,
            suggested=1,
            note="Row maximum taken after the cast.",
            cites=("finding:numerics/unstable#1", "kernel.py:14"),
        ),
        CriterionScore(id="writing", level=3),
    ),
    overruled=(Overruled(code="integrity/context", reason="It only reads the grid."),),
    body="The maximum is taken after the cast.\n\n`kernel.py:14`\n> m = tl.max(x)",
)

TEXT = f"""\
+++
schema = 1
task = "fused-softmax-fp8"
submission = "m-042"
revision = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
tree = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
grader = "ann-lee"
outcome = "incorrect"
mechanism = "flawed"
score = 3.0
rubric = {{name = "kernel", version = 3, digest = "sha256:{"1" * 64}"}}
evidence = "sha256:2222222222222222222222222222222222222222222222222222222222222222"
[[criteria]]
id = "numerics"
level = 0
suggested = 1
note = "Row maximum taken after the cast."
cites = ["finding:numerics/unstable#1", "kernel.py:14"]
[[criteria]]
id = "writing"
level = 3
[[overruled]]
code = "integrity/context"
reason = "It only reads the grid."
+++
The maximum is taken after the cast.

`kernel.py:14`
> m = tl.max(x)
"""


def test_the_file_reads_as_designed() -> None:
    assert format_review(REVIEW) == TEXT
    assert parse_review(TEXT) == REVIEW
    assert REVIEW.path == "reviews/fused-softmax-fp8/m-042/ann-lee.md"
    assert REVIEW.evidence_path == "reviews/fused-softmax-fp8/m-042/ann-lee.evidence.json"


def test_a_windows_editor_changes_nothing() -> None:
    assert parse_review("\ufeff" + TEXT.replace("\n", "\r\n")) == REVIEW


def test_a_review_without_prose_or_criteria() -> None:
    bare = msgspec.structs.replace(REVIEW, criteria=(), overruled=(), body="")
    assert format_review(bare).endswith('"\n+++\n')
    assert parse_review(format_review(bare)) == bare


hostile = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from(list("\"'\\+\n\r\t#[]=\x00\x07\x1b\x7f\x85\x9b\u2028\u202e\ufeff")),
    ),
    max_size=30,
) | st.sampled_from(
    ['"""', "'''", "+++", "\n+++\n", "+++\n[[criteria]]\n", "\x1b]0;x\x07", "a\r\nb", "\ud800", "\\u0000"]
)
names = hostile.filter(lambda s: bool(s) and s not in (".", "..") and not set(s) & set("/\0"))
levels = st.integers(0, 9)
reviews = st.builds(
    Review,
    task=names.filter(lambda s: s.isascii()),
    submission=names.filter(lambda s: not any("\ud800" <= c <= "\udfff" for c in s)),
    revision=st.just("c" * 40),
    tree=st.just("d" * 64),
    grader=st.just("g"),
    outcome=st.just("not-determined"),
    mechanism=st.sampled_from(MECHANISMS),
    score=st.integers(0, 100).map(lambda n: n / 10),
    rubric=st.just(REVIEW.rubric),
    evidence=st.just(REVIEW.evidence),
    criteria=st.lists(
        st.builds(
            CriterionScore,
            id=hostile.filter(lambda s: s.isascii()),
            level=levels,
            suggested=st.none() | levels,
            note=hostile,
            cites=st.lists(
                hostile.filter(lambda s: s.isascii()).map(lambda s: f"finding:x{s}") | st.just("a b.py:3"), max_size=2
            ).map(tuple),
        ),
        max_size=3,
        unique_by=lambda c: c.id,
    ).map(tuple),
    overruled=st.lists(
        st.builds(Overruled, code=hostile.filter(lambda s: s.isascii()), reason=hostile), max_size=2
    ).map(tuple),
    body=hostile,
)


@settings(max_examples=300)
@given(reviews)
def test_whatever_is_written_is_read_back(review: Review) -> None:
    text = format_review(review)
    assert parse_review(text) == review
    assert parse_review(text.replace("\n", "\r\n")) == review
    text.encode()


@settings(max_examples=300)
@given(reviews)
def test_nothing_in_the_file_is_obeyed_by_a_terminal(review: Review) -> None:
    kept = set(format_review(review)) - {"\n", "\t"}
    assert not {c for c in kept if ord(c) < 0x20 or 0x7F <= ord(c) <= 0x9F or c in "\u2028\u2029\u202e\u2066\ufeff"}


@given(hostile)
def test_prose_is_canonical_once(text: str) -> None:
    assert canonical_body(canonical_body(text)) == canonical_body(text)


def test_a_fence_in_prose_or_notes_ends_nothing() -> None:
    one = msgspec.structs.replace(REVIEW, body='+++\nschema = 2\n+++\n"""')
    assert parse_review(format_review(one)).body == '+++\nschema = 2\n+++\n"""'


@pytest.mark.parametrize(
    ("old", "new", "key", "words"),
    [
        ("outcome =", "outcom =", "outcom", "did you mean `outcome`?"),
        ("suggested =", "sugested =", "criteria[0].sugested", "did you mean `suggested`?"),
        ("version = 3", "verzion = 3", "rubric.verzion", "did you mean `version`?"),
        ('code = "integrity/context"\n', "", "overruled[0].code", "missing"),
        ("schema = 1", "schema = 2", "schema", "Invalid enum value 2"),
        ("schema = 1\n", "", "schema", "missing"),
        ('outcome = "incorrect"', 'outcome = "correct"', "", "cannot be `flawed`"),
        ('outcome = "incorrect"', 'outcome = "wrong"', "outcome", "Invalid enum value 'wrong'"),
        ("score = 3.0", "score = 11.0", "", "between 0 and 10"),
        ("score = 3.0", "score = nan", "", "between 0 and 10"),
        ("level = 0", "level = -1", "criteria[0].level", ">= 0"),
        ("level = 0", "level = true", "criteria[0].level", "Expected `int`"),
        ('"kernel.py:14"]', '"kernel.py"]', "criteria[0]", "neither"),
        ('"bbbb', '"zzzz', "tree", "match"),
        ('task = "fused-softmax-fp8"', 'task = "../x"', "", "cannot be the name"),
        ('id = "writing"', 'id = "numerics"', "", "scored twice"),
        ("+++\nschema", "+++\nbody = ''\nschema", "body", "unknown key"),
        ("schema = 1", "schema = ", "", "not TOML"),
        ("+++\nschema", "schema", "", "does not begin"),
        ("+++\nThe", "The", "", "no closing"),
    ],
)
def test_strict_on_the_schema(old: str, new: str, key: str, words: str) -> None:
    assert old in TEXT
    with pytest.raises(SchemaError) as caught:
        parse_review(TEXT.replace(old, new, 1), "reviews/x.md")
    assert (caught.value.file, caught.value.key) == ("reviews/x.md", key)
    assert words in caught.value.message


def test_no_contradiction_can_be_built() -> None:
    for outcome in OUTCOMES:
        for mechanism in MECHANISMS:
            if allowed(outcome, mechanism):
                msgspec.structs.replace(REVIEW, outcome=outcome, mechanism=mechanism)
            else:
                with pytest.raises(ValueError, match="cannot be"):
                    msgspec.structs.replace(REVIEW, outcome=outcome, mechanism=mechanism)
