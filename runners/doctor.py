"""What this machine can and cannot check, and why: a list of lines, made from facts that are gathered apart.

Gathering touches the machine and imports nothing heavy; :func:`examine` is a pure function of what was gathered.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from runners.environment import Graphics, Packages, PythonProblem, cpu_model, graphics_here, packages_of

Status = Literal["ok", "limited", "missing"]

TORCH_AT_LEAST = (2, 6)
TRITON_NATIVE_AT_LEAST = (3, 2)
TRITON_INTERPRETER_AT_LEAST = (3, 7)
MEMORY_MIB_FOR_ONE_RUN = 8192
"""Judge and candidate at the default limit of 4096 MiB each."""
GIT_SECONDS = 5.0


class Line(msgspec.Struct, frozen=True):
    """One thing looked at. ``todo`` says what would help; empty where nothing is amiss."""

    name: str
    status: Status
    words: str
    todo: str = ""


class Sandbox(msgspec.Struct, frozen=True):
    """The sandbox level as doctor needs it."""

    label: str
    reached: bool
    missing: tuple[str, ...] = ()


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What was found on the machine."""

    platform: str
    python: str
    """The Python that runs candidates: a path, or empty for the console's own."""
    packages: Packages | None
    python_problem: str = ""
    sandbox: Sandbox
    graphics: Graphics
    cpu: str
    cores: int
    memory_mib: int | None
    git: str | None
    state: str
    state_problem: str = ""
    lock_problem: str = ""
    terminal: Mapping[str, str] = {}
    interactive: bool = False


def gather(
    python: str | None = None, *, state: Path, sandbox: Sandbox | None = None, environ: Mapping[str, str] | None = None
) -> Facts:
    """Look at the machine; ``state`` is the folder that drafts and evidence go to."""
    packages, problem = None, ""
    try:
        packages = packages_of(python)
    except PythonProblem as error:
        problem = str(error)
    environ = os.environ if environ is None else environ
    return Facts(
        platform=sys.platform,
        python=python or "",
        packages=packages,
        python_problem=problem,
        sandbox=sandbox or _sandbox(),
        graphics=graphics_here(),
        cpu=cpu_model(),
        cores=_cores(),
        memory_mib=_memory_mib(),
        git=_git(),
        state=str(state),
        state_problem=_writable(state),
        lock_problem=_lock(),
        terminal={name: environ[name] for name in _TERMINAL if environ.get(name)},
        interactive=sys.stdout.isatty(),
    )


def examine(facts: Facts) -> tuple[Line, ...]:
    """What can be checked with these facts."""
    return (
        _platform_line(facts),
        *_package_lines(facts),
        _sandbox_line(facts),
        _device_line(facts),
        _machine_line(facts),
        _lock_line(facts),
        _git_line(facts),
        _state_line(facts),
        _terminal_line(facts),
    )


def worst(lines: tuple[Line, ...]) -> Status:
    """The worst status among ``lines``."""
    order: tuple[Status, ...] = ("ok", "limited", "missing")
    return max((line.status for line in lines), key=order.index, default="ok")


def version_tuple(text: str) -> tuple[int, ...]:
    """The leading numbers of a version: ``2.13.0+cpu`` is (2, 13, 0)."""
    found = re.match(r"\d+(?:\.\d+)*", text)
    return tuple(int(part) for part in found.group(0).split(".")) if found else ()


# ---- from facts to lines -----------------------------------------------------------------------------------------


def _platform_line(facts: Facts) -> Line:
    if facts.platform == "linux":
        return Line("system", "ok", "Linux: panels can run")
    words = f"{facts.platform}: every panel is not-checked; reading, grading and committing work"
    return Line("system", "missing", words, "open the console on a Linux machine to run panels")


def _package_lines(facts: Facts) -> tuple[Line, ...]:
    whose = f"in {facts.python}" if facts.python else "beside the console"
    if facts.packages is None:
        todo = "set runner.python, or --python, to a Python 3.10 or newer with torch"
        return (Line("python", "missing", facts.python_problem, todo),)
    versions = facts.packages.versions
    lines = [Line("python", "ok", f"Python {facts.packages.python} {whose}")]
    if version_tuple(facts.packages.python) < (3, 10):
        words = f"Python {facts.packages.python} {whose} is older than 3.10"
        lines = [Line("python", "missing", words, "name a newer one in runner.python")]
    lines += [_torch_line(versions.get("torch"), whose), _triton_line(versions.get("triton"), facts, whose)]
    lines += [
        Line(name, "missing", f"not installed {whose}", f"install {name} there")
        for name in ("numpy", "msgspec")
        if versions.get(name) is None
    ]
    return tuple(lines)


def _torch_line(version: str | None, whose: str) -> Line:
    needed = ".".join(map(str, TORCH_AT_LEAST))
    if version is None:
        return Line("torch", "missing", f"not installed {whose}: nothing can be judged", f"install torch >= {needed}")
    if version_tuple(version) < TORCH_AT_LEAST:
        return Line("torch", "missing", f"{version} {whose}; {needed} is needed", f"install torch >= {needed}")
    return Line("torch", "ok", f"{version} {whose}")


