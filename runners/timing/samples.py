"""The raw numbers of one comparison, as they were measured."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from runners.evidence import Finding
from runners.session import Call, Report
from runners.timing.statistics import Estimate, estimate, log_ratios

Side = Literal["candidate", "baseline", "control"]
SIDES: tuple[Side, ...] = ("candidate", "baseline", "control")
LimitedBy = Literal["memory", "budget", "calls"]


@dataclass
class Samples:
    """Raw numbers of one side: a list per process pair, in it a number per round. Times in ns of the judge's clock."""

    windows: list[list[int]] = field(default_factory=list)
    on_cpu: list[list[int]] = field(default_factory=list)
    outside: list[int] = field(default_factory=list)
    """Per pair: on-CPU time between the windows, from the first timed round to the last."""
    first_call: list[int] = field(default_factory=list)
    """Per pair: the first call in a fresh process; compiling and tuning show here."""
    warm_up: list[int] = field(default_factory=list)
    """Per pair: a batch that is not counted, per call."""
    self_reported: list[int] = field(default_factory=list)
    """Per call by the process's own clock, a bounded part of them."""
    self_share: list[float] = field(default_factory=list)
    """Per batch: the sum of self-reported times over the window."""


@dataclass
class Measurement:
    """What was measured, whether or not it is enough for a verdict."""

    calls: int = 0
    """N, the calls in a batch, as it stands."""
    calls_by_pair: list[int] = field(default_factory=list)
    limited_by: LimitedBy | None = None
    round_trip_ns: int = 0
    target_ns: int = 0
    sides: dict[Side, Samples] = field(default_factory=lambda: {side: Samples() for side in SIDES})
    timed_calls: int = 0
    compared_calls: int = 0
    disputed_calls: int = 0
    """Calls where the baseline's outputs break the rule as well, on the same inputs: the candidate is not accused."""
    wrong: WrongCall | None = None
    broken: list[Call] = field(default_factory=list)
    """Compared calls that changed what they may not change."""
    reports: list[Report] = field(default_factory=list)
    """What hooks and the supervisor said about the candidate."""
    seconds: float = 0.0

    @property
    def pairs(self) -> int:
        """Process pairs that were measured in full."""
        return len(self.sides["candidate"].windows)

    def estimates(self, seed: int) -> tuple[Estimate, Estimate]:
        """The ratio of baseline to candidate, and that of baseline to control. Raises ValueError with too few pairs."""
        windows = {side: samples.windows for side, samples in self.sides.items()}
        return (
            estimate(log_ratios(windows["baseline"], windows["candidate"]), seed=seed),
            estimate(log_ratios(windows["baseline"], windows["control"]), seed=seed + 1),
        )


@dataclass(frozen=True)
class WrongCall:
    """A timed call whose outputs are wrong where the baseline's are right."""

    findings: tuple[Finding, ...]
    replayed: bool
    """Its outputs equal, bit by bit, those of another call with other inputs."""
    right_when_untimed: bool
    """The same inputs, called once and watched, in the same process, give right outputs."""
