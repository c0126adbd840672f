"""What verbs share: opening an exchange, finding submissions, running panels to their end."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from console.config import Config, state_dir
from console.errors import UsageError, words
from console.exchange.errors import GitRefused
from console.verbs.output import tell
from runners.findings import PANELS, PanelName

if TYPE_CHECKING:
    from console.exchange import Exchange
    from console.exchange.model import Snapshot, Submission, Task
    from console.runs import Runs, RunState
    from runners.contract import Device

_HEARTBEAT_S = 0.5


@contextlib.contextmanager
def open_exchange(args: argparse.Namespace, config: Config) -> Iterator[Exchange]:
    """The exchange that ``--exchange`` names, else the configured one, else the repository around us; news fetched."""
    from console.exchange import Exchange

    where = _default_exchange(config) if args.exchange is None else args.exchange
    with Exchange.open(where, trust=args.trust, grader=config.grader) as exchange:
        if not args.no_fetch:
            try:
                exchange.fetch()
            except (GitRefused, OSError) as error:
                tell(f"not fetched, showing what is here: {words(error)}")
        yield exchange


def _default_exchange(config: Config) -> str:
    here = Path.cwd()
    inside = any((folder / ".git").exists() for folder in (here, *here.parents))
    return config.exchange if config.exchange and not inside else "."


def require_consent(exchange: Exchange, tasks: Iterable[Task], args: argparse.Namespace) -> None:
    """Raises UsageError where running would execute code that the grader has not allowed.

    A path on the command line is consent, for an address ``--trust`` is; a ``reference.py`` that has changed since
    asks anew.
    """
    if exchange.needs_trust:
        raise UsageError(f"{exchange.name}: runs execute its reference.py; say --trust once to allow that")
    consented = args.trust or (args.exchange is not None and Path(args.exchange).exists())
    for task in tasks:
        if exchange.reference_changed(task):
            if not consented:
                raise UsageError(f"tasks/{task.name}/reference.py has changed; look at it, then say --trust to run it")
            exchange.confirm_reference(task)


def read_file(name: str, limit: int) -> bytes:
    """A file that the command line names. Raises UsageError where it cannot be read, or is too large."""
    try:
        with Path(name).open("rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise UsageError(f"{name}: {error.strerror}") from None
    if len(data) > limit:
        raise UsageError(f"{name}: larger than {limit} bytes")
    return data


def matching(keys: Sequence[str], patterns: Sequence[str], what: str = "submission") -> set[str]:
    """The keys that match a pattern. Raises UsageError for a pattern that matches nothing."""
    wanted: set[str] = set()
    for pattern in patterns:
        found = [pattern] if pattern in keys else [key for key in keys if fnmatchcase(key, pattern)]
        if not found:
            import difflib

            whole = dict.fromkeys(f"{key.partition('/')[0]}/*" for key in keys)
            near = difflib.get_close_matches(pattern, [*keys, *whole], n=1)
            raise UsageError(f"no {what} matches {pattern!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
        wanted.update(found)
    return wanted


def find(snapshot: Snapshot, patterns: Sequence[str]) -> list[Submission]:
    """The submissions that match, in the snapshot's order. Raises UsageError for a pattern that matches nothing."""
    wanted = matching([one.key for one in snapshot.submissions], patterns)
    return [one for one in snapshot.submissions if one.key in wanted]


def find_one(snapshot: Snapshot, pattern: str) -> Submission:
    """The one submission that matches. Raises UsageError for none and for several."""
    found = find(snapshot, [pattern])
    if len(found) > 1:
        raise UsageError(f"{pattern!r} matches {len(found)} submissions; name one")
    return found[0]


def task_of(snapshot: Snapshot, submission: Submission) -> Task:
    """The submission's task. Raises UsageError where the exchange has none of that name."""
    task = snapshot.tasks.get(submission.task)
    if task is None:
        raise UsageError(f"{submission.key}: the exchange has no task {submission.task!r}")
    return task


def panel_names(text: str) -> tuple[PanelName, ...]:
    """``build,correctness`` as panels, in the order of the screen. Raises ArgumentTypeError."""
    asked = {name.strip() for name in text.split(",")}
    unknown = sorted(asked.difference(PANELS))
    if unknown:
        raise argparse.ArgumentTypeError(f"no panel is called {unknown[0]!r}; there are {', '.join(PANELS)}")
    return tuple(name for name in PANELS if name in asked)


def run_options(parser: argparse.ArgumentParser) -> None:
    """The options that say how panels run."""
    parser.add_argument("--python", metavar="PATH", help="the Python that runs candidates")
    parser.add_argument("--device", choices=("cpu", "cuda"), help="where candidates run")
    parser.add_argument("--unsafe", action="store_true", help="run even below the sandbox floor")


@contextlib.contextmanager
def runs_on(
    exchange: Exchange,
    config: Config,
    *,
    python: str | None = None,
    device: Device | None = None,
    unsafe: bool = False,
    panels: tuple[PanelName, ...] = PANELS,
) -> Iterator[Runs]:
    """Runs of an exchange; however the block ends, they and their processes end with it."""
    from console.runs import Runs
    from runners.selfcheck import Ledger
    from runners.store import EvidenceStore

    runs = Runs(
        exchange,
        store=EvidenceStore(state_dir() / "evidence" / exchange.id),
        python=python or config.runner.python,
        device=device or config.runner.device,
        panels=panels,
        unsafe=unsafe,
        workers=config.runner.workers,
        ledger=Ledger(state_dir() / "self-check"),
    )
    try:
        yield runs
    finally:
        runs.close()


def follow(
    runs: Runs, pairs: Sequence[tuple[Task, Submission]], *, fresh: bool = False, replay: tuple[int, ...] = ()
) -> Iterator[RunState]:
    """Run submissions and yield each one's state as it ends; progress goes to stderr."""
    import queue

    changed: queue.SimpleQueue[str] = queue.SimpleQueue()
    runs.subscribe(changed.put)
    waiting = {submission.key: "" for _, submission in pairs}
    for task, submission in pairs:
        runs.start(task, submission, fresh=fresh, replay=replay)
    while waiting:
        try:
            keys = [changed.get(timeout=_HEARTBEAT_S)]
        except queue.Empty:
            keys = list(waiting)
        for key in keys:
            if key not in waiting:
                continue
            state = runs.state(key)
            if state.phase in ("done", "failed", "cancelled"):
                del waiting[key]
                yield state
                continue
            stage = _stage(state)
            if stage and stage != waiting[key]:
                waiting[key] = stage
                tell(f"{key}: {stage}")


def _stage(state: RunState) -> str:
    """What a run does now, in a word that changes rarely enough for a log."""
    if state.message:
        return state.message
    return next((name for name, view in state.panels.items() if view.status == "running"), "")
