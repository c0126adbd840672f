"""Host code that hard-codes a CUDA device, and torch submissions."""

from __future__ import annotations

import pytest

from .conftest import Run, line_of


@pytest.mark.parametrize("name", ["checks_devices", "many_ways", "asks_the_driver", "backward"])
def test_host_code_written_for_a_gpu_runs(run: Run, name: str) -> None:
    outcome = run("host.py", name)
    assert outcome.failure is None
    assert outcome.codes == [] and outcome.close


@pytest.mark.parametrize("name", ["clean", "on_cuda"])
def test_torch_submissions_run(run: Run, name: str) -> None:
    outcome = run("native.py", name, framework="torch")
    assert outcome.failure is None
    assert outcome.codes == [] and outcome.close


def test_an_overwritten_guard_is_reported_where_it_was_allocated(run: Run) -> None:
    report = run("native.py", "beyond", framework="torch").only("memory/out-of-bounds-write")
    assert (report["file"], report["line"]) == ("native.py", line_of("native.py", "allocated"))
    assert report["detail"]["behind"] == 8 and report["detail"]["before"] == 0


def test_the_planted_violation_is_reported(run: Run) -> None:
    for _ in range(5):
        assert run("native.py", "clean", framework="torch", planted=True).planted is True
