import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runners.timing.statistics import (
    MIN_PAIRS,
    Interval,
    estimate,
    expanded_level,
    judge,
    log_ratios,
    spread,
    student_quantile,
)

times = st.floats(min_value=1e-9, max_value=1e3)
ratio_tables = st.lists(
    st.lists(st.floats(min_value=-3, max_value=3), min_size=1, max_size=6), min_size=MIN_PAIRS, max_size=7
)


@pytest.mark.parametrize(
    ("p", "freedom", "expected"),
    # Any table of Student's t.
    [(0.975, 3, 3.182), (0.975, 4, 2.776), (0.975, 9, 2.262), (0.95, 4, 2.132), (0.975, 30, 2.042)],
)
def test_student_quantile(p: float, freedom: int, expected: float) -> None:
    assert student_quantile(p, freedom) == pytest.approx(expected, rel=0.01)


def test_expanded_level_tends_to_the_plain_one() -> None:
    assert expanded_level(0.95, 5) < 0.002
    assert expanded_level(0.95, 1000) == pytest.approx(0.025, abs=0.001)


def test_ratio_above_one_means_the_candidate_is_faster() -> None:
    ratios = log_ratios([[2.0, 2.0]] * 5, [[1.0, 1.0]] * 5)
    result = estimate(ratios, seed=1)
    assert result.ratio == pytest.approx(2.0)
    assert judge(result.interval, 0.03) == "faster"


@given(st.lists(st.tuples(times, times), min_size=1, max_size=8))
def test_swapping_sides_negates_log_ratios(rows: list[tuple[float, float]]) -> None:
    a, b = [[x for x, _ in rows]], [[y for _, y in rows]]
    assert log_ratios(a, b) == [[-value for value in row] for row in log_ratios(b, a)]


@given(ratio_tables, st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_estimate_is_deterministic_bounded_and_contains_its_centre(table: list[list[float]], seed: int) -> None:
    first = estimate(table, seed=seed, draws=200)
    assert first == estimate(table, seed=seed, draws=200)
    assert first.interval.contains(first.ratio)
    flat = [value for row in table for value in row]
    assert math.exp(min(flat)) * (1 - 1e-9) <= first.interval.low
    assert first.interval.high <= math.exp(max(flat)) * (1 + 1e-9)


@given(st.floats(min_value=0.2, max_value=5), st.floats(min_value=0.2, max_value=5), st.floats(0.001, 0.2))
def test_verdicts_mirror_when_sides_swap(x: float, y: float, margin: float) -> None:
    interval = Interval(min(x, y), max(x, y))
    mirror = Interval(1 / interval.high, 1 / interval.low)
    mirrored = {"faster": "slower", "slower": "faster"}
    verdict = judge(interval, margin)
    edge = min(abs(abs(math.log(v)) - math.log1p(margin)) for v in (x, y))
    if edge > 1e-9:
        assert judge(mirror, margin) == mirrored.get(verdict, verdict)


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (1.05, 1.2, "faster"),
        (0.8, 0.95, "slower"),
        (0.98, 1.02, "no-difference"),
        (0.98, 1.2, "inconclusive"),
        (1.01, 1.2, "inconclusive"),
        (0.5, 2.0, "inconclusive"),
    ],
)
def test_judge(low: float, high: float, verdict: str) -> None:
    assert judge(Interval(low, high), 0.03) == verdict


def test_a_difference_within_the_controls_reach_is_not_called() -> None:
    assert judge(Interval(1.05, 1.08), 0.03, control=Interval(0.99, 1.10)) == "inconclusive"
    assert judge(Interval(1.05, 1.08), 0.03, control=Interval(0.90, 1.01)) == "inconclusive"
    assert judge(Interval(1.15, 1.2), 0.03, control=Interval(0.99, 1.10)) == "faster"
    assert judge(Interval(0.99, 1.01), 0.03, control=Interval(0.5, 2.0)) == "no-difference"


@pytest.mark.parametrize(
    ("baseline", "candidate"),
    [([], []), ([[1.0]], []), ([[1.0]], [[1.0, 2.0]]), ([[]], [[]]), ([[0.0]], [[1.0]]), ([[1.0]], [[math.inf]])],
)
def test_log_ratios_refuses(baseline: list[list[float]], candidate: list[list[float]]) -> None:
    with pytest.raises(ValueError, match=r"."):
        log_ratios(baseline, candidate)


def test_too_few_pairs_are_refused() -> None:
    with pytest.raises(ValueError, match="too few"):
        estimate([[0.1, 0.2]] * (MIN_PAIRS - 1), seed=0)


def test_spread_ignores_differences_between_processes() -> None:
    assert spread([[0.0, 0.0], [1.0, 1.0]]) == 0.0
    assert spread([[-0.1, 0.1, -0.1, 0.1]]) == pytest.approx(0.2)


def test_intervals_cover_the_truth_with_few_processes_and_bursts() -> None:
    """Five process pairs that differ by as much as their rounds do, and outliers: 95 % must not mean 85 %."""
    rng = np.random.default_rng(7)
    covered = 0
    trials = 120
    for _ in range(trials):
        table = 0.03 * rng.standard_normal((5, 8)) + 0.03 * rng.standard_normal((5, 1))
        table += (rng.random((5, 8)) < 0.1) * rng.exponential(0.5, (5, 8)) * rng.choice([-1, 1], (5, 8))
        covered += estimate(table.tolist(), seed=1, draws=600).interval.contains(1.0)
    assert covered >= 0.9 * trials
