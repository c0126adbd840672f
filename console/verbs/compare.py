"""What differs between two runs of one submission: the report of ``run --replay``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from runners.evidence import Evidence
from runners.findings import PANELS

ENVIRONMENT_KEYS = ("cpu", "device", "driver", "python", "torch", "triton", "sandbox", "runner")


def differences(before: Evidence, after: Evidence) -> tuple[str, ...]:
    """Every difference in what was judged and in what came out, in words. Times are not compared."""
    return (*_inputs(before, after), *_results(before, after))


def surroundings(before: Evidence, after: Evidence) -> tuple[str, ...]:
    """Differences of the machine: they explain, and are no result."""
    return tuple(
        f"{key}: {before.environment.get(key)} before, {after.environment.get(key)} now"
        for key in ENVIRONMENT_KEYS
        if before.environment.get(key) != after.environment.get(key)
    )


def _inputs(before: Evidence, after: Evidence) -> Iterator[str]:
    if before.task.tree != after.task.tree:
        yield f"the task has changed: tree {before.task.tree[:9]} before, {after.task.tree[:9]} now"
    if before.submission.tree != after.submission.tree:
        yield f"the submission has changed: tree {before.submission.tree[:9]} before, {after.submission.tree[:9]} now"
    if before.seeds != after.seeds:
        yield "the seeds differ: nothing was drawn in one of the runs"


def _results(before: Evidence, after: Evidence) -> Iterator[str]:
    if before.outcome != after.outcome:
        yield f"outcome: {before.outcome} before, {after.outcome} now"
    for name in PANELS:
        old, new = before.panels.get(name), after.panels.get(name)
        told = (old.status if old else "absent", new.status if new else "absent")
        if told[0] != told[1]:
            yield f"{name}: {told[0]} before, {told[1]} now"
    counts = Counter(finding.code for finding in before.findings)
    counts.subtract(Counter(finding.code for finding in after.findings))
    for code, count in sorted(counts.items()):
        if count:
            yield f"{code}: {abs(count)} {'fewer' if count > 0 else 'more'} than before"
