"""A tree's regular files, written where a run can read them."""

from __future__ import annotations

import os
from pathlib import Path

from console.exchange.errors import ExchangeError
from console.exchange.objects import MAX_BLOB, Objects
from console.exchange.text import decode_name, visible

MAX_TOTAL = 1024 * 1024 * 1024
MAX_FILES = 20_000


def materialise(objects: Objects, tree: str, into: Path) -> None:
    """Write the regular files of ``tree`` below ``into``, which must be empty or absent; no links, no submodules.

    Raises ExchangeError where a path cannot be written or the tree is too large.
    """
    entries = [entry for entry in objects.tree(tree) if entry.mode in ("100644", "100755")]
    if len(entries) > MAX_FILES or sum(entry.size for entry in entries) > MAX_TOTAL:
        raise ExchangeError(f"tree {tree[:12]}: more than {MAX_FILES} files or {MAX_TOTAL >> 20} MiB")
    try:
        into.mkdir(parents=True, exist_ok=True)
        if any(into.iterdir()):
            raise ExchangeError(f"{into} is not empty")
    except OSError as error:
        raise ExchangeError(f"{into}: {error.strerror}") from None
    root = os.fsencode(into)
    for entry in entries:
        shown = visible(decode_name(entry.path))
        parts = entry.path.split(b"/")
        if any(part in (b"", b".", b"..") or part.lower() == b".git" for part in parts):
            raise ExchangeError(f"tree {tree[:12]}: the path {shown} leads out of it")
        if entry.size > MAX_BLOB:
            raise ExchangeError(f"{shown}: larger than {MAX_BLOB >> 20} MiB")
        data = objects.blob(entry.oid)
        target = os.path.join(root, entry.path)  # noqa: PTH118 - a path that may not be UTF-8
        mode = 0o755 if entry.mode == "100755" else 0o644
        try:
            os.makedirs(os.path.dirname(target), exist_ok=True)  # noqa: PTH103, PTH120
            # The folder was empty, so a name that is there already is the same name to this file system.
            with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode), "wb") as file:
                file.write(data)
        except OSError as error:
            raise ExchangeError(f"{shown}: {error.strerror}") from None
