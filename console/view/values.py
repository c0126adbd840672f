"""JSON from a run as lines: the numbers behind a finding, bounded and safe to show."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.cells import cell_len

from console.exchange.text import visible
from console.view.spans import Line, Span, clip, fit, wrap

MAX_ROWS = 8
MAX_TEXT = 2000
MAX_COLUMNS = 10


def number(value: float) -> str:
    """A number as a grader reads it: four significant digits, whole numbers whole, never a false zero."""
    if isinstance(value, int):
        return str(value)
    if math.isnan(value) or math.isinf(value):
        return str(value)
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    return f"{value:.4g}"


def scalar(value: Any) -> str:
    """One JSON value in one line of safe text."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        return number(value)
    if isinstance(value, str):
        return visible(value[:MAX_TEXT].replace("\n", " "))
    if isinstance(value, Mapping):
        inner = ", ".join(f"{visible(str(key))} {scalar(one)}" for key, one in list(value.items())[:MAX_COLUMNS])
        return f"{inner}{', …' if len(value) > MAX_COLUMNS else ''}"
    if isinstance(value, Sequence):
        inner = ", ".join(scalar(one) for one in value[:12])
        return f"[{inner}{', …' if len(value) > 12 else ''}]"
    return visible(str(value)[:MAX_TEXT])


def _is_table(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and bool(value) and all(isinstance(row, Mapping) for row in value)


def lines_of(values: Mapping[str, Any], width: int, indent: int = 4) -> Iterator[Line]:
    """Names and values, then tables for lists of records."""
    pad = " " * indent
    plain = {key: value for key, value in values.items() if not _is_table(value)}
    size = min(24, max((cell_len(visible(str(key))) for key in plain), default=0))
    for key, value in plain.items():
        name = fit(visible(str(key)).replace("_", " "), size)
        room = max(10, width - indent - size - 2)
        for turn, text in enumerate(_bounded(scalar(value), room)):
            yield clip((Span(f"{pad}{name if not turn else ' ' * size}  ", "dim"), Span(text)), width)
    for key, value in values.items():
        if _is_table(value):
            yield clip((Span(f"{pad}{visible(str(key)).replace('_', ' ')}", "dim"),), width)
            yield from table(value, width, indent + 2)


def _bounded(text: str, room: int) -> Iterator[str]:
    for turn, part in enumerate(wrap(text, room)):
        if turn >= MAX_ROWS:
            yield "…"
            return
        yield part


def table(rows: Sequence[Mapping[str, Any]], width: int, indent: int) -> Iterator[Line]:
    """Records as aligned columns: numbers to the right; too wide columns are left out from the end."""
    names = list(dict.fromkeys(name for row in rows[:MAX_ROWS] for name in row))[:MAX_COLUMNS]
    cells = [[scalar(row.get(name)) for name in names] for row in rows[:MAX_ROWS]]
    heads = [visible(str(name)).replace("_", " ") for name in names]
    sizes = [min(28, max(cell_len(heads[at]), *(cell_len(line[at]) for line in cells))) for at in range(len(names))]
    while len(sizes) > 1 and indent + sum(sizes) + 2 * (len(sizes) - 1) > width:
        sizes.pop()
    right = [all(isinstance(row.get(name), (int, float, type(None))) for row in rows[:MAX_ROWS]) for name in names]
    pad = " " * indent

    def join(line: Sequence[str]) -> str:
        return pad + "  ".join(fit(line[at], sizes[at], right=right[at]) for at in range(len(sizes)))

    yield clip((Span(join(heads), "faint"),), width)
    for line in cells:
        yield clip((Span(join(line)),), width)
    if len(rows) > MAX_ROWS:
        yield (Span(f"{pad}and {len(rows) - MAX_ROWS} more", "faint"),)
