from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

import console

ROOT = Path(console.__file__).parents[1]

# A run that never ends, with a process of its own, as the runner's zygote is.
DRIVER = """
import contextlib, subprocess, sys
from console import cli
from console.runs import RunState
from console.verbs import common

class Endless:
    def adopt(self, snapshot): pass
    def subscribe(self, callback): pass
    def state(self, key): return RunState(key=key, phase="running")
    def start(self, task, submission, **options):
        self.child = subprocess.Popen(["sleep", "600"])
        print(self.child.pid, flush=True)
    def close(self):
        self.child.kill()
        self.child.wait()

@contextlib.contextmanager
def runs_on(*args, **options):
    runs = Endless()
    try:
        yield runs
    finally:
        runs.close()

common.runs_on = runs_on
sys.exit(cli.main(sys.argv[1:]))
"""


@pytest.mark.parametrize(("which", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_ends_the_run_and_its_processes(clone: Path, which: signal.Signals, code: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", DRIVER, "run", "softmax/good", "--exchange", str(clone), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.stdout is not None
    child = int(process.stdout.readline())
    time.sleep(0.2)
    process.send_signal(which)
    out, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    assert out == ""
    assert "Traceback" not in err
    assert not psutil.pid_exists(child)
