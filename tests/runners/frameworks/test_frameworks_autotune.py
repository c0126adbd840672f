"""Autotuned kernels run without a device, and tuning that spoils its arguments is seen."""

from __future__ import annotations

import pytest

from .conftest import Run, line_of

FILE = "autotuned.py"


@pytest.mark.parametrize("config", [0, 1, 2, 3])
def test_each_configuration_can_be_asked_for(run: Run, config: int) -> None:
    outcome = run(FILE, "plain", config=config)
    assert outcome.close and outcome.codes == []
    (told,) = outcome.reports
    assert told["code"] == "integrity/hint"
    assert (told["detail"]["configs"], told["detail"]["config"]) == (3, config % 3)


@pytest.mark.parametrize("name", ["in_place", "accumulates"])
def test_tuning_on_live_in_out_memory(run: Run, name: str) -> None:
    outcome = run(FILE, name)
    report = outcome.only("build/autotune")
    assert outcome.close, "the values are those of one run"
    assert report["detail"]["arguments"] == ["x" if name == "in_place" else "out"]
    if name == "in_place":
        assert report["line"] == line_of(FILE, "tuned-in-place")


@pytest.mark.parametrize("name", ["in_place_restored", "in_place_idempotent", "accumulates_reset", "heuristics"])
def test_look_alikes_stay_clean(run: Run, name: str) -> None:
    outcome = run(FILE, name)
    assert outcome.codes == [] and outcome.close


def test_only_the_first_call_with_a_key_tunes(run: Run) -> None:
    outcome = run(FILE, "in_place", calls=[{}, {}])
    assert outcome.codes == ["build/autotune"] and outcome.close


@pytest.mark.parametrize("name", ["clash", "nothing_left"])
def test_faulty_tuning_is_the_submissions(run: Run, name: str) -> None:
    failure = run(FILE, name).failure
    assert failure is not None and failure["code"] == "build/autotune"
