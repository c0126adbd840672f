"""Foreign text: decoded tolerantly, bounded, and shown so that a terminal never obeys it."""

from __future__ import annotations

import codecs
import re
import unicodedata

import msgspec

TAB = 4
"""Cells per tab stop."""
MAX_VISIBLE = 4_000
"""Characters of one line that are shown; the rest is counted."""
MAX_MARKS = 3
"""Combining marks on one character; more of them run over neighbouring lines."""

# Printable by Python's rule, yet without ink: joiners, fillers, variation selectors, the blank Braille pattern.
_NO_INK = "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef"
_INVISIBLE = re.compile(f"[{_NO_INK}]")
# Not printable by Python's rule, yet plain blanks.
_BLANKS = frozenset("\u00a0\u3000")


def _escape(char: str) -> str:
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    return f"<U+{code:04X}>"


def _escape_all(text: str) -> str:
    out = []
    marks = 0
    for char in text:
        if unicodedata.category(char) in ("Mn", "Me"):
            marks += 1
        else:
            marks = 0
        shown = char in _BLANKS or (char.isprintable() and not _INVISIBLE.match(char))
        out.append(char if shown and marks <= MAX_MARKS else _escape(char))
    return "".join(out)


def visible(text: str, limit: int = MAX_VISIBLE) -> str:
    """``text`` as one line that is safe to print: the only way foreign text reaches a screen.

    Controls become control pictures (ESC: \u241b, newline: \u240a), bidirectional, zero-width, private-use and
    unassigned characters ``<U+202E>``, tabs blanks. What is beyond ``limit`` characters is counted, not shown.
    """
    if len(text) > limit:
        return f"{visible(text[:limit], limit)}\u2026 (+{len(text) - limit} characters)"
    if text.isascii() and text.isprintable():
        return text
    return _escape_all(text.expandtabs(TAB) if "\t" in text and "\n" not in text else text.replace("\t", " " * TAB))


def visible_block(text: str, limit: int = MAX_VISIBLE, lines: int = 2_000) -> str:
    """Like :func:`visible` for text of several lines: LF and CRLF still end a line; at most ``lines`` are shown."""
    parts = text.replace("\r\n", "\n").split("\n", lines)
    shown = "\n".join(visible(part, limit) for part in parts[:lines])
    return f"{shown}\n\u2026 (+{parts[lines].count(chr(10)) + 1} lines)" if len(parts) > lines else shown


class Decoded(msgspec.Struct, frozen=True):
    """Text and how it was read; ``note`` is empty for plain UTF-8."""

    text: str
    encoding: str
    note: str = ""


_MARKS: tuple[tuple[bytes, str, str], ...] = (
    (codecs.BOM_UTF8, "utf-8", "UTF-8 with a byte order mark"),
    (codecs.BOM_UTF32_LE, "utf-32-le", "UTF-32"),
    (codecs.BOM_UTF32_BE, "utf-32-be", "UTF-32"),
    (codecs.BOM_UTF16_LE, "utf-16-le", "UTF-16"),
    (codecs.BOM_UTF16_BE, "utf-16-be", "UTF-16"),
)


def decode(data: bytes) -> Decoded:
    """Read bytes as text whatever they are: by byte order mark, else UTF-8, else Latin-1, which always reads."""
    for mark, encoding, note in _MARKS:
        if data.startswith(mark):
            body = data[len(mark) :]
            try:
                return Decoded(body.decode(encoding), encoding, note)
            except UnicodeDecodeError:
                return Decoded(body.decode(encoding, "replace"), encoding, f"{note}, with bytes that are not")
    try:
        return Decoded(data.decode("utf-8"), "utf-8")
    except UnicodeDecodeError as error:
        note = f"not UTF-8 (byte {error.start}); read as Latin-1"
        return Decoded(data.decode("latin-1"), "latin-1", note)


def decode_name(data: bytes) -> str:
    """A path as text without loss: bytes that are not UTF-8 become ``\\\\xe5``. Never holds lone surrogates."""
    return data.decode("utf-8", "backslashreplace")


def decode_words(data: bytes) -> str:
    """A short text such as a person's name: UTF-8, else Latin-1."""
    return decode(data).text


def looks_binary(data: bytes) -> bool:
    """Git's own rule, a NUL in the first 8,000 bytes, except for text with a UTF-16 or UTF-32 byte order mark."""
    return b"\0" in data[:8000] and not data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE))


# Of an address with a secret in it, host and path are enough to know it by.
_USERINFO = re.compile(r"(?P<scheme>\b(?:https?|ftps?)://)[^/@\s]+@")


def without_secrets(text: str) -> str:
    """Addresses lose what may be a password or token: ``https://name:token@host`` becomes ``https://\u2026@host``."""
    return _USERINFO.sub("\\g<scheme>\u2026@", text)


MAX_WORDS = 4_000


def git_words(stderr: bytes) -> str:
    """What git said, safe to show: hints and progress lines dropped, secrets masked, at most 4,000 characters."""
    text = without_secrets(decode(stderr[-65_536:]).text)
    lines = [line.rsplit("\r", 1)[-1].rstrip() for line in text.replace("\r\n", "\n").split("\n")]
    kept = "\n".join(line for line in lines if line and not line.startswith("hint:"))
    if len(kept) > MAX_WORDS:
        kept = "\u2026" + kept[-MAX_WORDS:]
    return visible_block(kept)
