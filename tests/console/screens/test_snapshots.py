"""What people see, kept as pictures: a change of looks is a change on purpose (pytest --snapshot-update)."""

from __future__ import annotations

from typing import Any

import pytest
from fakes_for_screens import Bench, settle  # type: ignore[import-not-found]
from textual.pilot import Pilot

CASES: dict[str, tuple[tuple[int, int], list[str]]] = {
    "queue-80": ((80, 24), ["j"]),
    "queue-200": ((200, 50), []),
    "diff-80": ((80, 24), ["enter", "d", "right_square_bracket"]),
    "panels-80": ((80, 24), ["enter", "f4", "j", "j"]),
    "rubric-80": ((80, 24), ["enter", "f5", "t", "j", "j"]),
    "review-200": ((200, 50), ["enter", "f5", "t", "j", "j"]),
    "preview-80": ((80, 24), ["enter", "f5", "t", "p"]),
    "keys-80": ((80, 24), ["question_mark"]),
}


@pytest.mark.parametrize("name", CASES)
def test_looks(bench: Bench, snap_compare: Any, name: str) -> None:
    size, keys = CASES[name]
    bench.finish("row-softmax/m-002")
    bench.finish("row-softmax/m-003", fail=False)

    async def press(pilot: Pilot[int]) -> None:
        await settle(pilot)
        for key in keys:
            await pilot.press(key)
            await settle(pilot)

    assert snap_compare(bench.app(), terminal_size=size, run_before=press)
