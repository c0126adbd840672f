"""Races between programs: reported in every order, and never where atomics or launches order the accesses."""

from __future__ import annotations

import pytest

from .conftest import Run, line_of

FILE = "races.py"
ORDERS = ["forward", "reverse", "shuffle"]


@pytest.mark.parametrize(
    "name",
    [
        "atomics",
        "split_matmul",
        "locked",
        "last_arriver",
        "same_value",
        "swap_loop",
        "two_launches",
        "lanes_agree",
        "neighbouring_bytes",
    ],
)
@pytest.mark.parametrize("order", ORDERS)
def test_look_alikes_stay_clean(run: Run, name: str, order: str) -> None:
    outcome = run(FILE, name, order=order, order_seed=3)
    assert outcome.failure is None
    assert outcome.codes == []
    assert outcome.close is not False


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("name", "marker"),
    [
        ("lost_update", "lost-update"),
        ("half_locked", "after-unlock"),
        ("relaxed_arriver", "last-reads"),
    ],
)
def test_races_are_reported_in_every_order(run: Run, name: str, marker: str, order: str) -> None:
    outcome = run(FILE, name, order=order)
    assert set(outcome.codes) == {"race/cross-program"}
    assert {report["line"] for report in outcome.reports} == {line_of(FILE, marker)}


@pytest.mark.parametrize("order", ORDERS)
def test_shifting_in_place_is_reported_although_one_order_hides_it(run: Run, order: str) -> None:
    outcome = run(FILE, "shift", order=order, order_seed=3)
    assert set(outcome.codes) == {"race/cross-program"}
    assert outcome.close is (order == "forward")
    detail = outcome.reports[0]["detail"]
    assert detail["tensor"] == "x" and detail["program"] != detail["other_program"]


@pytest.mark.parametrize("order", ORDERS)
def test_one_program_clears_what_others_update(run: Run, order: str) -> None:
    outcome = run(FILE, "cleared_by_first", order=order)
    assert outcome.codes[0] == "race/cross-program"
    assert outcome.reports[0]["line"] in (line_of(FILE, "clears"), line_of(FILE, "updates"))


def test_lanes_of_one_store_that_collide_with_different_values(run: Run) -> None:
    report = run(FILE, "lanes_collide").only("race/nondeterministic")
    assert report["line"] == line_of(FILE, "scatter")


def test_a_wait_that_cannot_end_is_named_as_a_hang(run: Run) -> None:
    failure = run(FILE, "spin").failure
    assert failure is not None
    assert (failure["code"], failure["line"]) == ("build/hang", line_of(FILE, "spin"))


def test_waiting_for_an_earlier_program_is_no_fault(run: Run) -> None:
    outcome = run(FILE, "look_back")
    assert outcome.failure is None and outcome.codes == [] and outcome.close
    backwards = run(FILE, "look_back", order="reverse").failure
    assert backwards is not None and backwards["code"] == "build/environment"
