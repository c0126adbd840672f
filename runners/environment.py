"""What a run's numbers depend on beside the code: the machine, its software, the sandbox, this runner.

Nothing heavy is imported: versions are read from installed metadata, devices from /proc. Another Python is asked once,
in a process of its own, and its answer kept until its installed packages change.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import subprocess
import sys
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

import msgspec

from runners.contract import Device

PROBE_SECONDS = 20.0
NVIDIA_SMI_SECONDS = 5.0
MAX_TEXT = 200

_PACKAGES = ("torch", "triton", "numpy", "msgspec")
_PROBE = """
import json, os, sys, sysconfig
from importlib import metadata
def version(name):
    try: return metadata.version(name)
    except metadata.PackageNotFoundError: return None
folders = sorted({os.path.realpath(p) for p in (*sys.path, *sysconfig.get_paths().values()) if p and os.path.isdir(p)})
print(json.dumps({"python": ".".join(map(str, sys.version_info[:3])),
    "versions": {name: version(name) for name in sys.argv[1:]},
    "folders": {folder: os.stat(folder).st_mtime_ns for folder in folders}}))
"""


class PythonProblem(Exception):
    """Another Python that cannot be asked; says which and why."""


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """Goes into evidence as it is. ``fingerprint`` stands for all fields but itself and ``runner``."""

    fingerprint: str
    python: str
    torch: str | None
    triton: str | None
    cpu: str
    device: str
    """The CUDA devices' names, or ``cpu``."""
    driver: str | None
    sandbox: str
    runner: str
    """A digest of the runner's own sources."""


class Packages(msgspec.Struct, frozen=True):
    """A Python's version and those of the packages that runs need; None where one is missing."""

    python: str
    versions: dict[str, str | None]


class Graphics(msgspec.Struct, frozen=True):
    """CUDA devices by name, and the driver; empty where there are none."""

    names: tuple[str, ...] = ()
    driver: str | None = None


def describe(python: str | None = None, *, sandbox: str | None = None, cache_folder: Path | None = None) -> Environment:
    """This machine with this Python, or with the Python at path ``python``. Raises PythonProblem.

    ``sandbox`` is the level's label where it is already known.
    """
    packages, graphics = packages_of(python, cache_folder), graphics_here()
    found = Environment(
        fingerprint="",
        python=packages.python,
        torch=packages.versions["torch"],
        triton=packages.versions["triton"],
        cpu=cpu_model(),
        device=", ".join(graphics.names) or "cpu",
        driver=graphics.driver,
        sandbox=_sandbox_label() if sandbox is None else sandbox,
        runner="",
    )
    digest = hashlib.sha256(msgspec.json.encode(found)).hexdigest()
    return msgspec.structs.replace(found, fingerprint=f"sha256:{digest}", runner=runner_version())


def device_of(environment: Environment) -> Device:
    """Where candidates run unless someone says otherwise: on a CUDA device that torch was built for, else the CPU."""
    usable = environment.torch is not None and not environment.torch.endswith("+cpu")
    return "cuda" if environment.device != "cpu" and usable else "cpu"


@cache
def runner_version() -> str:
    """A digest of every source file of the runners, names included: it changes when any of them does."""
    root = Path(__file__).resolve().parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        data = path.read_bytes()
        digest.update(f"{path.relative_to(root).as_posix()}\0{len(data)}\0".encode())
        digest.update(data)
    return digest.hexdigest()[:16]


@cache
def cpu_model() -> str:
    """The processor's name as the kernel gives it."""
    with suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.lower().startswith(("model name", "cpu model", "hardware")):
                return " ".join(line.partition(":")[2].split())[:MAX_TEXT]
    return platform.processor() or platform.machine()


@cache
def graphics_here() -> Graphics:
    """NVIDIA devices from /proc, or from nvidia-smi where a driver is loaded but /proc names no device."""
    driver = driver_version(_read("/proc/driver/nvidia/version"))
    if driver is None:
        return Graphics()
    information = sorted(Path("/proc/driver/nvidia/gpus").glob("*/information"))
    names = tuple(name for name in (_model(_read(path)) for path in information) if name) or _asked_names()
    return Graphics(names, driver)


