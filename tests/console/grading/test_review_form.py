from __future__ import annotations

import pytest
import tomli

from console.grading.commit import prepare
from console.grading.draft import Draft
from console.grading.form import fill, parse_form, print_form
from console.grading.problems import check
from console.grading.review import parse_review
from console.grading.rubric import Rubric
from console.grading.suggest import suggest, suggest_verdict
from console.schema import SchemaError
from runners.evidence import Evidence, decode, make_finding

from .conftest import FILES, REVISION, TREE, evidence_with

FORM = """
outcome = "incorrect"
mechanism = "flawed"
body = "It is wrong."
[[criteria]]
id = "right"
level = 0
note = "NaN"
cites = ["finding:numerics/unstable#1"]
[[criteria]]
id = "clear"
level = 1
"""


@pytest.fixture
def draft(small: Rubric, unstable: Evidence) -> Draft:
    return Draft.begin("t", "m-1", REVISION, TREE, small, unstable)


def test_from_form_to_commit(draft: Draft, small: Rubric, unstable: Evidence) -> None:
    filled = fill(draft, parse_form(FORM.encode(), small), suggest(small, unstable))
    assert check(filled, small, unstable, FILES) == ()
    commit = prepare(filled, small, unstable, "ann-lee")
    assert set(commit.files) == {"reviews/t/m-1/ann-lee.md", "reviews/t/m-1/ann-lee.evidence.json"}
    review = parse_review(commit.files["reviews/t/m-1/ann-lee.md"].decode())
    assert review == commit.review
    assert (review.score, review.criteria[0].suggested) == (2.5, 0)
    assert decode(commit.files["reviews/t/m-1/ann-lee.evidence.json"]) == unstable
    assert commit.message.startswith("review(t/m-1): incorrect, flawed, 2.5/10, gate right failed\n\nIt is wrong.\n")


def test_a_printed_form_is_toml_with_everything_a_grader_needs(draft: Draft, small: Rubric, unstable: Evidence) -> None:
    printed = print_form(draft, small, suggest(small, unstable), suggest_verdict(unstable))
    assert (
        printed
        == f'''\
# Review of t/m-1 at {REVISION}.
# A line that begins with # is a comment: take the # away to give a level.

# The evidence suggests incorrect flawed: numerics/unstable#1: NaN for rows
# above 88

outcome = ""  # correct | incorrect | not-determined
mechanism = ""  # sound | flawed | coincidental | leaked | hacked | not-shown

# Summary; findings with file:line and the quoted line; what would change it.
body = """
"""

# Is it right? Weight 3. A level below 1 caps the total at 3.
# 0 no: wrong
# 1 partly: some
# 2 yes: all
# Suggested 0, because numerics/unstable#1: NaN for rows above 88
[[criteria]]
id = "right"
# level = 0
note = ""
cites = ["finding:numerics/unstable#1", "panel:correctness"]

# Is it clear? Weight 1.
# 0 no: not
# 1 yes: so
[[criteria]]
id = "clear"
# level =
note = ""
cites = []

# [[overruled]]
# code = "integrity/context"
# reason = ""
'''
    )


def test_the_panels_that_a_level_must_cite_are_there_even_without_a_suggestion(draft: Draft, small: Rubric) -> None:
    printed = tomli.loads(print_form(draft, small, {}))
    assert [one["cites"] for one in printed["criteria"]] == [["panel:correctness"], []]


def test_a_form_that_nobody_filled_in_is_refused(draft: Draft, small: Rubric, unstable: Evidence) -> None:
    printed = print_form(draft, small, suggest(small, unstable))
    with pytest.raises(SchemaError) as caught:
        parse_form(printed.encode(), small, "form.toml")
    assert caught.value.key == "outcome"


def test_what_a_draft_says_survives_printing_and_filling(small: Rubric) -> None:
    evil = 'a """ \\ b\n+++\n\x1b[2J # no comment'
    found = evidence_with(make_finding("numerics/unstable", "x\n[[criteria]]\nlevel = 2"))
    draft = Draft.begin("t", "m-1", REVISION, TREE, small, found).with_level("right", 0).with_note("right", evil)
    draft = draft.with_outcome("incorrect").with_mechanism("hacked").with_body(evil).overrule("build/hang", evil)
    draft = draft.with_level("clear", 1).with_suggestions(suggest(small, found))
    draft = draft.attach("right", "finding:numerics/unstable#1").attach("right", "panel:correctness")
    printed = print_form(draft, small, suggest(small, found), suggest_verdict(found))
    tomli.loads(printed)
    assert "\x1b" not in printed
    again = fill(
        Draft.begin("t", "m-1", REVISION, TREE, small, found),
        parse_form(printed.encode(), small),
        suggest(small, found),
    )
    assert again == draft


@pytest.mark.parametrize(
    ("old", "new", "key", "words"),
    [
        ("outcome =", "outcme =", "outcme", "did you mean `outcome`?"),
        ('id = "clear"', 'id = "cleer"', "criteria[1].id", "did you mean `clear`?"),
        ('id = "clear"', 'id = "right"', "criteria[1].id", "scored twice"),
        ("level = 1", "level = 2", "criteria[1].level", "between 0 and 1"),
        ("level = 0", "levl = 0", "criteria[0].levl", "did you mean `level`?"),
        ('outcome = "incorrect"', 'outcome = "correct"', "mechanism", "cannot be `flawed`"),
        ('mechanism = "flawed"\n', "", "mechanism", "missing"),
    ],
)
def test_a_wrong_form_names_the_key(small: Rubric, old: str, new: str, key: str, words: str) -> None:
    assert old in FORM
    with pytest.raises(SchemaError) as caught:
        parse_form(FORM.replace(old, new, 1).encode(), small, "form.toml")
    assert (caught.value.file, caught.value.key) == ("form.toml", key)
    assert words in caught.value.message


def test_a_bad_cite_is_named(draft: Draft, small: Rubric) -> None:
    form = parse_form(FORM.replace("finding:numerics", "numerics").encode(), small, "form.toml")
    with pytest.raises(SchemaError, match=r"form: criteria\[0\].cites: 'numerics/unstable#1' is neither"):
        fill(draft, form, {})


def test_a_windows_editor_changes_nothing(small: Rubric) -> None:
    assert parse_form(("\ufeff" + FORM.replace("\n", "\r\n")).encode(), small) == parse_form(FORM.encode(), small)
