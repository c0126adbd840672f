"""What honest code does goes on working under the sandbox, and accuses nobody."""

from __future__ import annotations

import asyncio
import ctypes
import os
import pwd
import signal
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from runners import sandbox

BOTH = pytest.mark.parametrize("profile", [sandbox.Profile.STRICT, sandbox.Profile.COMPILER])
ALL = pytest.mark.parametrize("profile", list(sandbox.Profile))


@ALL
def test_users_can_be_looked_up(cage, profile):
    seen = cage.run(lambda: pwd.getpwuid(0).pw_name, profile)
    assert seen.value == "root"
    assert seen.escapes == set()


@ALL
def test_torch_computes_with_two_threads(cage, profile):
    def work():
        torch.set_num_threads(2)
        a = torch.ones(300, 300)
        return float((a @ a).sum()), float(torch.softmax(a, 1).sum()), torch.get_num_threads()

    seen = cage.run(work, profile)
    assert seen.error == ""
    assert seen.value == (300.0**3, pytest.approx(300.0, rel=1e-5), 2)
    assert seen.escapes == set()


@BOTH
def test_threads_and_pools_run(cage, profile):
    def work():
        lock, done = threading.Lock(), []

        def one():
            with lock:
                done.append(1)

        threads = [threading.Thread(target=one) for _ in "abc"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with ThreadPoolExecutor(2) as pool:
            return len(done), list(pool.map(abs, [-1, -2]))

    seen = cage.run(work, profile)
    assert seen.value == (3, [1, 2])
    assert seen.refusals == []


@BOTH
def test_an_event_loop_runs(cage, profile):
    async def answer():
        await asyncio.sleep(0)
        return await asyncio.to_thread(lambda: 42)

    seen = cage.run(lambda: asyncio.run(answer()), profile)
    assert seen.value == 42
    assert seen.refusals == []


@BOTH
def test_the_process_may_look_at_itself(cage, profile):
    def work():
        files = [Path(f"/proc/self/{name}").read_bytes() for name in ("status", "maps", "stat", "cmdline")]
        for pid in range(300):  # entries of /proc come and go
            Path(f"/proc/{pid}").exists()
        threads = os.listdir("/proc/self/task")
        signal.signal(signal.SIGUSR1, lambda *_: None)
        os.kill(os.getpid(), signal.SIGUSR1)
        signal.raise_signal(signal.SIGUSR1)
        signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)
        import resource

        return all(files), len(threads), resource.getrlimit(resource.RLIMIT_STACK) is not None, os.cpu_count() > 0

    seen = cage.run(work, profile)
    assert seen.value == (True, 1, True, True), seen.error
    assert seen.refusals == []


@BOTH
def test_scratch_is_free(cage, profile):
    def work():
        with tempfile.TemporaryDirectory() as folder, tempfile.NamedTemporaryFile(dir=folder) as file:
            file.write(b"x" * 100)
            file.truncate(10)
            Path(folder, "a").mkdir()
            Path(folder, "a", "b").write_text("b")
            Path(folder, "a", "b").rename(Path(folder, "c"))
            os.symlink("c", Path(folder, "d"))
            os.link(Path(folder, "c"), Path(folder, "e"))
            with open("/dev/null", "w") as null:
                null.write("gone")
            return Path(folder, "d").read_text(), len(os.urandom(4)), len(Path("/dev/urandom").open("rb").read(4))

    seen = cage.run(work, profile)
    assert seen.value == ("b", 4, 4), seen.error
    assert seen.refusals == []


@BOTH
def test_packages_can_be_imported_late(cage, profile):
    """Only where the user may read the interpreter at all."""
    folder = Path(sys.base_prefix)
    if cage.user != os.getuid() and any(not parent.stat().st_mode & 0o001 for parent in (folder, *folder.parents)):
        pytest.skip("this interpreter lies in another user's private folder")

    def work():
        import importlib

        return [importlib.import_module(name).__name__ for name in ("xmlrpc.client", "colorsys", "torch.distributions")]

    seen = cage.run(work, profile)
    assert seen.value == ["xmlrpc.client", "colorsys", "torch.distributions"], seen.error
    assert seen.escapes == set()


def test_compilers_compile(cage):
    def work():
        Path("add.c").write_text("int add(int a, int b) { return a + b; }\n")
        made = subprocess.run(
            ["gcc", "-O1", "-shared", "-fPIC", "-o", "add.so", "add.c"], capture_output=True, text=True, check=False
        )
        return made.returncode, made.stderr, ctypes.CDLL("./add.so").add(2, 3)

    seen = cage.run(work, sandbox.Profile.COMPILER)
    assert seen.value == (0, "", 5), seen.error
    assert seen.escapes == set()
    assert seen.left == 0


def test_compilers_stop_what_they_started(cage):
    def work():
        ended = []
        for stop in (
            lambda child: child.terminate(),
            lambda child: child.kill(),
            lambda child: os.killpg(child.pid, 2),
        ):
            child = subprocess.Popen(["/bin/sleep", "60"], start_new_session=True)
            stop(child)
            ended.append(child.wait())
        group = subprocess.run(
            ["/bin/sh", "-c", "sleep 60 & kill $!; wait $!; echo $?; kill -0 $$"], capture_output=True
        )
        return ended, group.stdout, group.returncode

    seen = cage.run(work, sandbox.Profile.COMPILER)
    assert seen.value == ([-15, -9, -2], b"143\n", 0), seen.error
    assert seen.escapes == set()


_KERNEL = """
import triton
import triton.language as tl

@triton.jit
def double(x, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + offsets, tl.load(x + offsets, mask=offsets < n) * 2, mask=offsets < n)
"""


def test_an_interpreted_kernel_runs(cage, monkeypatch, tmp_path):
    pytest.importorskip("triton")
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    import importlib.util

    import triton.runtime.interpreter

    path = tmp_path / "kernel.py"
    path.write_text(_KERNEL)
    spec = importlib.util.spec_from_file_location("kernel", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert isinstance(module.double, triton.runtime.interpreter.InterpretedFunction)

    def work():
        torch.set_num_threads(2)
        x = torch.arange(100.0)
        out = torch.empty_like(x)
        module.double[(4,)](x, out, 100, BLOCK=32)
        return torch.equal(out, x * 2)

    work()  # imports what a first launch imports, as a warmed parent has: an ordinary user may not read it later
    seen = cage.run(work, read=(tmp_path,))
    assert seen.value is True, seen.error
    assert seen.escapes == set()


@BOTH
def test_memory_is_shared_by_name_in_a_folder_of_its_own(cage, profile):
    if not sandbox.level().private_shm:
        pytest.skip("this machine gives no private /dev/shm")

    def work():
        tensor = torch.arange(1000.0).share_memory_()
        Path("/dev/shm/left-behind").write_text("x")
        status = Path("/proc/self/status").read_text()
        return tensor.is_shared(), float(tensor.sum()), os.listdir("/dev/shm"), os.getuid(), "Seccomp:\t2" in status

    seen = cage.run(work, profile)
    assert seen.value == (True, 499500.0, ["left-behind"], cage.user, True), seen.error
    assert seen.escapes == set()
    assert not Path("/dev/shm/left-behind").exists()
