"""The grader's configuration file, and the folders that the console keeps things in."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec
import platformdirs

from console.schema import SchemaError, Strict, convert, load_toml

APP = "kernel-review"


class RunnerConfig(Strict, frozen=True):
    """Where candidates run: another Python (its path), on which device, and how many runs at once."""

    python: str | None = None
    device: Literal["cpu", "cuda"] | None = None
    workers: int | None = None


class Config(Strict, frozen=True):
    """``config.toml``. Everything has a default; unknown keys are errors."""

    grader: str | None = None
    """The slug that names the grader's reviews; default: from git's ``user.email``."""
    exchange: str | None = None
    """The exchange to open where none is named and the current folder is none."""
    editor: str | None = None
    theme: str = "dark"
    ascii: bool = False
    runner: RunnerConfig = RunnerConfig()


def config_path() -> Path:
    """Where the configuration lies, ``~/.config/kernel-review/config.toml`` on Linux."""
    return platformdirs.user_config_path(APP) / "config.toml"


def state_dir() -> Path:
    """Where clones, drafts and evidence are kept."""
    return platformdirs.user_state_path(APP)


def load_config(path: Path | None = None) -> Config:
    """Read the configuration; an absent file means defaults. Raises SchemaError, OSError."""
    path = path or config_path()
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return Config()
    config = convert(load_toml(data, str(path)), Config, str(path))
    if config.runner.workers is not None and not 1 <= config.runner.workers <= 256:
        raise SchemaError(str(path), "runner.workers", "must be between 1 and 256")
    if config.runner.python is not None:
        python = str(Path(config.runner.python).expanduser())
        config = msgspec.structs.replace(config, runner=msgspec.structs.replace(config.runner, python=python))
    return config


def editor_command(config: Config, environment: Mapping[str, str] = os.environ) -> list[str]:
    """The editor and its arguments: the configured one, else ``$VISUAL``, ``$EDITOR``, ``vi``. Raises SchemaError."""
    import shlex

    told = config.editor or environment.get("VISUAL") or environment.get("EDITOR") or "vi"
    try:
        return shlex.split(told) or ["vi"]
    except ValueError as error:
        raise SchemaError("editor", "", f"{told!r} cannot be split into words: {error}") from None
