"""Memory that nobody wrote: reported where a value of it matters, not where it is read and dropped."""

from __future__ import annotations

import pytest

from .conftest import Run, line_of

FILE = "unwritten.py"


@pytest.mark.parametrize(
    "name",
    [
        "into_zeroed",
        "into_filled_view",
        "through_numpy",
        "atomics_into_new",
        "with_other",
        "padding_cut_off",
        "padding_computed",
        "undefined_rows_dropped",
        "grows",
    ],
)
def test_look_alikes_stay_clean(run: Run, name: str) -> None:
    outcome = run(FILE, name)
    assert outcome.failure is None
    assert outcome.codes == []
    assert outcome.close


@pytest.mark.parametrize(
    ("name", "marker"),
    [
        ("into_empty", "accumulates"),
        ("into_empty_then_cast", "accumulates"),
        ("atomics_into_empty", "atomic-accumulates"),
        ("without_other", "no-other"),
        ("branches", "branch"),
        ("addresses", "gather"),
    ],
)
def test_uses_are_reported_where_the_value_was_read(run: Run, name: str, marker: str) -> None:
    outcome = run(FILE, name)
    assert outcome.failure is None
    assert set(outcome.codes) == {"memory/uninitialised"}
    assert {report["line"] for report in outcome.reports} == {line_of(FILE, marker)}


def test_what_an_earlier_call_wrote_is_written(run: Run) -> None:
    outcome = run(FILE, "workspace_kept", calls=[{"fill": 1}, {"fill": 2}])
    assert outcome.codes == [] and outcome.close


def test_the_fill_shows_in_what_is_left_unwritten(run: Run) -> None:
    assert run(FILE, "into_empty").close is None
