"""The filters of both architectures, run by a small interpreter of classic BPF over made-up calls."""

from __future__ import annotations

import errno
import re
import resource
import struct
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.sandbox import meaning
from runners.sandbox.bpf import ALLOW, MAX_INSTRUCTIONS, NOTIFY, Clause, Condition, Instruction, Rule, assemble, error
from runners.sandbox.policy import Profile, filter_for, rules
from runners.sandbox.syscalls import ARCHITECTURES, NEWEST

PID = 4321
X86, ARM = ARCHITECTURES["x86_64"], ARCHITECTURES["aarch64"]
MACHINES = pytest.mark.parametrize("machine", [X86, ARM], ids=["x86_64", "aarch64"])
PROFILES = pytest.mark.parametrize("profile", list(Profile))
WORDS = st.lists(st.integers(0, 2**64 - 1), min_size=6, max_size=6)


@cache
def unpacked(code: bytes):
    return list(struct.iter_unpack("<HBBI", code))


def interpret(code: bytes, audit: int, number: int, arguments=()) -> int:
    """What the kernel's BPF machine returns; raises where the kernel would not load the program."""
    values = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("<IIQ6Q", number, audit, 0, *(value & (2**64 - 1) for value in values))
    program = unpacked(code)
    at = accumulator = 0
    while True:
        operation, if_true, if_false, value = program[at]
        at += 1
        if operation == 0x20:
            assert value % 4 == 0
            accumulator = struct.unpack_from("<I", data, value)[0]
        elif operation == 0x54:
            accumulator &= value
        elif operation == 0x15:
            at += if_true if accumulator == value else if_false
        elif operation == 0x25:
            at += if_true if accumulator > value else if_false
        elif operation == 0x06:
            return value
        else:
            raise AssertionError(f"operation {operation:#x}")


@cache
def compiled(name, profile, abi):
    return filter_for(profile, ARCHITECTURES[name], pid=PID, landlock_abi=abi)


def ask(machine, profile, name, *arguments, abi=7):
    code = compiled(machine.name, profile, abi)
    return interpret(code, machine.audit, machine.numbers[name], arguments)


def refusal(profile, name) -> int:
    return NOTIFY if profile is not Profile.JUDGE else error(meaning.errno_of([name])[name])


@MACHINES
@PROFILES
@pytest.mark.parametrize("abi", [0, 1, 2, 3, 4, 5, 6, 7])
def test_every_path_of_a_filter_is_sound(machine, profile, abi):
    code = filter_for(profile, machine, pid=PID, landlock_abi=abi)
    program = list(struct.iter_unpack("<HBBI", code))
    assert len(program) < MAX_INSTRUCTIONS
    assert program[-1][0] == 0x06
    for at, (operation, if_true, if_false, _) in enumerate(program):
        if operation in (0x15, 0x25):
            assert at + 1 + max(if_true, if_false) < len(program)


@MACHINES
@PROFILES
def test_other_architectures_and_unknown_calls(machine, profile):
    code = filter_for(profile, machine, pid=PID, landlock_abi=7)
    foreign = error(errno.ENOSYS) if profile is Profile.JUDGE else NOTIFY
    for audit in {X86.audit, ARM.audit, 0x40000003, 0x40000028} - {machine.audit}:
        assert interpret(code, audit, machine.numbers["read"]) == foreign
    assert interpret(code, machine.audit, NEWEST + 1) == error(errno.ENOSYS)
    x32 = interpret(code, machine.audit, 0x40000000 + machine.numbers["read"])
    assert x32 == (foreign if machine is X86 else error(errno.ENOSYS))


@MACHINES
@PROFILES
@given(words=WORDS)
def test_plain_calls_pass_and_forbidden_ones_never_do(machine, profile, words):
    for name in ("read", "write", "close", "getpid"):
        assert ask(machine, profile, name, *words) == ALLOW
    for name in ("ptrace", "connect", "bpf", "io_uring_setup", "mount", "unshare", "tkill", "setuid", "pidfd_open"):
        assert ask(machine, profile, name, *words) == refusal(profile, name)


@MACHINES
@pytest.mark.parametrize("profile", [Profile.STRICT, Profile.COMPILER])
@given(words=WORDS)
def test_only_the_own_pid_is_signalled(machine, profile, words):
    for name in ("kill", "tgkill"):
        expected = ALLOW if words[0] & 0xFFFFFFFF == PID else NOTIFY
        assert ask(machine, profile, name, *words) == expected
        assert ask(machine, profile, name, PID | words[1] << 32, *words[1:]) == ALLOW
        assert ask(machine, profile, name, PID + 1) == ask(machine, profile, name, -PID) == NOTIFY


