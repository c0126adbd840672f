"""A real pseudo-terminal with an emulator behind it, so that tests read the screen as a person does."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pexpect
import pyte
import pytest

PATIENCE = 120.0
"""Seconds until a test gives up on a program that neither shows what is awaited nor ends; no test needs them."""

Open = Callable[..., "Terminal"]


class Terminal:
    """A Python program in a terminal of 80 columns and 24 rows."""

    def __init__(self, arguments: list[str], **environment: str) -> None:
        env = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "COLORTERM")}
        env |= {"TERM": "xterm-256color", **environment}
        self.screen = pyte.Screen(80, 24)
        self.stream = pyte.ByteStream(self.screen)
        self.process = pexpect.spawn(
            sys.executable,
            arguments,
            env=env,  # type: ignore[arg-type]
            dimensions=(24, 80),
            timeout=PATIENCE,
        )
        self.raw = b""

    @property
    def shown(self) -> str:
        """What stands on the screen."""
        return "\n".join(self.screen.display)

    def take(self, seconds: float = 0.3) -> str:
        """What stands on the screen once it is quiet."""
        with contextlib.suppress(pexpect.TIMEOUT, pexpect.EOF):
            while True:
                data = self.process.read_nonblocking(65536, timeout=seconds)
                self.raw += data
                self.stream.feed(data)
        return self.shown

    def wait_for(self, *texts: str) -> str:
        """Until all ``texts`` stand there; whatever time the machine takes, unless the program ends."""
        for _ in range(int(PATIENCE / 0.1)):
            shown = self.take(0.1)
            if all(text in shown for text in texts):
                return shown
            if not self.process.isalive():
                break
        raise AssertionError(f"{texts} did not come:\n{self.shown}")

    def send(self, keys: str | bytes) -> None:
        """Press keys."""
        self.process.send(keys)

    def press(self, keys: str | bytes, *texts: str) -> str:
        """Press keys, then wait for what they bring."""
        self.send(keys)
        return self.wait_for(*texts)

    def hang_up(self) -> int:
        """Drop the line; the exit status."""
        self.process.ptyproc.fileobj.close()
        return int(self.process.ptyproc.wait())

    def ended(self) -> tuple[int | None, int | None]:
        """Exit status and signal, once it has ended."""
        self.take()
        self.process.expect(pexpect.EOF)
        self.raw += self.process.before or b""
        self.process.close()
        return self.process.exitstatus, self.process.signalstatus

    def close(self) -> None:
        """End it."""
        with contextlib.suppress(OSError):  # a line that was cut has nothing left to close
            self.process.close(force=True)


@pytest.fixture
def terminal() -> Iterator[Open]:
    """Opens terminals, and closes them after the test."""
    opened: list[Terminal] = []

    def open_one(*arguments: str | Path, **environment: str) -> Terminal:
        opened.append(Terminal([str(one) for one in arguments], **environment))
        return opened[-1]

    yield open_one
    for one in opened:
        one.close()
