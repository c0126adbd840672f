"""Diffs between trees of the private clone, made by git without any program that a repository could name."""

from __future__ import annotations

from collections.abc import Sequence

from console.exchange.diff import MAX_FILES, Diff, RawFile, build_files, parse_patch, parse_raw
from console.exchange.model import FileKind
from console.exchange.objects import Objects
from console.exchange.process import Git, checked
from console.exchange.text import decode, decode_name, looks_binary, visible
from console.exchange.views import MAX_FILE, lfs_note

MAX_PATCH = 64 * 1024 * 1024
MAX_READ = 64 * 1024 * 1024
"""Bytes of all changed files that are looked into for what kind of file they are."""
_SNIFF = 8_192

_RAW = ("diff-tree", "-r", "--raw", "-z", "--no-abbrev", "-M", "--ignore-submodules=none")
# Git itself calls a file binary that is larger than core.bigFileThreshold: it is named, not diffed.
_PATCH = (
    "-c",
    f"core.bigFileThreshold={MAX_FILE}",
    "diff-tree",
    "-r",
    "-p",
    "-M",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--submodule=short",
    "--ignore-submodules=none",
    "--src-prefix=a/",
    "--dst-prefix=b/",
)


def compare(
    git: Git, objects: Objects, trees: tuple[str, str], names: tuple[str, str], *, note: str = "", whole: bool = False
) -> Diff:
    """The diff from the first tree to the second; ``names`` are for people."""
    raw = parse_raw(git.out(*_RAW, *trees))
    result = git.try_run(*_PATCH, *trees, limit=MAX_PATCH)
    remarks = [note] if note else []
    if result.cut:
        remarks.append(f"more than {MAX_PATCH >> 20} MiB of changes: files are named only")
    if len(raw) > MAX_FILES:
        remarks.append(f"{len(raw) - MAX_FILES} more files are not shown")
    sections = [] if result.cut else parse_patch(checked(result, "git diff-tree"))
    files = build_files(raw, sections, _notes(objects, raw[:MAX_FILES]))
    return Diff(old=names[0], new=names[1], files=files, whole=whole, note="; ".join(remarks))


def _notes(objects: Objects, raw: Sequence[RawFile]) -> dict[str, tuple[FileKind, str]]:
    """Kind and note of every blob that is more than plain text."""
    links = {oid for entry in raw for mode, oid in _sides(entry) if mode == "120000"}
    oids = list(dict.fromkeys(oid for entry in raw for oid in entry.oids))
    notes: dict[str, tuple[FileKind, str]] = {}
    small, room = [], MAX_READ
    for oid, size in zip(oids, objects.sizes(oids), strict=True):
        if size is None:
            notes[oid] = ("too-large", "its content is not here")
        elif oid in links:
            target = visible(decode_name(objects.head_of(oid, 4096)))
            notes[oid] = ("symlink", f"symbolic link to {target}, not followed")
        elif size >= MAX_FILE:
            kind: FileKind = "binary" if looks_binary(objects.head_of(oid, _SNIFF)) else "too-large"
            notes[oid] = (kind, f"{'binary, ' if kind == 'binary' else ''}{size:,} bytes, not compared line by line")
        elif size <= room:
            # Beyond the room, git's own word on what is binary has to do.
            room -= size
            small.append(oid)
    for oid, data in zip(small, objects.blobs(small), strict=True):
        special = _special(data or b"")
        if special:
            notes[oid] = special
    return notes


def _sides(entry: RawFile) -> tuple[tuple[str, str], tuple[str, str]]:
    return (entry.old_mode, entry.old_oid), (entry.new_mode, entry.new_oid)


def _special(data: bytes) -> tuple[FileKind, str] | None:
    pointer = lfs_note(data)
    if pointer:
        return "lfs", pointer
    if b"\0" in data[:8000]:
        note = "" if looks_binary(data) else decode(data[:_SNIFF]).note
        return "binary", f"{note or 'binary'}, {len(data):,} bytes"
    if data.startswith(b"\xef\xbb\xbf"):
        return "text", "begins with a byte order mark"
    return None
