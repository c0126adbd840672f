"""Opens the console on made-up work in the terminal it is started in: python open_on_fakes.py DRAFTS [THEME]."""

from __future__ import annotations

import sys
from pathlib import Path
from unittest import mock

sys.path[:0] = [str(Path(__file__).parents[3]), str(Path(__file__).parent)]

from fakes_for_screens import (  # type: ignore[import-not-found] # noqa: E402
    FakeExchange,
    FakeRuns,
    snapshot_of,
    submission_of,
)

from console.app import run  # noqa: E402
from console.config import Config  # noqa: E402
from console.errors import EnvironmentFault, words  # noqa: E402

if __name__ == "__main__":
    exchange = FakeExchange(snapshot_of(submission_of("m-001", 1), submission_of("m-002", 2)), {})
    config = Config(theme=sys.argv[2] if len(sys.argv) > 2 else "dark")
    try:
        with mock.patch("console.drafts.state_dir", lambda: Path(sys.argv[1])):
            sys.exit(run(exchange, config, FakeRuns()))  # type: ignore[arg-type]
    except EnvironmentFault as error:
        print(words(error))
        sys.exit(3)
