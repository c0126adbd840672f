"""Each attack that once worked, really tried under the sandbox: refused, and told to the supervisor."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import faulthandler
import fcntl
import os
import resource
import signal
import socket
import subprocess
import tempfile
import threading
from multiprocessing import shared_memory
from pathlib import Path

import pytest

from runners import sandbox
from runners.sandbox.seccomp import architecture

NUMBERS = architecture().numbers
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
BOTH = pytest.mark.parametrize("profile", [sandbox.Profile.STRICT, sandbox.Profile.COMPILER])


def raw(name: str, *arguments: int) -> int:
    """The errno of a system call, 0 when it worked."""
    result = libc.syscall(ctypes.c_long(NUMBERS[name]), *(ctypes.c_long(value) for value in arguments))
    return ctypes.get_errno() if result < 0 else 0


REFUSED = (errno.EPERM, errno.EACCES)


@BOTH
@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK, socket.AF_PACKET, 38, 40])
def test_no_network_socket(cage, profile, family):
    seen = cage.run(lambda: raw("socket", int(family), socket.SOCK_RAW, 0), profile)
    assert seen.value in REFUSED
    assert seen.escapes == {"socket"}


@BOTH
def test_a_local_socket_is_refused_and_connecting_all_the_same_is_an_escape(cage, profile):
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as planted:
        os.chmod(folder, 0o755)
        planted.bind(f"{folder}/tmux")
        os.chmod(f"{folder}/tmux", 0o777)
        planted.listen()
        mine, other = socket.socketpair()

        def attack():
            attempts = []
            for act in (
                lambda: socket.socket(socket.AF_UNIX),
                lambda: mine.connect(f"{folder}/tmux"),
                lambda: mine.bind(f"{folder}/../here"),
                lambda: mine.connect("\0abstract"),
            ):
                try:
                    act()
                    attempts.append(0)
                except OSError as error:
                    attempts.append(error.errno)
            return attempts

        seen = cage.run(attack, profile)
        planted.settimeout(0)
        with pytest.raises(BlockingIOError):
            planted.accept()
        mine.close()
        other.close()
    assert all(value in REFUSED for value in seen.value), seen.value
    assert seen.hints == {"socket"}
    assert seen.escapes == {"connect", "bind"}


@BOTH
def test_no_datagram_reaches_a_named_socket(cage, profile):
    def attack():
        return raw("socketpair", socket.AF_UNIX, socket.SOCK_DGRAM, 0, 0), raw("sendto", 1, 0, 0, 0, 4096, 16)

    seen = cage.run(attack, profile)
    assert all(value in REFUSED for value in seen.value)
    assert seen.hints == {"socketpair"}
    assert seen.escapes == {"sendto"}


@BOTH
@pytest.mark.parametrize(
    "name",
    [
        "ptrace",
        "process_vm_readv",
        "process_vm_writev",
        "process_madvise",
        "kcmp",
        "pidfd_open",
        "pidfd_getfd",
        "pidfd_send_signal",
        "io_uring_setup",
        "io_uring_enter",
        "io_uring_register",
        "mount",
        "umount2",
        "pivot_root",
        "chroot",
        "open_tree",
        "move_mount",
        "fsopen",
        "mount_setattr",
        "unshare",
        "setns",
        "bpf",
        "perf_event_open",
        "userfaultfd",
        "keyctl",
        "add_key",
        "request_key",
        "shmget",
        "shmat",
        "semget",
        "semop",
        "msgget",
        "msgsnd",
        "mq_open",
        "open_by_handle_at",
        "kexec_load",
        "kexec_file_load",
        "init_module",
        "finit_module",
        "delete_module",
        "reboot",
        "swapon",
        "settimeofday",
        "clock_settime",
        "sethostname",
        "syslog",
        "setuid",
        "setgid",
        "capset",
        "seccomp",
        "rt_sigqueueinfo",
        "rt_tgsigqueueinfo",
        "tkill",
        "sched_setaffinity",
        "sched_setscheduler",
        "sched_setparam",
        "sched_setattr",
        "prlimit64",
        "migrate_pages",
        "move_pages",
    ],
)
def test_a_call_that_reaches_out_is_an_escape(cage, profile, name, bystander):
    seen = cage.run(lambda: raw(name, bystander, bystander, 0, 0, 0, 0), profile)
    assert seen.value in REFUSED
    assert seen.escapes == {name}


@BOTH
@pytest.mark.parametrize("name", ["setpriority", "ioprio_set"])
def test_priorities_of_others(cage, profile, name, bystander):
    which = {"setpriority": 0, "ioprio_set": 1}[name]
    seen = cage.run(lambda: (raw(name, which, bystander, 19), raw(name, which + 1, 0, 19)), profile)
    assert set(seen.value) == {errno.EPERM}
    assert seen.escapes == {name}
    assert seen.hints == set()
    assert os.getpriority(os.PRIO_PROCESS, bystander) == 0


@BOTH
@pytest.mark.parametrize(
    "name",
    ["sched_setaffinity", "sched_setscheduler", "setpriority", "setrlimit", "personality", "sync", "inotify_add_watch"],
)
def test_own_settings_are_refused_without_an_accusation(cage, profile, name):
    seen = cage.run(lambda: raw(name, 0, 0, 0), profile)
    assert seen.value in REFUSED
    assert seen.hints == {name}
    assert seen.escapes == set()


@BOTH
def test_own_affinity_stays(cage, profile):
    before = os.sched_getaffinity(0)

    def attack():
        with contextlib.suppress(PermissionError):
            os.sched_setaffinity(0, {min(before)})
        return os.sched_getaffinity(0)

    assert cage.run(attack, profile).value == before


def test_strict_signals_reach_nobody(cage, bystander):
    def attack():
        parent = os.getppid()
        group = -os.getpgid(bystander)
        results = [raw("kill", target, signal.SIGKILL) for target in (bystander, parent, 1, -1, group)]
        results.append(raw("tgkill", parent, parent, signal.SIGKILL))
        return results

    seen = cage.run(attack)
    assert seen.status == 0
    assert seen.value == [errno.EPERM] * 6
    assert seen.escapes == {"kill", "tgkill"}
    os.kill(bystander, 0)


def test_compilers_signal_only_their_own_tree(cage, bystander):
    def attack():
        child = os.fork()
        if child == 0:
            while True:
                signal.pause()
        group = -os.getpgid(bystander)
        outside = [raw("kill", target, signal.SIGKILL) for target in (bystander, os.getppid(), 1, -1, group)]
        os.kill(child, signal.SIGTERM)
        _, status = os.waitpid(child, 0)
        grandchild = os.fork()
        if grandchild == 0:
            faulthandler.disable()
            os.abort()
        _, aborted = os.waitpid(grandchild, 0)
        return outside, os.WTERMSIG(status), os.WTERMSIG(aborted)

    seen = cage.run(attack, sandbox.Profile.COMPILER)
    assert seen.value == ([errno.EPERM] * 5, signal.SIGTERM, signal.SIGABRT)
    assert seen.escapes == {"kill"}
    os.kill(bystander, 0)


@BOTH
def test_a_descriptor_cannot_be_made_to_signal_others(cage, profile, bystander):
    def attack():
        reader, _ = os.pipe()
        own = struct_f_owner_ex(bystander)
        return [
            raw("fcntl", reader, fcntl.F_SETOWN, bystander),
            raw("fcntl", reader, fcntl.F_SETOWN, -os.getpgid(bystander)),
            raw("fcntl", reader, 15, ctypes.addressof(own)),
            raw("fcntl", reader, fcntl.F_SETSIG, signal.SIGKILL),
            raw("ioctl", reader, 0x8901, 0),
            raw("ioctl", reader, 0x8902, 0),
            raw("ioctl", reader, 0x5412, 0),
        ]

    seen = cage.run(attack, profile)
    assert set(seen.value) == {errno.EPERM}
    assert seen.escapes == {"fcntl", "ioctl"}


def struct_f_owner_ex(pid: int) -> ctypes.Array[ctypes.c_int]:
    return (ctypes.c_int * 2)(1, pid)


def test_strict_starts_no_process(cage):
    def attack():
        results = []
        for start in (os.fork, lambda: os.execv("/bin/true", ["true"]), lambda: subprocess.run(["/bin/true"])):
            try:
                start()
                results.append("started")
            except OSError as error:
                results.append(error.errno)
        results.append(raw("clone", signal.SIGCHLD, 0, 0, 0, 0))
        results.append(raw("clone3", 0, 0))
        return results

    seen = cage.run(attack)
    assert seen.value == [errno.EPERM] * 4 + [errno.ENOSYS]
    assert {"clone", "execve"} <= seen.escapes
    assert seen.left == 0


def test_compilers_get_no_namespace_and_no_siblings(cage):
    def attack():
        new_user, parent = 0x10000000, 0x8000
        return [raw("clone", flag | signal.SIGCHLD, 0, 0, 0, 0) for flag in (new_user, parent)]

    seen = cage.run(attack, sandbox.Profile.COMPILER)
    assert seen.value == [errno.EPERM] * 2
    assert seen.escapes == {"clone"}


@BOTH
def test_files_outside_are_closed(cage, profile):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        secret = Path(folder, "reference.py")
        secret.write_text("answer")
        secret.chmod(0o666)
        shared = shared_memory.SharedMemory(create=True, size=16)
        name_in_shm = shared.name

        def attack():
            results = {}
            for name, act in {
                "read": lambda: secret.read_text(),
                "write": lambda: secret.write_text("mine"),
                "truncate": lambda: os.truncate(secret, 0),
                "append": lambda: os.close(os.open(secret, os.O_WRONLY | os.O_APPEND)),
                "new": lambda: Path(folder, "new").write_text("x"),
                "list": lambda: os.listdir(folder),
                "remove": lambda: secret.unlink(),
                "rename": lambda: secret.rename(Path(folder, "other")),
                "steal": lambda: secret.rename("here"),
                "link": lambda: os.link(secret, "here"),
                "mkdir": lambda: Path(folder, "d").mkdir(),
                "shm": lambda: Path("/dev/shm", name_in_shm).read_text(),
                "home": lambda: os.listdir(os.path.expanduser("~root")),
                "shadow": lambda: Path("/etc/shadow").read_bytes(),
                "others": lambda: Path(f"/proc/{os.getppid()}/environ").read_bytes(),
                "chmod": lambda: secret.chmod(0o777),
                "utime": lambda: os.utime(secret, (0, 0)),
                "xattr": lambda: os.setxattr(secret, "user.x", b"x"),
                "chown": lambda: os.chown(secret, os.getuid(), -1),
            }.items():
                try:
                    act()
                    results[name] = "worked"
                except OSError as error:
                    results[name] = error.errno
            return results

        seen = cage.run(attack, profile)
        shared.close()
        shared.unlink()
        assert secret.read_text() == "answer"
        assert secret.stat().st_mode & 0o777 == 0o666
        assert os.listdir(folder) == ["reference.py"]
    allowed = (*REFUSED, errno.EXDEV)
    assert seen.value.pop("shm") in (*REFUSED, errno.ENOENT)
    assert all(value in allowed for value in seen.value.values()), seen.value
    assert seen.escapes == set()


@BOTH
def test_a_readable_file_cannot_be_changed_through_its_descriptor(cage, profile):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        module = Path(folder, "module.py")
        module.write_text("code")
        os.chown(module, cage.user, -1)

        def attack():
            with open(module) as file:
                number = file.fileno()
                return [
                    raw("fchmod", number, 0o777),
                    raw("fcntl", number, 1024, fcntl.F_RDLCK),
                    raw("ioctl", number, 0x40086602, 0),
                ]

        seen = cage.run(attack, profile, read=(Path(folder),))
        assert module.read_text() == "code"
    assert all(value in REFUSED for value in seen.value)
    assert seen.escapes == set()


def test_a_second_filter_cannot_hide_later_calls(cage):
    seen = cage.run(lambda: libc.prctl(22, 2, 0, 0, 0))
    assert seen.value == -1
    assert seen.escapes == {"prctl"}


def test_it_cannot_hide_its_memory_from_the_accounts(cage):
    seen = cage.run(lambda: libc.prctl(4, 0, 0, 0, 0))
    assert seen.value == -1
    assert seen.hints == {"prctl"}


def test_limits_hold_and_cannot_be_raised(cage):
    def attack():
        data = resource.getrlimit(resource.RLIMIT_DATA)
        with pytest.raises((ValueError, PermissionError)):
            resource.setrlimit(resource.RLIMIT_DATA, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        with pytest.raises(MemoryError):
            bytearray(800 << 20)
        address_space = resource.getrlimit(resource.RLIMIT_AS)
        with pytest.raises(OSError), open("big", "wb") as file:
            file.truncate(300 << 20)
        return data, address_space, resource.getrlimit(resource.RLIMIT_CORE), resource.getrlimit(resource.RLIMIT_CPU)

    seen = cage.run(attack, memory_mib=256)
    assert seen.error == ""
    data, address_space, core, cpu = seen.value
    assert data[0] < 1 << 40
    assert address_space == resource.getrlimit(resource.RLIMIT_AS)
    assert core == (0, 0)
    assert cpu == (100, 101)


def test_root_keeps_no_power(cage):
    def look():
        lines = Path("/proc/self/status").read_text().splitlines()
        return {line.split()[0]: line.split()[1] for line in lines if line.startswith(("Cap", "NoNewPrivs"))}

    seen = cage.run(look)
    dac = (1 << 1) | (1 << 2)
    assert int(seen.value["CapEff:"], 16) & ~dac == 0
    assert int(seen.value["CapPrm:"], 16) & ~dac == 0
    assert int(seen.value["CapAmb:"], 16) == 0
    assert seen.value["NoNewPrivs:"] == "1"


@BOTH
def test_a_flood_of_refused_calls_is_bounded_and_loses_no_escape(cage, profile):
    def attack():
        def flood():
            for _ in range(400):
                raw("socket", socket.AF_UNIX, socket.SOCK_STREAM, 0)

        threads = [threading.Thread(target=flood) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return raw("socket", socket.AF_INET, socket.SOCK_STREAM, 0)

    seen = cage.run(attack, profile)
    assert seen.value == errno.EACCES
    assert seen.status == 0
    assert len(seen.refusals) <= 3201


def test_a_process_that_dies_while_it_waits_does_no_harm(cage):
    def attack():
        for _ in range(50):
            child = os.fork()
            if child == 0:
                threading.Thread(target=raw, args=("socket", socket.AF_INET, 1, 0)).start()
                os._exit(0)
            os.waitpid(child, 0)
        return raw("socket", socket.AF_INET, 1, 0)

    seen = cage.run(attack, sandbox.Profile.COMPILER)
    assert seen.status == 0
    assert seen.value == errno.EACCES


def test_the_judge_has_no_network_and_nobody_is_asked(cage):
    def look():
        return (
            raw("socket", socket.AF_INET, socket.SOCK_STREAM, 0),
            raw("connect", 0, 0, 0),
            raw("ptrace", 16, os.getppid(), 0, 0),
            raw("kill", os.getppid(), 0),
            subprocess.run(["/bin/true"], check=False).returncode,
        )

    seen = cage.run(look, sandbox.Profile.JUDGE)
    assert seen.value == (errno.EACCES, errno.EACCES, errno.EPERM, errno.EPERM, 0)
    assert seen.refusals == []


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="x32 is an ABI of x86_64")
def test_calls_of_another_abi_are_refused(cage):
    def attack():
        result = libc.syscall(ctypes.c_long(0x40000000 + NUMBERS["getpid"]))
        return ctypes.get_errno() if result < 0 else result

    seen = cage.run(attack)
    assert seen.value == errno.ENOSYS
    assert seen.escapes == {"foreign"}


@BOTH
def test_without_a_private_folder_shared_memory_by_name_is_closed(cage, profile, monkeypatch):
    monkeypatch.setattr("runners.sandbox.shm.make_private", lambda mebibytes: False)
    shared = shared_memory.SharedMemory(create=True, size=16)
    path = Path("/dev/shm", shared.name)
    path.chmod(0o666)

    def attack():
        results = []
        for flags in (os.O_RDONLY, os.O_RDWR, os.O_RDWR | os.O_CREAT | os.O_EXCL):
            try:
                results.append(os.open(f"{path}{'x' if flags & os.O_EXCL else ''}", flags, 0o600))
            except OSError as error:
                results.append(error.errno)
        return results

    seen = cage.run(attack, profile)
    shared.close()
    shared.unlink()
    assert seen.value == [errno.EACCES] * 3


def test_one_poll_is_bounded(cage):
    from runners.sandbox import listener

    assert listener.MAX_PER_POLL <= 1000
    mine, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        try:
            fd = sandbox.restrict(sandbox.Profile.STRICT, read=(), write=(), memory_mib=1024, cpu_seconds=60)
            socket.send_fds(theirs, [b"x"], [fd])
            os.close(fd)
            for _ in range(listener.MAX_PER_POLL + 10):
                raw("socket", socket.AF_UNIX, 1, 0)
            theirs.recv(1)
            raw("socket", socket.AF_INET, 1, 0)
            theirs.send(bytes([ctypes.get_errno()]))
        finally:
            os._exit(0)
    heard = sandbox.Listener(socket.recv_fds(mine, 1, 1)[1][0])
    assert heard.fileno() >= 0
    count = 0
    while count < listener.MAX_PER_POLL + 10:
        some = heard.poll()
        assert len(some) <= listener.MAX_PER_POLL
        assert all(one == some[0] for one in some)
        count += len(some)
    heard.close()
    assert heard.closed
    mine.send(b"x")
    assert mine.recv(1)[0] == errno.ENOSYS  # with the supervisor gone, refused calls still do not happen
    os.waitpid(child, 0)


def test_a_listener_ends_with_its_last_process(cage):
    mine, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        try:
            fd = sandbox.restrict(sandbox.Profile.STRICT, read=(), write=(), memory_mib=1024, cpu_seconds=60)
            socket.send_fds(theirs, [b"x"], [fd])
        finally:
            os._exit(0)
    heard = sandbox.Listener(socket.recv_fds(mine, 1, 1)[1][0])
    os.waitpid(child, 0)
    assert heard.poll() == []
    assert heard.closed
    heard.close()


def test_every_generation_signals_within_the_tree_alone(cage, bystander):
    def attack():
        sibling = os.fork()
        if sibling == 0:
            while True:
                signal.pause()
        child = os.fork()
        if child == 0:
            grandchild = os.fork()
            if grandchild == 0:
                while True:
                    signal.pause()
            own = raw("kill", grandchild, signal.SIGKILL)
            os._exit(10 * own + raw("kill", bystander, signal.SIGKILL))
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os.kill(sibling, signal.SIGKILL)
        return code, os.WTERMSIG(os.waitpid(sibling, 0)[1])

    seen = cage.run(attack, sandbox.Profile.COMPILER)
    assert seen.value == (errno.EPERM, signal.SIGKILL), seen.error
    assert seen.escapes == {"kill"}
