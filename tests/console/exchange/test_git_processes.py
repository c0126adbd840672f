"""Git processes: a clean environment, bounds, and nothing left behind."""

from __future__ import annotations

import concurrent.futures
import os
import stat
import time
from pathlib import Path

import psutil
import pytest

from console.exchange.errors import ExchangeError, GitRefused
from console.exchange.objects import Objects
from console.exchange.process import NO_TERMINAL, Git, checked, environment, reading, run, with_config


def test_outside_variables_do_not_reach_git() -> None:
    outside = {
        "PATH": "/bin",
        "GIT_DIR": "/elsewhere",
        "GIT_INDEX_FILE": "x",
        "GIT_EXTERNAL_DIFF": "evil",
        "GIT_CONFIG_PARAMETERS": "'core.pager=evil'",
        "GIT_SSH_COMMAND": "ssh -i key",
        "GIT_AUTHOR_EMAIL": "ann@example.org",
        "GIT_CONFIG_GLOBAL": "/home/ann/.gitconfig",
        "GPG_TTY": "/dev/pts/1",
    }
    read, user = environment("read", outside=outside), environment("user", outside=outside)
    for env in (read, user):
        assert not {"GIT_DIR", "GIT_INDEX_FILE", "GIT_EXTERNAL_DIFF", "GIT_CONFIG_PARAMETERS"} & set(env)
        assert env["GIT_TERMINAL_PROMPT"] == "0"
        assert env["GPG_TTY"] == NO_TERMINAL
    assert "GIT_SSH_COMMAND" not in read
    assert read["GIT_CONFIG_GLOBAL"] == os.devnull
    assert (user["GIT_SSH_COMMAND"], user["GIT_AUTHOR_EMAIL"]) == ("ssh -i key", "ann@example.org")
    attended = environment("user", attended=True, outside=outside)
    assert "GIT_TERMINAL_PROMPT" not in attended
    assert attended["GPG_TTY"] == "/dev/pts/1"


def test_settings_are_added_to_those_of_the_environment(tmp_path: Path) -> None:
    env = with_config(with_config(environment("read"), [("user.name", "A"), ("a.b", "1")]), [("user.name", "B\nC")])
    out = run(["config", "--get-all", "user.name"], cwd=tmp_path, env=env).out
    assert out == b"A\nB\nC\n"


def fake_git(folder: Path, script: str) -> dict[str, str]:
    folder.mkdir()
    tool = folder / "git"
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


def test_a_process_that_hangs_is_ended_with_its_children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", fake_git(tmp_path / "bin", "echo waiting >&2; sleep 987 & sleep 987")["PATH"])
    result = run(["fetch"], cwd=tmp_path, env=os.environ, seconds=0.3)
    assert result.late
    with pytest.raises(GitRefused, match=r"not done after 0\.3 s, ended; it said: waiting"):
        checked(result, "git fetch", 0.3)
    assert not [one for one in psutil.process_iter(["cmdline"]) if one.info["cmdline"] == ["sleep", "987"]]


def test_a_process_that_says_too_much_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", fake_git(tmp_path / "bin", "yes")["PATH"])
    result = run(["log"], cwd=tmp_path, env=os.environ, limit=1000)
    assert result.cut
    assert len(result.out) == 1000


def test_complaints_keep_their_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        "PATH", fake_git(tmp_path / "bin", "yes | head -c 3000000 >&2; echo the end >&2; exit 3")["PATH"]
    )
    result = run(["log"], cwd=tmp_path, env=os.environ)
    assert result.code == 3
    assert result.words.endswith("the end")


def test_a_daemon_that_a_hook_leaves_does_not_hold_us(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", fake_git(tmp_path / "bin", "sleep 876 & echo done")["PATH"])
    result = run(["push"], cwd=tmp_path, env=os.environ, seconds=60)
    assert (result.code, result.out) == (0, b"done\n")
    assert not [one for one in psutil.process_iter(["cmdline"]) if one.info["cmdline"] == ["sleep", "876"]]


def test_large_input_and_output_do_not_block_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", fake_git(tmp_path / "bin", "exec cat")["PATH"])
    data = os.urandom(3_000_000)
    assert run(["x"], cwd=tmp_path, env=os.environ, stdin=data).out == data


def test_no_git_is_said_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ExchangeError, match="git is not installed"):
        run(["version"], cwd=tmp_path, env=os.environ)
    with pytest.raises(ExchangeError, match="no such folder"):
        run(["version"], cwd=tmp_path / "gone", env=os.environ)


@pytest.fixture
def objects(new_repo) -> tuple[Objects, list[str]]:
    repo = new_repo("r")
    repo.commit("one", {f"f{number}": f"{number}\n" * (number + 1) for number in range(1000)})
    oids = [line.split()[2] for line in repo.git("ls-tree", "HEAD").splitlines()]
    return Objects(Git(repo.path, reading)), oids


def test_blobs_in_order_and_missing_ones(objects: tuple[Objects, list[str]]) -> None:
    reader, oids = objects
    wanted = [*oids, "0" * 40]
    found = list(reader.blobs(wanted))
    assert found[-1] is None
    assert [len(data or b"") for data in found[:-1]] == list(reader.sizes(oids))
    with pytest.raises(GitRefused, match="missing"):
        reader.blob("0" * 40)
    with pytest.raises(ValueError, match="not an object id"):
        reader.blob("HEAD\n--batch")
    reader.close()


def test_a_dead_reader_is_started_anew(objects: tuple[Objects, list[str]]) -> None:
    reader, oids = objects
    first = reader.blob(oids[0])
    children = psutil.Process().children()
    assert len(children) == 2
    for child in children:
        child.kill()
    time.sleep(0.05)
    assert reader.blob(oids[0]) == first
    reader.close()
    assert not psutil.Process().children()
    with pytest.raises(GitRefused, match="closed"):
        reader.blob(oids[0])


def test_many_threads_get_their_own_answers(objects: tuple[Objects, list[str]]) -> None:
    reader, oids = objects
    expected = list(reader.blobs(oids))
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        got = list(pool.map(reader.blob, oids))
    assert got == expected
    reader.close()


def test_the_head_of_a_large_blob(new_repo) -> None:
    repo = new_repo("r")
    repo.commit("one", {"big": b"0123456789" * 1_000_000, "small": b"abc"})
    reader = Objects(Git(repo.path, reading))
    big, small = (repo.git("rev-parse", f"HEAD:{name}") for name in ("big", "small"))
    assert reader.head_of(big, 15) == b"012345678901234"
    assert reader.head_of(small, 15) == b"abc"
    reader.close()
