"""Whichever process of a run is killed: nothing is left of the run, and the next one works."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from runners.client import Runner, RunnerError
from runners.contract import RunRequest

DAEMON = """# torch.compile: brings in the profile in which processes may be started
import os, time
def scale(x):
    if os.fork() == 0:
        os.setsid()
        time.sleep(1000)
    time.sleep(1000)
"""
CONSOLE = """
import sys, time
from runners.client import Runner
runner = Runner()
runner.warm(interpreted=False)
print(runner._zygotes[False].process.pid, runner._folder, flush=True)
time.sleep(1000)
"""


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def gone(process: psutil.Process) -> bool:
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.fixture
def own_runner() -> Iterator[Runner]:
    made = Runner()
    made.warm(interpreted=False)
    yield made
    made.close()


@pytest.mark.parametrize("which", ["supervisor", "judge", "candidate"])
def test_a_killed_part_takes_the_rest_of_its_run_along(
    own_runner: Runner, request_of: Callable[[str], RunRequest], which: str
):
    zygote = psutil.Process(own_runner._zygotes[False].process.pid)
    outcomes: list[object] = []

    def run() -> None:
        try:
            evidence = own_runner.run(request_of(DAEMON))
            outcomes.append(evidence and evidence.outcome)
        except RunnerError as error:
            outcomes.append(str(error))

    thread = threading.Thread(target=run)
    thread.start()
    until(lambda: len(zygote.children(recursive=True)) == 4)  # supervisor, judge, candidate, its daemon
    (supervisor,) = zygote.children()
    judge, candidate = sorted(supervisor.children(), key=lambda process: process.create_time())
    whole = zygote.children(recursive=True)
    os.kill({"supervisor": supervisor, "judge": judge, "candidate": candidate}[which].pid, signal.SIGKILL)
    thread.join(60)
    until(lambda: all(gone(process) for process in whole))
    until(lambda: not list(Path(tempfile.gettempdir()).glob(f"kernel-review-run-{supervisor.pid}-*")))
    assert outcomes in (["fail"], ["not-determined"], ["the run ended without a verdict: no words"])
    after = own_runner.run(request_of("def scale(x):\n    return x * 2\n"))
    assert after is not None
    assert after.outcome == "pass"


def test_a_killed_console_leaves_neither_process_nor_folder():
    with subprocess.Popen([sys.executable, "-c", CONSOLE], stdout=subprocess.PIPE, text=True) as console:
        assert console.stdout is not None
        pid, folder = console.stdout.readline().split()
        zygote = psutil.Process(int(pid))
        assert Path(folder).is_dir()
        console.kill()
    until(lambda: gone(zygote))
    assert not Path(folder).exists()
