"""What is kept between starts: derived data only, made anew where it is absent, broken, or from other code."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from pathlib import Path
from typing import TypeVar

import msgspec

T = TypeVar("T")


def code_version(*modules: str) -> str:
    """What tells one version of these imported modules from another: size and time of their files."""
    stats = [Path(str(sys.modules[name].__file__)).stat() for name in modules]
    return " ".join(f"{stat.st_size}.{stat.st_mtime_ns}" for stat in stats)


def read_kept(path: Path, version: str, kind: type[T]) -> T | None:
    """What was kept as ``kind`` by the same version of the code, else None."""
    try:
        found, data = msgspec.msgpack.decode(path.read_bytes(), type=tuple[str, msgspec.Raw])
        return msgspec.msgpack.decode(data, type=kind) if found == version else None
    except (OSError, msgspec.MsgspecError):
        return None


def write_kept(path: Path, version: str, value: object) -> None:
    """Keep ``value``, where there is room: what is derived is made anew, so a full disk stops nobody from reading."""
    with contextlib.suppress(OSError):
        write_whole(path, msgspec.msgpack.encode((version, value)))


def write_whole(path: Path, data: bytes) -> None:
    """Replace a file in one step, so that a reader, or a crash, sees the old one or the new one. Raises OSError."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(name).replace(path)
    except BaseException as error:
        Path(name).unlink(missing_ok=True)
        name_file(error, path)
        raise


def name_file(error: BaseException, path: Path) -> None:
    """Say which file an error is about: a full disk is reported by a write, which knows no name."""
    if isinstance(error, OSError) and error.filename is None:
        error.filename = str(path)
