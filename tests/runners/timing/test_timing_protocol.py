import math

import pytest
from timing_simulation import Bench, Nature

from runners.evidence import Finding
from runners.session import Failure, Report
from runners.timing.protocol import Plan, SideFailed, TooSlow
from runners.timing.samples import SIDES
from runners.timing.statistics import judge


def verdict(bench: Bench, margin: float = 0.03) -> str:
    estimate, control = bench.comparison().run().estimates(bench.seed)
    return judge(estimate.interval, margin, control.interval)


def test_a_faster_candidate_is_measured_and_called_faster() -> None:
    bench = Bench(Nature(call_ns=250_000, noise=0.02))
    result = bench.comparison().run()
    estimate, control = result.estimates(0)
    assert estimate.interval.contains(estimate.ratio)
    assert estimate.ratio == pytest.approx(2.0, rel=0.03)
    assert control.ratio == pytest.approx(1.0, abs=0.03)
    assert judge(estimate.interval, 0.03, control.interval) == "faster"
    assert result.wrong is None


def test_a_slower_candidate_is_called_slower() -> None:
    assert verdict(Bench(Nature(call_ns=800_000, noise=0.02))) == "slower"


def test_windows_reach_the_target_on_the_faster_side() -> None:
    result = Bench(Nature(call_ns=200_000)).comparison().run()
    assert result.round_trip_ns >= 40_000
    assert result.target_ns == max(10_000_000, 100 * result.round_trip_ns)
    assert result.limited_by is None
    for side in SIDES:
        assert all(window >= result.target_ns for pair in result.sides[side].windows for window in pair)


def test_at_least_five_fresh_process_pairs_with_even_rounds_and_no_process_left() -> None:
    bench = Bench(Nature(noise=0.01))
    result = bench.comparison().run()
    assert result.pairs >= 5
    assert len(bench.workers) == 3 * result.pairs
    assert bench.world.open == 0
    assert bench.world.most_open == 3
    for side in SIDES:
        assert len(result.sides[side].windows) == result.pairs
        assert all(len(rounds) % 2 == 0 and rounds for rounds in result.sides[side].windows)


def test_all_is_within_the_budget_when_the_intervals_stay_wide() -> None:
    bench = Bench(Nature(noise=0.3, bursts=0.2), Nature(noise=0.3, bursts=0.2))
    result = bench.comparison().run()
    assert result.seconds <= 8.0 * 1.25
    assert result.pairs >= 5


def test_a_quiet_machine_stops_early() -> None:
    result = Bench(Nature(call_ns=300_000)).comparison().run()
    assert result.pairs == 5
    assert result.seconds < 8.0


def test_a_drifting_machine_moves_both_sides_alike() -> None:
    bench = Bench(Nature(drift=0.2, noise=0.01), Nature(drift=0.2, noise=0.01))
    estimate, _ = bench.comparison().run().estimates(0)
    assert estimate.ratio == pytest.approx(1.0, abs=0.01)
    assert estimate.interval.contains(1.0)


def test_bursty_neighbours_do_not_make_a_difference_of_none() -> None:
    different = contained = 0
    for seed in range(12):
        nature = Nature(noise=0.05, bursts=0.25, between_processes=0.01)
        bench = Bench(nature, nature, seed=seed)
        estimate, control = bench.comparison().run().estimates(seed)
        contained += estimate.interval.contains(1.0)
        different += judge(estimate.interval, 0.03, control.interval) in ("faster", "slower")
    assert contained >= 11
    assert different == 0


def test_at_least_a_fifth_is_compared_and_nobody_can_know_which() -> None:
    bench = Bench(Nature())
    result = bench.comparison().run()
    assert result.compared_calls >= result.timed_calls / 5
    assert result.timed_calls > 0
    picks = [tuple(copy) for side, worker in bench.workers if side == "candidate" for copy in worker.spied if copy]
    assert len(set(picks)) == len(picks)


@pytest.mark.parametrize(("answer", "replayed"), [("replays", True), ("puts-off", False), ("skips-some", False)])
def test_outputs_that_are_wrong_only_when_timed_are_caught(answer: str, replayed: bool) -> None:
    bench = Bench(Nature(answer=answer))
    wrong = bench.comparison().run().wrong
    assert wrong is not None
    assert wrong.replayed is replayed
    assert wrong.right_when_untimed
    assert [finding.code for finding in wrong.findings] == ["numerics/mismatch"]
    assert bench.world.open == 0


def test_outputs_that_are_always_wrong_are_not_called_a_reaction_to_being_timed() -> None:
    wrong = Bench(Nature(answer="wrong")).comparison().run().wrong
    assert wrong is not None
    assert not wrong.right_when_untimed
    assert not wrong.replayed


