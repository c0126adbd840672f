"""The terminal lent to an editor, or to git with somebody to ask: it always comes back."""

from __future__ import annotations

import shlex
import sys
import termios
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .conftest import Open, Terminal

ON_FAKES = Path(__file__).parents[1] / "console" / "screens" / "open_on_fakes.py"
EDITORS = {
    "none": ("/nonexistent", "/nonexistent: No such file"),
    "fails": ("sh -c 'exit 3'", "ended with 3: nothing changed"),
    "killed": ("sh -c 'kill -9 $$'", "ended with -9"),
    "removes": ("rm", "nothing that can be taken over"),
    "folder": ("sh -c 'rm $0; mkdir $0'", "nothing that can be taken over"),
    "pipe": ("sh -c 'rm $0; mkfifo $0'", "nothing that can be taken over"),
    "endless": ("sh -c 'head -c 9000000 /dev/zero > $0'", "nothing that can be taken over"),
    "works": ("sh -c 'printf zebra > $0'", "zebra"),
}
RUBRIC = "\x1b[15~"


@pytest.fixture
def opened(terminal: Open, tmp_path: Path) -> Callable[[str], Terminal]:
    """The console on made-up work with the cursor on the first criterion, and an editor."""

    def open_one(editor: str) -> Terminal:
        one = terminal(ON_FAKES, tmp_path, EDITOR=editor, VISUAL="", TMPDIR=str(tmp_path))
        one.wait_for("m-001")
        one.press("\r", "import triton")
        one.press(RUBRIC + "jj", "▌correctness")
        return one

    return open_one


@pytest.mark.parametrize("name", EDITORS)
def test_whatever_an_editor_does(opened: Callable[[str], Terminal], name: str) -> None:
    editor, words = EDITORS[name]
    one = opened(editor)
    one.press("e", words)
    one.press("2", "2/3")
    one.send("Q")
    assert one.ended() == (0, None)


def test_a_key_that_interrupts_the_editor_is_not_for_the_console(opened: Callable[[str], Terminal]) -> None:
    one = opened("sh -c 'echo is open; cat > $0'")
    one.press("e", "is open")
    one.press("\x03", "ended with -2")
    one.press("e", "is open")
    one.press("\x1c", "ended with -3")
    one.press("2", "2/3")
    one.send("Q")
    assert one.ended() == (0, None)


def test_an_editor_that_dies_in_raw_mode_does_not_leave_the_terminal_so(terminal: Open, tmp_path: Path) -> None:
    command = shlex.join([sys.executable, str(ON_FAKES), str(tmp_path)])
    one = terminal(
        "-c", f"import os; os.system({command!r}); input('and then> ')", EDITOR="sh -c 'stty raw -echo; false'"
    )
    before = termios.tcgetattr(one.process.child_fd)[3]
    one.wait_for("m-001")
    one.press("\r", "import triton")
    one.press(RUBRIC + "jj", "▌correctness")
    one.press("e", "ended with 1: nothing changed")
    one.press("Q", "and then>")
    after = termios.tcgetattr(one.process.child_fd)[3]
    assert after & (termios.ECHO | termios.ICANON | termios.ISIG) == before & (
        termios.ECHO | termios.ICANON | termios.ISIG
    )
    one.send("\r")
    assert one.ended() == (0, None)


def test_a_refusal_while_git_has_the_terminal(terminal: Open, tmp_path: Path) -> None:
    one = terminal(ON_FAKES, tmp_path, REFUSED="1")
    one.wait_for("m-001")
    one.press("\r", "import triton")
    one.press(RUBRIC, "outcome ")
    one.press("t", "●correct")
    one.press("j1", "●sound")
    one.press("jjjj3j3j3j3", "rubric 7/7")
    one.press("jcRight.\x13", "▌summary", "   Right.")
    one.press("p", "preview")
    one.press("a", "✓ ready")
    one.press("T", "✗ committing", "policy: no ticket", "No commit was made")
    one.press("T", "pushed to origin main", "m-002")
    one.send("Q")
    assert one.ended() == (0, None)
