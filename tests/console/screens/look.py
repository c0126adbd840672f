"""Opens the console, presses keys and prints the screen as SVG: python look.py [--demo] SIZE [KEYS…] > out.svg.

On made-up work, or with ``--demo`` on a new scratch exchange with real runs. Among the keys, ``wait1.5`` waits that
many seconds, ``run`` until no run is left.
"""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from fakes_for_screens import Bench, snapshot_of, submission_of  # type: ignore[import-not-found]

from console.config import Config
from console.demo import make_demo
from console.drafts import Drafts
from console.exchange import Exchange
from console.runs import Runs
from console.screens.shell import ConsoleApp
from runners.store import EvidenceStore


def made_up(folder: Path) -> ConsoleApp:
    """A console on fakes: rows of every kind, nothing runs."""
    submissions = [
        submission_of(f"m-{number:03}", number, author=("claude-x", "gpt-y", "ann")[number % 3], task=task)
        for number, task in enumerate(["row-softmax", "fused-softmax-fp8", "layer-norm"] * 14)
    ]
    bench = Bench(snapshot_of(*submissions), folder)
    for one in submissions[:20]:
        bench.finish(one.key, fail=int(one.name[-1]) % 2 == 0)
    app: ConsoleApp = bench.app()
    return app


async def show(app: ConsoleApp, size: str, keys: Sequence[str]) -> str:
    """The screen after ``keys``."""
    width, height = map(int, size.split("x"))
    async with app.run_test(size=(width, height)) as pilot:
        await pilot.pause(1.0)
        for key in keys:
            if key.startswith("wait"):
                await pilot.pause(float(key[4:] or 0.5))
            elif key == "run":
                while app.runs.active():
                    await pilot.pause(0.2)
            else:
                await pilot.press(key)
                await pilot.pause(0.2)
        await pilot.pause(0.5)
        return tidy(app.export_screenshot(title="kernel-review"))


def tidy(svg: str) -> str:
    """The picture without fonts from elsewhere, and with blanks as places: not every viewer keeps blanks."""
    svg = re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    svg = svg.replace("Fira Code", "DejaVu Sans Mono, Menlo, Consolas")

    def moved(match: re.Match[str]) -> str:
        head, x, middle, length, tail, text = match.groups()
        bare = text.replace("&#160;", "\xa0")
        cells = len(re.sub(r"&[^;]+;", "x", bare))
        kept = bare.strip("\xa0")
        if not kept or not cells:
            return ""
        cell = float(length) / cells
        before = len(bare) - len(bare.lstrip("\xa0"))
        after = len(bare) - len(bare.rstrip("\xa0"))
        place, room = float(x) + before * cell, float(length) - (before + after) * cell
        return f'<text{head}x="{place:g}"{middle}textLength="{room:g}"{tail}>{kept}</text>'.replace("\xa0", "&#160;")

    svg = re.sub(r'<text([^>]*?)x="([\d.]+)"([^>]*?)textLength="([\d.]+)"([^>]*)>([^<]*)</text>', moved, svg)
    return "\n".join(line.rstrip() for line in svg.split("\n"))


def main(words: list[str]) -> None:
    """See the module."""
    demo = words[0] == "--demo"
    size, *keys = words[demo:]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if not demo:
            print(asyncio.run(show(made_up(folder), size, keys)))
            return
        with Exchange.open(str(make_demo(folder / "demo")), trust=True, state=folder / "state") as exchange:
            first: Future[object] = Future()
            first.set_result(exchange.snapshot())
            runs = Runs(exchange, store=EvidenceStore(folder / "evidence"))
            try:
                drafts = Drafts(exchange.id, folder / "drafts")
                app = ConsoleApp(exchange, Config(), runs, drafts, first=first)  # type: ignore[arg-type]
                print(asyncio.run(show(app, size, keys)))
            finally:
                runs.close()


if __name__ == "__main__":
    main(sys.argv[1:])
