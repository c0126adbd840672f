"""Out-of-bounds accesses of interpreted kernels: caught with their place, look-alikes left alone."""

from __future__ import annotations

import pytest

from .conftest import Run, line_of

FILE = "memory.py"


@pytest.mark.parametrize(
    "name",
    [
        "masked_tail",
        "into_neighbour",
        "moved_pointer",
        "overlapping",
        "block_pointer",
        "descriptor",
        "pointer_table",
        "twice_in_place",
    ],
)
@pytest.mark.parametrize("order", ["forward", "reverse"])
def test_look_alikes_stay_clean(run: Run, name: str, order: str) -> None:
    outcome = run(FILE, name, order=order)
    assert outcome.failure is None
    assert outcome.codes == []
    assert outcome.close


def test_unmasked_load_is_reported_where_it_stands(run: Run) -> None:
    outcome = run(FILE, "unmasked_load")
    report = outcome.only("memory/out-of-bounds-read")
    assert (report["file"], report["line"]) == (FILE, line_of(FILE, "unmasked-load"))
    detail = report["detail"]
    assert (detail["tensor"], detail["argument"], detail["index"], detail["elements"]) == ("x", "x", 100, 100)
    assert (detail["lanes"], detail["program"], detail["kernel"]) == (28, "(1)", "scale_unmasked")
    assert outcome.close


def test_unmasked_store_is_dropped_and_the_rest_still_right(run: Run) -> None:
    outcome = run(FILE, "unmasked_store")
    report = outcome.only("memory/out-of-bounds-write")
    assert report["line"] == line_of(FILE, "unmasked-store")
    assert report["detail"]["tensor"] == "out" and report["detail"]["argument"] is None
    assert outcome.close


def test_a_moved_pointer_may_not_leave_what_it_derives_from(run: Run) -> None:
    report = run(FILE, "moved_too_far").only("memory/out-of-bounds-read")
    assert report["detail"]["index"] == -60


def test_ignoring_a_zero_stride_reads_outside(run: Run) -> None:
    report = run(FILE, "expanded").only("memory/out-of-bounds-read")
    assert report["detail"]["elements"] == 1


def test_block_pointer_without_a_boundary_check(run: Run) -> None:
    outcome = run(FILE, "block_pointer_unchecked")
    assert outcome.only("memory/out-of-bounds-write")["line"] == line_of(FILE, "block-store")
    assert outcome.close


def test_descriptor_that_claims_more_rows_than_there_are(run: Run) -> None:
    outcome = run(FILE, "descriptor_too_large")
    assert outcome.only("memory/out-of-bounds-write")["line"] == line_of(FILE, "descriptor-store")
    assert outcome.close


def test_pointers_out_of_memory_keep_to_the_tensor_they_point_to(run: Run) -> None:
    report = run(FILE, "table_overrun").only("memory/out-of-bounds-read")
    assert report["line"] == line_of(FILE, "table-load")
    assert report["detail"]["index"] == 60


def test_a_pointer_to_no_memory_does_not_end_the_process(run: Run) -> None:
    outcome = run(FILE, "wild_pointer")
    assert outcome.failure is None
    assert outcome.only("memory/out-of-bounds-read")["detail"]["lanes"] == 64


def test_atomics_outside_are_writes(run: Run) -> None:
    outcome = run(FILE, "atomic_outside")
    report = outcome.only("memory/out-of-bounds-write")
    assert report["line"] == line_of(FILE, "atomic") and report["detail"]["lanes"] == 2
    assert outcome.close


def test_an_offset_that_wraps_in_32_bits_is_seen_by_where_it_leads(run: Run) -> None:
    report = run(FILE, "int32_wrap").only("memory/out-of-bounds-read")
    assert report["detail"]["index"] == 70_000 * 40_000 - 2**32


def test_an_empty_grid_runs_nothing(run: Run) -> None:
    outcome = run(FILE, "empty_grid")
    assert outcome.failure is None and outcome.codes == []


def test_the_planted_violation_is_reported_every_time(run: Run) -> None:
    for _ in range(5):
        assert run(FILE, "masked_tail", planted=True).planted is True


def test_every_program_is_a_heartbeat(run: Run) -> None:
    assert run(FILE, "twice_in_place").beats >= 8
