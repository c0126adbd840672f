"""What recorded windows say beside the ratio: honest clocks, a quiet machine, a call long enough to be measured.

Each rule compares the candidate with a baseline that went through the same harness in the same minutes, so that what
the machine does to both is never held against one.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from runners.evidence import Finding, make_finding
from runners.timing.samples import Measurement, Samples, Side
from runners.timing.statistics import Interval, Verdict, judge, log_ratios, spread

BUSY = 0.75
"""A side that computes is on the CPU for at least this share of its windows on a quiet machine."""
IDLE = 0.25
TOO_MANY_CPUS = 1.5
"""On-CPU time over threads × window; pinned to its CPUs, a side cannot pass 1 but for the kernel's bookkeeping."""
OUTSIDE = 0.5
"""Work between the windows beyond the baseline's, over the candidate's work inside them."""
OVERSTATED = 1.2
"""Calls that lie one after the other in a window cannot take longer than it, by any clock that runs true."""
NOISY_SPREAD = 0.25
"""Interquartile range over median above which torch.utils.benchmark warns of significant environmental influence."""
NOISY_CONTROL = 0.10
"""Half-width of the control's interval; pyperf warns of a standard deviation of 10 % of the mean."""


def cpu_share(samples: Samples) -> float | None:
    """The median over batches of on-CPU time over the window; None where the kernel gave no account."""
    pairs = zip(samples.on_cpu, samples.windows, strict=True)
    shares = [cpu / window for cpus, windows in pairs for cpu, window in zip(cpus, windows, strict=True) if window > 0]
    return statistics.median(shares) if shares and any(shares) else None


def call_ns(measured: Measurement, side: Side) -> float:
    """The median time of one call on ``side``, in ns."""
    by_pair = zip(measured.sides[side].windows, measured.calls_by_pair, strict=True)
    return statistics.median(window / calls for pair, calls in by_pair for window in pair)


def window_ns(measured: Measurement, side: Side) -> float:
    """The median window of ``side``, in ns."""
    return statistics.median(window for pair in measured.sides[side].windows for window in pair)


def clock_findings(measured: Measurement, threads: int) -> list[Finding]:
    """Accounts that cannot be true of honest work, and clocks that tell different tales."""
    mine, twin = measured.sides["candidate"], measured.sides["baseline"]
    share, twin_share = cpu_share(mine), cpu_share(twin)
    found = []
    if share is not None and twin_share is not None:
        numbers = {"on_cpu": round(share, 3), "baseline_on_cpu": round(twin_share, 3), "threads": threads}
        if share > TOO_MANY_CPUS * threads and twin_share <= 1.1 * threads:
            found.append(
                make_finding(
                    "integrity/timer",
                    f"was on {share:.1f} CPUs during its windows, where {threads} can be used",
                    detail=numbers,
                )
            )
        if share < IDLE and twin_share > BUSY:
            found.append(
                make_finding(
                    "integrity/timer",
                    f"was on a CPU for {share:.0%} of its windows, the baseline for {twin_share:.0%}: "
                    "the work is done elsewhere, or not at all",
                    detail=numbers,
                )
            )
    found.extend(_outside(measured))
    if mine.self_share and twin.self_share:
        said, twin_said = statistics.median(mine.self_share), statistics.median(twin.self_share)
        numbers = {"self_reported_share": round(said, 3), "baseline_share": round(twin_said, 3)}
        if said > OVERSTATED and twin_said <= 1.0:
            found.append(
                make_finding(
                    "integrity/timer", f"its own clock counts {said:.1f} times the window that held it", detail=numbers
                )
            )
        elif said < IDLE and twin_said > BUSY:
            found.append(
                make_finding(
                    "timing/clocks-disagree",
                    f"its own clock accounts for {said:.0%} of the judge's window, the baseline's for {twin_said:.0%}",
                    detail=numbers,
                )
            )
    return found


