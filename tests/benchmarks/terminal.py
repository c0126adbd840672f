"""Prints what the console costs on a terminal: time to the first screen, bytes per key, bytes at rest, memory.

    python tests/benchmarks/terminal.py

Each line is one console in a pseudo-terminal; the empty Textual app is measured in the same run, so that ratios hold
on a busy machine. Numbers are printed, never asserted on.
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import statistics
import struct
import sys
import tempfile
import termios
import time
from concurrent.futures import Future
from pathlib import Path

ROOT = Path(__file__).parents[2]
QUIET_S = 0.25
ROUNDS = 9


def child(what: str, size: int) -> None:
    """The program in the pseudo-terminal."""
    if what == "empty":
        from textual.app import App, ComposeResult
        from textual.widgets import Static

        class Empty(App[None]):
            def compose(self) -> ComposeResult:
                yield Static("m-00000")

        Empty().run(mouse=False)
        return
    sys.path[:0] = [str(ROOT), str(ROOT / "tests/console/screens")]
    from fakes_for_screens import (  # type: ignore[import-not-found]
        KERNEL,
        FakeExchange,
        FakeRuns,
        snapshot_of,
        submission_of,
    )

    from console.config import Config
    from console.drafts import Drafts
    from console.screens.shell import ConsoleApp

    count = size if what == "queue" else 3
    snapshot = snapshot_of(*(submission_of(f"m-{number:05}", number) for number in range(count)))
    lines = (KERNEL * (size // 20 + 1)).splitlines()[:size] if what == "diff" else KERNEL.splitlines()
    texts = {one.tree: "\n".join(lines) + "\n" for one in snapshot.submissions[:5]}
    exchange = FakeExchange(snapshot, texts)
    if what == "diff":
        old = [line.replace("exp", "expo") if number % 40 else line for number, line in enumerate(lines)]
        exchange.diff = lambda submission, against: made(old, lines)  # type: ignore[method-assign]
    first: Future[object] = Future()
    first.set_result(snapshot)
    with tempfile.TemporaryDirectory() as folder:
        ConsoleApp(exchange, Config(), FakeRuns(), Drafts("bench", Path(folder)), first=first).run(mouse=False)  # type: ignore[arg-type]


def made(old: list[str], new: list[str]) -> object:
    """A diff of equally long files, without the cost of finding it."""
    from console.exchange.diff import Diff, FileDiff, Hunk, Line

    lines: list[Line] = []
    for number, (before, after) in enumerate(zip(old, new, strict=True), 1):
        if before == after:
            lines.append(Line("same", number, number, after))
        else:
            lines += [Line("del", number, 0, before), Line("add", 0, number, after)]
    file = FileDiff(
        path="kernel.py",
        old_path="kernel.py",
        status="modified",
        kind="text",
        old_mode="100644",
        new_mode="100644",
        old_oid="1",
        new_oid="2",
        hunks=(Hunk(1, 1, "", tuple(lines)),),
    )
    return Diff(old="starter", new="m", files=(file,))


class Terminal:
    """A child in a pseudo-terminal."""

    def __init__(self, what: str, size: int = 0, columns: int = 80, rows: int = 24, **environment: str) -> None:
        self.began = time.perf_counter()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update({"TERM": "xterm-256color", "COLORTERM": "", **environment})
            os.environ.pop("NO_COLOR", None)
            os.execv(sys.executable, [sys.executable, __file__, "--child", what, str(size)])
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, quiet: float = QUIET_S, until: bytes = b"", limit: float = 30.0) -> tuple[bytes, float]:
        """What comes until it is quiet, or until a text is there; and when the last of it came."""
        data, last, start = b"", time.perf_counter(), time.perf_counter()
        while time.perf_counter() - start < limit:
            ready, _, _ = select.select([self.fd], [], [], quiet if not until or until in data else 1.0)
            if not ready:
                if not until or until in data:
                    break
                continue
            try:
                piece = os.read(self.fd, 65536)
            except OSError:
                break
            data += piece
            last = time.perf_counter()
            if until and until in data:
                break
        return data, last

    def press(self, keys: bytes) -> tuple[int, float]:
        """Bytes that a key costs, and milliseconds to the last of them."""
        start = time.perf_counter()
        os.write(self.fd, keys)
        data, last = self.read()
        return len(data), (last - start) * 1e3

    def memory(self) -> int:
        """Resident memory in MiB."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) // 1024
        return 0

    def end(self) -> None:
        """End the child."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


def start_time(what: str, size: int, mark: bytes) -> float:
    """Seconds from exec until a text stands on the screen."""
    terminal = Terminal(what, size)
    _, last = terminal.read(until=mark)
    seconds = last - terminal.began
    terminal.end()
    return seconds


def keys(terminal: Terminal, name: str, key: bytes) -> None:
    """Print what a key costs."""
    measured = [terminal.press(key) for _ in range(ROUNDS)]
    size = statistics.median(one[0] for one in measured)
    took = statistics.median(one[1] for one in measured)
    most = max(one[0] for one in measured)
    print(f"  {name:<12} {size:>7.0f} bytes, at most {most:>7}   {took:>6.1f} ms")


def main() -> None:
    """Everything."""
    empty = [start_time("empty", 0, b"m-00000") for _ in range(5)]
    small = [start_time("queue", 50, b"m-00000") for _ in range(5)]
    print(f"start: empty Textual app {min(empty):.3f} s, queue of 50 {min(small):.3f} s, ratio", end=" ")
    print(f"{min(small) / min(empty):.2f}")
    print(f"start: queue of 10,000 {min(start_time('queue', 10_000, b'm-00000') for _ in range(3)):.3f} s")
    for columns, rows, depth in ((80, 24, ""), (200, 50, "truecolor")):
        print(f"{columns}x{rows} {depth or '256 colours'}")
        queue = Terminal("queue", 10_000, columns, rows, COLORTERM=depth)
        queue.read(until=b"m-00000")
        queue.read(quiet=3.0)
        keys(queue, "queue down", b"j")
        keys(queue, "queue page", b"\x1b[6~")
        keys(queue, "queue end", b"G\x1b[H")
        print(f"  queue memory {queue.memory()} MiB; at rest {len(queue.read(quiet=3.0)[0])} bytes in 3 s")
        queue.end()
        base = Terminal("diff", 20, columns, rows, COLORTERM=depth)
        base.read(quiet=1.5, until=b"m-00000")
        os.write(base.fd, b"\r")
        base.read(quiet=1.5)
        little = base.memory()
        base.end()
        diff = Terminal("diff", 20_000, columns, rows, COLORTERM=depth)
        diff.read(until=b"m-00000")
        diff.read(quiet=1.0)
        start = time.perf_counter()
        os.write(diff.fd, b"\r")
        _, last = diff.read(until=b"triton", limit=10.0)
        diff.read(quiet=1.0)
        print(f"  20,000-line diff: first paint {last - start:.3f} s, {diff.memory() - little} MiB more than 20 lines")
        keys(diff, "diff down", b"j")
        keys(diff, "diff page", b"\x1b[6~")
        keys(diff, "diff hunk", b"]")
        keys(diff, "diff end", b"G")
        print(f"  diff memory {diff.memory()} MiB; at rest {len(diff.read(quiet=3.0)[0])} bytes in 3 s")
        diff.end()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], int(sys.argv[3]))
    else:
        main()
