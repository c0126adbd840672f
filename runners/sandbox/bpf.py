"""A small assembler for seccomp's filters: rules on a system call's number and arguments become classic BPF.

Formats: ``struct sock_filter`` and ``struct seccomp_data`` of Linux's ``uapi/linux/filter.h`` and ``seccomp.h``. Both
architectures are little endian, so the low half of an argument comes first.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

MAX_INSTRUCTIONS = 4096
"""BPF_MAXINSNS."""

LOAD, JUMP_EQUAL, JUMP_ABOVE, AND, RETURN = 0x20, 0x15, 0x25, 0x54, 0x06
"""BPF_LD|W|ABS, BPF_JMP|JEQ|K, BPF_JMP|JGT|K, BPF_ALU|AND|K, BPF_RET|K."""

ALLOW = 0x7FFF0000
NOTIFY = 0x7FC00000
_ERRNO = 0x00050000

_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_INSTRUCTION = struct.Struct("<HBBI")


def error(number: int) -> int:
    """The return value of a filter that makes a call fail with errno ``number``."""
    return _ERRNO | number


@dataclass(frozen=True)
class Instruction:
    """One ``sock_filter``: ``if_true`` and ``if_false`` are how many instructions a jump skips."""

    code: int
    value: int
    if_true: int = 0
    if_false: int = 0

    def pack(self) -> bytes:
        """Its eight bytes. Raises struct.error where a jump skips more than 255."""
        return _INSTRUCTION.pack(self.code, self.if_true, self.if_false, self.value)


@dataclass(frozen=True)
class Condition:
    """Argument ``index`` AND ``mask`` equals ``value``: in its low 32 bits, or in both halves when ``wide``.

    The kernel reads an ``int`` parameter from the low half alone, so a comparison of both could be evaded.
    """

    index: int
    value: int
    mask: int = 0xFFFFFFFF
    wide: bool = False


@dataclass(frozen=True)
class Clause:
    """What the filter returns when all of ``conditions`` hold."""

    conditions: tuple[Condition, ...]
    result: int


@dataclass(frozen=True)
class Rule:
    """For one system call: the first clause that holds decides, else ``otherwise``."""

    otherwise: int
    clauses: tuple[Clause, ...] = ()


def _clause(clause: Clause) -> list[Instruction]:
    steps: list[Instruction] = []
    for condition in clause.conditions:
        low = _ARGUMENTS + 8 * condition.index
        steps.append(Instruction(LOAD, low))
        if condition.mask != 0xFFFFFFFF:
            steps.append(Instruction(AND, condition.mask))
        steps.append(Instruction(JUMP_EQUAL, condition.value & 0xFFFFFFFF))
        if condition.wide:
            steps.append(Instruction(LOAD, low + 4))
            steps.append(Instruction(JUMP_EQUAL, condition.value >> 32))
    end = len(steps)
    resolved = [
        Instruction(step.code, step.value, 0, end - at) if step.code == JUMP_EQUAL else step
        for at, step in enumerate(steps)
    ]
    return [*resolved, Instruction(RETURN, clause.result)]


def assemble(
    rules: Mapping[int, Rule], *, architecture: int, first_foreign: int | None, newest: int, foreign: int, unknown: int
) -> bytes:
    """The filter's bytes: ``rules`` by system call number; every other known call is allowed.

    ``foreign`` is returned for another architecture and for numbers from ``first_foreign`` up (x32 on x86_64),
    ``unknown`` for numbers above ``newest``. Raises ValueError when the filter is longer than the kernel takes.
    """
    program = [
        Instruction(LOAD, _ARCHITECTURE),
        Instruction(JUMP_EQUAL, architecture, 1, 0),
        Instruction(RETURN, foreign),
        Instruction(LOAD, _NUMBER),
    ]
    if first_foreign is not None:
        program += [Instruction(JUMP_ABOVE, first_foreign - 1, 0, 1), Instruction(RETURN, foreign)]
    program += [Instruction(JUMP_ABOVE, newest, 0, 1), Instruction(RETURN, unknown)]
    for number, rule in sorted(rules.items()):
        body = [step for clause in rule.clauses for step in _clause(clause)]
        body.append(Instruction(RETURN, rule.otherwise))
        program += [Instruction(JUMP_EQUAL, number, 0, len(body)), *body]
    program.append(Instruction(RETURN, ALLOW))
    if len(program) > MAX_INSTRUCTIONS:
        raise ValueError(f"{len(program)} instructions, the kernel takes {MAX_INSTRUCTIONS}")
    return pack(program)


def pack(program: Iterable[Instruction]) -> bytes:
    """Instructions as the kernel reads them, eight bytes each."""
    return b"".join(step.pack() for step in program)
