"""Opens the console on made-up work, or a scratch exchange, to look at it: python look.py [SIZE] [KEYS…] > out.svg."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from fakes_for_screens import Bench, snapshot_of, submission_of  # type: ignore[import-not-found]


async def main(size: str, keys: list[str]) -> None:
    width, height = map(int, size.split("x"))
    submissions = [
        submission_of(f"m-{number:03}", number, author=("claude-x", "gpt-y", "ann")[number % 3], task=task)
        for number, task in enumerate(["row-softmax", "fused-softmax-fp8", "layer-norm"] * 14)
    ]
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(snapshot_of(*submissions), Path(folder))
        for one in submissions[:20]:
            bench.finish(one.key, fail=int(one.name[-1]) % 2 == 0)
        app = bench.app()
        async with app.run_test(size=(width, height)) as pilot:
            await pilot.pause(0.5)
            for key in keys:
                if key.startswith("wait"):
                    await pilot.pause(float(key[4:] or 0.5))
                else:
                    await pilot.press(key)
                    await pilot.pause(0.2)
            await pilot.pause(0.5)
            print(app.export_screenshot(title="kernel-review"))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2:]))
