"""What the author was asked, wrapped so that no word of it is cut off."""

from __future__ import annotations

import pytest

from console.exchange.model import Task
from console.view.scenario import lines_of
from console.view.spans import plain, width_of
from runners.contract import Case, TaskSpec

SIGNATURE = "def softmax_fp8(scores: torch.Tensor, scale: float, p_scale: float) -> tuple[torch.Tensor, torch.Tensor]:"
SCENARIO = f"# {'A long heading ' * 8}\n\nDefine:\n\n```python\n{SIGNATURE}\n    ...\n```\n\n- {'a long item ' * 12}\n"
SPEC = TaskSpec(
    title="A title that goes on and on " * 4,
    kind="fusion",
    frameworks=("triton",),
    entry="softmax",
    cases=(Case(name="odd", args={f"size_{number}": 1000 + number for number in range(9)}, use=("timing",)),),
)


@pytest.mark.parametrize("width", [60, 79, 120])
def test_nothing_is_wider_than_the_pane_and_nothing_is_lost(width: int) -> None:
    lines = lines_of(Task(name="softmax", tree="2" * 40, spec=SPEC, scenario=SCENARIO, has_starter=False), width)
    assert all(width_of(line) <= width for line in lines)
    words = " ".join(plain(line) for line in lines).split()
    for word in (*SIGNATURE.split(), *SPEC.title.split(), "size_8", "1008", "only"):
        assert word in words
