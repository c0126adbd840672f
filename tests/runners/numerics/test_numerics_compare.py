"""Comparison, bounds and the derived rule."""

from __future__ import annotations

import math

import msgspec
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from runners.contract import Tolerance
from runners.numerics import compare as compare_module
from runners.numerics.compare import Expected, compare, describe
from runners.numerics.derived import TwinError, explained, observe
from runners.numerics.formats import default_overflow, round_to
from runners.numerics.rules import Bound, stated_bound
from runners.numerics.signature import input_precision, stored_precision
from runners.reference import ErrorTerms

FORMATS = [torch.float8_e4m3fn, torch.float8_e5m2, torch.float16, torch.bfloat16, torch.float32]


def expected(truth, dtype=torch.float32, overflow=None) -> Expected:
    truth = torch.as_tensor(truth, dtype=torch.float64)
    overflow = overflow or default_overflow(dtype)
    return Expected(truth, round_to(truth, dtype, overflow), overflow)


@pytest.mark.parametrize("dtype", FORMATS)
@given(st.lists(st.floats(-1e6, 1e6) | st.sampled_from([math.inf, -math.inf, math.nan, 5e-324]), min_size=1))
def test_what_is_stored_rightly_is_always_accepted(dtype, values):
    one = expected(values, dtype)
    for bound in (Bound(), Bound(ulp=0), explained(TwinError(0.0, 32), one, None)):
        assert compare(one.stored, one, bound).accepted


@given(st.lists(st.floats(-100, 100, width=32), min_size=1, max_size=40), st.data())
def test_counts_worst_and_histogram_agree_with_a_plain_loop(values, data):
    one = expected(values)
    got = one.stored.clone()
    for place in data.draw(st.sets(st.integers(0, len(values) - 1))):
        got[place] += data.draw(st.floats(-10, 10, width=32))
    bound = Bound(absolute=0.5, relative=0.01)
    errors = [abs(float(g) - float(t)) for g, t in zip(got.double(), one.truth, strict=True)]
    beyond = [error > 0.5 + 0.01 * abs(float(t)) for error, t in zip(errors, one.truth, strict=True)]
    result = compare(got, one, bound)
    assert result.beyond == sum(beyond) and result.outside.tolist() == beyond
    assert result.max_absolute == max(errors)
    assert sum(result.histogram.values()) == result.counted == len(values)
    scores = [error / (0.5 + 0.01 * abs(float(t))) for error, t in zip(errors, one.truth, strict=True)]
    if max(scores) > 0:
        assert scores[result.worst[0].index[0]] == pytest.approx(max(scores))
    msgspec.json.encode(result.facts())


@settings(max_examples=20)
@given(st.integers(1, 50), st.integers(0, 2**31))
def test_blocks_do_not_change_the_result(block, seed):
    generator = torch.Generator().manual_seed(seed)
    truth = torch.randn(7, 11, generator=generator, dtype=torch.float64)
    one = expected(truth)
    got = one.stored + 0.1 * torch.randn(7, 11, generator=generator)
    got[2, 3] = math.nan
    whole = compare(got, one, Bound(0.1))
    before, compare_module.BLOCK = compare_module.BLOCK, block
    try:
        parts = compare(got, one, Bound(0.1))
    finally:
        compare_module.BLOCK = before
    assert whole.worst == parts.worst and whole.histogram == parts.histogram
    assert torch.equal(whole.outside, parts.outside)
    assert whole.non_finite_at[0].index == parts.non_finite_at[0].index == (2, 3)
    assert whole.rms == pytest.approx(parts.rms)


@pytest.mark.parametrize(
    ("got", "right", "wrong"),
    [
        (math.nan, 1.0, 1),
        (1.0, math.nan, 1),
        (math.nan, math.nan, 0),
        (math.inf, math.inf, 0),
        (math.inf, -math.inf, 1),
        (math.inf, math.nan, 1),
        (math.inf, 1.0, 1),
        (1.0, -math.inf, 1),
    ],
)
def test_positions_of_nan_and_infinity_are_compared(got, right, wrong):
    result = compare(torch.tensor([got, 2.0]), expected([right, 2.0]), Bound(absolute=1e30))
    assert result.non_finite == wrong and result.accepted == (wrong == 0)
    if wrong:
        assert result.non_finite_at[0].index == (0,)
        assert "NaN or infinite" in describe("0", result, torch.float32)


