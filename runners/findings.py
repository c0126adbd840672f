"""The table of finding codes: meaning, severity, and the panel that shows each one."""

from __future__ import annotations

from typing import Literal

import msgspec

Severity = Literal["fail", "warn", "info"]
PanelName = Literal["build", "correctness", "integrity", "timing", "resources", "scope"]

PANELS: tuple[PanelName, ...] = ("build", "correctness", "integrity", "timing", "resources", "scope")

SEVERITY_RANK: dict[Severity, int] = {"info": 0, "warn": 1, "fail": 2}


class FindingKind(msgspec.Struct, frozen=True):
    """One row of the table: what a code means wherever it appears."""

    code: str
    """``area/name``, stable: reviews cite it."""
    severity: Severity
    panel: PanelName
    meaning: str


_AREA_PANEL: dict[str, PanelName] = {
    "build": "build",
    "numerics": "correctness",
    "memory": "correctness",
    "race": "correctness",
    "integrity": "integrity",
    "timing": "timing",
    "resources": "resources",
    "scope": "scope",
    "answer": "scope",
}

_FAIL_AREAS = frozenset({"build", "memory", "race", "integrity"})
_FAIL_CODES = frozenset(
    f"numerics/{name}" for name in ("mismatch", "non-finite", "unstable", "shape", "stride", "gradient", "drift")
)
_WARN_CODES = frozenset({"build/environment", "race/nondeterministic"})
_INFO_CODES = frozenset({"timing/not-meaningful", "integrity/hint"})

_MEANINGS: dict[str, str] = {
    "build/environment": "the machine lacks what the run needs; not the submission's fault",
    "build/contract": "entry missing, wrong signature, or output of the wrong shape, dtype, device or type",
    "build/import": "raises, benchmarks, downloads or asks the driver when imported",
    "build/compile": "does not compile",
    "build/wrong-arch": "compiles for one target, not for another that the task names",
    "build/resources": "needs more shared memory, registers or threads than the target has",
    "build/launch": "raises, or asks for an invalid launch configuration, when called",
    "build/autotune": "no valid configuration, conflicting keys, or tuning corrupts in-out buffers",
    "build/out-of-memory": "asks for more memory than the limit",
    "build/timeout": "still working when the time limit ended",
    "build/hang": "idle or spinning when the time limit ended",
    "build/crash": "ended by a signal, or ended by the supervisor for flooding its output",
    "numerics/mismatch": "outside the task's tolerance",
    "numerics/non-finite": "NaN or Inf where the reference has none, or the reverse",
    "numerics/unexplained": "inside the task's tolerance, outside what rounding explains",
    "numerics/precision": "the error looks like that of a lower precision than was asked",
    "numerics/unstable": "right on plain inputs, wrong on stressed ones",
    "numerics/shape": "wrong only for some sizes",
    "numerics/stride": "wrong for non-contiguous, expanded, offset or transposed inputs",
    "numerics/gradient": "forward right, backward wrong or missing",
    "numerics/drift": "right at first, wrong after several calls",
    "memory/out-of-bounds-read": "reads outside a tensor",
    "memory/out-of-bounds-write": "writes outside a tensor",
    "memory/uninitialised": "reads what nothing wrote",
    "memory/unwritten-output": "part of the output is never written",
    "race/cross-program": "two programs touch one element, one of them writes, without an atomic",
    "race/shared-memory": "a barrier is missing between threads of one block",
    "race/divergent-barrier": "a barrier that not all threads reach",
    "race/nondeterministic": "same inputs, different bits",
    "integrity/replay": "returns an earlier result",
    "integrity/constant": "ignores its input",
    "integrity/input-mutated": "changes an input that it was only lent",
    "integrity/aliased": "two calls share one output buffer",
    "integrity/reference-access": "looks for the answer in the interpreter, in frames or in files",
    "integrity/harness": "patches or probes the harness, torch or the checker",
    "integrity/timer": "clocks patched, or on-CPU time that does not fit the judge's window",
    "integrity/side-stream": "work on another stream, outside the timed window",
    "integrity/background-thread": "work in another thread, outside the timed window",
    "integrity/lazy": "returns an object that computes when it is read",
    "integrity/library-fallback": "a library call does the work, the kernel is decoration",
    "integrity/silent-fallback": "falls back to another implementation without saying so",
    "integrity/global-state": "changes process-wide settings",
    "integrity/context": "behaves differently when it is watched",
    "integrity/forged-result": "writes to the result channel, or exits early with success",
    "integrity/escape": "reaches for the network, files or processes outside the sandbox",
    "integrity/hint": "a place in the source that is worth a look",
    "timing/not-meaningful": "interpreted or emulated: no time is printed",
    "timing/inconclusive": "the interval of the ratio contains 1 ± margin",
    "timing/noisy": "samples spread too widely to trust",
    "timing/contended": "another process used the device or the cores",
    "timing/throttled": "clock or power events during the run",
    "timing/launch-bound": "too small to measure the kernel itself",
    "timing/above-roofline": "faster than its bytes or operations allow",
    "timing/weak-baseline": "the baseline is weaker than what a user would run",
    "timing/unequal": "the two sides do not do the same work under the same settings",
    "timing/setup-excluded": "compile, tuning, packing or planning left out of one side",
    "timing/clocks-disagree": "clocks differ by more than their overhead",
    "timing/host-sync": "synchronises inside the timed loop",
    "timing/warm-cache": "inputs fit the last-level cache and were not rotated",
    "scope/tolerance-too-loose": "a null candidate passes the tolerance",
    "scope/tolerance-too-tight": "the reference's own low-precision twin fails the tolerance",
    "scope/insensitive": "changing inputs or weights does not change the output",
    "scope/degenerate": "the output is nearly constant, cancels, or lies under atol",
    "scope/coverage": "no tail size, one dtype, one stride pattern, or timed shapes that are never checked",
    "scope/launch-bound": "the timed case is below launch overhead",
    "scope/convention": "a convention is undefined: ties, NaN, a fully masked row, in-place",
    "scope/weak-reference": "the reference is not independent or not precise enough",
    "answer/wrong-bottleneck": "the numbers given put it on the other side of the ridge",
    "answer/arithmetic": "a stated figure does not follow from the stated inputs",
    "answer/slo": "good throughput, but an objective of the prompt is violated",
    "answer/unsupported": "a claim cites nothing that was measured",
    "answer/coincidental": "right conclusion from an argument that does not hold",
}


def _severity(code: str) -> Severity:
    if code in _INFO_CODES:
        return "info"
    if code in _WARN_CODES:
        return "warn"
    if code in _FAIL_CODES or code.split("/", 1)[0] in _FAIL_AREAS:
        return "fail"
    return "warn"


FINDINGS: dict[str, FindingKind] = {
    code: FindingKind(code, _severity(code), _AREA_PANEL[code.split("/", 1)[0]], meaning)
    for code, meaning in _MEANINGS.items()
}


def kind_of(code: str) -> FindingKind:
    """The row for ``code``. Raises KeyError for a code that is not in the table."""
    return FINDINGS[code]


def as_markdown() -> str:
    """The table as a page of the documentation."""
    lines = ["# Findings", "", "Every code that a run can report. Reviews cite them; codes stay stable.", ""]
    for panel in PANELS:
        lines += [f"## {panel} panel", "", "| code | severity | meaning |", "| --- | --- | --- |"]
        lines += [
            f"| {kind.code} | {kind.severity} | {kind.meaning} |" for kind in FINDINGS.values() if kind.panel == panel
        ]
        lines.append("")
    return "\n".join(lines)
