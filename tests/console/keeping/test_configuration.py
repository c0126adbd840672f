from __future__ import annotations

from pathlib import Path

import pytest

from console.config import Config, config_path, editor_command, load_config, state_dir
from console.schema import SchemaError


def test_where_things_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "/c")
    monkeypatch.setenv("XDG_STATE_HOME", "/s")
    assert config_path() == Path("/c/kernel-review/config.toml")
    assert state_dir() == Path("/s/kernel-review")


def test_no_file_means_defaults(tmp_path: Path) -> None:
    assert load_config(tmp_path / "none.toml") == Config()


def test_a_whole_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    path = tmp_path / "config.toml"
    path.write_text(
        'grader = "ann-lee"\neditor = "code -w"\ntheme = "light"\nascii = true\n'
        '[runner]\npython = "~/venv/bin/python"\ndevice = "cuda"\nworkers = 4\n'
    )
    config = load_config(path)
    assert (config.grader, config.theme, config.ascii) == ("ann-lee", "light", True)
    assert (config.runner.python, config.runner.device, config.runner.workers) == (
        "/home/ann/venv/bin/python",
        "cuda",
        4,
    )


@pytest.mark.parametrize(
    ("text", "key", "words"),
    [
        ("gradr = 'x'", "gradr", "did you mean `grader`?"),
        ("[runner]\npyhton = 'x'", "runner.pyhton", "did you mean `python`?"),
        ("[runner]\nworkers = 0", "runner.workers", "between 1 and 256"),
        ("[runner]\ndevice = 'tpu'", "runner.device", "Invalid enum value 'tpu'"),
        ("ascii = 1", "ascii", "Expected `bool`"),
        ("ascii = ", "", "not TOML"),
    ],
)
def test_a_wrong_file_names_the_key(tmp_path: Path, text: str, key: str, words: str) -> None:
    path = tmp_path / "config.toml"
    path.write_text(text)
    with pytest.raises(SchemaError) as caught:
        load_config(path)
    assert (caught.value.file, caught.value.key) == (str(path), key)
    assert words in caught.value.message


def test_the_editor() -> None:
    assert editor_command(Config(editor="code -w"), {"EDITOR": "x"}) == ["code", "-w"]
    assert editor_command(Config(), {"VISUAL": "a b", "EDITOR": "x"}) == ["a", "b"]
    assert editor_command(Config(), {"EDITOR": "x"}) == ["x"]
    assert editor_command(Config(), {"EDITOR": " "}) == ["vi"]
    with pytest.raises(SchemaError, match="cannot be split"):
        editor_command(Config(editor="vim '"), {})
