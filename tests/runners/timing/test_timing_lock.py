import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runners.timing import lock
from runners.timing.lock import LockError, exclusive, holders, shared

HOLD = """
import sys
from pathlib import Path
from runners.timing.lock import exclusive, shared
with (exclusive if sys.argv[2] == "alone" else shared)(sys.argv[3], folder=Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def until(condition: Callable[[], bool], what: str) -> None:
    """Wait for a state of another process or thread; the bound only ends a test that would hang."""
    for _ in range(3000):
        if condition():
            return
        time.sleep(0.01)
    pytest.fail(f"never happened: {what}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "locks"


class Holder:
    def __init__(self, folder: Path, mode: str, what: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(folder), mode, what],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[3],
        )

    def wait_until_held(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "held\n"

    def let_go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@pytest.fixture
def hold(folder: Path) -> Iterator[Callable[[str, str], Holder]]:
    made: list[Holder] = []

    def start(mode: str, what: str) -> Holder:
        made.append(Holder(folder, mode, what))
        return made[-1]

    yield start
    for holder in made:
        holder.kill()


class Waiter:
    """Asks for the lock in a thread and notes what it is told."""

    def __init__(self, folder: Path, how: Callable[..., object], what: str) -> None:
        self.told: list[str] = []
        self.inside, self.leave = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self._run, args=(folder, how, what), daemon=True)
        self.thread.start()

    def _run(self, folder: Path, how: Callable[..., object], what: str) -> None:
        with how(what, self.told.append, folder=folder):  # type: ignore[attr-defined]
            self.inside.set()
            self.leave.wait()

    def end(self) -> None:
        self.leave.set()
        self.thread.join(30)
        assert not self.thread.is_alive()


def test_runs_share(folder: Path, hold: Callable[[str, str], Holder]) -> None:
    hold("with", "correctness of a").wait_until_held()
    told: list[str] = []
    with shared("correctness of b", told.append, folder=folder):
        assert len(holders(folder=folder)) == 2
    assert told == []
    assert len(holders(folder=folder)) == 1


def test_timing_waits_for_a_run_and_reads_who_it_is(folder: Path, hold: Callable[[str, str], Holder]) -> None:
    run = hold("with", "correctness of a/b")
    run.wait_until_held()
    waiter = Waiter(folder, exclusive, "timing of c/d")
    until(lambda: bool(waiter.told), "being told")
    assert not waiter.inside.is_set()
    assert waiter.told[0].endswith(f"(pid {run.process.pid}): correctness of a/b")
    run.let_go()
    assert waiter.inside.wait(30)
    waiter.end()


def test_a_killed_holder_lets_go_and_is_not_named(folder: Path, hold: Callable[[str, str], Holder]) -> None:
    holder = hold("alone", "timing of a/b")
    holder.wait_until_held()
    assert "timing of a/b" in holders(folder=folder)[0]
    holder.kill()
    with exclusive("timing of c/d", folder=folder):
        assert [text.split(": ")[1] for text in holders(folder=folder)] == ["timing of c/d"]


def test_a_stream_of_runs_does_not_starve_timing(folder: Path, hold: Callable[[str, str], Holder]) -> None:
    first = hold("with", "first run")
    first.wait_until_held()
    timing = Waiter(folder, exclusive, "timing")
    until(lambda: bool(timing.told), "timing waiting")
    newcomer = Waiter(folder, shared, "second run")
    until(lambda: bool(newcomer.told), "the newcomer waiting behind timing")
    assert newcomer.told[0].endswith(": timing; and 1 more")
    first.let_go()
    assert timing.inside.wait(30)
    assert not newcomer.inside.is_set()
    timing.end()
    assert newcomer.inside.wait(30)
    newcomer.end()


def test_a_wait_can_be_cancelled(folder: Path, hold: Callable[[str, str], Holder]) -> None:
    hold("alone", "timing").wait_until_held()

    def refuse(holder: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), shared("run", refuse, folder=folder):
        pytest.fail("got in")
    assert len(holders(folder=folder)) == 1


def test_exclusive_excludes_in_parallel(folder: Path) -> None:
    inside, worst = 0, 0
    guard = threading.Lock()

    def work() -> None:
        nonlocal inside, worst
        for _ in range(5):
            with exclusive("x", folder=folder):
                with guard:
                    inside += 1
                    worst = max(worst, inside)
                time.sleep(0.001)
                with guard:
                    inside -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert worst == 1
    assert sorted(path.name for path in folder.iterdir()) == ["room", "turnstile"]


def test_all_users_may_use_the_folder_whatever_the_umask(folder: Path) -> None:
    before = os.umask(0o077)
    try:
        with shared("run", folder=folder):
            modes = {path.name.split("-")[0]: path.stat().st_mode & 0o7777 for path in folder.iterdir()}
    finally:
        os.umask(before)
    assert folder.stat().st_mode & 0o7777 == 0o1777
    assert modes == {"room": 0o644, "turnstile": 0o644, "with": 0o644}


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become two other users")
def test_two_ordinary_users_exclude_each_other() -> None:
    script = HOLD.replace(
        "import sys\n", "import os, sys\nos.setgid(int(sys.argv[4])); os.setuid(int(sys.argv[4]))\n", 1
    )
    folder = Path("/tmp") / f"kernel-review-test-{os.getpid()}"
    folder.mkdir(mode=0o700)
    folder.chmod(0o1777)
    root = Path(__file__).parents[3]
    processes = []
    try:
        for uid, mode in ((64001, "alone"), (64002, "alone")):
            bootstrap = "import runners.timing.lock\n" + script
            processes.append(
                subprocess.Popen(
                    [sys.executable, "-c", bootstrap, str(folder / "locks"), mode, f"of {uid}", str(uid)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    cwd=root,
                )
            )
            if uid == 64001:
                assert processes[0].stdout is not None
                assert processes[0].stdout.readline() == "held\n"
        assert holders(folder=folder / "locks")[0].startswith("uid 64001 (pid ")
        until(lambda: len(holders(folder=folder / "locks")) == 1, "one holder")
        processes[0].kill()
        assert processes[1].stdout is not None
        assert processes[1].stdout.readline() == "held\n"
    finally:
        for process in processes:
            process.kill()
            process.wait()
        for path in (folder / "locks").iterdir():
            path.unlink()
        (folder / "locks").rmdir()
        folder.rmdir()


def test_a_link_in_place_of_a_lock_is_refused(folder: Path, tmp_path: Path) -> None:
    folder.mkdir()
    target = tmp_path / "precious"
    target.write_text("precious")
    (folder / "turnstile").symlink_to(target)
    with pytest.raises(LockError, match="turnstile"), shared("run", folder=folder):
        pytest.fail("followed a link")
    assert target.read_text() == "precious"


def test_a_link_in_place_of_the_folder_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LockError, match="not a folder"), shared("run", folder=folder):
        pytest.fail("followed a link")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_pipe_in_place_of_a_lock_is_refused_without_hanging(folder: Path) -> None:
    folder.mkdir()
    os.mkfifo(folder / "turnstile")
    with pytest.raises(LockError, match="not a regular file"), shared("run", folder=folder):
        pytest.fail("locked a pipe")


def test_hostile_announcements_are_bounded_and_ignored(folder: Path, tmp_path: Path) -> None:
    folder.mkdir()
    os.mkfifo(folder / "with-1-a")
    (folder / "with-2-b").symlink_to(tmp_path / "nowhere")
    (folder / "with-").write_text("left behind")
    with shared("\x1b[31m\u202e" + "x" * 10_000, folder=folder):
        (mine,) = holders(folder=folder)
    assert mine.isprintable()
    assert len(mine) < lock.MAX_DESCRIPTION_BYTES + 100


def test_a_replaced_lock_file_is_noticed(folder: Path) -> None:
    with exclusive("first", folder=folder):
        waiter = Waiter(folder, exclusive, "second")
        until(lambda: bool(waiter.told), "waiting")
        (folder / "room").rename(folder / "old")
        (folder / "room").write_text("")
    assert waiter.inside.wait(30)
    third = Waiter(folder, shared, "third")
    until(lambda: bool(third.told), "third sees the second on the new file")
    waiter.end()
    assert third.inside.wait(30)
    third.end()


def test_the_folder_is_the_same_for_everyone() -> None:
    assert lock.lock_folder() in (Path("/run/lock/kernel-review"), Path("/tmp/kernel-review-locks"))
