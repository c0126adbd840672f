"""Hostile candidates: each ends as a finding, in bounded time, with no process left and nothing reached."""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from runners.client import Runner
from runners.contract import RunRequest
from runners.evidence import Evidence

Judge = Callable[..., Evidence]

PREFIX = "import os, sys, time, socket, signal, threading, subprocess\nimport torch\n"
HONEST = "    return x * 2\n"


def codes(evidence: Evidence) -> set[str]:
    return {finding.code for finding in evidence.findings}


def body(lines: str) -> str:
    indented = "".join(f"    {line}\n" for line in lines.strip().splitlines())
    return f"{PREFIX}def scale(x):\n{indented}{HONEST}"


def _lives(process: psutil.Process, known: set[int]) -> bool:
    try:
        return process.pid not in known and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.fixture(autouse=True)
def nothing_left(runner: Runner):
    """No run may leave a process: only what was there before and the warm zygotes may be there afterwards."""
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    yield
    deadline = time.monotonic() + 10
    while True:
        zygotes = [one.process.pid for one in runner._zygotes.values()]
        left = [child for child in psutil.Process().children(recursive=True) if _lives(child, {*before, *zygotes})]
        strays = [one for one in psutil.process_iter(["cmdline"]) if "kr-stray" in " ".join(one.info["cmdline"] or [])]
        if not left and not strays:
            return
        assert time.monotonic() < deadline, (left, strays)
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("name", "lines", "code"),
    [
        ("early success", "os._exit(0)", "integrity/forged-result"),
        ("system exit with success", "sys.exit(0)", "integrity/forged-result"),
        ("early failure", "os._exit(3)", "build/crash"),
        ("segmentation fault", "import ctypes; ctypes.string_at(1)", "build/crash"),
        ("killing itself", "os.kill(os.getpid(), signal.SIGKILL)", "build/crash"),
        ("idle for ever", "time.sleep(1000)", "build/hang"),
        ("spinning for ever", "while True: pass", "build/hang"),
        ("a flood of output", "while True: os.write(1, b'x' * 65536)", "build/crash"),
        ("all the memory", "hog = [torch.ones(1 << 26) for _ in range(64)]", "build/out-of-memory"),
        (
            "a network socket",
            "try: socket.create_connection(('127.0.0.1', 9), 1)\nexcept OSError: pass",
            "integrity/escape",
        ),
        ("a forked child", "try: os.fork()\nexcept OSError: pass", "integrity/escape"),
        ("another program", "try: subprocess.run(['true'])\nexcept OSError: pass", "integrity/escape"),
        ("a signal to the parent", "try: os.kill(os.getppid(), 9)\nexcept OSError: pass", "integrity/escape"),
        ("a signal to everybody", "try: os.kill(-1, 9)\nexcept OSError: pass", "integrity/escape"),
        (
            "slowing others down",
            "try: os.setpriority(os.PRIO_PROCESS, os.getppid(), 19)\nexcept OSError: pass",
            "integrity/escape",
        ),
        (
            "ending others by limits",
            "import resource\ntry: resource.prlimit(os.getppid(), resource.RLIMIT_CPU, (1, 1))\nexcept OSError: pass",
            "integrity/escape",
        ),
        (
            "asking for signals by fcntl",
            "import fcntl\nr, w = os.pipe()\ntry: fcntl.fcntl(r, fcntl.F_SETOWN, os.getppid())\nexcept OSError: pass",
            "integrity/escape",
        ),
    ],
)
def test_an_attack_is_a_finding(judged: Judge, name: str, lines: str, code: str):
    evidence = judged(body(lines))
    assert code in codes(evidence), evidence.findings
    assert evidence.outcome == "fail"


def test_a_fork_bomb_ends(judged: Judge):
    evidence = judged(
        "# torch.compile: brings in the profile in which processes may be started\n"
        + body("import subprocess\nwhile True:\n    subprocess.Popen(['sleep', '71'], start_new_session=True)")
    )
    assert evidence.outcome == "fail"
    assert codes(evidence) & {"integrity/escape", "build/hang", "build/timeout", "build/crash"}


def test_a_daemon_that_leaves_its_session_is_ended(judged: Judge):
    judged(
        "# torch.compile\n"
        + body(
            "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n"
            "        os.execvp(sys.executable, [sys.executable, '-c', 'import time; time.sleep(72)', 'kr-stray'])\n"
            "    os._exit(0)"
        )
    )


@pytest.mark.parametrize("abstract", [False, True])
def test_a_socket_of_the_grader_is_out_of_reach(judged: Judge, tmp_path: Path, abstract: bool):
    address = "\0kernel-review-agent" if abstract else str(tmp_path / "agent.sock")
    server = socket.socket(socket.AF_UNIX)
    server.bind(address)
    server.listen()
    server.settimeout(0.2)
    evidence = judged(
        body(f"s = None\ntry:\n    s = socket.socket(socket.AF_UNIX); s.connect({address!r})\nexcept OSError: pass")
    )
    with pytest.raises(TimeoutError):
        server.accept()
    server.close()
    assert "integrity/hint" in codes(evidence)


