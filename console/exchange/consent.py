"""What the grader agreed to: addresses whose code may run, and the ``reference.py`` they have seen of each task."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from console.exchange.errors import ExchangeError
from console.exchange.kept import write_whole


class _Consent(msgspec.Struct, forbid_unknown_fields=True):
    trusted: list[str] = []
    references: dict[str, dict[str, str]] = {}
    """By exchange and task: the object id of the reference that was confirmed last."""


class Consents:
    """The file of consents; shared by all exchanges of a user, read anew each time."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def trusts(self, exchange: str) -> bool:
        """Whether code of this exchange may run."""
        return exchange in self._read().trusted

    def trust(self, exchange: str) -> None:
        """Remember that it may."""
        with self._changing() as consent:
            if exchange not in consent.trusted:
                consent.trusted.append(exchange)

    def reference(self, exchange: str, task: str) -> str | None:
        """The reference that was confirmed last, by object id."""
        return self._read().references.get(exchange, {}).get(task)

    def confirm(self, exchange: str, task: str, oid: str) -> None:
        """Remember it."""
        with self._changing() as consent:
            consent.references.setdefault(exchange, {})[task] = oid

    @contextlib.contextmanager
    def _changing(self) -> Iterator[_Consent]:
        from filelock import FileLock

        with FileLock(self._file.with_suffix(".lock"), timeout=30):
            consent = self._read()
            yield consent
            write_whole(self._file, msgspec.json.format(msgspec.json.encode(consent)))

    def _read(self) -> _Consent:
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=_Consent)
        except FileNotFoundError:
            return _Consent()
        except (OSError, msgspec.MsgspecError) as error:
            # Never taken for consent, and never overwritten unseen.
            raise ExchangeError(f"{self._file}: cannot be read ({error}); repair or remove it") from None
