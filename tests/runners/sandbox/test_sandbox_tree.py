"""Trees of processes are found whole, weighed rightly, and ended without a survivor."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from runners import sandbox
from runners.sandbox import limits, tree

PATIENCE_S = 60.0
MIB = 1 << 20


def fork(body) -> int:
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            body()
        os._exit(0)
    return child


def as_supervisor(body):
    """``body`` in a subreaper of its own, so that nothing of the test's process is touched; its printed result."""
    reader, writer = os.pipe()

    def run():
        os.close(reader)
        os.setsid()
        sandbox.become_subreaper()
        try:
            answer = repr(body())
        except BaseException as error:
            answer = f"raised {error!r}"
        sandbox.end_tree(os.getpid())
        os.write(writer, answer.encode())

    child = fork(run)
    os.close(writer)
    with os.fdopen(reader) as file:
        answer = file.read()
    os.waitpid(child, 0)
    return answer


def until(condition):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.005)


def forever():
    while True:
        time.sleep(1)


def daemon():
    os.setsid()
    for name in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(name, signal.SIG_IGN)
    fork(forever)
    os._exit(0)


def worker(body) -> int:
    def start():
        os.setsid()
        body()

    return fork(start)


def test_children_of_every_thread_are_found():
    def body():
        def parent():
            thread = threading.Thread(target=lambda: (fork(forever), forever()))
            thread.start()
            fork(lambda: (fork(forever), forever()))
            forever()

        child = worker(parent)
        until(lambda: len(sandbox.descendants(child)) == 3)
        return sandbox.count_descendants(child), sandbox.end_tree(child), sandbox.descendants(os.getpid())

    assert as_supervisor(body) == "(3, 0, [])"


def test_daemons_that_left_their_session_are_ended():
    def body():
        def parent():
            for _ in range(3):
                fork(daemon)
            fork(forever)
            forever()

        child = worker(parent)
        until(lambda: len(sandbox.orphans([child])) == 3)
        left = sandbox.end_tree(os.getpid())
        return left, sandbox.descendants(os.getpid()), tree._children(os.getpid())

    assert as_supervisor(body) == "(0, [], [])"


@pytest.mark.parametrize("new_session", [False, True])
def test_a_process_that_forks_and_dies_without_end_is_caught(new_session):
    def body():
        def hop():
            while True:
                if os.fork():
                    os._exit(0)
                if new_session:
                    os.setsid()

        child = worker(hop)
        time.sleep(0.05)
        left = sandbox.end_tree(child)
        os.waitpid(child, 0)
        left += sandbox.end_tree(os.getpid())
        return left, sandbox.descendants(os.getpid())

    assert as_supervisor(body) == "(0, [])"


def test_a_fork_bomb_is_ended():
    def body():
        most = len(os.listdir("/proc")) + 120

        def bomb():
            for _ in range(6):  # 64 processes, all forking on when they are caught
                os.fork()
            while True:
                with contextlib.suppress(OSError):
                    if len(os.listdir("/proc")) < most and os.fork() == 0 and os.getpid() % 3 == 0:
                        os.setsid()

        child = worker(bomb)
        until(lambda: sandbox.count_descendants(child) > 66)
        left = sandbox.end_tree(child)
        os.waitpid(child, 0)
        return left + sandbox.end_tree(os.getpid()), sandbox.descendants(os.getpid())

    assert as_supervisor(body) == "(0, [])"


def test_what_is_kept_lives_and_status_is_left_to_the_caller():
    def body():
        kept = worker(lambda: (fork(forever), forever()))
        ended = worker(lambda: (fork(daemon), forever()))
        until(lambda: sandbox.orphans([kept, ended]) and sandbox.descendants(kept))
        left = sandbox.end_tree(os.getpid(), keep=[kept])
        alive = tree.alive(kept), len(sandbox.descendants(kept)), sandbox.descendants(os.getpid(), without=[kept])
        other = worker(forever)
        left += sandbox.end_tree(other)
        status = os.waitstatus_to_exitcode(os.waitpid(other, 0)[1])
        return left, alive, tree.alive(ended), status

    assert as_supervisor(body) == "(0, (True, 1, []), False, -9)"


def test_a_process_whose_first_thread_ended_still_counts():
    def body():
        def parent():
            import ctypes

            threading.Thread(target=forever).start()
            ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[os.uname().machine], 0)

        child = worker(parent)
        until(lambda: b") Z" in Path(f"/proc/{child}/stat").read_bytes())
        alive = tree.alive(child)
        return alive, sandbox.end_tree(child), tree.alive(child)

    assert as_supervisor(body) == "(True, 0, False)"


