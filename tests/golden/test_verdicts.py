"""Every sample is judged as verdicts.toml says: outcome, findings that must and must not be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from runners.evidence import Evidence


def test_a_sample_is_judged_as_its_verdict_says(
    judge: Callable[[Path, str, str], Evidence], samples: Path, key: str, verdict: dict[str, Any]
) -> None:
    task, name = key.split("/")
    evidence = judge(samples, task, name)
    found = {finding.code for finding in evidence.findings}
    story = "\n".join(
        [f"outcome {evidence.outcome}"]
        + [f"{panel}: {result.status} {result.reason or ''}" for panel, result in evidence.panels.items()]
        + [f"{f.severity} {f.id} {f.where or ''} {f.summary}" for f in evidence.findings]
    )
    assert evidence.outcome == verdict["run"], story
    assert set(verdict["must"]) <= found, story
    assert not set(verdict["must_not"]) & found, story
