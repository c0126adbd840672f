"""Formats and rounding, against ml-independent facts: bit patterns, fractions and torch itself."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from runners.numerics.formats import default_overflow, dtype_of, format_of, name_of, round_to
from runners.numerics.ulp import FAR, distance, ordinal

NARROW = [torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz]
ALL = [*NARROW, torch.float16, torch.bfloat16, torch.float32, torch.float64]
BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def every_number(dtype: torch.dtype) -> torch.Tensor:
    """All finite numbers of a format of 8 or 16 bits, in increasing order, zero once."""
    count = 1 << (8 * dtype.itemsize)
    bits = torch.arange(count).to(torch.uint8 if dtype.itemsize == 1 else torch.int32)
    if dtype.itemsize == 2:
        bits = (bits - (bits >= count // 2) * count).to(torch.int16)
    values = bits.view(dtype).double()
    return values[values.isfinite()].unique()


@pytest.mark.parametrize("dtype", ALL)
def test_limits_are_those_of_the_bit_patterns(dtype):
    form = format_of(dtype)
    assert form.eps == 2 * form.u and math.log2(form.eps).is_integer()
    if dtype.itemsize <= 2:
        numbers = every_number(dtype)
        assert float(numbers.max()) == form.max
        assert float(numbers[numbers > 0].min()) == form.smallest
        assert float(numbers[numbers > 1].min()) == 1 + form.eps
        assert form.overflowed - form.max == float(numbers[-1] - numbers[-2])


def test_known_formats():
    e4m3, e5m2 = format_of(torch.float8_e4m3fn), format_of(torch.float8_e5m2)
    assert (e4m3.max, e4m3.smallest, e4m3.eps, e4m3.has_inf) == (448, 2**-9, 0.125, False)
    assert (e5m2.max, e5m2.smallest, e5m2.eps, e5m2.has_inf) == (57344, 2**-16, 0.25, True)
    assert format_of(torch.complex64) == format_of(torch.float32)
    with pytest.raises(TypeError):
        format_of(torch.int32)


def test_names_go_both_ways():
    assert dtype_of("float8_e5m2") is dtype_of("torch.float8_e5m2") is torch.float8_e5m2
    assert name_of(torch.bfloat16) == "bfloat16"
    for wrong in ("float9", "nn", ""):
        with pytest.raises(ValueError):
            dtype_of(wrong)


def nearest(value: float, dtype: torch.dtype) -> float:
    """Correct rounding by searching all numbers of the format, in exact arithmetic; ties to the even pattern."""
    numbers = every_number(dtype)
    at = int(torch.searchsorted(numbers, torch.tensor(value, dtype=torch.float64)))
    around = [float(number) for number in numbers[max(0, at - 1) : at + 1]]
    if len(around) == 1:
        return around[0]
    low, high = (abs(Fraction(number) - Fraction(value)) for number in around)
    if low != high:
        return around[0] if low < high else around[1]
    even = [number for number in around if int(torch.tensor(number).to(dtype).view(BITS[dtype.itemsize])) % 2 == 0]
    return even[0]


@pytest.mark.parametrize("dtype", [*NARROW, torch.float16, torch.bfloat16])
@given(data=st.data())
def test_rounding_is_correct_and_single(dtype, data):
    form = format_of(dtype)
    exponent = data.draw(st.integers(math.floor(math.log2(form.smallest)) - 2, math.floor(math.log2(form.max)) - 1))
    # Near ties: a number of the format's grid, half a step, and a nudge too small for float32 to keep.
    mantissa = data.draw(st.integers(0, 2 ** int(-math.log2(form.eps) + 1)))
    nudge = data.draw(st.sampled_from([0.0, 2.0**-45, -(2.0**-45), 2.0**-30, 0.01]))
    value = math.ldexp(1 + mantissa * form.u + nudge, exponent) * data.draw(st.sampled_from([1, -1]))
    got = float(round_to(torch.tensor([value], dtype=torch.float64), dtype, "inf").double())
    assert got == nearest(value, dtype)


def test_double_rounding_is_avoided():
    # Just above a tie of float16; float32 would round it onto the tie, and the tie down to even.
    value = torch.tensor([1 + 2.0**-11 + 2.0**-40], dtype=torch.float64)
    assert float(round_to(value, torch.float16, "inf")) == 1 + 2.0**-10
    assert float(value.float().half()) == 1.0


@pytest.mark.parametrize("dtype", ALL)
def test_overflow_conventions(dtype):
    form = format_of(dtype)
    values = torch.tensor([math.inf, -math.inf, math.nan, form.max, -form.max], dtype=torch.float64)
    saturated = round_to(values, dtype, "saturate").double()
    assert saturated[[0, 3]].tolist() == [form.max] * 2 and saturated[[1, 4]].tolist() == [-form.max] * 2
    assert bool(saturated[2].isnan())
    overflowed = round_to(values, dtype, "inf").double()
    assert overflowed[3:].tolist() == [form.max, -form.max]
    assert bool((overflowed[:2].isinf() if form.has_inf else overflowed[:2].isnan()).all())


def test_the_edge_of_float8_rounds_to_even():
    values = torch.tensor([464.0, 464.1, 480.0], dtype=torch.float64)
    assert round_to(values, torch.float8_e4m3fn, "inf").double()[0] == 448
    assert round_to(values, torch.float8_e4m3fn, "inf").double()[1:].isnan().all()


@pytest.mark.parametrize(
    "dtype", [torch.float8_e4m3fn, torch.float8_e5m2, torch.float16, torch.bfloat16, torch.float32]
)
def test_the_default_convention_is_torchs_own(dtype):
    values = torch.tensor([1e39, -1e39, 3.0])
    mine = round_to(values.double(), dtype, default_overflow(dtype))
    assert torch.equal(mine.float(), values.to(dtype).float())


# ---- units in the last place ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [*NARROW, torch.float16, torch.bfloat16])
def test_ordinals_count_the_numbers_of_a_format(dtype):
    numbers = every_number(dtype)
    steps = ordinal(numbers.to(dtype)).diff()
    assert bool((steps == 1).all())


@given(st.floats(allow_nan=False, width=32), st.floats(allow_nan=False, width=32))
def test_distance_is_a_metric_that_follows_order(one, two):
    a, b = torch.tensor([one]), torch.tensor([two])
    assert int(distance(a, b)) == int(distance(b, a)) >= 0
    assert (int(distance(a, b)) == 0) == (one == two)
    assert (int(ordinal(a)) < int(ordinal(b))) == (one < two)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_neighbour_in_float64_is_one_step_away(value):
    after = torch.tensor([math.nextafter(value, math.inf)], dtype=torch.float64)
    if after.isfinite():
        assert int(distance(torch.tensor([value], dtype=torch.float64), after)) == 1


def test_zeros_subnormals_and_nan():
    smallest = format_of(torch.float32).smallest
    assert int(distance(torch.tensor([0.0]), torch.tensor([-0.0]))) == 0
    assert int(distance(torch.tensor([-smallest]), torch.tensor([smallest]))) == 2
    nan = torch.tensor([math.nan])
    assert int(distance(nan, torch.tensor([1.0]))) == FAR and int(distance(nan, nan)) == 0


def test_the_widest_distance_does_not_wrap():
    huge = torch.tensor([1.7e308], dtype=torch.float64)
    assert int(distance(huge, -huge)) == FAR
    with pytest.raises(TypeError):
        distance(huge, huge.float())
