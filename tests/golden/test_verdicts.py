"""Every sample is judged as verdicts.toml says: outcome, findings that must and must not be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runners.evidence import Evidence

UNSEEN = {
    "row-softmax/m-048": "no check yet tells a library call that does the work from one that prepares it",
    "layer-norm/m-088": "no check yet tells a library call that does the work from one that prepares it",
}
"""Samples whose fault no check sees: each must begin to fail here when one does."""


def test_a_sample_is_judged_as_its_verdict_says(
    judge: Callable[..., Evidence],
    story: Callable[[Evidence], str],
    samples: Path,
    key: str,
    verdict: dict[str, Any],
    request: pytest.FixtureRequest,
) -> None:
    if key in UNSEEN:
        request.applymarker(pytest.mark.xfail(reason=UNSEEN[key], strict=True))
    task, name = key.split("/")
    timed = any(code.startswith("timing/") for code in (*verdict["must"], *verdict["must_not"]))
    evidence = judge(samples, task, name, timed=timed)
    found = {finding.code for finding in evidence.findings}
    assert evidence.outcome == verdict["run"], story(evidence)
    assert set(verdict["must"]) <= found, story(evidence)
    assert not set(verdict["must_not"]) & found, story(evidence)
