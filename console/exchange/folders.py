"""The folders of tasks and of submissions in a listing of the whole tree."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from console.exchange.layout import name_problem
from console.exchange.model import FileEntry
from console.exchange.objects import Entry
from console.exchange.text import decode_name


class Folder(msgspec.Struct):
    """One task's or submission's place. ``entries`` are relative to it, and include its own folders."""

    name: str
    oid: str
    mode: str
    entries: list[Entry] = []

    @property
    def problem(self) -> str | None:
        """Why it cannot be one at all."""
        if self.mode == "120000":
            return "a symbolic link, not a folder; links are never followed"
        if self.mode == "160000":
            return "a submodule, not a folder: its content is not here"
        if self.mode != "040000":
            return "a file, not a folder"
        return name_problem(self.name)

    def file(self, name: str) -> Entry | None:
        """A regular file right in this folder."""
        wanted = name.encode()
        return next((one for one in self.entries if one.path == wanted and one.mode.startswith("100")), None)

    def has_folder(self, name: str) -> bool:
        """Whether there is a folder of this name right in this one."""
        wanted = name.encode()
        return any(one.path == wanted and one.kind == "tree" for one in self.entries)

    def files(self) -> tuple[FileEntry, ...]:
        """Everything that is no folder."""
        return tuple(
            FileEntry(decode_name(one.path), one.mode, one.oid, one.size) for one in self.entries if one.kind != "tree"
        )


def folders(entries: Iterable[Entry], depth: int) -> dict[tuple[str, ...], Folder]:
    """What stands ``depth`` levels below the top, by the names on the way down: 2 for tasks/, 3 for submissions/."""
    found: dict[tuple[str, ...], Folder] = {}
    by_path: dict[bytes, Folder] = {}
    for entry in entries:
        parts = entry.path.split(b"/", depth)
        if len(parts) < depth:
            continue
        path = b"/".join(parts[:depth])
        if len(parts) > depth:
            by_path[path].entries.append(entry._replace(path=parts[depth]))
        else:
            names = tuple(decode_name(part) for part in parts[1:])
            found[names] = by_path[path] = Folder(names[-1], entry.oid, entry.mode, [])
    return found
