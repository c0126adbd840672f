"""The console in a pseudo-terminal: what terminals, networks and people do to it."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pexpect
import pyte
import pytest

from console.drafts import Drafts

HERE = Path(__file__).parent


class Terminal:
    """The console behind a terminal emulator."""

    def __init__(self, folder: Path, theme: str = "dark", **environment: str) -> None:
        env = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "COLORTERM")}
        env |= {"TERM": "xterm-256color", **environment}
        self.folder = folder
        self.screen = pyte.Screen(80, 24)
        self.stream = pyte.ByteStream(self.screen)
        self.process = pexpect.spawn(
            sys.executable,
            [str(HERE / "open_on_fakes.py"), str(folder), theme],
            env=env,  # type: ignore[arg-type]
            dimensions=(24, 80),
            timeout=30,
        )
        self.raw = b""

    def take(self, seconds: float = 0.3) -> str:
        """What stands on the screen once it is quiet."""
        while True:
            try:
                data = self.process.read_nonblocking(65536, timeout=seconds)
            except (pexpect.TIMEOUT, pexpect.EOF):
                return "\n".join(self.screen.display)
            self.raw += data
            self.stream.feed(data)

    def wait_for(self, text: str) -> str:
        """Until ``text`` stands there."""
        for _ in range(100):
            shown = self.take()
            if text in shown:
                return shown
        raise AssertionError(f"{text!r} did not come:\n{shown}")

    def send(self, keys: str | bytes) -> None:
        """Press keys."""
        self.process.send(keys)

    def ended(self) -> tuple[int | None, int | None]:
        """Exit status and signal, once it has ended."""
        self.take()
        self.process.expect(pexpect.EOF)
        self.raw += self.process.before or b""
        self.process.close()
        return self.process.exitstatus, self.process.signalstatus


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    opened: list[Terminal] = []

    def open_one(**environment: str) -> Terminal:
        theme = environment.pop("theme", "dark")
        opened.append(Terminal(tmp_path, theme, **environment))
        return opened[-1]

    yield open_one
    for one in opened:
        with contextlib.suppress(OSError):  # a line that was cut has nothing left to close
            one.process.close(force=True)


def test_bytes_that_are_no_keys_do_not_end_it(terminal: Callable[..., Terminal]) -> None:
    one = terminal()
    one.wait_for("m-001")
    one.send(b"\x1b[M \xf0\x84")
    one.send(b"\xff\xfe\xe4")
    one.send("j")
    one.wait_for("2/2")
    one.send("Q")
    assert one.ended() == (0, None)


def test_termination_keeps_the_draft_and_gives_the_terminal_back(
    terminal: Callable[..., Terminal], tmp_path: Path
) -> None:
    one = terminal()
    one.wait_for("m-001")
    one.send("\r")
    one.wait_for("import triton")
    one.send("\x1b[15~jj2cwritten")
    one.wait_for("written")
    os.kill(one.process.pid, signal.SIGTERM)
    assert one.ended() == (128 + signal.SIGTERM, None)
    assert b"\x1b[?1049l" in one.raw
    assert b"\x1b[?25h" in one.raw
    draft = Drafts("fake", tmp_path / "drafts").load("row-softmax", "m-001").draft
    assert draft is not None
    assert (draft.criteria[0].level, draft.criteria[0].note) == (2, "written")


def test_a_dropped_line_ends_it(terminal: Callable[..., Terminal], tmp_path: Path) -> None:
    one = terminal()
    one.wait_for("m-001")
    one.send("\r")
    one.wait_for("import triton")
    one.send("\x1b[15~jj1")
    one.wait_for("1/3")
    one.process.ptyproc.fileobj.close()
    assert one.process.ptyproc.wait() == 128 + signal.SIGHUP
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
