"""What a process under the sandbox may read: interpreter, packages and system libraries, never this project's data."""

from __future__ import annotations

import importlib.util
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

import runners

PROJECT_DATA = ("console", "rubrics", "sample_submissions", "tests", "docs")
"""Folders beside ``runners`` that hold answers or the console: verdicts, rubrics, the review machinery."""

SYSTEM = (
    "/usr",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/bin",
    "/sbin",
    *(
        f"/etc/{name}"
        for name in (
            "ld.so.cache",
            "ld.so.preload",
            "ld.so.conf",
            "ld.so.conf.d",
            "alternatives",
            "passwd",
            "group",
            "nsswitch.conf",
            "host.conf",
            "hosts",
            "protocols",
            "services",
            "localtime",
            "timezone",
            "locale.alias",
            "os-release",
            "mime.types",
            "nvidia",
        )
    ),
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/filesystems",
    "/proc/sys/vm/overcommit_memory",
    "/proc/sys/kernel/osrelease",
    "/sys/devices/system/cpu",
    "/sys/devices/system/node",
    "/sys/kernel/mm/transparent_hugepage",
)

GPU = ("/proc/driver/nvidia", "/proc/devices", "/proc/modules", "/sys/devices", "/sys/bus/pci", "/sys/module/nvidia")
"""What the CUDA driver reads besides its device nodes."""

WRITABLE_DEVICES = ("/dev/null", "/dev/zero", "/dev/full")

_PACKAGES = ("torch", "triton", "numpy", "msgspec")
"""Packages that a developer may have installed from a folder of their own."""


def readable_paths(exclude: Sequence[Path] = ()) -> tuple[Path, ...]:
    """Files and folders that may be read and executed, without what lies under ``exclude``.

    Where this project's data, or an excluded folder, lies inside a folder of packages, that folder is given entry by
    entry. ``/proc/self`` is not among them: it means another folder in each process.
    """
    return _carved(tuple(sorted({path.resolve() for path in exclude})))[0]


def listable_paths(exclude: Sequence[Path] = ()) -> tuple[Path, ...]:
    """The folders that :func:`readable_paths` gives entry by entry: the import system must list their names."""
    return _carved(tuple(sorted({path.resolve() for path in exclude})))[1]


@cache
def _carved(exclude: tuple[Path, ...]) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    package = Path(runners.__file__).resolve().parent
    project = package.parent
    if _is_site_folder(project):
        hidden = [*exclude, *(project / name for name in PROJECT_DATA)]
        roots = [*_roots(), package]
    else:  # installed from its own folder: nothing of that but this package
        hidden = [*exclude, project]
        roots = _roots()
    whole: set[Path] = set()
    listed: set[Path] = set()
    for root in roots:
        _carve(root, hidden, whole, listed)
    whole.add(package)
    outermost = tuple(path for path in sorted(whole) if not any(parent in whole for parent in path.parents))
    return outermost, tuple(sorted(listed))


def _roots() -> list[Path]:
    places = [sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix, *SYSTEM]
    places += [sysconfig.get_path(name) or "" for name in ("stdlib", "platstdlib", "purelib", "platlib", "include")]
    roots = [Path(place) for place in dict.fromkeys(places) if place]
    roots += [folder for name in _PACKAGES for folder in _folders_of(name)]
    found = []
    for root in roots:
        try:
            resolved = root.resolve(strict=True)
        except OSError:
            continue
        if resolved != Path(resolved.anchor) and resolved not in found:
            found.append(resolved)
    return found


def _folders_of(package: str) -> Iterable[Path]:
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return ()
    return tuple(Path(place) for place in (spec.submodule_search_locations or ()) if spec) if spec else ()


def _is_site_folder(folder: Path) -> bool:
    places = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    return folder.name in ("site-packages", "dist-packages") or folder in {Path(p).resolve() for p in places if p}


def _carve(root: Path, hidden: Iterable[Path], whole: set[Path], listed: set[Path]) -> None:
    """Put ``root`` into ``whole``; where something hidden lies beneath, its entries, and ``root`` into ``listed``."""
    inside = [path for path in hidden if root in path.parents]
    if root in hidden:
        return
    if not inside:
        whole.add(root)
        return
    try:
        entries = sorted(root.iterdir())
    except OSError:  # cannot be listed, so nothing in it can be told apart: all of it stays closed
        return
    listed.add(root)
    for entry in entries:
        try:
            target = entry.resolve(strict=True)
        except OSError:
            continue
        if entry.is_symlink() and any(
            target == path or target in path.parents or path in target.parents for path in hidden
        ):
            continue
        _carve(entry, hidden, whole, listed)