def test_a_socket_pair_cannot_be_pointed_at_the_graders_agent(judged: Judge, tmp_path: Path):
    address = str(tmp_path / "agent.sock")
    server = socket.socket(socket.AF_UNIX)
    server.bind(address)
    server.listen()
    evidence = judged(
        body(
            "a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)\n"
            f"try: a.connect({address!r})\nexcept OSError: pass"
        )
    )
    server.close()
    assert "integrity/escape" in codes(evidence)


@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
def test_a_running_tmux_server_is_out_of_reach(judged: Judge, tmp_path: Path):
    where = tmp_path / "tmux.sock"
    subprocess.run(["tmux", "-S", str(where), "-f", "/dev/null", "new-session", "-d", "sleep 60"], check=True)
    try:
        judged(
            "# torch.compile\n"
            + body(
                f"try: subprocess.run(['tmux', '-S', {str(where)!r}, 'run-shell', 'touch {tmp_path}/reached'])\n"
                "except OSError: pass"
            )
        )
    finally:
        subprocess.run(["tmux", "-S", str(where), "kill-server"], check=True)
    assert not (tmp_path / "reached").exists()


def test_bytes_on_the_result_channel_are_no_verdict(judged: Judge):
    evidence = judged(
        body(
            "for fd in os.listdir('/proc/self/fd'):\n"
            "    try: os.write(int(fd), b'\\x05\\x00\\x00\\x00forge')\n"
            "    except OSError: pass"
        )
    )
    assert evidence.outcome == "fail"
    assert codes(evidence) & {"integrity/forged-result", "build/crash", "build/hang"}


def test_a_forged_reply_without_outputs_is_found(judged: Judge):
    evidence = judged(
        PREFIX
        + "import runners.candidate as harness\n"
        + "harness._store = lambda *a, **k: None\n"
        + "def scale(x):\n    return x\n"
    )
    assert "integrity/forged-result" in codes(evidence)


def test_files_outside_the_sandbox_cannot_be_read_or_written(judged: Judge, tmp_path: Path):
    secret = tmp_path / "secret"
    secret.write_text("s")
    evidence = judged(
        body(
            f"seen = []\nreference = {str(tmp_path / 'task' / 'reference.py')!r}\n"
            f"for path in ({str(secret)!r}, reference, '/root/.ssh', '/home'):\n"
            "    try:\n        open(path).read() if os.path.isfile(path) else os.listdir(path)\n"
            "        seen.append(path)\n"
            "    except OSError: pass\n"
            f"try: open({str(tmp_path / 'written')!r}, 'w').write('x'); seen.append('written')\nexcept OSError: pass\n"
            "assert not seen, seen"
        )
    )
    assert evidence.outcome == "pass", evidence.findings
    assert not (tmp_path / "written").exists()


def test_the_environment_and_descriptors_hold_no_secret(judged: Judge, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("KR_SECRET_TOKEN", "hunter2")
    evidence = judged(
        body(
            "text = open('/proc/self/environ', 'rb').read()\n"
            "assert b'hunter2' not in text\n"
            "here = '/proc/self/fd/'\n"
            "seen = [os.readlink(here + fd) for fd in os.listdir(here) if os.path.lexists(here + fd)]\n"
            "mine = ('/proc/', '/memfd:', '/dev/null')\n"
            "rest = sorted({one.split(':')[0] for one in seen if not one.startswith(mine)})\n"
            "assert rest == ['pipe', 'socket'] and sum(one.startswith('socket') for one in seen) == 1, seen"
        )
    )
    assert evidence.outcome == "pass", evidence.findings


def test_neither_seed_nor_reference_lies_in_the_candidates_process(judged: Judge):
    evidence = judged(
        body(
            "import gc\n"
            "names = {getattr(m, '__name__', '') for m in list(sys.modules.values())}\n"
            "assert 'reference' not in names\n"
            "from runners.judge import RunSession\n"
            "assert not [o for o in gc.get_objects() if type(o) is RunSession]"
        )
    )
    assert evidence.outcome == "pass", evidence.findings


def test_random_state_differs_from_run_to_run(judged: Judge):
    first = judged(body("raise RuntimeError(str(torch.initial_seed()))"))
    second = judged(body("raise RuntimeError(str(torch.initial_seed()))"))
    assert first.findings[0].summary != second.findings[0].summary


def test_a_shrunk_memory_file_does_not_kill_the_judge(judged: Judge):
    evidence = judged(
        body("for fd in os.listdir('/proc/self/fd'):\n    try: os.ftruncate(int(fd), 0)\n    except OSError: pass")
    )
    assert {panel.status for panel in evidence.panels.values()} & {"pass", "warn", "fail"}
    assert not any("judge" in (panel.reason or "") for panel in evidence.panels.values())


def test_hanging_up_ends_a_run(runner: Runner, request_of: Callable[[str], RunRequest]):
    cancelled = threading.Event()
    threading.Timer(1.0, cancelled.set).start()
    assert runner.run(request_of(body("time.sleep(1000)")), cancelled=cancelled) is None


def test_an_honest_candidate_passes_all_of_this(judged: Judge):
    evidence = judged(
        body("import pwd\npwd.getpwuid(os.getuid())\nt = threading.Thread(target=lambda: None); t.start(); t.join()")
    )
    assert evidence.outcome == "pass", evidence.findings
