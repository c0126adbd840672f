"""What the start costs, told without a clock: what is loaded, and what is done before the first paint."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from fakes_for_screens import Bench, settle  # type: ignore[import-not-found]
from textual.css.stylesheet import Stylesheet

import console
from console.screens.queue import QueueScreen


def in_python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=Path(console.__file__).parents[1]
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_textual_is_loaded_in_the_background() -> None:
    code = "import sys; from console import app; app.load_textual().join(); print('textual.app' in sys.modules)"
    assert in_python(code) == "True"


def test_opening_loads_only_what_the_queue_needs() -> None:
    code = (
        "import sys; import console.verbs.open, console.verbs.common, console.runs, console.exchange, console.drafts\n"
        "import console.grading.review, console.grading.triage, console.screens.shell, runners.store\n"
        "late = {'torch', 'triton', 'numpy', 'jax', 'git', 'tomlkit', 'filelock', 'pygments', 'markdown_it',"
        " 'tree_sitter', 'console.screens.review', 'console.screens.palette', 'runners.doctor'}\n"
        "print(*sorted(late & set(sys.modules)))"
    )
    assert in_python(code) == ""


async def test_styles_are_parsed_once_and_no_other_screen_is_made(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    again = []
    reparse = Stylesheet.reparse
    monkeypatch.setattr(Stylesheet, "reparse", lambda self: (again.append(1), reparse(self))[1])
    async with bench.app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert not again
        assert [type(screen) for screen in pilot.app.screen_stack] == [QueueScreen]
