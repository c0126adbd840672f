"""Opens the console on made-up work in the terminal it is started in: python open_on_fakes.py DRAFTS [THEME].

With REFUSED in the environment the first submission has passed its run, and git refuses the first review; with BREAKS,
opening a submission is a fault of the program.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from unittest import mock

sys.path[:0] = [str(Path(__file__).parents[3]), str(Path(__file__).parent)]

from fakes_for_screens import (  # type: ignore[import-not-found] # noqa: E402
    FakeExchange,
    FakeRuns,
    evidence_of,
    snapshot_of,
    submission_of,
)

from console.app import run  # noqa: E402
from console.config import Config  # noqa: E402
from console.errors import EnvironmentFault, words  # noqa: E402
from console.exchange.errors import GitRefused  # noqa: E402
from console.runs import RunState, with_evidence  # noqa: E402
from console.screens.queue import QueueScreen  # noqa: E402

if __name__ == "__main__":
    first = submission_of("m-001", 1)
    exchange, runs = FakeExchange(snapshot_of(first, submission_of("m-002", 2)), {}), FakeRuns()
    if "REFUSED" in os.environ:
        exchange.refusal = GitRefused("committing", "policy: no ticket")
        runs.put(with_evidence(RunState(key=first.key), evidence_of(first, fail=False), None))
    if "BREAKS" in os.environ:
        QueueScreen.action_open = lambda self: 1 / 0  # type: ignore[assignment,method-assign]
    config = Config(theme=sys.argv[2] if len(sys.argv) > 2 else "dark")
    try:
        with mock.patch("console.drafts.state_dir", lambda: Path(sys.argv[1])):
            sys.exit(run(exchange, config, runs))  # type: ignore[arg-type]
    except EnvironmentFault as error:
        print(words(error))
        sys.exit(3)
