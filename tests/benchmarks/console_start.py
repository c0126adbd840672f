"""The console's start against an empty Textual app, turn by turn, and what it loads.

Run it as ``python tests/benchmarks/console_start.py``. Prints; asserts nothing. Known: b4 review 1.9, posting 3.2,
harlequin 4.2 times an empty app.
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

ROUNDS = 9

EMPTY = """
from textual.app import App
from textual.widgets import Static

class Empty(App):
    def compose(self):
        yield Static("READY")

Empty().run()
"""


def first_text(command: list[str], marker: bytes, environment: dict[str, str]) -> float:
    """Seconds from exec until ``marker`` is painted in an 80x24 terminal."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execvpe(command[0], command, environment)
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    begun = time.perf_counter()
    seen = b""
    while marker not in seen:
        if not select.select([fd], [], [], 30)[0]:
            raise SystemExit(f"{command} painted no {marker!r}: {seen[-2000:]!r}")
        try:
            seen += os.read(fd, 65536)
        except OSError:
            raise SystemExit(f"{command} ended: {seen[-2000:]!r}") from None
    took = time.perf_counter() - begun
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    os.close(fd)
    return took


def main() -> None:
    """Measure and print."""
    folder = Path(tempfile.mkdtemp())
    empty = folder / "empty.py"
    empty.write_text(EMPTY)
    environment = {**os.environ, "TERM": "xterm-256color", "XDG_STATE_HOME": str(folder), "XDG_CACHE_HOME": str(folder)}
    environment.pop("COLORTERM", None)
    # Both sides start from compiled files, as any installed program does from its second start on.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment["PYTHONPYCACHEPREFIX"] = str(folder / "compiled")
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed program has its bytecode; the first run writes it
    clone = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, pathlib; from console.demo import make_demo; print(make_demo(pathlib.Path(sys.argv[1])))",
            str(folder / "demo"),
        ],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    review = [sys.executable, "-m", "console.cli", "open", clone]
    plain = [sys.executable, str(empty)]
    first_text(review, b"row-softmax", environment)
    first_text(plain, b"READY", environment)
    console, base = [], []
    for _ in range(ROUNDS):
        base.append(first_text(plain, b"READY", environment))
        console.append(first_text(review, b"row-softmax", environment))
    for name, samples in (("empty Textual app", base), ("console, queue painted", console)):
        print(f"{name:26} median {statistics.median(samples) * 1e3:6.0f} ms   min {min(samples) * 1e3:6.0f} ms")
    ratios = sorted(two / one for one, two in zip(base, console, strict=True))
    print(f"{'ratio':26} median {statistics.median(ratios):6.2f}      (goal: at most 1.7)")
    loaded = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; import console.app, console.runs, console.exchange; "
            "heavy = {n.split('.')[0] for n in sys.modules} & {'torch', 'triton', 'jax', 'numpy'}; "
            "print(sorted(heavy), len(sys.modules))",
        ],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    print(f"{'heavy modules, all modules':26} {loaded}")


if __name__ == "__main__":
    main()
