"""A bounded list of reports: what hooks saw in one call, one entry per kind and place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

MAX_REPORTS = 50
MAX_TEXT = 400
MAX_DETAIL_ITEMS = 16


def clip(text: str, limit: int = MAX_TEXT) -> str:
    """``text``, cut in the middle to at most ``limit`` characters: messages say much at their start and end."""
    if len(text) <= limit:
        return text
    half = (limit - 3) // 2
    return f"{text[: limit - 3 - half]}...{text[-half:]}"


def plain_detail(detail: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers behind a report as bounded, shallow, plain JSON values; what already is that stays as it is."""
    return {clip(str(key), 60): _plain(item, 1) for key, item in list(detail.items())[:MAX_DETAIL_ITEMS]}


def _plain(value: Any, depth: int = 2) -> Any:
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if depth and isinstance(value, Mapping):
        items = list(value.items())[:MAX_DETAIL_ITEMS]
        return {clip(str(key), 60): _plain(item, depth - 1) for key, item in items}
    if depth and isinstance(value, (list, tuple)):
        return [_plain(item, depth - 1) for item in value[:MAX_DETAIL_ITEMS]]
    return clip(str(value), 120)


def make_report(
    code: str, summary: str, file: str | None = None, line: int | None = None, detail: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """A report of plain JSON values, at most 4 KiB of text in all."""
    return {
        "code": code,
        "summary": clip(summary),
        "file": None if file is None else clip(file, 200),
        "line": line,
        "detail": plain_detail(detail or {}),
    }


class Reports(list[dict[str, Any]]):
    """Reports of one call, at most 50. A second one of the same code and place only counts (``detail["times"]``)."""

    def __init__(self) -> None:
        super().__init__()
        self._by_place: dict[tuple[str, str | None, int | None, str], dict[str, Any]] = {}
        self.on_returned: list[Callable[[Any], None]] = []

    def add(
        self,
        code: str,
        summary: str,
        file: str | None = None,
        line: int | None = None,
        detail: Mapping[str, Any] | None = None,
        key: str = "",
    ) -> None:
        """Add a report unless one with this code, place and ``key`` is there."""
        place = (code, file, line, key)
        known = self._by_place.get(place)
        if known is not None:
            known["detail"]["times"] = known["detail"].get("times", 1) + 1
        elif len(self) < MAX_REPORTS:
            made = self._by_place[place] = make_report(code, summary, file, line, detail)
            self.append(made)

    def returned(self, result: Any) -> None:
        """Let the hooks look at what the call returned."""
        for look in self.on_returned:
            look(result)
