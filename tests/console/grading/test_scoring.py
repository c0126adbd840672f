from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.grading.rubric import Criterion, Gate, Level, Rubric, parse_rubric
from console.grading.score import score

from .conftest import SMALL


def rubric(*parts: tuple[float, int, Gate | None]) -> Rubric:
    criteria = tuple(
        Criterion(
            id=f"c{number}",
            question="?",
            axis="answer",
            weight=weight,
            levels=(Level(name="a", anchor="a"),) * (top + 1),
            gate=gate,
        )
        for number, (weight, top, gate) in enumerate(parts)
    )
    return Rubric(id="r", version=1, title="", criteria=criteria, digest="sha256:" + "0" * 64)


def test_the_formula() -> None:
    # 10 * (3 * 1/2 + 1 * 1/1) / 4 = 6.25, rounded half up
    small = parse_rubric(SMALL)
    assert score(small, {"right": 1, "clear": 1}).value == 6.3


def test_a_failed_gate_caps_the_total_and_is_named() -> None:
    small = parse_rubric(SMALL)
    result = score(small, {"right": 0, "clear": 1})
    assert (result.value, result.raw, result.failed_gates) == (2.5, 2.5, ("right",))
    heavy = rubric((1, 3, Gate(below=1, cap=3.0)), (9, 3, Gate(below=2, cap=5.0)))
    both = score(heavy, {"c0": 0, "c1": 1})
    assert (both.raw, both.value, both.failed_gates) == (3.0, 3.0, ("c0", "c1"))
    one = score(heavy, {"c0": 0, "c1": 3})
    assert (one.raw, one.value, one.failed_gates) == (9.0, 3.0, ("c0",))


def test_the_lowest_cap_wins() -> None:
    gated = rubric((1, 3, Gate(below=3, cap=5.0)), (1, 3, Gate(below=3, cap=1.0)))
    assert score(gated, {"c0": 2, "c1": 2}).value == 1.0


def test_there_is_no_total_until_every_level_is_set() -> None:
    small = parse_rubric(SMALL)
    partial = score(small, {"right": 0})
    assert (partial.value, partial.raw, partial.missing, partial.failed_gates) == (None, None, ("clear",), ("right",))


@pytest.mark.parametrize("level", [-1, 3])
def test_a_level_that_is_not_there_is_refused(level: int) -> None:
    with pytest.raises(ValueError, match="right: level"):
        score(parse_rubric(SMALL), {"right": level, "clear": 0})


def test_half_a_tenth_is_rounded_up_whatever_binary_floats_say() -> None:
    # 10 * 0.235 = 2.35, which as a binary product is 2.3499999999999996
    assert score(rubric((0.235, 1, None), (0.765, 1, None)), {"c0": 1, "c1": 0}).value == 2.4


weights = st.sampled_from([0.1, 0.5, 1, 2, 3, 7.3])
parts = st.lists(st.tuples(weights, st.integers(1, 5), st.none()), min_size=1, max_size=6)


@given(parts, st.data())
def test_more_never_scores_less_and_the_ends_are_the_ends(
    made: list[tuple[float, int, None]], data: st.DataObject
) -> None:
    one = rubric(*made)
    levels = {c.id: data.draw(st.integers(0, c.top)) for c in one.criteria}
    total = score(one, levels).value
    assert total is not None
    assert 0 <= total <= 10
    assert round(total, 1) == total
    raised = data.draw(st.sampled_from([c.id for c in one.criteria]))
    better = score(one, {**levels, raised: min(levels[raised] + 1, one.criterion(raised).top)}).value
    assert better is not None
    assert better >= total
    assert score(one, {c.id: c.top for c in one.criteria}).value == 10.0
    assert score(one, {c.id: 0 for c in one.criteria}).value == 0.0
