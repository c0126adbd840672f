"""One process with Triton's interpreter for all tests here; each scenario runs in a fork of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
KERNELS = HERE / "kernels"


def line_of(file: str, marker: str) -> int:
    """The number of the one line of a kernel file that ends in ``# <marker>``."""
    lines = (KERNELS / file).read_text().splitlines()
    found = [number for number, text in enumerate(lines, 1) if text.endswith(f"# <{marker}>")]
    assert len(found) == 1, f"{marker} in {file}: {found}"
    return found[0]


class Outcome:
    """What a scenario led to."""

    def __init__(self, answer: dict[str, Any]) -> None:
        assert "died" not in answer, f"the process died: {answer}"
        self.failure: dict[str, Any] | None = answer["failure"]
        self.reports: list[dict[str, Any]] = answer["reports"]
        self.close: bool | None = answer["close"]
        self.planted: bool | None = answer.get("planted")
        self.beats: int = answer.get("beats", 0)

    @property
    def codes(self) -> list[str]:
        """Codes that accuse, in order."""
        return [report["code"] for report in self.reports if report["code"] != "integrity/hint"]

    def only(self, code: str) -> dict[str, Any]:
        """The one report that accuses."""
        assert self.codes == [code], self.reports
        return next(report for report in self.reports if report["code"] == code)


Run = Callable[..., Outcome]


@pytest.fixture(scope="session")
def _server() -> Iterator[subprocess.Popen[str]]:
    environment = {
        **os.environ,
        "TRITON_INTERPRET": "1",
        "PYTHONPATH": str(HERE.parents[2]),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    process = subprocess.Popen(
        [sys.executable, str(HERE / "fork_server.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    yield process
    assert process.stdin is not None
    process.stdin.close()
    process.wait(timeout=30)


@pytest.fixture
def run(_server: subprocess.Popen[str]) -> Run:
    """Run a scenario of a kernel file: ``run("memory.py", "name", order="reverse")``."""

    def go(
        file: str | Path,
        name: str,
        *,
        framework: str = "triton",
        calls: list[dict[str, Any]] | None = None,
        planted: bool = False,
        **options: Any,
    ) -> Outcome:
        request = {
            "file": str(KERNELS / file),
            "name": name,
            "framework": framework,
            "calls": calls or [{"fill": 11, **options}],
            "planted": planted,
        }
        assert _server.stdin is not None and _server.stdout is not None
        _server.stdin.write(json.dumps(request) + "\n")
        _server.stdin.flush()
        return Outcome(json.loads(_server.stdout.readline()))

    return go
