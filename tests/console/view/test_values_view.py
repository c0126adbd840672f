"""Any JSON a run may hold fits the screen and is safe."""

from __future__ import annotations

import unicodedata
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from console.view.spans import plain, width_of
from console.view.values import lines_of, number

JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=12), JSON, max_size=5), st.integers(30, 120))
def test_everything_fits_and_nothing_is_obeyed(values: dict[str, Any], width: int) -> None:
    for line in lines_of(values, width):
        assert width_of(line) <= width
        assert all(unicodedata.category(char)[0] != "C" for char in plain(line))


def test_numbers_keep_their_meaning() -> None:
    assert number(0.000123456) == "0.0001235"
    assert number(3.0) == "3"
    assert number(float("inf")) == "inf"
    assert number(1e-9) != "0"


def test_a_list_of_records_is_a_table() -> None:
    rows = [{"index": [0, n], "expected": 0.5, "got": 0.25} for n in range(12)]
    text = [plain(line) for line in lines_of({"worst": rows}, 78)]
    assert text[0].strip() == "worst"
    assert text[1].split() == ["index", "expected", "got"]
    assert text[-1].strip() == "and 4 more"
