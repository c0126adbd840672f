"""The files of a tree as they can be shown: named by what they are, decoded, bounded."""

from __future__ import annotations

import re

from console.exchange.model import FileEntry, FileView
from console.exchange.objects import Entry, Objects
from console.exchange.text import decode, decode_name, looks_binary, visible

MAX_FILE = 1024 * 1024
"""Bytes of a file that is shown whole."""
HEAD_BYTES = 64 * 1024
"""Bytes shown of a larger one."""
MAX_TOTAL = 16 * 1024 * 1024
MAX_FILES = 500
MAX_LINE = 4_000
"""Characters of a line that are kept."""

_LFS = re.compile(rb"version https://git-lfs\.github\.com/spec/v1\n(?s:.{0,400}?)size (?P<size>\d{1,18})\n")


def lfs_note(data: bytes) -> str | None:
    """What to say about a Git LFS pointer; None for anything else. Format: git-lfs, docs/spec.md."""
    if len(data) >= 1024:
        return None
    match = _LFS.match(data)
    return f"Git LFS pointer: the content ({int(match['size']):,} bytes) is not here" if match else None


def file_entry(entry: Entry, prefix: int = 0) -> FileEntry:
    """A listing's line as data, its path without the first ``prefix`` bytes."""
    return FileEntry(decode_name(entry.path[prefix:]), entry.mode, entry.oid, entry.size)


def file_views(objects: Objects, tree: str) -> tuple[FileView, ...]:
    """The files of a tree in git's order; what is beyond the bounds is named, not shown."""
    views: list[FileView] = []
    room = MAX_TOTAL
    entries = objects.tree(tree)
    for number, entry in enumerate(entries):
        if number >= MAX_FILES:
            rest = len(entries) - number
            views.append(FileView("\u2026", "too-large", "", f"{rest} more files are not shown"))
            break
        view = view_of(objects, file_entry(entry), room)
        room -= len(view.text)
        views.append(view)
    return tuple(views)


def view_of(objects: Objects, entry: FileEntry, room: int = MAX_TOTAL) -> FileView:
    """One file. ``room`` is how many characters may still be shown of the whole tree."""
    if entry.mode == "160000":
        note = f"submodule at {entry.oid[:12]}: its content is not here"
        return FileView(entry.path, "submodule", "", note, 0, entry.mode)
    if entry.mode == "120000":
        target = visible(decode_name(objects.head_of(entry.oid, 4096)))
        return FileView(entry.path, "symlink", "", f"symbolic link to {target}, not followed", entry.size, entry.mode)
    cut = entry.size > min(MAX_FILE, room)
    data = _head(objects, entry.oid, room) if cut else objects.blob(entry.oid)
    if looks_binary(data):
        return FileView(entry.path, "binary", "", f"binary, {entry.size:,} bytes", entry.size, entry.mode)
    lfs = None if cut else lfs_note(data)
    decoded = decode(data)
    text, notes = bounded_lines(decoded.text)
    notes = [note for note in (lfs, decoded.note, *notes) if note]
    if text and not cut and not text.endswith("\n"):
        notes.append("no newline at the end")
    if cut:
        notes.append(f"{entry.size:,} bytes: only the first {len(data):,} are shown")
    if not data:
        notes.append("empty")
    return FileView(
        entry.path,
        "lfs" if lfs else "too-large" if cut else "text",
        text,
        "; ".join(notes),
        entry.size,
        entry.mode,
    )


def _head(objects: Objects, oid: str, room: int) -> bytes:
    """The first lines of a large file, without half a character at the end."""
    data = objects.head_of(oid, min(HEAD_BYTES, max(room, 0)))
    if b"\n" in data:
        return data[: data.rindex(b"\n") + 1]
    return data.rstrip(bytes(range(0x80, 0x100))) or data


def bounded_lines(text: str) -> tuple[str, list[str]]:
    """Text with LF line ends and no endless lines, and notes on what was changed to get there."""
    notes = []
    crlf = text.count("\r\n")
    if crlf:
        notes.append("CRLF line ends" if crlf == text.count("\n") else "mixed line ends")
        text = text.replace("\r\n", "\n")
    lines = text.split("\n")
    longest = max(map(len, lines))
    if longest > MAX_LINE:
        notes.append(f"a line of {longest:,} characters: {MAX_LINE:,} are shown")
        text = "\n".join(line if len(line) <= MAX_LINE else line[:MAX_LINE] + "\u2026" for line in lines)
    return text, notes
