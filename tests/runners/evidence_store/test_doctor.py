import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from runners.doctor import Facts, Line, Sandbox, examine, gather, version_tuple, worst
from runners.environment import Graphics, Packages

FULL = Facts(
    platform="linux",
    python="",
    packages=Packages("3.12.1", {"torch": "2.13.0+cpu", "triton": "3.7.1", "numpy": "2.4", "msgspec": "0.19"}),
    sandbox=Sandbox("landlock-7+seccomp-notify", True),
    graphics=Graphics(("NVIDIA H200",), "580.65.06"),
    cpu="A CPU",
    cores=16,
    memory_mib=65536,
    git="git version 2.47.1",
    state="/home/ann/.local/state/kernel-review",
    terminal={"TERM": "tmux-256color", "COLORTERM": "truecolor", "TMUX": "/tmp/t", "LANG": "en_GB.UTF-8"},
    interactive=True,
)


def line(name: str, **changes: Any) -> Line:
    (found,) = (one for one in examine(msgspec.structs.replace(FULL, **changes)) if one.name == name)
    return found


def packages(**versions: str | None) -> Packages:
    assert FULL.packages is not None
    return Packages("3.12.1", {**FULL.packages.versions, **versions})


def test_a_full_machine_is_ok() -> None:
    lines = examine(FULL)
    assert worst(lines) == "ok"
    assert all(one.todo == "" and one.words for one in lines)
    assert len({one.name for one in lines}) == len(lines)


@pytest.mark.parametrize(
    ("name", "changes", "status", "words"),
    [
        ("system", {"platform": "darwin"}, "missing", "every panel is not-checked"),
        ("python", {"packages": None, "python_problem": "/x: No such file"}, "missing", "/x: No such file"),
        ("python", {"packages": Packages("3.9.2", {})}, "missing", "older than 3.10"),
        ("torch", {"packages": packages(torch="2.5.1")}, "missing", "2.6 is needed"),
        ("torch", {"packages": packages(torch=None)}, "missing", "nothing can be judged"),
        ("torch", {"packages": packages(torch="2.10.0")}, "ok", "2.10.0"),
        ("triton", {"packages": packages(triton=None)}, "limited", "not-checked"),
        ("triton", {"packages": packages(triton="3.3.1")}, "limited", "native runs only"),
        ("triton", {"packages": packages(triton="3.3.1"), "graphics": Graphics()}, "limited", "interpreter needs 3.7"),
        ("triton", {"packages": packages(triton="3.10.0")}, "ok", "interpreter"),
        ("numpy", {"packages": packages(numpy=None)}, "missing", "not installed"),
        ("sandbox", {"sandbox": Sandbox("none", False, ("Landlock",))}, "missing", "refused"),
        ("sandbox", {"sandbox": Sandbox("landlock-4", True, ("scoping",))}, "limited", "scoping"),
        ("device", {"graphics": Graphics()}, "limited", "interpreter"),
        ("device", {"graphics": Graphics((), "550.1")}, "limited", "no device is visible"),
        ("machine", {"memory_mib": 2048}, "limited", "2048 MiB"),
        ("machine", {"cores": 1}, "limited", "1 core,"),
        ("machine", {"memory_mib": None}, "ok", "memory unknown"),
        ("lock", {"lock_problem": "/run/lock/x is not a folder"}, "missing", "not a folder"),
        ("git", {"git": None}, "missing", "no exchange"),
        ("state", {"state_problem": "no permission in /"}, "missing", "no permission"),
        ("terminal", {"terminal": {"TERM": "dumb"}}, "missing", "dumb"),
        ("terminal", {"terminal": {"TERM": "xterm-256color"}}, "limited", "without UTF-8"),
        ("terminal", {"interactive": False}, "limited", "not a terminal"),
    ],
)
def test_what_is_amiss_is_said_with_what_to_do(name: str, changes: dict[str, Any], status: str, words: str) -> None:
    found = line(name, **changes)
    assert found.status == status
    assert words in found.words
    assert bool(found.todo) or status == "ok" or name == "sandbox"


def test_another_python_is_named() -> None:
    assert "in /opt/torch/bin/python" in line("torch", python="/opt/torch/bin/python").words


def test_inside_tmux_and_ssh_is_said() -> None:
    terminal = {**FULL.terminal, "SSH_CONNECTION": "1"}
    assert line("terminal", terminal=terminal).words == "TERM=tmux-256color, 16.7 million colours, tmux, ssh"


@pytest.mark.parametrize(
    ("text", "expected"), [("2.13.0+cpu", (2, 13, 0)), ("3.7.1", (3, 7, 1)), ("2.6.0a0+git1", (2, 6, 0)), ("?", ())]
)
def test_version_tuple(text: str, expected: tuple[int, ...]) -> None:
    assert version_tuple(text) == expected


def test_gather_looks_at_this_machine_and_makes_no_folder(tmp_path: Path) -> None:
    state = tmp_path / "state" / "kernel-review"
    facts = gather(state=state, sandbox=Sandbox("none", False), environ={"TERM": "xterm", "SECRET": "x"})
    assert facts.terminal == {"TERM": "xterm"}
    assert facts.state_problem == ""
    assert not state.exists()
    assert facts.packages is not None
    assert facts.cores >= 1
    assert examine(facts)


def test_gather_survives_a_python_that_is_not_there(tmp_path: Path) -> None:
    facts = gather(str(tmp_path / "no"), state=tmp_path, sandbox=Sandbox("none", False), environ={})
    assert facts.packages is None
    assert "No such file" in facts.python_problem


def test_a_file_in_the_way_of_the_state_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("")
    facts = gather(state=tmp_path / "state" / "kr", sandbox=Sandbox("none", False), environ={})
    assert "not a folder" in facts.state_problem


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_state_folder_without_permission_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    facts = gather(state=tmp_path / "kr", sandbox=Sandbox("none", False), environ={})
    assert "no permission" in facts.state_problem
