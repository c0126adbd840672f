import pytest
from timing_simulation import Bench, Nature

from runners.evidence import Finding
from runners.timing.accounts import clock_findings, quality_findings, wrong_findings
from runners.timing.facts import case_facts, work_rates
from runners.timing.samples import Measurement
from runners.timing.statistics import judge


def measure(candidate: Nature, baseline: Nature | None = None, seed: int = 0) -> Measurement:
    return Bench(candidate, baseline or Nature(), seed=seed).comparison().run()


def codes(findings: list[Finding]) -> list[str]:
    return sorted({finding.code for finding in findings})


def quality(measured: Measurement) -> list[str]:
    ratio, control = measured.estimates(0)
    verdict = judge(ratio.interval, 0.03, control.interval)
    return codes(quality_findings(measured, control.interval, verdict, 0.03))


def test_an_honest_candidate_has_no_findings() -> None:
    measured = measure(Nature(call_ns=250_000, noise=0.01), Nature(noise=0.01))
    assert clock_findings(measured, threads=1) == []
    assert wrong_findings(measured) == []
    assert quality(measured) == []


@pytest.mark.parametrize(
    ("nature", "expected"),
    [
        (Nature(cpu_share=2.0), ["integrity/timer"]),
        (Nature(cpu_share=0.05), ["integrity/timer"]),
        (Nature(outside_share=0.8), ["integrity/background-thread"]),
        (Nature(self_share=1.6), ["integrity/timer"]),
        (Nature(self_share=0.01), ["timing/clocks-disagree"]),
    ],
)
def test_accounts_that_cannot_be_honest(nature: Nature, expected: list[str]) -> None:
    assert codes(clock_findings(measure(nature), threads=1)) == expected


@pytest.mark.parametrize(
    "both",
    [
        Nature(cpu_share=2.0),
        Nature(cpu_share=0.05),
        Nature(outside_share=0.8),
        Nature(self_share=1.6),
        Nature(self_share=0.01),
        Nature(cpu_share=0.0),
    ],
)
def test_what_the_machine_does_to_both_sides_accuses_nobody(both: Nature) -> None:
    assert clock_findings(measure(both, both), threads=1) == []


def test_several_threads_may_use_several_cpus() -> None:
    assert clock_findings(measure(Nature(cpu_share=3.8), Nature(cpu_share=3.8)), threads=4) == []
    assert codes(clock_findings(measure(Nature(cpu_share=7), Nature(cpu_share=3.8)), threads=4)) == ["integrity/timer"]


def test_a_small_surplus_between_windows_is_no_offence() -> None:
    assert clock_findings(measure(Nature(outside_share=0.2)), threads=1) == []


def test_waiting_for_a_cpu_is_contention_not_guilt() -> None:
    both = Nature(cpu_share=0.4)
    measured = measure(both, both)
    assert clock_findings(measured, threads=1) == []
    assert "timing/contended" in quality(measured)


def test_calls_below_a_round_trip_are_launch_bound() -> None:
    assert "timing/launch-bound" in quality(measure(Nature(call_ns=20_000), Nature(call_ns=30_000)))
    assert "timing/launch-bound" not in quality(measure(Nature()))


def test_wide_spread_is_noisy_and_inconclusive() -> None:
    wild = Nature(noise=0.8)
    assert quality(measure(wild, wild)) == ["timing/inconclusive", "timing/noisy"]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("replays", ["integrity/replay"]),
        ("puts-off", ["integrity/context"]),
        ("skips-some", ["integrity/context"]),
        ("wrong", ["numerics/mismatch"]),
        ("mutates", ["integrity/input-mutated"]),
    ],
)
def test_wrong_timed_calls_convict_by_what_they_did(answer: str, expected: list[str]) -> None:
    findings = wrong_findings(measure(Nature(answer=answer)))
    assert codes(findings) == expected
    assert all(finding.severity == "fail" for finding in findings)


def test_facts_are_bounded_plain_json() -> None:
    import msgspec

    measured = measure(Nature(call_ns=100_000, noise=0.2, bursts=0.2), Nature(noise=0.2, bursts=0.2))
    ratio, control = measured.estimates(0)
    facts = case_facts(measured, ratio, control, judge(ratio.interval, 0.03), 0.03)
    data = msgspec.json.encode(facts)
    assert len(data) < 64 * 1024
    back = msgspec.json.decode(data)
    assert back["interval"][0] <= back["ratio"] <= back["interval"][1]
    assert sum(len(pair) for pair in back["samples"]["candidate"]) == back["rounds"]
    assert back["call_us"]["candidate"] == pytest.approx(100, rel=0.3)


def test_work_rates() -> None:
    assert work_rates({"bytes": 8e6, "flops": 4e6}, 1e6) == {
        "gigabytes_per_second": 8.0,
        "gigaflops_per_second": 4.0,
    }
    assert work_rates(None, 1e6) == {}
    assert work_rates({"bytes": 0, "tokens": 3}, 1e6) == {}
