from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from console import cli
from console.errors import Terminated


def test_help_names_what_works_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(["--help"])
    assert end.value.code == 0
    out = capsys.readouterr().out
    assert all(f"    {verb} " in out for verb in cli.VERBS)
    assert not any(verb in out for verb in cli.NOT_YET)


def test_help_loads_nothing_that_takes_time() -> None:
    code = (
        "import sys; from console import cli\n"
        "try: cli.main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'msgspec', 'textual', 'rich', 'git', 'tomlkit', 'torch', 'numpy', 'triton'} & set(sys.modules)\n"
        "sys.exit(f'loaded {heavy}' if heavy else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=Path(cli.__file__).parents[1]
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("verb", cli.VERBS)
def test_every_verb_explains_itself(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main([verb, "--help"])
    assert end.value.code == 0
    out = capsys.readouterr().out
    assert "--exchange" in out
    assert "--json" in out


@pytest.mark.parametrize("wrong", [["lst"], ["--json", "lst"], ["lst", "list"]])
def test_a_wrong_verb_is_told_all_right_ones(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(wrong)
    assert end.value.code == 2
    err = capsys.readouterr().err
    assert all(verb in err for verb in cli.VERBS)


@pytest.mark.parametrize("verb", cli.NOT_YET)
def test_what_is_not_there_says_so(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([verb, "softmax/good", "--json"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == f"kernel-review: {verb}: not part of this version\n"


@pytest.mark.parametrize("argv", [["lst"], ["run", "--panels", "speed", "a/b"], ["review", "a/b"], ["list", "--jso"]])
def test_wrong_use_is_two(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(argv)
    assert end.value.code == 2
    assert capsys.readouterr().out == ""


def test_a_folder_without_git_is_two(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    assert cli.main(["log", "--exchange", str(empty)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("kernel-review: ")
    assert "Traceback" not in captured.err


def verb_that(monkeypatch: pytest.MonkeyPatch, run: object) -> None:
    monkeypatch.setitem(sys.modules, "console.verbs.log", SimpleNamespace(run=run, arguments=lambda parser: None))


def raising(error: BaseException) -> object:
    def run(args: object) -> int:
        raise error

    return run


@pytest.mark.parametrize(
    ("error", "code"),
    [(KeyboardInterrupt(), 130), (Terminated(signal.SIGTERM), 143), (OSError(28, "No space left on device"), 3)],
)
def test_how_a_verb_may_end(monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int) -> None:
    verb_that(monkeypatch, raising(error))
    assert cli.main(["log"]) == code


def test_a_fault_of_this_program_is_shown_with_its_place_and_charged_to_nobody(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    verb_that(monkeypatch, raising(ZeroDivisionError("x \x1b[2J")))
    assert cli.main(["log"]) == 3
    last = capsys.readouterr().err.splitlines()
    assert "Traceback (most recent call last):" in last
    assert last[-1] == "kernel-review: a fault in kernel-review itself: ZeroDivisionError: x ␛[2J"


def test_a_terminating_signal_runs_what_has_to_be_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    undone = []

    def run(args: object) -> int:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            signal.sigtimedwait([], 5)
            return 0
        finally:
            undone.append(True)

    before = signal.getsignal(signal.SIGTERM)
    verb_that(monkeypatch, run)
    assert cli.main(["log"]) == 143
    assert undone == [True]
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_reader_that_went_away_is_no_error(clone: Path) -> None:
    root = str(Path(cli.__file__).parents[1])
    done = subprocess.run(
        f"{sys.executable} -m console.cli log --no-fetch --exchange {clone} | true; echo ${{PIPESTATUS[0]}}",
        shell=True,
        executable="/bin/bash",
        capture_output=True,
        text=True,
        cwd=root,
    )
    assert done.stdout.strip() in ("0", "141")
    assert done.stderr == ""


def test_the_console_needs_a_terminal(home: Path, clone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["open", str(clone)]) in (2, 3)
    assert "terminal" in capsys.readouterr().err
