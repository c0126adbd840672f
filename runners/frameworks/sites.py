"""Which line of the submission is running: the innermost frame outside of Triton, torch, numpy and the hooks."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

Site = tuple[str, int]
"""File, relative to the submission's folder where it lies inside, and line."""

_HERE = str(Path(__file__).parents[1]) + os.sep
_skipped: dict[str, bool] = {}
_folder: str | None = None


def set_folder(folder: Path) -> None:
    """Say where the submission lies; frames inside are preferred to all others."""
    global _folder
    _folder = os.path.realpath(folder) + os.sep


def _skip(file: str) -> bool:
    skipped = _skipped.get(file)
    if skipped is None:
        parts = file.replace("\\", "/")
        skipped = (
            file.startswith((_HERE, "<"))
            or any(f"/site-packages/{name}/" in parts for name in ("triton", "torch", "numpy"))
            or f"{os.sep}contextlib.py" in file
        )
        _skipped[file] = skipped
    return skipped


def relative(file: str) -> str:
    """``file`` as the reader of a report knows it."""
    real = os.path.realpath(file)
    if _folder is not None and real.startswith(_folder):
        return real[len(_folder) :]
    return Path(file).name


def site(depth: int = 1) -> Site | None:
    """The line that led here: the innermost in the submission, else in other foreign code; None without either."""
    frame: Any = sys._getframe(depth)
    other: Site | None = None
    while frame is not None:
        file = frame.f_code.co_filename
        if not _skip(file):
            if _folder is None or os.path.realpath(file).startswith(_folder):
                return relative(file), frame.f_lineno
            other = other or (relative(file), frame.f_lineno)
        frame = frame.f_back
    return other