def test_where_the_baseline_breaks_the_rule_too_nobody_is_accused() -> None:
    def never(inputs: object, outputs: object) -> list[Finding]:
        from runners.evidence import make_finding

        return [make_finding("numerics/mismatch", "too tight")]

    result = Bench(Nature()).comparison(verify=never).run()
    assert result.wrong is None
    assert result.disputed_calls >= result.compared_calls > 0


def test_mutations_in_timed_calls_are_kept() -> None:
    assert Bench(Nature(answer="mutates")).comparison().run().broken


def test_memory_bounds_the_calls_and_is_named() -> None:
    result = Bench(Nature(), Nature(room=15)).comparison().run()
    assert result.calls == 15
    assert result.limited_by == "memory"
    small = Bench(Nature()).comparison(plan=Plan(max_bytes=1 << 19)).run()
    assert small.limited_by == "memory"
    assert small.calls < 20


def test_no_room_for_one_call_is_a_memory_error_and_leaves_no_process() -> None:
    bench = Bench(Nature(room=0))
    with pytest.raises(MemoryError):
        bench.comparison().run()
    assert bench.world.open == 0


def test_tiny_calls_meet_the_limit_of_calls() -> None:
    result = Bench(Nature(call_ns=500), Nature(call_ns=500)).comparison(plan=Plan(max_calls=50)).run()
    assert result.limited_by == "calls"
    assert result.calls == 50


def test_a_much_slower_baseline_shrinks_the_batch_to_the_budget() -> None:
    bench = Bench(Nature(call_ns=500_000), Nature(call_ns=100_000_000))
    result = bench.comparison().run()
    assert result.limited_by == "budget"
    assert result.pairs >= 5
    assert result.seconds <= 8.0 * 1.5


def test_a_call_that_takes_longer_than_the_budget_is_refused() -> None:
    bench = Bench(Nature(call_ns=20e9), Nature(call_ns=20e9))
    with pytest.raises(TooSlow, match="s at least"):
        bench.comparison().run()
    assert bench.world.open == 0


@pytest.mark.parametrize("side", ["candidate", "baseline"])
def test_a_failing_side_is_named(side: str) -> None:
    broken, whole = Nature(fails_after=8), Nature()
    bench = Bench(broken, whole) if side == "candidate" else Bench(whole, broken)
    with pytest.raises(SideFailed) as caught:
        bench.comparison().run()
    assert (caught.value.side == "candidate") is (side == "candidate")
    assert caught.value.failure.code == "build/crash"
    assert bench.world.open == 0


def test_a_side_that_does_not_load_is_named() -> None:
    bench = Bench(Nature(load=Failure("build/import", "no")))
    with pytest.raises(SideFailed, match="candidate"):
        bench.comparison().run()


def test_what_the_supervisor_saw_of_the_candidate_is_kept() -> None:
    report = Report("integrity/escape", "socket refused")
    result = Bench(Nature(reports=(report,))).comparison().run()
    assert result.reports == [report] * result.pairs


def test_first_calls_and_warm_up_are_apart_from_the_samples() -> None:
    result = Bench(Nature(first_ns=300e6)).comparison().run()
    assert min(result.sides["candidate"].first_call) > 300e6
    assert max(result.sides["baseline"].first_call) < 300e6
    assert max(window for pair in result.sides["candidate"].windows for window in pair) < 100e6


def test_work_outside_the_windows_is_counted() -> None:
    lazy = Bench(Nature(outside_share=0.5)).comparison().run()
    inside = sum(sum(pair) for pair in lazy.sides["candidate"].on_cpu)
    assert math.isclose(sum(lazy.sides["candidate"].outside), inside / 2, rel_tol=0.05)
    assert sum(lazy.sides["baseline"].outside) == 0


def test_memory_on_its_way_back_is_no_work_between_windows() -> None:
    """Else one side that is fast at first makes the other's account so large that nothing is found."""
    shrunk = Bench(Nature(call_ns=50_000), Nature(call_ns=60_000_000)).comparison().run()
    assert shrunk.limited_by == "budget"
    assert all(sum(shrunk.sides[side].outside) == 0 for side in SIDES)


def test_windows_grow_where_the_first_guess_was_made_under_load() -> None:
    bench = Bench(Nature(call_ns=100_000, drift=-0.4), Nature(call_ns=100_000, drift=-0.4))
    result = bench.comparison(plan=Plan(narrow=0.0)).run()
    assert result.calls_by_pair == sorted(result.calls_by_pair)
    assert result.calls_by_pair[-1] > result.calls_by_pair[0]
    assert len(result.calls_by_pair) == result.pairs
    estimate, _ = result.estimates(0)
    assert estimate.ratio == pytest.approx(1.0, abs=0.02)
