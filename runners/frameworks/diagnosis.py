"""Turn what a candidate raised into a finding code and a line: whose fault it is follows from the code."""

from __future__ import annotations

import os
import re
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from runners.frameworks.reports import clip, make_report

Phase = Literal["load", "call"]

MAX_CHAIN = 16


class ContractError(Exception):
    """The candidate is not what the task asks for: entry missing, wrong type."""


class NotInterpretableError(Exception):
    """The interpreter cannot run this construct; says nothing about the candidate."""


class SpinError(Exception):
    """A program polls memory that only another program can change, and that one is not running."""

    def __init__(self, message: str, order: str) -> None:
        super().__init__(message)
        self.order = order


class DeviceAssertionError(AssertionError):
    """``tl.device_assert`` or ``assert`` in a kernel did not hold."""


_PHRASES: tuple[tuple[str, str], ...] = (
    # The machine: driver, toolkit, libraries.
    (
        "build/environment",
        r"no NVIDIA driver on your system|no CUDA-capable device|0 active drivers|driver version is insufficient"
        r"|NVIDIA driver on your system is too old|unsupported toolchain|forward compatibility"
        r"|unsupported display driver|PTX JIT compiler library not found|busy or unavailable"
        r"|detected CUDA version .* mismatches|not compiled with CUDA enabled|CUDA_HOME environment variable is not set"
        r"|failed to open libnvrtc-builtins|Failed to find C compiler|Cannot find a working (?:C|triton)"
        r"|undefined symbol: _ZN3c10|version .GLIBCXX_\S* not found|cannot open shared object file"
        r"|Could not load this library|No module named|Only interpret mode is supported on CPU backend"
        r"|No space left on device|Cannot allocate memory for thread|can't start new thread",
    ),
    (
        "build/wrong-arch",
        r"no kernel image is available|Unsupported gpu architecture|not supported on \.target"
        r"|not supported in this architecture|invalid value for --gpu-architecture|requires NVIDIA SM\d+"
        r"|device kernel image is invalid|invalid device function",
    ),
    (
        "build/resources",
        r"out of resource: |uses too much shared data|too many resources requested for launch",
    ),
    (
        "build/out-of-memory",
        r"out of memory|RESOURCE_EXHAUSTED|can't allocate memory|unable to allocate|would exceed per_process_memory"
        r"|DefaultCPUAllocator: ",
    ),
    (
        "build/autotune",
        r"Autotuner error: |No valid autotuner configs|Conflicting meta-parameters|Autotuning failed with",
    ),
    (
        "build/compile",
        r"PTXAS error: |Internal Triton PTX codegen error|ptxas. (?:raised|failed)|CompileTimeAssertionFailure"
        r"|UnsupportedLanguageConstruct|CompilationError|Error building extension|Error compiling objects"
        r"|errors? detected in the compilation of|ptxas fatal|nvrtc: error|NVRTC_ERROR_COMPILATION"
        r"|arange's (?:range|arguments) must be|M >= \d+, N >= \d+ and K >= \d+|Cannot make_shape_compatible"
        r"|exceeds triton maximum tensor numel|Loop-carried variable|Boolean value of Tensor with more than one value"
        r"|Unsupported ptr type|cannot be provided without|num_warps must be a power of 2",
    ),
    (
        "build/launch",
        r"invalid configuration argument|illegal memory access|misaligned address|unspecified launch failure"
        r"|device-side assert triggered|launch timed out",
    ),
)
_COMPILED = tuple((code, re.compile(pattern, re.IGNORECASE)) for code, pattern in _PHRASES)

_COMPILE_CLASSES = frozenset({"CompilationError", "CompileTimeAssertionFailure", "UnsupportedLanguageConstruct"})
_AT = re.compile(r"(?:^|\n)\s*at (\d+):(\d+):")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{6,}")


