import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from runners import environment
from runners.environment import PythonProblem, describe, driver_version, packages_of, runner_version


def test_describe_imports_nothing_heavy() -> None:
    code = (
        "import sys; from runners.environment import describe; found = describe(sandbox='none'); "
        "assert found.torch and found.triton, found; "
        "print(sorted({'torch', 'triton', 'numpy', 'jax', 'textual'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[3]
    )
    assert done.stdout == "[]\n"


def test_the_fingerprint_is_of_the_stable_fields() -> None:
    one, two = describe(sandbox="landlock-7"), describe(sandbox="landlock-7")
    assert one == two
    assert one.fingerprint.startswith("sha256:")
    assert describe(sandbox="none").fingerprint != one.fingerprint
    assert one.runner == runner_version()
    assert one.cpu


def test_what_is_installed_is_told_by_its_metadata() -> None:
    found = packages_of(None)
    assert found.python == ".".join(map(str, sys.version_info[:3]))
    assert found.versions["torch"] is not None
    assert packages_of(sys.executable) == found


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A venv that has nothing but one pretended package."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    (site,) = (tmp_path / "venv" / "lib").glob("python*/site-packages")
    (site / "torch-2.7.1.dist-info").mkdir()
    (site / "torch-2.7.1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.7.1\n")
    return tmp_path / "venv" / "bin" / "python"


def test_another_python_is_asked_once_until_its_packages_change(
    other: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    real = environment._probe
    monkeypatch.setattr(environment, "_probe", lambda python: (asked.append(python), real(python))[1])
    found = packages_of(str(other), tmp_path / "cache")
    assert (found.versions["torch"], found.versions["triton"]) == ("2.7.1", None)
    assert packages_of(str(other), tmp_path / "cache") == found
    assert len(asked) == 1
    (site,) = (tmp_path / "venv" / "lib").glob("python*/site-packages")
    (site / "triton-3.3.1.dist-info").mkdir()
    (site / "triton-3.3.1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: triton\nVersion: 3.3.1\n")
    assert packages_of(str(other), tmp_path / "cache").versions["triton"] == "3.3.1"
    assert len(asked) == 2


def test_a_broken_cache_is_asked_again(other: Path, tmp_path: Path) -> None:
    found = packages_of(str(other), tmp_path / "cache")
    (kept,) = (tmp_path / "cache").iterdir()
    kept.write_bytes(b'{"python": 3')
    assert packages_of(str(other), tmp_path / "cache") == found


def test_where_nothing_can_be_kept_the_answer_still_comes(other: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    assert packages_of(str(other), tmp_path / "cache").versions["torch"] == "2.7.1"


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (None, "No such file"),
        ("#!/bin/sh\necho hello\n", "did not answer like a Python"),
        ("#!/bin/sh\necho broken >&2; exit 3\n", "status 3: broken"),
        ("#!/bin/sh\nsleep 60\n", "did not answer within"),
    ],
)
def test_a_python_that_cannot_be_asked_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, words: str
) -> None:
    monkeypatch.setattr(environment, "PROBE_SECONDS", 2.0)
    path = tmp_path / "python"
    if script is not None:
        path.write_text(script)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    with pytest.raises(PythonProblem, match=words) as caught:
        describe(str(path), sandbox="none", cache_folder=tmp_path / "cache")
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\nGCC\n",
            "550.54.15",
        ),
        (
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (root)\n",
            "580.65.06",
        ),
        ("", None),
        ("nonsense", None),
    ],
)
def test_driver_version(text: str, version: str | None) -> None:
    assert driver_version(text) == version


def test_the_runner_version_changes_with_any_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "runners"
    (folder / "deep").mkdir(parents=True)
    (folder / "environment.py").write_text("a")
    (folder / "deep" / "x.py").write_text("b")
    monkeypatch.setattr(environment, "__file__", str(folder / "environment.py"))
    fresh = runner_version.__wrapped__
    first = fresh()
    assert fresh() == first
    (folder / "deep" / "x.py").write_text("c")
    second = fresh()
    (folder / "deep" / "x.py").rename(folder / "deep" / "y.py")
    assert len({first, second, fresh()}) == 3
    assert os.fspath(folder) not in first
