"""The samples hold together: files, names, verdicts and references, before anything is judged."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from console.grading.verdict import allowed
from runners.contract import RUNNABLE, choose_framework, parse_submission, parse_task
from runners.draws import derive_seed
from runners.findings import FINDINGS
from runners.reference import Reference

NAME = re.compile(r"m-\d{3}")
KEYS = {"outcome", "mechanism", "run", "must", "must_not", "why"}


def test_every_submission_has_a_verdict_and_the_reverse(samples: Path, verdicts: dict[str, Any]) -> None:
    folders = {path.relative_to(samples / "submissions").as_posix() for path in samples.glob("submissions/*/*")}
    assert folders == set(verdicts)


def test_names_give_nothing_away(verdicts: dict[str, Any]) -> None:
    names = [key.split("/")[1] for key in verdicts]
    assert all(NAME.fullmatch(name) for name in names)
    assert len(set(names)) == len(names)


def test_a_task_has_three_to_five_answers_of_different_worth(task_dir: Path, verdicts: dict[str, Any]) -> None:
    mine = [verdict for key, verdict in verdicts.items() if key.split("/")[0] == task_dir.name]
    assert 3 <= len(mine) <= 5
    assert len({(verdict["outcome"], verdict["mechanism"]) for verdict in mine}) >= 2
    assert any(verdict["mechanism"] == "sound" for verdict in mine)


def test_all_three_answers_to_why_are_among_the_samples(verdicts: dict[str, Any]) -> None:
    mechanisms = {verdict["mechanism"] for verdict in verdicts.values()}
    assert {"sound", "flawed", "coincidental", "hacked", "not-shown"} <= mechanisms


def test_a_verdict_is_well_formed(key: str, verdict: dict[str, Any]) -> None:
    assert set(verdict) == KEYS
    assert allowed(verdict["outcome"], verdict["mechanism"])
    codes = [*verdict["must"], *verdict["must_not"]]
    assert set(codes) <= set(FINDINGS)
    assert verdict["must_not"], f"{key}: nothing may be accused of everything"
    assert not set(verdict["must"]) & set(verdict["must_not"])
    # The one code whose severity depends on the task: a warning where torch is among its frameworks.
    failing = {code for code in verdict["must"] if FINDINGS[code].severity == "fail"} - {"integrity/library-fallback"}
    assert not (failing and verdict["run"] != "fail"), key
    assert len(verdict["why"]) > 40


def test_a_submission_is_complete(samples: Path, key: str, verdict: dict[str, Any]) -> None:
    task, name = key.split("/")
    folder = samples / "submissions" / task / name
    spec = parse_task((samples / "tasks" / task / "task.toml").read_bytes())
    declared = parse_submission((folder / "submission.toml").read_bytes())
    assert declared.author
    assert len((folder / "answer.md").read_text()) > 200
    source = folder / "kernel.py"
    framework = choose_framework(spec, declared.framework, source.read_text() if source.exists() else "")
    assert source.exists() == (framework in RUNNABLE)
    if source.exists():
        assert re.search(rf"^def {spec.entry}\(", source.read_text(), re.MULTILINE)
        compile(source.read_text(), str(source), "exec")


def test_an_earlier_revision_belongs_to_a_submission_and_differs(samples: Path) -> None:
    earlier = [path for path in (samples / "earlier").rglob("*") if path.is_file()]
    assert len({path.parent for path in earlier}) >= 2
    for path in earlier:
        now = samples / "submissions" / path.relative_to(samples / "earlier")
        assert now.read_bytes() != path.read_bytes()


def test_the_scenario_names_the_entry(task_dir: Path) -> None:
    spec = parse_task((task_dir / "task.toml").read_bytes())
    scenario = (task_dir / "scenario.md").read_text()
    assert "## What is scored" in scenario
    if set(spec.frameworks) & set(RUNNABLE):
        assert f"def {spec.entry}(" in scenario
        assert "## Contract" in scenario


def test_the_twin_is_near_the_truth_and_leaves_its_inputs_alone(task_dir: Path) -> None:
    spec = parse_task((task_dir / "task.toml").read_bytes())
    if not set(spec.frameworks) & set(RUNNABLE):
        pytest.skip("prose: nothing to run")
    reference = Reference.load(task_dir, spec)
    assert reference.twin_name is not None
    for case in spec.cases:
        inputs = reference.make_inputs(case, derive_seed(7, case.name))
        kept = {name: value.clone() for name, value in inputs.items() if isinstance(value, torch.Tensor)}
        stored = reference.stored(reference.truth(inputs), inputs)
        twin = reference.twin(inputs)
        assert not reference.imprecise
        assert set(twin) == set(stored)
        for name, expected in stored.items():
            got = twin[name]
            assert (got.shape, got.dtype) == (expected.shape, expected.dtype), (case.name, name)
            eps = torch.finfo(got.dtype).eps
            got, expected = got.double(), expected.double()
            torch.testing.assert_close(got, expected, rtol=4 * eps, atol=16 * eps * _size(expected), equal_nan=True)
        assert all(torch.equal(inputs[name].double(), value.double()) for name, value in kept.items())
        work = reference.work(case)
        assert work is not None and set(work) == {"flops", "bytes"} and min(work.values()) > 0


def _size(values: torch.Tensor) -> float:
    finite = values[values.isfinite()]
    return max(1.0, float(finite.abs().max())) if finite.numel() else 1.0


def test_an_interpreted_case_is_small(task_dir: Path) -> None:
    spec = parse_task((task_dir / "task.toml").read_bytes())
    if "triton" not in spec.frameworks:
        pytest.skip("not interpreted")
    assert 2 <= len(spec.cases) <= 3
    for case in spec.cases:
        rows = case.args.get("rows", case.args.get("tokens", 9))
        assert isinstance(rows, int) and rows <= 33