def _text(error: BaseException) -> str:
    """What the error says; an exception of the submission may fail even at that."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - foreign code
        return ""
    return clip(text.replace("<source unavailable>", "").strip(), 20_000)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error, then what caused it, innermost last."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen and len(seen) < MAX_CHAIN:
        seen.add(id(current))
        yield current
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)


def _inside(file: str, folder: str) -> bool:
    return os.path.realpath(file).startswith(folder + os.sep)


def _innermost(trace: TracebackType | None, folder: str) -> tuple[str, int] | None:
    found: tuple[str, int] | None = None
    for frame, line in traceback.walk_tb(trace):
        file = frame.f_code.co_filename
        if _inside(file, folder):
            found = (os.path.relpath(os.path.realpath(file), folder), line)
    return found


def _compile_place(error: BaseException, folder: str) -> tuple[str, int] | None:
    """Triton counts lines from the kernel's ``def``: map ``at l:c`` to the file through the kernel's own source."""
    node, source = getattr(error, "node", None), getattr(error, "src", None)
    line = getattr(node, "lineno", None)
    if line is None:
        at = _AT.search(_text(error))
        line = int(at.group(1)) if at else None
    if line is None or not isinstance(source, str):
        return None
    wanted = [text.strip() for text in source.splitlines() if text.strip()][:3]
    for path in sorted(Path(folder).rglob("*.py"))[:50]:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        stripped = [text.strip() for text in lines]
        for start, text in enumerate(stripped):
            if wanted and text == wanted[0]:
                following = [other for other in stripped[start : start + 12] if other][: len(wanted)]
                if following == wanted:
                    return (os.path.relpath(path, folder), start + line)
    return None


def _place(error: BaseException, folder: str) -> tuple[str, int] | None:
    errors = list(_chain(error))
    for one in errors:
        if type(one).__name__ in _COMPILE_CLASSES:
            found = _compile_place(one, folder)
            if found is not None:
                return found
    first = errors[0]
    if isinstance(first, SyntaxError) and first.filename and first.lineno and _inside(first.filename, folder):
        return (os.path.relpath(os.path.realpath(first.filename), folder), first.lineno)
    for one in reversed(errors):
        found = _innermost(one.__traceback__, folder)
        if found is not None:
            return found
    return None


def _by_class(error: BaseException) -> str | None:
    if isinstance(error, ContractError):
        return "build/contract"
    if isinstance(error, NotInterpretableError):
        return "build/environment"
    if isinstance(error, SpinError):
        return "build/hang" if error.order == "forward" else "build/environment"
    if isinstance(error, DeviceAssertionError):
        return "build/launch"
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return "build/out-of-memory"
    if isinstance(error, ModuleNotFoundError):
        return "build/environment"
    if type(error).__name__ in _COMPILE_CLASSES:
        return None if _by_phrase(_text(error)) == "build/wrong-arch" else "build/compile"
    return None


def _by_phrase(text: str) -> str | None:
    for code, pattern in _COMPILED:
        if pattern.search(text):
            return code
    return None


def _from_a_kernel(error: BaseException) -> bool:
    return any(type(one).__name__ == "InterpreterError" for one in _chain(error))


def _code(error: BaseException, phase: Phase, folder: str) -> str:
    if isinstance(error, SystemExit) and error.code in (None, 0, False):
        return "integrity/forged-result"
    if isinstance(error, (SystemExit, KeyboardInterrupt, GeneratorExit)):
        return "build/import" if phase == "load" else "build/launch"
    errors = list(_chain(error))
    for one in reversed(errors):
        code = _by_class(one)
        if code is not None:
            return code
    for one in reversed(errors):
        code = _by_phrase(f"{type(one).__name__}: {_text(one)}")
        if code is not None:
            return code
    if _from_a_kernel(error):
        return "build/compile"
    if phase == "load":
        return "build/import"
    if isinstance(error, TypeError) and _innermost(error.__traceback__, folder) is None:
        return "build/contract"
    return "build/launch"


def _words(error: BaseException) -> str:
    """The innermost error in one line, addresses hidden, since they differ from run to run."""
    last = error
    for last in _chain(error):  # noqa: B007 - the innermost is wanted
        pass
    shown = last if _from_a_kernel(error) else error
    text = " ".join(_text(shown).split())
    name = type(shown).__name__
    return _ADDRESS.sub("0x…", f"{name}: {text}" if text else name)


def diagnose(error: BaseException, submission_dir: Path, phase: Phase) -> dict[str, Any]:
    """What an exception means: a report whose code says whose fault it is, with the line in the submission.

    ``phase`` is ``load`` while the file is imported and ``call`` while its entry runs. ``submission_dir`` is the folder
    whose lines count as the submission's. Never raises.
    """
    folder = os.path.realpath(submission_dir)
    code = _code(error, phase, folder)
    place = _place(error, folder)
    words = _words(error)
    if code == "integrity/forged-result":
        words = f"exits with success while it is being {'imported' if phase == 'load' else 'called'}"
    elif code == "build/environment" and isinstance(error, ModuleNotFoundError):
        words = f"{words}: not installed where this ran"
    return make_report(
        code,
        words,
        place[0] if place else None,
        place[1] if place else None,
        {"exception": type(error).__name__, "phase": phase, "trace": _trace(error, folder)},
    )


def _trace(error: BaseException, folder: str) -> list[str]:
    lines = []
    for one in reversed(list(_chain(error))):
        for frame, line in traceback.walk_tb(one.__traceback__):
            if _inside(frame.f_code.co_filename, folder):
                file = os.path.relpath(os.path.realpath(frame.f_code.co_filename), folder)
                lines.append(f"{file}:{line} in {frame.f_code.co_name}")
        if lines:
            break
    return lines[-8:]