def _outside(measured: Measurement) -> list[Finding]:
    """On-CPU time between windows that the baseline, served alike, does not need."""
    sides = measured.sides
    inside = sum(sum(pair) for pair in sides["candidate"].on_cpu)
    outside = sum(sides["candidate"].outside)
    usual = max(sum(sides["baseline"].outside), sum(sides["control"].outside))
    if inside <= 0 or outside - usual <= OUTSIDE * inside or outside <= 2 * usual:
        return []
    return [
        make_finding(
            "integrity/background-thread",
            f"worked {outside / 1e6:.0f} ms between its windows and {inside / 1e6:.0f} ms inside them; "
            f"the baseline needs {usual / 1e6:.0f} ms between",
            detail={"outside_ns": outside, "inside_ns": inside, "baseline_outside_ns": usual},
        )
    ]


def quality_findings(measured: Measurement, control: Interval, verdict: Verdict, margin: float) -> list[Finding]:
    """What makes the ratio less sure, or less telling: inconclusive, noisy, contended, launch-bound."""
    windows = {side: samples.windows for side, samples in measured.sides.items()}
    found = []
    if verdict == "inconclusive":
        found.append(
            make_finding("timing/inconclusive", f"no difference of {margin:.0%} or more can be told or ruled out")
        )
    width = spread(log_ratios(windows["baseline"], windows["control"]))
    apart = judge(control, margin) in ("faster", "slower")
    if apart or width > NOISY_SPREAD or control.half_width > NOISY_CONTROL:
        why = (
            f"the baseline differs from itself: {control.low:.3f} to {control.high:.3f}"
            if apart
            else f"the baseline against itself spreads by {width:.0%}, interval {control.low:.3f} to {control.high:.3f}"
        )
        found.append(make_finding("timing/noisy", why, detail={"spread": round(width, 4)}))
    shares = [share for share in (cpu_share(samples) for samples in measured.sides.values()) if share is not None]
    if shares and max(shares) < BUSY:
        found.append(
            make_finding(
                "timing/contended",
                f"every side waited for a CPU: on it for {max(shares):.0%} of the windows at most",
                detail={"on_cpu": [round(share, 3) for share in shares]},
            )
        )
    fastest = min(call_ns(measured, "candidate"), call_ns(measured, "baseline"))
    if fastest < measured.round_trip_ns:
        found.append(
            make_finding(
                "timing/launch-bound",
                f"a call takes {fastest / 1e3:.1f} µs, less than an empty request "
                f"({measured.round_trip_ns / 1e3:.1f} µs): this measures the way to the kernel more than the kernel",
                detail={"call_ns": round(fastest), "round_trip_ns": measured.round_trip_ns},
            )
        )
    return found


def wrong_findings(measured: Measurement) -> list[Finding]:
    """What outputs of timed calls that differ from the truth convict of."""
    found: list[Finding] = []
    wrong = measured.wrong
    if wrong is not None:
        first = wrong.findings[0]
        detail = {"in_timed_call": True, "because": first.code, **first.detail}
        if wrong.replayed:
            words = f"a timed call returned an earlier result: {first.summary}"
            found.append(make_finding("integrity/replay", words, detail=detail))
        elif wrong.right_when_untimed:
            words = f"wrong when timed, right for the same inputs when it is watched: {first.summary}"
            found.append(make_finding("integrity/context", words, detail=detail))
        else:
            found.extend(wrong.findings)
    return found + _broken_findings(measured)


def _broken_findings(measured: Measurement) -> list[Finding]:
    found = []
    changed = sorted({mutation.name for call in measured.broken for mutation in call.mutations})
    guards = sorted({name for call in measured.broken for name in call.broken_guards})
    if changed:
        words = f"timed calls changed {_listed(changed)}"
        found.append(make_finding("integrity/input-mutated", words, detail={"inputs": changed}))
    if guards:
        words = f"timed calls wrote outside {_listed(guards)}"
        found.append(make_finding("memory/out-of-bounds-write", words, detail={"beside": guards}))
    return found


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