@MACHINES
@given(flags=st.integers(0, 2**64 - 1))
def test_clone_by_profile(machine, flags):
    low = flags & 0xFFFFFFFF
    namespaces = low & 0x7E020000
    assert (ask(machine, Profile.STRICT, "clone", flags) == ALLOW) == (bool(low & 0x10000) and not namespaces)
    assert (ask(machine, Profile.COMPILER, "clone", flags) == ALLOW) == (not namespaces and not low & 0x8000)


@MACHINES
@PROFILES
def test_clone3_does_not_exist(machine, profile):
    assert ask(machine, profile, "clone3", 1, 2) == error(errno.ENOSYS)


@MACHINES
@PROFILES
def test_new_processes_by_profile(machine, profile):
    for name in ("fork", "vfork", "execve", "execveat"):
        if name in machine.numbers:
            assert ask(machine, profile, name) == (NOTIFY if profile is Profile.STRICT else ALLOW)


@MACHINES
@PROFILES
@given(pid=st.integers(0, 2**32 - 1), new=st.integers(0, 2**64 - 1), high=st.integers(0, 2**32 - 1))
def test_limits_may_be_read_but_not_set(machine, profile, pid, new, high):
    word = pid | high << 32
    assert (ask(machine, profile, "prlimit64", word, 7, 0, 1) == ALLOW) == (pid in (0, PID))
    assert ask(machine, profile, "prlimit64", 0, resource.RLIMIT_DATA, new, 0) == (
        ALLOW if new == 0 else refusal(profile, "prlimit64")
    )
    stack = ask(machine, profile, "prlimit64", 0, resource.RLIMIT_STACK, 4096, 0)
    assert (stack == ALLOW) == (profile is not Profile.STRICT)


@MACHINES
@PROFILES
@given(command=st.integers(0, 2**32 - 1))
def test_descriptors_that_signal(machine, profile, command):
    bad = command in (8, 10, 15, 1024, 1026)
    assert (ask(machine, profile, "fcntl", 3, command) != ALLOW) == bad
    for known in (8, 10, 15, 1024, 1026):
        assert ask(machine, profile, "fcntl", 3, known | command << 32, 1) == refusal(profile, "fcntl")
    for request in (0x8901, 0x8902, 0x5412, 0x541C):
        assert ask(machine, profile, "ioctl", 0, request | command << 32) == refusal(profile, "ioctl")
    assert ask(machine, profile, "ioctl", 0, 0x5401) == ask(machine, profile, "fcntl", 0, 3) == ALLOW


@MACHINES
@PROFILES
def test_socket_pairs(machine, profile):
    no = refusal(profile, "socketpair")
    for kind, expected in ((1, ALLOW), (5, ALLOW), (1 | 0o2004000, ALLOW), (2, no), (3, no), (2 | 0o2000000, no)):
        assert ask(machine, profile, "socketpair", 1, kind, 0) == expected
    assert ask(machine, profile, "socketpair", 2, 1, 0) == no
    assert ask(machine, profile, "sendto", 3, 4, 5, 0, 0, 0) == ALLOW
    assert ask(machine, profile, "sendto", 3, 4, 5, 0, 1 << 32, 0) == refusal(profile, "sendto")
    assert ask(machine, profile, "sendto", 3, 4, 5, 0, 8, 0) == refusal(profile, "sendto")


@MACHINES
@PROFILES
@pytest.mark.parametrize("abi", [1, 2, 3])
def test_truncation_where_landlock_does_not_stop_it(machine, profile, abi):
    closed = abi < 3
    assert (ask(machine, profile, "truncate", 1, 0, abi=abi) == ALLOW) != closed
    assert (ask(machine, profile, "openat2", abi=abi) == ALLOW) != closed
    for access, emptied in ((0, True), (1, False), (2, False), (3, True)):
        assert (ask(machine, profile, "openat", 0, 0, 0o1000 | access, abi=abi) == ALLOW) != (closed and emptied)
        assert ask(machine, profile, "openat", 0, 0, access, abi=abi) == ALLOW


@MACHINES
def test_the_judge_may_change_its_files_and_signal_within_its_scope(machine):
    assert ask(machine, Profile.JUDGE, "fchmod") == ALLOW
    assert ask(machine, Profile.STRICT, "fchmod") == NOTIFY
    assert ask(machine, Profile.JUDGE, "kill", 1, abi=6) == ALLOW
    assert ask(machine, Profile.JUDGE, "kill", 1, abi=5) == error(errno.EPERM)


