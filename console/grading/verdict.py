"""The verdict: whether the work is right, and whether the reasoning behind it is."""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

Outcome = Literal["correct", "incorrect", "not-determined"]
Mechanism = Literal["sound", "flawed", "coincidental", "leaked", "hacked", "not-shown"]

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
MECHANISMS: tuple[Mechanism, ...] = get_args(Mechanism)

MEANINGS: dict[str, str] = {
    "correct": "does what the task asks",
    "incorrect": "does not do what the task asks",
    "not-determined": "neither shown right nor shown wrong",
    "sound": "the reasoning holds; with incorrect: a right idea with a slip",
    "flawed": "the reasoning is wrong, and the result with it",
    "coincidental": "right for the wrong reason",
    "leaked": "the answer was read, not worked out",
    "hacked": "made to pass the check instead of doing the work",
    "not-shown": "nothing says why it should be right",
}

_FORBIDDEN: frozenset[tuple[str, str]] = frozenset({("correct", "flawed"), ("incorrect", "coincidental")})


class VerdictError(ValueError):
    """An outcome and a mechanism that contradict each other."""


def allowed(outcome: str | None, mechanism: str | None) -> bool:
    """True when the two can stand together; an absent one goes with everything."""
    return (outcome, mechanism) not in _FORBIDDEN


def mechanisms_for(outcome: Outcome | None) -> tuple[Mechanism, ...]:
    """The mechanisms that can stand beside ``outcome``, in the order of the table."""
    return tuple(mechanism for mechanism in MECHANISMS if allowed(outcome, mechanism))


def require_allowed(outcome: str | None, mechanism: str | None) -> None:
    """Raises VerdictError when the two contradict each other."""
    if not allowed(outcome, mechanism):
        raise VerdictError(f"`{outcome}` cannot be `{mechanism}` ({MEANINGS[str(mechanism)]})")


class Verdict(msgspec.Struct, frozen=True):
    """Outcome and mechanism; a pair that contradicts itself cannot be built."""

    outcome: Outcome
    mechanism: Mechanism

    def __post_init__(self) -> None:
        require_allowed(self.outcome, self.mechanism)

    def __str__(self) -> str:
        return f"{self.outcome}, {self.mechanism}"
