from __future__ import annotations

import json
from pathlib import Path

import pytest

from console import cli
from runners import doctor


@pytest.fixture(autouse=True)
def machine(home: Path, monkeypatch: pytest.MonkeyPatch) -> list[doctor.Line]:
    lines = [doctor.Line("torch", "ok", "2.13.0"), doctor.Line("device", "limited", "no \x1b CUDA", "use another")]
    monkeypatch.setattr(doctor, "gather", lambda python, state: (python, state))
    monkeypatch.setattr(doctor, "examine", lambda facts: tuple(lines))
    return lines


def test_for_people(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    assert cli.main(["doctor"]) == 0
    path = home / "XDG_CONFIG_HOME" / "kernel-review" / "config.toml"
    assert capsys.readouterr().out.splitlines() == [
        "torch   ok       2.13.0",
        "device  limited  no ␛ CUDA",
        f"config  ok       defaults; {path} would change them",
        "device: use another",
    ]


def test_what_is_missing_is_the_environment_s_fault(
    machine: list[doctor.Line], capsys: pytest.CaptureFixture[str]
) -> None:
    machine.append(doctor.Line("sandbox", "missing", "below the floor", "a newer kernel"))
    assert cli.main(["doctor", "--json"]) == 3
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["name"], one["status"]) for one in told][-2:] == [("sandbox", "missing"), ("config", "ok")]


def test_a_broken_configuration_is_one_more_finding(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = home / "XDG_CONFIG_HOME" / "kernel-review" / "config.toml"
    path.parent.mkdir(parents=True)
    path.write_text("gradr = 'x'\n")
    assert cli.main(["doctor"]) == 3
    assert "did you mean `grader`?" in capsys.readouterr().out
