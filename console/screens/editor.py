"""The grader's own editor, for longer texts."""

from __future__ import annotations

import os
import stat
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from textual.app import App, SuspendNotSupported

from console.screens.lend import lend

MAX_WRITTEN = 256 * 1024
"""Bytes of one note or summary."""


def edit_outside(app: App[Any], words: Sequence[str], text: str, title: str) -> tuple[str | None, str]:
    """``text`` after the grader's editor has had it, and what to say about it.

    None when there is nothing to take over. No failure of the editor raises or loses a word: what was written stays
    in the file that the message names.
    """
    handle, name = tempfile.mkstemp(prefix="kernel-review-", suffix=".md", text=True)
    path = Path(name)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)

    def edit() -> int:
        print(title, flush=True)
        return subprocess.run([*words, name], check=False).returncode

    try:
        code = lend(app, edit)
    except SuspendNotSupported:
        path.unlink(missing_ok=True)
        return None, "this terminal cannot be given to an editor: c writes here"
    except OSError as error:
        path.unlink(missing_ok=True)
        return None, f"{words[0]}: {error.strerror or error}"
    try:
        written = _read(path)
    except (OSError, ValueError) as error:
        told = getattr(error, "strerror", None) or error
        return None, f"{words[0]} left nothing that can be taken over: {told} ({path}); nothing changed"
    if code != 0:
        if written == text:
            path.unlink(missing_ok=True)
            return None, f"{words[0]} ended with {code}: nothing changed"
        return None, f"{words[0]} ended with {code}: nothing taken over; your text is in {path}"
    path.unlink(missing_ok=True)
    return written.rstrip("\n"), ""


def _read(path: Path) -> str:
    """What the editor wrote. Raises OSError and ValueError: an editor may put anything in the place of the file."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("not a file any more")
        data = file.read(MAX_WRITTEN + 1)
    if len(data) > MAX_WRITTEN:
        raise ValueError(f"more than {MAX_WRITTEN >> 10} KiB")
    return data.decode("utf-8", "replace")