def test_at_the_edge_of_the_range_rounding_may_go_either_way():
    one = expected([65519.0, -65521.0, 1e6, 60000.0], torch.float16, "inf")
    bound = explained(TwinError(0.0, 32), one, None)
    got = torch.tensor([math.inf, -65504.0, math.inf, 60000.0], dtype=torch.float16)
    assert compare(got, one, bound).accepted
    far = torch.tensor([math.inf, -65504.0, 65504.0, math.inf], dtype=torch.float16)
    assert compare(far, one, bound).non_finite == 2
    wrong_sign = torch.tensor([-math.inf, -65504.0, math.inf, 60000.0], dtype=torch.float16)
    assert compare(wrong_sign, one, bound).non_finite == 1


def test_saturation_is_what_the_task_says():
    one = expected([600.0, 100.0], torch.float8_e4m3fn, "saturate")
    bound = explained(TwinError(0.0, 32), one, None)
    assert compare(torch.tensor([448.0, 96.0]).to(torch.float8_e4m3fn), one, bound).accepted
    nan = torch.tensor([math.nan, 96.0]).to(torch.float8_e4m3fn)
    assert compare(nan, one, bound).non_finite == 1


def test_skipped_and_uncounted_elements():
    one = expected([1.0, 2.0, 3.0])
    got = torch.tensor([math.nan, 5.0, 3.0])
    only = torch.tensor([True, False, True])
    assert not compare(got, one, Bound(), only=only).accepted
    assert compare(got, one, Bound(), only=only, skip=torch.tensor([True, False, False])).accepted


def test_integers_and_bools_are_exact():
    truth = torch.tensor([2**53, 2**53 + 1, -5])
    one = Expected(truth, truth, "inf")
    assert compare(truth.clone(), one, Bound()).accepted
    off = torch.tensor([2**53, 2**53, -5])
    result = compare(off, one, Bound())
    assert result.beyond == 1 and result.worst[0].index == (1,)
    bools = torch.tensor([True, False])
    assert compare(bools.clone(), Expected(bools, bools, "inf"), Bound()).accepted
    assert compare(~bools, Expected(bools, bools, "inf"), Bound()).beyond == 2


def test_complex_numbers_are_compared_by_component():
    truth = torch.tensor([1 + 2j, 3 - 4j], dtype=torch.complex128)
    one = Expected(truth, truth.to(torch.complex64), "inf")
    got = torch.tensor([1 + 2j, 3 - 4.5j], dtype=torch.complex64)
    result = compare(got, one, Bound(absolute=0.1))
    assert result.outside.tolist() == [False, True] and result.worst[0].index == (1, 1)


def test_scalars_empty_tensors_and_foreign_shapes():
    assert compare(torch.tensor(1.5), expected(1.5), Bound()).accepted
    assert compare(torch.zeros(0, 3), expected(torch.zeros(0, 3)), Bound()).elements == 0
    assert compare(torch.tensor(2.0), expected(1.0), Bound()).worst[0].index == ()
    with pytest.raises(ValueError):
        compare(torch.zeros(3), expected([1.0]), Bound())


# ---- rules ---------------------------------------------------------------------------------------------------------


def test_stated_bounds():
    one = expected([100.0])
    near = torch.tensor([100.5])
    assert compare(near, one, stated_bound(Tolerance(rule="absolute-relative", rtol=0.01))).accepted
    assert not compare(near, one, stated_bound(Tolerance(rule="absolute-relative", rtol=0.01, cap=0.1))).accepted
    assert not compare(near, one, stated_bound(Tolerance(rule="exact"))).accepted
    next_up = torch.nextafter(one.stored, torch.tensor([1e9]))
    assert compare(next_up, one, stated_bound(Tolerance(rule="ulp", ulp=1))).accepted
    assert not compare(next_up, one, stated_bound(Tolerance(rule="ulp", ulp=0))).accepted
    assert stated_bound(Tolerance()) is None
    assert stated_bound(Tolerance(atol=0.5)) == Bound(absolute=0.5)


