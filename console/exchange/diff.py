"""Diffs as pure data: files, hunks and lines, parsed from what git prints."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from console.exchange.model import FileKind
from console.exchange.text import decode_name, visible

MAX_LINES = 60_000
"""Lines of all hunks together; what is beyond is named, not shown."""
MAX_FILES = 1_000
MAX_LINE = 4_000
"""Characters of a line that are kept."""

LineKind = Literal["same", "add", "del"]
Status = Literal["added", "removed", "modified", "renamed", "copied", "type-changed"]

_STATUS: dict[bytes, Status] = {
    b"A": "added",
    b"D": "removed",
    b"M": "modified",
    b"R": "renamed",
    b"C": "copied",
    b"T": "type-changed",
}
_KIND: dict[bytes, LineKind] = {b" ": "same", b"+": "add", b"-": "del"}
_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)", re.DOTALL)


class Line(msgspec.Struct, frozen=True, gc=False):
    """A line of a hunk, its text hostile. Line numbers from 1; 0 on the side that does not have the line."""

    kind: LineKind
    old: int
    new: int
    text: str


class Hunk(msgspec.Struct, frozen=True):
    """Changed lines with context. ``heading`` is the function that git found them in, hostile."""

    old: int
    new: int
    heading: str
    lines: tuple[Line, ...]


class FileDiff(msgspec.Struct, frozen=True, kw_only=True):
    """One file. ``note`` says what the lines do not: rename, mode, line ends, what is not shown and why."""

    path: str
    old_path: str
    status: Status
    kind: FileKind
    old_mode: str
    new_mode: str
    old_oid: str
    new_oid: str
    similarity: int = 100
    hunks: tuple[Hunk, ...] = ()
    note: str = ""
    line_ends_only: bool = False

    @property
    def added(self) -> int:
        """Lines added."""
        return sum(line.kind == "add" for hunk in self.hunks for line in hunk.lines)

    @property
    def removed(self) -> int:
        """Lines removed."""
        return sum(line.kind == "del" for hunk in self.hunks for line in hunk.lines)


class Diff(msgspec.Struct, frozen=True, kw_only=True):
    """What changed from one tree to another. ``whole`` is True where there was nothing to compare with."""

    old: str
    """What it is compared with, in words; ``note`` says why where that is nothing."""
    new: str
    files: tuple[FileDiff, ...]
    whole: bool = False
    note: str = ""


class RawFile(msgspec.Struct, frozen=True):
    """One entry of ``git diff-tree --raw -z``."""

    status: bytes
    old_mode: str
    new_mode: str
    old_oid: str
    new_oid: str
    old_path: bytes
    new_path: bytes
    similarity: int = 100

    @property
    def oids(self) -> tuple[str, ...]:
        """The blobs that it names."""
        pairs = ((self.old_mode, self.old_oid), (self.new_mode, self.new_oid))
        return tuple(oid for mode, oid in pairs if mode not in ("000000", "160000"))


def parse_raw(out: bytes) -> list[RawFile]:
    """Read ``--raw -z``; paths may hold anything but NUL."""
    fields = iter(out.split(b"\0"))
    files = []
    for head in fields:
        if not head.startswith(b":"):
            continue
        old_mode, new_mode, old_oid, new_oid, status = head[1:].split(b" ")
        old_path = next(fields)
        new_path = next(fields) if status[:1] in b"RC" else old_path
        files.append(
            RawFile(
                status[:1],
                old_mode.decode("ascii"),
                new_mode.decode("ascii"),
                old_oid.decode("ascii"),
                new_oid.decode("ascii"),
                old_path,
                new_path,
                int(status[1:] or 100),
            )
        )
    return files


class Section(msgspec.Struct, frozen=True):
    """One ``diff --git`` section: hunks as (old, new, heading, lines with their sign), still bytes."""

    hunks: tuple[tuple[int, int, bytes, list[bytes]], ...]
    binary: bool
    no_newline: frozenset[LineKind]


def parse_patch(out: bytes) -> list[Section]:
    """Read the sections of a patch in order.

    A hunk's own counts say how many lines belong to it, so no line of a file can pass for a header; paths are taken
    from ``--raw``, never from here.
    """
    lines = out.split(b"\n")
    sections: list[Section] = []
    hunks: list[tuple[int, int, bytes, list[bytes]]] = []
    binary, no_newline, started = False, set[LineKind](), False
    at, last = 0, len(lines)
    while at < last:
        line = lines[at]
        at += 1
        if line.startswith(b"diff --git "):
            if started:
                sections.append(Section(tuple(hunks), binary, frozenset(no_newline)))
            hunks, binary, no_newline, started = [], False, set(), True
        elif line.startswith(b"Binary files "):
            binary = True
        else:
            match = _HUNK.fullmatch(line) if line.startswith(b"@@ ") else None
            if match is None:
                continue
            old, new = int(match[1]), int(match[3])
            old_left = int(match[2]) if match[2] is not None else 1
            new_left = int(match[4]) if match[4] is not None else 1
            body: list[bytes] = []
            while at < last and (old_left > 0 or new_left > 0 or lines[at].startswith(b"\\")):
                text = lines[at] or b" "
                at += 1
                sign = text[:1]
                if sign == b"\\":
                    if body:
                        no_newline.add(_KIND[body[-1][:1]])
                    continue
                if sign not in _KIND:
                    break
                old_left -= sign != b"+"
                new_left -= sign != b"-"
                body.append(text)
            hunks.append((old, new, match[5], body))
    if started:
        sections.append(Section(tuple(hunks), binary, frozenset(no_newline)))
    return sections


def build_files(
    raw: Sequence[RawFile], sections: Sequence[Section], notes: dict[str, tuple[FileKind, str]]
) -> tuple[FileDiff, ...]:
    """Join entries and sections, which git prints in the same order; a change of type has two sections.

    ``notes`` has kind and note by object id for what is more than plain text.
    """
    files: list[FileDiff] = []
    room = MAX_LINES
    remaining = iter(sections)
    for number, entry in enumerate(raw):
        own = [next(remaining, None) for _ in range(2 if entry.status == b"T" else 1)]
        if number >= MAX_FILES:
            continue
        file, used = _file(entry, [one for one in own if one is not None], notes, room)
        room -= used
        files.append(file)
    return tuple(files)


def _file(
    entry: RawFile, sections: Sequence[Section], notes: dict[str, tuple[FileKind, str]], room: int
) -> tuple[FileDiff, int]:
    kind, said = _kind(entry, sections, notes)
    remarks = [*_shape_remarks(entry), *said]
    hunks: tuple[Hunk, ...] = ()
    line_ends = False
    raw_hunks = [hunk for section in sections for hunk in section.hunks] if kind in ("text", "lfs") else []
    if raw_hunks:
        hunks, remark = _hunks(raw_hunks, room)
        line_ends = entry.status != b"T" and _only_line_ends(hunks)
        remarks += remark
        if line_ends:
            was_crlf = any(line.text.endswith("\r") for line in hunks[0].lines if line.kind == "del")
            remarks.insert(0, f"line ends only: {'CRLF to LF' if was_crlf else 'LF to CRLF'}")
        missing = frozenset[LineKind]().union(*(section.no_newline for section in sections))
        if missing & {"add", "same"}:
            remarks.append("no newline at the end")
        elif "del" in missing:
            remarks.append("a newline was added at the end")
    file = FileDiff(
        path=decode_name(entry.new_path),
        old_path=decode_name(entry.old_path),
        status=_STATUS.get(entry.status, "modified"),
        kind=kind,
        old_mode=entry.old_mode,
        new_mode=entry.new_mode,
        old_oid=entry.old_oid,
        new_oid=entry.new_oid,
        similarity=entry.similarity,
        hunks=hunks,
        note="; ".join(remarks),
        line_ends_only=line_ends,
    )
    return file, sum(len(hunk.lines) for hunk in hunks)


def _shape_remarks(entry: RawFile) -> Iterable[str]:
    if entry.status in b"RC":
        verb = "renamed" if entry.status == b"R" else "copied"
        yield f"{verb} from {visible(decode_name(entry.old_path))}, {entry.similarity} % alike"
    modes = {"100644": "plain file", "100755": "executable", "120000": "symbolic link", "160000": "submodule"}
    if "000000" not in (entry.old_mode, entry.new_mode) and entry.old_mode != entry.new_mode:
        old, new = (modes.get(mode, mode) for mode in (entry.old_mode, entry.new_mode))
        yield f"mode: {old} to {new}"


def _kind(
    entry: RawFile, sections: Sequence[Section], notes: dict[str, tuple[FileKind, str]]
) -> tuple[FileKind, list[str]]:
    """What the file is, by its new side where it has one, and what there is to say about it."""
    for mode, oid in ((entry.new_mode, entry.new_oid), (entry.old_mode, entry.old_oid)):
        if mode == "000000":
            continue
        if mode == "160000":
            return "submodule", [f"submodule at {oid[:12]}: its content is not here"]
        if oid in notes:
            return notes[oid][0], [notes[oid][1]] if notes[oid][1] else []
        break
    if any(section.binary for section in sections):
        return "binary", ["binary"]
    return "text", []


def _hunks(raw: Sequence[tuple[int, int, bytes, list[bytes]]], room: int) -> tuple[tuple[Hunk, ...], list[str]]:
    remarks: list[str] = []
    encoding = "utf-8"
    try:
        for _, _, _, body in raw:
            b"\n".join(body).decode("utf-8")
    except UnicodeDecodeError:
        encoding = "latin-1"
        remarks.append("not UTF-8; read as Latin-1")
    hunks, longest, left_out = [], 0, 0
    for old, new, heading, body in raw:
        left_out += max(0, len(body) - room)
        lines: list[Line] = []
        for text in body[:room]:
            kind = _KIND[text[:1]]
            shown = text[1:].decode(encoding)
            if len(shown) > MAX_LINE:
                longest = max(longest, len(shown))
                shown = shown[:MAX_LINE] + "\u2026"
            lines.append(Line(kind, old if kind != "add" else 0, new if kind != "del" else 0, shown))
            old += kind != "add"
            new += kind != "del"
        room -= len(lines)
        if lines:
            first = lines[0]
            start_old = first.old or old - sum(line.kind != "add" for line in lines)
            start_new = first.new or new - sum(line.kind != "del" for line in lines)
            hunks.append(Hunk(start_old, start_new, heading.decode("utf-8", "replace"), tuple(lines)))
    if longest:
        remarks.append(f"a line of {longest:,} characters: {MAX_LINE:,} are shown")
    if left_out:
        remarks.append(f"{left_out:,} more lines are not shown")
    return tuple(hunks), remarks


def _only_line_ends(hunks: Sequence[Hunk]) -> bool:
    """Whether every hunk takes away what it adds, but for a carriage return at the end of lines."""
    for hunk in hunks:
        old = [line.text for line in hunk.lines if line.kind == "del"]
        new = [line.text for line in hunk.lines if line.kind == "add"]
        if old == new or [text.rstrip("\r") for text in old] != [text.rstrip("\r") for text in new]:
            return False
    return bool(hunks)