@MACHINES
@PROFILES
def test_own_filter_and_accounts(machine, profile):
    no = refusal(profile, "prctl")
    assert ask(machine, profile, "prctl", 22) == ask(machine, profile, "prctl", 62) == no
    assert ask(machine, profile, "prctl", 4, 0) == no
    assert ask(machine, profile, "prctl", 4, 1) == ask(machine, profile, "prctl", 15) == ALLOW
    assert ask(machine, profile, "personality", 0xFFFFFFFF) == ALLOW
    assert ask(machine, profile, "personality", 0x40000) == refusal(profile, "personality")


def test_every_rule_has_a_meaning_of_its_own():
    for name in rules(Profile.STRICT, pid=PID, landlock_abi=1):
        if name in ("clone3", "openat2"):
            continue
        said = meaning.meaning_of(name, [99] * 6, lambda pid: False)
        assert said.error in (errno.EPERM, errno.EACCES)
        assert "another architecture" not in said.summary


@given(WORDS, st.sampled_from(sorted({*X86.numbers, ""})))
def test_meanings_are_total_and_of_few_words(words, name):
    said = meaning.meaning_of(name, words, lambda pid: pid == 0)
    assert said.severity in ("escape", "info")
    assert not re.search(r"\d{3}", said.summary)


@pytest.mark.parametrize("name", ["sched_setaffinity", "prlimit64", "process_vm_readv", "pidfd_open", "tkill"])
def test_aimed_at_oneself_is_no_escape(name):
    assert meaning.meaning_of(name, [PID, 0, 1, 0, 0, 0], lambda pid: pid == PID).severity == "info"
    assert meaning.meaning_of(name, [PID + 1, 0, 1, 0, 0, 0], lambda pid: pid == PID).severity == "escape"


HEADERS = {
    "x86_64": (Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"), r"#define __NR_(\w+)\s+(\d+)"),
    "aarch64": (Path("/usr/include/asm-generic/unistd.h"), r"#define __NR(?:3264)?_(\w+)\s+(\d+)"),
}


@pytest.mark.parametrize("name", list(HEADERS))
def test_numbers_are_those_of_the_system_headers(name):
    path, pattern = HEADERS[name]
    if not path.exists():
        pytest.skip(f"no {path}")
    known: dict[str, int] = {}
    for call, number in re.findall(pattern, path.read_text()):
        known.setdefault(call, int(number))
    numbers = ARCHITECTURES[name].numbers
    shared = numbers.keys() & known.keys()
    assert len(shared) > 130
    assert {call: numbers[call] for call in shared} == {call: known[call] for call in shared}
    assert not [call for call in known if call in X86.numbers and call not in numbers]


CONDITIONS = st.builds(
    Condition,
    st.integers(0, 5),
    st.integers(0, 3),
    st.sampled_from([0xFFFFFFFF, 1, 2, 3]),
    st.booleans(),
)
RULES = st.builds(
    Rule,
    st.integers(1, 9),
    st.lists(st.builds(Clause, st.lists(CONDITIONS, max_size=3).map(tuple), st.integers(1, 9)), max_size=4).map(tuple),
)


def by_hand(rule: Rule, arguments) -> int:
    for clause in rule.clauses:
        if all(
            arguments[one.index] & one.mask == one.value & 0xFFFFFFFF
            and (not one.wide or arguments[one.index] >> 32 == one.value >> 32)
            for one in clause.conditions
        ):
            return clause.result
    return rule.otherwise


@given(
    st.dictionaries(st.integers(0, 30), RULES, max_size=5),
    st.integers(0, 32),
    st.lists(st.one_of(st.integers(0, 4), st.integers(2**32, 2**32 + 4)), min_size=6, max_size=6),
)
def test_assembled_rules_mean_what_they_say(table, number, arguments):
    code = assemble(table, architecture=1, first_foreign=None, newest=30, foreign=77, unknown=88)
    expected = 88 if number > 30 else by_hand(table[number], arguments) if number in table else ALLOW
    assert interpret(code, 1, number, arguments) == expected
    assert interpret(code, 2, number, arguments) == 77


def test_limits_of_the_assembler():
    many = {number: Rule(1, (Clause((Condition(0, 1),), 2),)) for number in range(1000)}
    with pytest.raises(ValueError, match="4096"):
        assemble(many, architecture=1, first_foreign=None, newest=2000, foreign=0, unknown=0)
    with pytest.raises(struct.error):
        Instruction(0x15, 0, 0, 256).pack()
