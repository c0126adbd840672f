"""The sample exchange as the golden tests see it: folders, verdicts, and one runner for all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import Any

import msgspec
import pytest
import tomli

from runners.client import Runner
from runners.contract import RunRequest, choose_framework, parse_submission, parse_task
from runners.evidence import Evidence
from runners.findings import PANELS, PanelName

SAMPLES = Path(__file__).resolve().parents[2] / "sample_submissions"
VERDICTS: dict[str, dict[str, Any]] = tomli.loads((SAMPLES / "verdicts.toml").read_text())

Judge = Callable[..., Evidence]
UNTIMED: tuple[PanelName, ...] = tuple(panel for panel in PANELS if panel != "timing")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrise by TASK/NAME and its verdict, by task, or by submission folder, as a test's arguments ask."""
    if "verdict" in metafunc.fixturenames:
        metafunc.parametrize(("key", "verdict"), VERDICTS.items(), ids=list(VERDICTS))
    elif "task_dir" in metafunc.fixturenames:
        folders = sorted(path for path in (SAMPLES / "tasks").iterdir() if path.is_dir())
        metafunc.parametrize("task_dir", folders, ids=[path.name for path in folders])


@pytest.fixture(scope="session")
def samples() -> Path:
    return SAMPLES


@pytest.fixture(scope="session")
def verdicts() -> dict[str, dict[str, Any]]:
    return VERDICTS


@pytest.fixture(scope="session")
def judge() -> Iterator[Judge]:
    """Runs the panels of ``EXCHANGE, TASK, NAME`` with one runner, as the console does; timing only where asked."""
    runner = Runner()

    def run(exchange: Path, task: str, name: str, *, timed: bool = False) -> Evidence:
        asked = msgspec.structs.replace(request(exchange, task, name), panels=PANELS if timed else UNTIMED)
        evidence = runner.run(asked, lambda event: None, Event())
        assert evidence is not None
        return evidence

    yield run
    runner.close()


@pytest.fixture(scope="session")
def story() -> Callable[[Evidence], str]:
    """What a failed assertion should tell."""

    def tell(evidence: Evidence) -> str:
        panels = [f"{name}: {result.status} {result.reason or ''}" for name, result in evidence.panels.items()]
        findings = [f"{f.severity} {f.id} {f.where or ''} {f.summary}" for f in evidence.findings]
        return "\n".join([evidence.outcome, *panels, *findings])

    return tell


def request(exchange: Path, task: str, name: str) -> RunRequest:
    """What the console would ask for; trees are those of no repository."""
    task_dir, submission_dir = exchange / "tasks" / task, exchange / "submissions" / task / name
    spec = parse_task((task_dir / "task.toml").read_bytes())
    declared = parse_submission((submission_dir / "submission.toml").read_bytes()).framework
    source = submission_dir / "kernel.py"
    return RunRequest(
        task=spec,
        task_name=task,
        task_tree="0" * 40,
        task_dir=str(task_dir),
        submission_name=name,
        submission_tree="0" * 40,
        revision="0" * 40,
        submission_dir=str(submission_dir),
        framework=choose_framework(spec, declared, source.read_text() if source.exists() else ""),
    )