def _triton_line(version: str | None, facts: Facts, whose: str) -> Line:
    native, interpreter = (".".join(map(str, least)) for least in (TRITON_NATIVE_AT_LEAST, TRITON_INTERPRETER_AT_LEAST))
    if version is None:
        words = f"not installed {whose}: Triton submissions are not-checked"
        return Line("triton", "limited", words, f"install triton >= {interpreter}")
    found = version_tuple(version)
    if found >= TRITON_INTERPRETER_AT_LEAST:
        return Line("triton", "ok", f"{version} {whose}: interpreter, and native on a CUDA device")
    if found >= TRITON_NATIVE_AT_LEAST and facts.graphics.names:
        words = f"{version} {whose}: native runs only, the interpreter needs {interpreter}"
        return Line("triton", "limited", words, f"install triton >= {interpreter} for out-of-bounds and race checks")
    words = f"{version} {whose}; the interpreter needs {interpreter}, native runs {native}"
    return Line("triton", "limited", words, f"install triton >= {interpreter}")


def _sandbox_line(facts: Facts) -> Line:
    sandbox = facts.sandbox
    lacking = f"; lacking: {'; '.join(sandbox.missing)}" if sandbox.missing else ""
    if not sandbox.reached:
        todo = "use a newer kernel, or --unsafe for submissions that you trust"
        return Line("sandbox", "missing", f"below the floor ({sandbox.label}): runs are refused{lacking}", todo)
    return Line("sandbox", "limited" if sandbox.missing else "ok", f"{sandbox.label}{lacking}")


def _device_line(facts: Facts) -> Line:
    if facts.graphics.names:
        return Line("device", "ok", f"{', '.join(facts.graphics.names)}; driver {facts.graphics.driver}")
    if facts.graphics.driver:
        words = f"driver {facts.graphics.driver} is loaded, but no device is visible"
        return Line("device", "limited", words, "check permissions on /dev/nvidia*")
    words = "no CUDA device: Triton kernels run through the interpreter and are not timed"
    return Line("device", "limited", words, "run on a machine with a GPU for native checks and times")


def _machine_line(facts: Facts) -> Line:
    memory = "memory unknown" if facts.memory_mib is None else f"{facts.memory_mib} MiB of memory"
    words = f"{facts.cpu}, {facts.cores} {'core' if facts.cores == 1 else 'cores'}, {memory}"
    if facts.memory_mib is not None and facts.memory_mib < MEMORY_MIB_FOR_ONE_RUN:
        return Line("machine", "limited", words, "large cases may run out of memory; lower [limits] memory_mib")
    if facts.cores == 1:
        return Line("machine", "limited", words, "judge and candidate share the one core; times are noisy")
    return Line("machine", "ok", words)


def _lock_line(facts: Facts) -> Line:
    if facts.lock_problem:
        return Line("lock", "missing", facts.lock_problem, "without the machine's lock nothing is timed")
    return Line("lock", "ok", "timing can have the machine to itself")


def _git_line(facts: Facts) -> Line:
    if facts.git is None:
        return Line("git", "missing", "not found: no exchange can be read", "install git")
    return Line("git", "ok", facts.git)


def _state_line(facts: Facts) -> Line:
    if facts.state_problem:
        words = f"{facts.state} cannot be written: {facts.state_problem}"
        return Line("state", "missing", words, "drafts and evidence need it; free it, or set XDG_STATE_HOME")
    return Line("state", "ok", f"drafts and evidence in {facts.state}")


_TERMINAL = ("TERM", "COLORTERM", "TMUX", "STY", "SSH_CONNECTION", "NO_COLOR", "LANG", "LC_ALL")


def _terminal_line(facts: Facts) -> Line:
    found = facts.terminal
    term = found.get("TERM", "")
    full = found.get("COLORTERM", "") in ("truecolor", "24bit")
    colours = "16.7 million colours" if full else "256 colours" if "256color" in term else "few colours"
    around = [name for name, key in (("tmux", "TMUX"), ("screen", "STY"), ("ssh", "SSH_CONNECTION")) if key in found]
    words = ", ".join(filter(None, (f"TERM={term or 'unset'}", colours, *around)))
    if not facts.interactive:
        return Line("terminal", "limited", f"{words}; not a terminal", "only the headless verbs work here")
    if term in ("", "dumb"):
        return Line("terminal", "missing", words, "set TERM to what your terminal is, such as xterm-256color")
    unicode = any("utf" in found.get(name, "").lower() for name in ("LC_ALL", "LANG"))
    if not unicode:
        return Line("terminal", "limited", f"{words}, locale without UTF-8", "set LANG to a UTF-8 locale")
    return Line("terminal", "ok", words)


# ---- looking ---------------------------------------------------------------------------------------------------------


def _sandbox() -> Sandbox:
    from runners import sandbox

    found = sandbox.level()
    return Sandbox(found.label, found.reached, found.missing)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _memory_mib() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20
    except (AttributeError, ValueError, OSError):
        return None


def _git() -> str | None:
    if shutil.which("git") is None:
        return None
    try:
        done = subprocess.run(["git", "--version"], capture_output=True, timeout=GIT_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout[:100].decode("utf-8", "replace").strip()


def _writable(state: Path) -> str:
    """Why nothing can be written below ``state``; empty where it can. Makes no folder."""
    nearest = next(path for path in (state, *state.parents) if path.exists())
    if not nearest.is_dir():
        return f"{nearest} is not a folder"
    return "" if os.access(nearest, os.W_OK | os.X_OK) else f"no permission in {nearest}"


def _lock() -> str:
    if sys.platform != "linux":
        return ""
    from runners.timing import lock

    try:
        lock.prepare()
    except lock.LockError as error:
        return str(error)
    return "" if os.access(lock.FOLDER, os.W_OK | os.X_OK) else f"no permission in {lock.FOLDER}"
