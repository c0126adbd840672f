"""A comparison as evidence shows it: plain JSON values, bounded, each measured in the run it belongs to."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from runners.timing.accounts import call_ns, cpu_share, window_ns
from runners.timing.samples import SIDES, Measurement, Samples
from runners.timing.statistics import CONFIDENCE, Estimate, Verdict, judge, log_ratios, spread


def case_facts(
    measured: Measurement, ratio: Estimate, control: Estimate, verdict: Verdict, margin: float
) -> dict[str, Any]:
    """The numbers behind one case's verdict. ``ratio`` is baseline over candidate: above 1 the candidate is faster."""
    sides = measured.sides
    windows = {side: sides[side].windows for side in SIDES}
    return {
        "verdict": verdict,
        "ratio": _short(ratio.ratio),
        "interval": [_short(ratio.interval.low), _short(ratio.interval.high)],
        "confidence": CONFIDENCE,
        "margin": margin,
        "control": {
            "ratio": _short(control.ratio),
            "interval": [_short(control.interval.low), _short(control.interval.high)],
            "verdict": judge(control.interval, margin),
        },
        "call_us": {side: _short(call_ns(measured, side) / 1e3) for side in SIDES},
        "window_ms": {side: _short(window_ns(measured, side) / 1e6) for side in SIDES},
        "pairs": measured.pairs,
        "rounds": ratio.rounds,
        "spread": _short(spread(log_ratios(windows["baseline"], windows["candidate"]))),
        "on_cpu": {side: _short(cpu_share(sides[side])) for side in SIDES},
        "between_windows_cpu_ms": {side: _short(sum(sides[side].outside) / 1e6) for side in SIDES},
        "self_reported_us": {side: _self_reported(sides[side]) for side in ("candidate", "baseline")},
        **plain_facts(measured),
        "samples": {
            "unit": "ns per batch, by process pair",
            **{side: [list(pair) for pair in sides[side].windows] for side in SIDES},
        },
    }


def plain_facts(measured: Measurement) -> dict[str, Any]:
    """What is known of a measurement even where it gave no ratio."""
    sides = measured.sides
    return {
        "calls_per_batch": measured.calls,
        "calls_by_pair": list(measured.calls_by_pair),
        "limited_by": measured.limited_by,
        "target_window_ms": _short(measured.target_ns / 1e6),
        "round_trip_us": _short(measured.round_trip_ns / 1e3),
        "warm_up": {
            side: {
                "first_call_ms": [_short(ns / 1e6) for ns in sides[side].first_call],
                "next_calls_us": [_short(ns / 1e3) for ns in sides[side].warm_up],
            }
            for side in SIDES
        },
        "timed_calls": measured.timed_calls,
        "compared_calls": measured.compared_calls,
        "disputed_calls": measured.disputed_calls,
        "seconds": _short(measured.seconds),
    }


def work_rates(work: Mapping[str, float] | None, per_call_ns: float) -> dict[str, float]:
    """What the task's ``work`` comes to per second: gigabytes and gigaflops, where it states them."""
    named = {"bytes": "gigabytes_per_second", "flops": "gigaflops_per_second"}
    return {
        named[key]: _short(float(value) / per_call_ns) or 0.0
        for key, value in (work or {}).items()
        if key in named and float(value) > 0
    }


def load_average() -> list[float]:
    """The machine's load over 1, 5 and 15 minutes; empty where the system does not tell."""
    try:
        return [round(value, 2) for value in os.getloadavg()]
    except OSError:
        return []


def _self_reported(samples: Samples) -> dict[str, float | None]:
    if not samples.self_reported:
        return {}
    quantiles = np.quantile(np.asarray(samples.self_reported, dtype=np.float64) / 1e3, [0.1, 0.5, 0.9, 0.99])
    return {name: _short(float(value)) for name, value in zip(("p10", "p50", "p90", "p99"), quantiles, strict=True)}


def _short(value: float | None) -> float | None:
    """Five significant digits: more would claim a precision that no clock here has."""
    return None if value is None else float(f"{value:.5g}")
