"""The console in a pseudo-terminal: what terminals, networks and people do to it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from console.drafts import Drafts

if TYPE_CHECKING:
    from .conftest import Open, Terminal

ON_FAKES = Path(__file__).parents[1] / "console" / "screens" / "open_on_fakes.py"


@pytest.fixture(name="terminal")
def console_on_fakes(terminal: Open, tmp_path: Path) -> Callable[..., Terminal]:
    """Opens the console on made-up work, with its drafts under ``tmp_path``."""
    return lambda theme="dark", **environment: terminal(ON_FAKES, tmp_path, theme, **environment)


def test_bytes_that_are_no_keys_do_not_end_it(terminal: Callable[..., Terminal]) -> None:
    one = terminal()
    one.wait_for("m-001")
    one.send(b"\x1b[M \xf0\x84")
    one.send(b"\xff\xfe\xe4")
    one.send("j")
    one.wait_for("2/2")
    one.send("Q")
    assert one.ended() == (0, None)


@pytest.mark.parametrize("which", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_termination_keeps_the_draft_and_gives_the_terminal_back(
    terminal: Callable[..., Terminal], tmp_path: Path, which: signal.Signals
) -> None:
    one = terminal()
    one.wait_for("m-001")
    one.send("\r")
    one.wait_for("import triton")
    one.send("\x1b[15~jj2cmaximum first")
    one.wait_for("maximum first")
    os.kill(one.process.pid, which)
    assert one.ended() == (128 + which, None)
    assert b"\x1b[?1049l" in one.raw
    assert b"\x1b[?25h" in one.raw
    draft = Drafts("fake", tmp_path / "drafts").load("row-softmax", "m-001").draft
    assert draft is not None
    assert (draft.criteria[0].level, draft.criteria[0].note) == (2, "maximum first")


def test_a_dropped_line_ends_it(terminal: Callable[..., Terminal], tmp_path: Path) -> None:
    one = terminal()
    one.wait_for("m-001")
    one.send("\r")
    one.wait_for("import triton")
    one.send("\x1b[15~jj1")
    one.wait_for("1/3")
    assert one.hang_up() == 128 + signal.SIGHUP
    draft = Drafts("fake", tmp_path / "drafts").load("row-softmax", "m-001").draft
    assert draft is not None
    assert draft.criteria[0].level == 1


def test_a_dumb_terminal_is_refused_in_words(terminal: Callable[..., Terminal]) -> None:
    one = terminal(TERM="dumb")
    assert one.ended()[0] == 3
    assert b"TERM='dumb'" in one.raw
    assert b"\x1b" not in one.raw


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"theme": "textual-ansi"}, {"theme": "light"}])
def test_it_works_with_little_or_no_colour(terminal: Callable[..., Terminal], environment: dict[str, str]) -> None:
    one = terminal(**environment)
    one.wait_for("m-001")
    one.send("\r")
    one.wait_for("import triton")
    if "NO_COLOR" in environment:
        assert b"[38;" not in one.raw
        assert b";38;" not in one.raw
        assert b";48;" not in one.raw
    one.send("Q")
    assert one.ended() == (0, None)


def test_nothing_moves_at_rest(terminal: Callable[..., Terminal]) -> None:
    one = terminal()
    one.wait_for("m-001")
    one.take(1.0)
    before = len(one.raw)
    one.take(2.0)
    assert len(one.raw) == before
    one.send("/")
    one.take(1.0)
    before = len(one.raw)
    one.take(2.0)
    assert len(one.raw) == before


def test_a_fault_of_the_console_is_no_success(terminal: Callable[..., Terminal]) -> None:
    one = terminal(BREAKS="1")
    one.wait_for("m-001")
    one.send("\r")
    assert one.ended() == (3, None)
    assert b"ZeroDivisionError" in one.raw
    assert b"\x1b[?1049l" in one.raw
