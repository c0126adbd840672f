"""Foreign text on its way into a file or a commit message: shown, never obeyed."""

from __future__ import annotations

import re

_HOSTILE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and newline, DEL, C1
    "\u061c\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u2069\ufeff"  # bidirectional, line separators, invisible
    "\ud800-\udfff]"  # lone surrogates, which no file can hold
)


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def plain(text: str) -> str:
    """Text of several lines whose control and bidirectional characters are written as escapes; lines end in LF."""
    return _HOSTILE.sub(_escape, text.replace("\r\n", "\n").replace("\r", "\n"))


def one_line(text: str) -> str:
    """Text as one line: runs of white space become one space, hostile characters become escapes."""
    return " ".join(plain(text).split())


def storable(text: str) -> str:
    """Text that UTF-8 can hold: lone surrogates are replaced, nothing else changes."""
    return text.encode("utf-8", "replace").decode("utf-8")
