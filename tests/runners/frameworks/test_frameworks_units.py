"""The parts that need no kernel: reports, number formats, order between programs."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from runners.frameworks import UnknownFrameworkError, hooks_for
from runners.frameworks.extents import Extent, MemoryMap, span
from runners.frameworks.interpreter.formats import decode, encode, half_toward_zero, to_integer, to_tf32
from runners.frameworks.interpreter.mapped import mapped
from runners.frameworks.interpreter.races import Programs, Shadow
from runners.frameworks.reports import MAX_REPORTS, Reports

FORMATS = {
    "bf16": (torch.bfloat16, torch.uint16),
    "fp8e4nv": (torch.float8_e4m3fn, torch.uint8),
    "fp8e5": (torch.float8_e5m2, torch.uint8),
    "fp8e4b8": (torch.float8_e4m3fnuz, torch.uint8),
    "fp8e5b16": (torch.float8_e5m2fnuz, torch.uint8),
}


def test_reports_are_bounded() -> None:
    reports = Reports()
    for line in range(3 * MAX_REPORTS):
        reports.add("memory/out-of-bounds-read", "x" * 100_000, "f" * 10_000, line, {"k" * 999: ["v" * 999] * 999})
    assert len(reports) == MAX_REPORTS
    assert all(len(json.dumps(report)) <= 4096 for report in reports)


def test_the_same_report_counts() -> None:
    reports = Reports()
    for _ in range(3):
        reports.add("race/cross-program", "first", "k.py", 3, {"tensor": "x"})
    assert len(reports) == 1 and reports[0]["detail"]["times"] == 3


def test_a_framework_without_hooks() -> None:
    with pytest.raises(UnknownFrameworkError):
        hooks_for("serving")


@pytest.mark.parametrize("name", FORMATS)
@given(values=st.lists(st.just(float("nan")) | st.floats(width=32, min_value=-200, max_value=200)))
def test_encoding_is_torchs(name: str, values: list[float]) -> None:
    kind, bits = FORMATS[name]
    array = np.array(values, dtype=np.float32)
    expected = torch.from_numpy(array).to(kind)
    made = torch.from_numpy(encode(array, name)).view(kind)
    nan = torch.isnan(expected.float())
    assert torch.equal(torch.isnan(made.float()), nan)
    assert torch.equal(made.view(bits)[~nan], expected.view(bits)[~nan])


@pytest.mark.parametrize("name", FORMATS)
def test_decoding_is_torchs_for_every_pattern(name: str) -> None:
    kind, bits = FORMATS[name]
    every = np.arange(1 << (8 * kind.itemsize), dtype=np.uint32).astype(f"u{kind.itemsize}")
    expected = torch.from_numpy(every).view(kind).float()
    assert torch.equal(torch.from_numpy(decode(every, name)).nan_to_num(nan=7.5), expected.nan_to_num(nan=7.5))
    assert bits.itemsize == kind.itemsize


@given(values=st.lists(st.floats(width=32, min_value=-1e5, max_value=1e5), min_size=1))
def test_rounding_toward_zero_never_grows(values: list[float]) -> None:
    array = np.array(values, dtype=np.float32)
    for made in (decode(encode(array, "bf16", True), "bf16"), decode(encode(array, "fp8e5", True), "fp8e5")):
        assert (np.abs(made) <= np.abs(array)).all()
    assert (np.abs(half_toward_zero(array.clip(-6e4, 6e4)).astype(np.float64)) <= np.abs(array)).all()


def test_conversions_to_integers_saturate() -> None:
    values = np.array([np.nan, np.inf, -np.inf, 3e9, -3e9, 2.9, -2.9])
    top, low = 2**31 - 1, -(2**31)
    assert to_integer(values, np.dtype(np.int32)).tolist() == [0, top, low, top, low, 2, -2]


@given(value=st.floats(width=32, allow_nan=False, allow_infinity=False, min_value=-(2.0**100), max_value=2.0**100))
def test_tf32_keeps_ten_bits(value: float) -> None:
    rounded = to_tf32(np.array([value], dtype=np.float32))
    assert int(rounded.view(np.uint32)[0]) & 0x1FFF == 0
    assert abs(float(rounded[0]) - value) <= abs(value) * 2.0**-11 + 2.0**-137


def test_what_is_mapped() -> None:
    here = np.zeros(4)
    address = here.__array_interface__["data"][0]
    addresses = np.array([address, 16, 1 << 62], dtype=np.uint64)
    assert mapped(addresses, 8, True).tolist() == [True, False, False]


def test_a_lent_tensors_extent_is_its_span() -> None:
    base = torch.zeros(100)
    view = base[10:90:4]
    assert span(view) == (base.data_ptr() + 40, base.data_ptr() + 4 * (10 + 19 * 4 + 1))
    memory = MemoryMap()
    memory.lend({"x": view})
    extent = memory.known(view)
    assert extent is not None and (extent.lo, extent.hi) == span(view)
    assert memory.find(extent.hi) is None and memory.find(extent.lo) is extent
    lo, hi = span(base[:0])
    assert lo == hi


Event = tuple[int, str, int]
"""Program, what it does (r, w, s for synchronise), element."""


def races(events: list[Event], programs: int) -> bool:
    """Run programs one after another; is any access reported?"""
    data = np.zeros(8, dtype=np.uint8)
    address = data.__array_interface__["data"][0]
    clock = Programs(programs)
    shadow = Shadow(Extent(address, address + 8, "x"), 1, clock, False)
    found: list[str] = []

    def tell(what: str, index: Any, others: Any) -> None:
        found.append(what)

    for program in range(programs):
        clock.start(program)
        for who, what, element in events:
            index = np.array([element])
            if who != program:
                continue
            if what == "r":
                shadow.read(index, tell)
            elif what == "w":
                shadow.write(index, lambda lanes: np.zeros(int(lanes.sum()), dtype=bool), tell)
            else:
                clock.synchronise("lock", True, True)
    return bool(found)


def happens_before(events: list[Event], programs: int) -> bool:
    """The same by definition: every pair of conflicting accesses, ordered only by release and later acquire."""
    ordered = [event for program in range(programs) for event in events if event[0] == program]
    for first, (a, how_a, element_a) in enumerate(ordered):
        for second in range(first + 1, len(ordered)):
            b, how_b, element_b = ordered[second]
            if a == b or element_a != element_b or "s" in (how_a, how_b) or "w" not in (how_a, how_b):
                continue
            released = any(who == a and how == "s" for who, how, _ in ordered[first:second])
            acquired = any(who == b and how == "s" for who, how, _ in ordered[first:second])
            if not (released and acquired):
                return True
    return False


events = st.lists(st.tuples(st.integers(0, 2), st.sampled_from("rwws"), st.integers(0, 1)), max_size=9)


@given(events=events)
def test_no_race_is_reported_where_all_is_ordered(events: list[Event]) -> None:
    if races(events, 3):
        assert happens_before(events, 3)


@given(events=events)
def test_without_synchronisation_every_race_is_found(events: list[Event]) -> None:
    plain = [event for event in events if event[1] != "s"]
    assert races(plain, 3) == happens_before(plain, 3)


def test_accesses_of_other_widths_meet() -> None:
    data = np.zeros(16, dtype=np.uint8)
    address = data.__array_interface__["data"][0]
    clock = Programs(2)
    shadow = Shadow(Extent(address, address + 16, "x"), 4, clock, False)
    found: list[int] = []

    def tell(what: str, index: Any, others: Any) -> None:
        found.extend(index.tolist())

    def differ(lanes: Any) -> Any:
        return np.zeros(int(lanes.sum()), dtype=bool)

    clock.start(0)
    shadow.write(shadow.index(np.array([8], dtype=np.uint64), 4), differ, tell)
    clock.start(1)
    shadow.write(shadow.index(np.array([7], dtype=np.uint64), 1), differ, tell)
    assert found == []
    shadow.write(shadow.index(np.array([8], dtype=np.uint64), 8), differ, tell)
    assert found == [8, 9, 10, 11]