def test_the_derived_rule_is_four_twin_errors_two_roundings_and_one_subnormal():
    one = expected([1.0, 2.0], torch.float16)
    bound = explained(TwinError(0.25, 32), one, None)
    assert bound.absolute == 1.0 + 2.0**-24 and bound.relative == 2 * 2.0**-11
    assert explained(None, one, None) is None


def test_error_terms_widen_by_the_root_of_their_number():
    one = expected([0.0, 4.0])
    terms = ErrorTerms(10_000, torch.tensor([100.0, 100.0], dtype=torch.float64), torch.float32)
    bound = explained(TwinError(0.0, 32), one, terms)
    u = 2.0**-24
    assert bound.elementwise.tolist() == pytest.approx([2 * 400 * u * 100, 2 * (4 * u + 400 * u * 100)])
    # With few terms the deterministic bound is the sharper one.
    few = explained(None, one, ErrorTerms(4, torch.tensor(1.0, dtype=torch.float64), torch.float32))
    assert few.elementwise[0] == pytest.approx(2 * 4 * u)


def test_integers_follow_the_twin_by_one_at_most():
    truth = torch.tensor([1, 2, 3])
    one = Expected(truth, truth, "inf")
    assert explained(TwinError(0.0, 32), one, None) == Bound()
    assert explained(TwinError(1.0, 32), one, None) == Bound(absolute=1.0)
    assert explained(TwinError(7.0, 32), one, None) is None


def test_the_twins_error_counts_where_both_are_finite():
    one = expected([1.0, math.inf, 3.0])
    seen = observe(torch.tensor([1.5, math.inf, math.nan]), one, Bound(absolute=0.1))
    assert (seen.largest, seen.draws, seen.breaks_tolerance, seen.non_finite) == (0.5, 1, True, 1)
    both = seen.joined(TwinError(0.75, 3))
    assert (both.largest, both.draws, both.breaks_tolerance) == (0.75, 4, True)


# ---- precision -----------------------------------------------------------------------------------------------------


def product(a, b):
    return {"a": a, "b": b}, lambda inputs: inputs["a"].double() @ inputs["b"].double()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float8_e4m3fn])
def test_rounded_inputs_are_recognised(dtype):
    generator = torch.Generator().manual_seed(1)
    inputs, truth_of = product(torch.randn(20, 300, generator=generator), torch.randn(300, 20, generator=generator))
    one = expected(truth_of(inputs))
    low = inputs["a"].to(dtype).float() @ inputs["b"].to(dtype).float()
    named = {torch.float16: "tf32 or float16"}.get(dtype, str(dtype).removeprefix("torch."))
    assert input_precision(low, one, inputs, truth_of) == named
    assert stored_precision(low, one) is None


def test_honest_float32_and_a_plain_bug_look_like_no_lower_precision():
    generator = torch.Generator().manual_seed(1)
    inputs, truth_of = product(torch.randn(20, 300, generator=generator), torch.randn(300, 20, generator=generator))
    one = expected(truth_of(inputs))
    honest = inputs["a"] @ inputs["b"]
    for got in (honest, honest * 1.01, honest + 0.1, honest.flip(0)):
        assert input_precision(got, one, inputs, truth_of) is None
        assert stored_precision(got, one) is None


def test_values_of_a_narrower_format_are_recognised():
    generator = torch.Generator().manual_seed(1)
    one = expected(torch.randn(100, generator=generator, dtype=torch.float64))
    assert stored_precision(one.stored.half().float(), one) == "float16"
    assert stored_precision(one.stored.bfloat16().float(), one) == "bfloat16"
    whole = expected(torch.arange(100, dtype=torch.float64))
    assert stored_precision(whole.stored, whole) is None
