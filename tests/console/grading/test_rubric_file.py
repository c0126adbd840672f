from __future__ import annotations

import hashlib

import pytest

from console.grading.rubric import parse_rubric
from console.schema import SchemaError

SMALL = """
schema = 1
id = "small"
version = 3
[[criteria]]
id = "right"
question = "Is it right?"
axis = "answer"
weight = 3
gate = { below = 1, cap = 3.0 }
needs = ["correctness"]
levels = [{ name = "no", anchor = "wrong" }, { name = "yes", anchor = "all" }]
suggest = [
  { when = ["numerics/*"], severity = "fail", level = 0 },
  { panel = "correctness", status = "pass", level = 1 },
]
"""


def test_a_rubric_is_read_and_named_by_its_bytes() -> None:
    rubric = parse_rubric(SMALL.encode())
    assert (rubric.id, rubric.version, rubric.ids) == ("small", 3, ("right",))
    assert rubric.criterion("right").top == 1
    assert rubric.digest == "sha256:" + hashlib.sha256(SMALL.encode()).hexdigest()
    with pytest.raises(KeyError):
        rubric.criterion("wrong")


@pytest.mark.parametrize(
    ("old", "new", "key", "words"),
    [
        ("weight = 3", "wieght = 3", "criteria[0].wieght", "did you mean `weight`?"),
        ("cap = 3.0", "cpa = 3.0", "criteria[0].gate.cpa", "did you mean `cap`?"),
        ('name = "no", ', 'nmae = "no", ', "criteria[0].levels[0].nmae", "did you mean `name`?"),
        ('severity = "fail", level', 'severty = "fail", level', "criteria[0].suggest[0].severty", "`severity`"),
        ("version = 3", "", "version", "missing"),
        ("version = 3", "version = 0", "version", "counts from 1"),
        ('axis = "answer"', 'axis = "style"', "criteria[0].axis", "Invalid enum value"),
        ('"correctness"]', '"corectness"]', "criteria[0].needs[0]", "Invalid enum value"),
        ('"numerics/*"', '"numeric/mismatch"', "criteria[0].suggest[0].when", "did you mean `numerics/mismatch`?"),
        ("below = 1", "below = 2", "criteria[0].gate", "between 1 and 1"),
        ("cap = 3.0", "cap = 11.0", "criteria[0].gate", "between 0 and 10"),
        ("weight = 3", "weight = 0", "criteria", "above 0"),
        ("weight = 3", "weight = nan", "criteria[0].weight", "between"),
        ("weight = 3", "weight = -1", "criteria[0].weight", "between"),
        ('status = "pass", level = 1', 'status = "pass", level = 2', "criteria[0].suggest[1].level", "0 and 1"),
        ('status = "pass"', 'status = "not-checked"', "criteria[0].suggest[1].status", "nothing"),
        ('panel = "correctness", status = "pass", ', "", "criteria[0].suggest[1]", "either"),
        (', { name = "yes", anchor = "all" }', "", "criteria[0].levels", "between 2 and 10"),
        ('anchor = "all"', 'anchor = " "', "criteria[0].levels[1]", "must not be empty"),
        ('id = "right"', 'id = "Right!"', "criteria[0].id", "lower-case"),
    ],
)
def test_a_wrong_rubric_names_file_key_and_what_to_do(old: str, new: str, key: str, words: str) -> None:
    assert old in SMALL
    with pytest.raises(SchemaError) as caught:
        parse_rubric(SMALL.replace(old, new, 1).encode(), "rubrics/small.toml")
    assert (caught.value.file, caught.value.key) == ("rubrics/small.toml", key)
    assert words in caught.value.message


def test_a_criterion_is_not_defined_twice() -> None:
    twice = SMALL + SMALL[SMALL.index("[[criteria]]") :]
    with pytest.raises(SchemaError, match="used twice"):
        parse_rubric(twice.encode())


@pytest.mark.parametrize("data", [b"\xff", b"a = [", b"a=" + b"[" * 5000])
def test_what_is_not_toml_is_said(data: bytes) -> None:
    with pytest.raises(SchemaError, match=r"rubric\.toml: not"):
        parse_rubric(data)
