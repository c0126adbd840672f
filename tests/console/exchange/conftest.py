"""Repositories made afresh for each test, with a git configuration of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from console.exchange import Exchange

TASK = """schema = 1
title = "Row softmax"
kind = "fusion"
frameworks = ["triton", "torch"]
entry = "softmax"
[[cases]]
name = "small"
args = { rows = 3 }
"""
KERNEL = "import triton\n\n@triton.jit\ndef kernel():\n    pass\n\ndef softmax(x):\n    return x\n"
PLAIN = "def softmax(x):\n    return x.softmax(-1)\n"


class Repo:
    """A repository with a work tree, driven by the git command."""

    def __init__(self, path: Path, *init: str) -> None:
        self.path = path
        if not (path / ".git").exists():
            path.mkdir(parents=True, exist_ok=True)
            self.git("init", "-q", "-b", "main", *init, ".")

    def git(
        self, *args: str | bytes | os.PathLike[str], stdin: bytes = b"", env: Mapping[str, str] | None = None
    ) -> str:
        done = subprocess.run(
            ["git", *args], cwd=self.path, input=stdin, capture_output=True, env={**os.environ, **(env or {})}
        )
        if done.returncode:
            raise AssertionError(f"git {args}: {done.stderr.decode(errors='replace')}")
        return done.stdout.decode("utf-8", "surrogateescape").rstrip("\n")

    def write(self, files: Mapping[str, str | bytes]) -> None:
        for name, content in files.items():
            path = self.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)

    def commit(self, message: str = "work", files: Mapping[str, str | bytes] | None = None, *, author: str = "") -> str:
        self.write(files or {})
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message, *(("--author", author) if author else ()))
        return self.git("rev-parse", "HEAD")

    def hook(self, name: str, script: str) -> None:
        path = self.path / ".git" / "hooks" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)


SAMPLE: dict[str, str | bytes] = {
    "tasks/softmax/task.toml": TASK,
    "tasks/softmax/scenario.md": "Write a softmax.\n",
    "tasks/softmax/reference.py": "def reference(x): ...\n",
    "tasks/softmax/starter/kernel.py": "def softmax(x):\n    raise NotImplementedError\n",
    "submissions/softmax/m-1/kernel.py": KERNEL,
    "submissions/softmax/m-2/kernel.py": PLAIN,
    "submissions/softmax/m-2/submission.toml": 'author = "a model"\nframework = "torch"\n',
}


@pytest.fixture(autouse=True)
def own_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing of this machine's git configuration, home or state."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    home = tmp_path / "home"
    home.mkdir()
    config = home / ".gitconfig"
    config.write_text("[user]\n\tname = Ann Lee\n\temail = ann.lee@example.org\n[init]\n\tdefaultBranch = main\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return config


@pytest.fixture
def sample() -> dict[str, str | bytes]:
    """The files of a small exchange."""
    return dict(SAMPLE)


@pytest.fixture
def new_repo(tmp_path: Path) -> Callable[..., Repo]:
    """Makes repositories: name below the temporary folder, options of git init."""
    return lambda name, *init: Repo(tmp_path / name, *init)


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small exchange, made once: ``seed`` and the bare ``hub.git``."""
    folder = tmp_path_factory.mktemp("template")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
        patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        for role in ("AUTHOR", "COMMITTER"):
            patch.setenv(f"GIT_{role}_NAME", "Bo Author")
            patch.setenv(f"GIT_{role}_EMAIL", "bo@example.org")
        seed = Repo(folder / "seed")
        seed.commit("the exchange begins", SAMPLE)
        seed.git("init", "-q", "--bare", "-b", "main", str(folder / "hub.git"))
        seed.git("push", "-q", str(folder / "hub.git"), "main")
    return folder


@pytest.fixture
def hub(template: Path, tmp_path: Path) -> Path:
    """A bare repository with a small exchange on main, and ``seed``, which it was pushed from."""
    shutil.copytree(template, tmp_path, dirs_exist_ok=True)
    return tmp_path / "hub.git"


@pytest.fixture
def clone(tmp_path: Path, hub: Path) -> Repo:
    """A clone of it, as a grader has one."""
    path = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", str(hub), str(path)], check=True)
    return Repo(path)


Opener = Callable[..., Exchange]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opener]:
    """Opens exchanges, and closes them at the end."""
    exchanges = []

    def open_one(
        where: Path | str, *, state: str = "state", grader: str | None = None, trust: bool = False
    ) -> Exchange:
        exchanges.append(Exchange.open(str(where), state=tmp_path / state, grader=grader, trust=trust))
        return exchanges[-1]

    yield open_one
    for exchange in exchanges:
        exchange.close()
