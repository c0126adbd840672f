"""Fixtures of the screens' tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from fakes_for_screens import Bench, snapshot_of, submission_of  # type: ignore[import-not-found]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(
        snapshot_of(submission_of("m-001", 1), submission_of("m-002", 2, author="model-b"), submission_of("m-003", 3)),
        tmp_path,
    )