def driver_version(text: str) -> str | None:
    """The version in /proc/driver/nvidia/version, None where there is none."""
    found = re.search(r"Kernel Module[^\n]*?\s(\d+(?:\.\d+)+)\s", text)
    return found.group(1) if found else None


def packages_of(python: str | None, cache_folder: Path | None = None) -> Packages:
    """Versions of this Python's packages, or another's. Raises PythonProblem."""
    if python is None or Path(python).absolute() == Path(sys.executable).absolute():
        return Packages(platform.python_version(), {name: _version(name) for name in _PACKAGES})
    return _ask(Path(python), cache_folder or _default_cache())


def _version(name: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _sandbox_label() -> str:
    from runners import sandbox

    return sandbox.level().label


def _model(text: str) -> str | None:
    found = re.search(r"^Model:\s*(.+)$", text, re.MULTILINE)
    return found.group(1).strip()[:MAX_TEXT] if found else None


def _asked_names() -> tuple[str, ...]:
    try:
        done = subprocess.run(
            ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"],
            capture_output=True,
            timeout=NVIDIA_SMI_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    lines = done.stdout[:16_384].decode("utf-8", "replace").splitlines()
    return tuple(line.strip()[:MAX_TEXT] for line in lines if line.strip())


def _read(path: str | Path) -> str:
    with suppress(OSError), open(path, "rb") as file:
        return file.read(16_384).decode("utf-8", "replace")
    return ""


# ---- another Python --------------------------------------------------------------------------------------------------


class _Answer(msgspec.Struct, frozen=True):
    python: str
    versions: dict[str, str | None]
    folders: dict[str, int]


_decode = msgspec.json.Decoder(_Answer).decode


def _default_cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "kernel-review" / "pythons"


def _ask(python: Path, cache_folder: Path) -> Packages:
    try:
        found = python.stat()
    except OSError as error:
        raise PythonProblem(f"{python}: {error.strerror}") from None
    # A venv's python is a link to the same binary as any other's, so the path itself belongs to the name.
    identity = f"{python.absolute()}\0{found.st_mtime_ns}\0{found.st_size}\0{_PROBE}"
    kept = cache_folder / f"{hashlib.sha256(identity.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}.json"
    answer = _kept_answer(kept)
    if answer is None:
        answer = _probe(python)
        _keep(kept, answer)
    return Packages(answer.python, {name: answer.versions.get(name) for name in _PACKAGES})


def _kept_answer(kept: Path) -> _Answer | None:
    """The answer on disk, unless a folder that packages are installed in has changed since."""
    try:
        answer = _decode(kept.read_bytes())
        current = all(Path(folder).stat().st_mtime_ns == then for folder, then in answer.folders.items())
    except (OSError, msgspec.MsgspecError):
        return None
    return answer if current else None


def _probe(python: Path) -> _Answer:
    try:
        done = subprocess.run(
            [str(python), "-I", "-c", _PROBE, *_PACKAGES], capture_output=True, timeout=PROBE_SECONDS, check=True
        )
        return _decode(done.stdout)
    except subprocess.CalledProcessError as error:
        words = error.stderr[-MAX_TEXT:].decode("utf-8", "replace").strip()
        raise PythonProblem(f"{python} ended with status {error.returncode}: {words or 'no words'}") from None
    except subprocess.TimeoutExpired:
        raise PythonProblem(f"{python} did not answer within {PROBE_SECONDS:g} s") from None
    except OSError as error:
        raise PythonProblem(f"{python}: {error.strerror}") from None
    except msgspec.MsgspecError:
        raise PythonProblem(f"{python} did not answer like a Python 3.10 or newer") from None


def _keep(kept: Path, answer: _Answer) -> None:
    """Keep the answer; where that is impossible it is asked again next time, which costs time and nothing else."""
    with suppress(OSError):
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=kept.parent, delete=False) as file:
            file.write(msgspec.json.encode(answer))
        Path(file.name).replace(kept)