def test_a_stopped_process_and_one_that_blocks_signals_are_ended():
    def body():
        def deaf():
            signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals))
            forever()

        child = worker(lambda: (fork(deaf), os.kill(os.getpid(), signal.SIGSTOP)))
        until(lambda: sandbox.descendants(child))
        return sandbox.end_tree(child), sandbox.descendants(os.getpid(), without=[child])

    assert as_supervisor(body) == "(0, [])"


def test_a_process_that_is_gone_is_no_trouble():
    def body():
        child = worker(lambda: None)
        os.waitpid(child, 0)
        return sandbox.end_tree(child), sandbox.descendants(child), sandbox.tree_memory(child), tree.alive(child)

    assert as_supervisor(body) == "(0, [], 0, False)"


HOLD = """
import mmap, os, time
def forever():
    while True: time.sleep(1)
def private(mib):
    memory = mmap.mmap(-1, mib << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return fill(memory)
def fill(memory):
    for at in range(0, len(memory), 4096): memory[at] = 1
    return memory
print("ready", flush=True)
input()
{take}
print("taken", flush=True)
forever()
"""

TAKES = {
    "private": "kept = private(60)",
    "shared": "kept = fill(mmap.mmap(-1, 60 << 20))",
    "only written": "kept = os.memfd_create('hidden')\nfor _ in range(60): os.write(kept, bytes(1 << 20))",
    "shared with a fork": "kept = private(60)\nif os.fork() == 0: forever()",
    "a fork of its own": (
        "kept = private(30)\nif os.fork() == 0:\n    more = private(30)\n    print('more', flush=True)\n    forever()"
    ),
    "arena of two": (
        "kept = os.memfd_create('arena'); os.ftruncate(kept, 60 << 20); arena = fill(mmap.mmap(kept, 60 << 20))\n"
        "if os.fork() == 0: forever()"
    ),
}


@contextlib.contextmanager
def holding(take: str):
    """A fresh process that takes memory: itself, and the bytes that its tree has grown by."""
    command = [sys.executable, "-I", "-c", HOLD.format(take=TAKES[take])]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout.readline() == b"ready\n"
            before = sandbox.tree_memory(child.pid)
            child.stdin.write(b"\n")
            child.stdin.flush()
            for _ in range(2 if "more" in TAKES[take] else 1):
                assert child.stdout.readline() in (b"taken\n", b"more\n")
            until(lambda: sandbox.count_descendants(child.pid) == ("fork" in TAKES[take]))
            yield child.pid, sandbox.tree_memory(child.pid) - before
        finally:
            sandbox.end_tree(child.pid)


@pytest.mark.parametrize("take", list(TAKES))
def test_memory_of_a_tree_counts_each_page_once(take):
    with holding(take) as (_, grown):
        assert 58 * MIB <= grown <= 66 * MIB


def test_memory_shared_between_forks_is_exact():
    with holding("arena of two") as (pid, _):
        pids = [pid, *sandbox.descendants(pid)]
        shares = [limits._proportional_memory(one)[1] for one in pids]
        assert len(pids) == 2
        assert round(sum(shares) / MIB) == 60
        assert round(sum(limits._open_shared_memory(pid).values()) / MIB) == 60


def burn(ns: int) -> None:
    until_ns = time.process_time_ns() + ns
    while time.process_time_ns() < until_ns:
        pass


def test_the_time_of_a_tree_counts_the_living_and_those_waited_for():
    def body():
        def work():
            os.waitpid(fork(lambda: burn(100_000_000)), 0)
            fork(lambda: (burn(100_000_000), forever()))
            forever()

        parent = fork(work)
        until(lambda: sandbox.tree_cpu_ns(parent) >= 180_000_000)
        return len(sandbox.descendants(parent))

    assert as_supervisor(body) == "1"


def test_a_signal_reaches_all_below_and_not_the_process_itself():
    def states(pids):
        return {Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] for pid in pids}

    def body():
        parent = fork(lambda: (fork(lambda: (fork(forever), forever())), forever()))
        until(lambda: sandbox.count_descendants(parent) == 2)
        below = sandbox.descendants(parent)
        sandbox.signal_below(parent, signal.SIGSTOP)
        until(lambda: states(below) == {"T"})
        mine = states([parent])
        sandbox.signal_below(parent, signal.SIGCONT)
        until(lambda: "T" not in states(below))
        return mine <= {"S", "R"}

    assert as_supervisor(body) == "True"
