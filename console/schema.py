"""Strict reading of TOML into typed structs: every error names the file, the key and the nearest valid key."""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec
import tomli

MAX_TOML_BYTES = 1024 * 1024

_FIELD = re.compile(r"Object (contains unknown|missing required) field `(.*?)`", re.DOTALL)
_AT = re.compile(r" - at `\$?\.?([^`]*)`")


class Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A frozen record in which an unknown key is an error."""


S = TypeVar("S", bound=msgspec.Struct)


class SchemaError(Exception):
    """A file that cannot be used: which file, which key in it (may be empty), and what is wrong, in words."""

    def __init__(self, file: str, key: str, message: str) -> None:
        super().__init__(f"{file}: {key}: {message}" if key else f"{file}: {message}")
        self.file, self.key, self.message = file, key, message


def nearest(word: str, known: typing.Iterable[str]) -> str:
    """A hint for a word that is not known: the nearest known one, else all of them."""
    import difflib

    choices = list(known)
    near = difflib.get_close_matches(word, choices, n=1)
    return f"did you mean `{near[0]}`?" if near else f"known: {', '.join(choices)}"


def load_toml(data: bytes, file: str) -> dict[str, Any]:
    """Parse TOML, tolerant of a byte order mark and of CRLF. Raises SchemaError."""
    if len(data) > MAX_TOML_BYTES:
        raise SchemaError(file, "", f"larger than {MAX_TOML_BYTES} bytes")
    try:
        return tomli.loads(data.decode("utf-8-sig").replace("\r\n", "\n"))
    except UnicodeDecodeError as error:
        raise SchemaError(file, "", f"not UTF-8 at byte {error.start}") from None
    except (ValueError, RecursionError) as error:  # ValueError also for a number of too many digits
        raise SchemaError(file, "", f"not TOML: {error}") from None


def convert(raw: object, into: type[S], file: str, key: str = "") -> S:
    """Convert parsed TOML or JSON strictly. Raises SchemaError for the innermost part that is wrong."""
    try:
        return msgspec.convert(raw, into)
    except msgspec.ValidationError as error:
        if isinstance(raw, dict):
            for part, value, struct in _parts(raw, into):
                convert(value, struct, file, f"{key}.{part}" if key else part)
        raise _explain(str(error), into, file, key) from None


def _parts(raw: dict[str, Any], into: type[msgspec.Struct]) -> Iterator[tuple[str, object, type[msgspec.Struct]]]:
    """The tables inside ``raw`` that have a struct of their own, with their place (``criteria[1]``)."""
    for name, hint in typing.get_type_hints(into).items():
        value = raw.get(name)
        for option in typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,):
            if isinstance(option, type) and issubclass(option, msgspec.Struct) and isinstance(value, dict):
                yield name, value, option
            elif typing.get_origin(option) is tuple and isinstance(value, list):
                item = typing.get_args(option)[0]
                if isinstance(item, type) and issubclass(item, msgspec.Struct):
                    yield from ((f"{name}[{index}]", entry, item) for index, entry in enumerate(value))


def _explain(text: str, into: type[msgspec.Struct], file: str, key: str) -> SchemaError:
    field = _FIELD.search(text)
    if field:
        place = f"{key}.{field.group(2)}" if key else field.group(2)
        if field.group(1) == "missing required":
            return SchemaError(file, place, "required key is missing")
        return SchemaError(file, place, f"unknown key; {nearest(field.group(2), into.__struct_fields__)}")
    at = _AT.search(text)
    place = ".".join(part for part in (key, at.group(1) if at else "") if part)
    return SchemaError(file, place, _AT.sub("", text))
