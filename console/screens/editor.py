"""The grader's own editor, for longer texts."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from textual.app import App, SuspendNotSupported


def edit_outside(app: App[Any], words: Sequence[str], text: str, title: str) -> tuple[str | None, str]:
    """``text`` after the grader's editor has had it, and what to say about it.

    None when there is nothing to take over. No failure of the editor raises or loses a word: what was written stays
    in the file that the message names.
    """
    handle, name = tempfile.mkstemp(prefix="kernel-review-", suffix=".md", text=True)
    path = Path(name)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    try:
        with app.suspend():
            print(title, flush=True)
            code = subprocess.run([*words, name], check=False).returncode
    except SuspendNotSupported:
        path.unlink(missing_ok=True)
        return None, "this terminal cannot be given to an editor: c writes here"
    except OSError as error:
        path.unlink(missing_ok=True)
        return None, f"{words[0]}: {error.strerror or error}"
    written = path.read_bytes().decode("utf-8", "replace")
    if code != 0:
        if written == text:
            path.unlink(missing_ok=True)
            return None, f"{words[0]} ended with {code}: nothing changed"
        return None, f"{words[0]} ended with {code}: nothing taken over; your text is in {path}"
    path.unlink(missing_ok=True)
    return written.rstrip("\n"), ""
