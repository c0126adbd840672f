"""Run panels on submissions and print the evidence, one line of JSON each with --json."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from console.errors import Exit, UsageError, worst
from console.verbs import common

if TYPE_CHECKING:
    from console.runs import RunState
    from runners.evidence import Evidence

MAX_EVIDENCE_BYTES = 64 * 1024 * 1024

_CODES = {"pass": Exit.DONE, "fail": Exit.FAILED, "not-determined": Exit.NOT_DETERMINED}


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the verb takes."""
    parser.add_argument("patterns", metavar="TASK/NAME", nargs="*", help="what to run; may be globs")
    parser.add_argument("--fresh", action="store_true", help="run even where evidence is there already")
    parser.add_argument("--replay", metavar="EVIDENCE", help="run with the seeds of this file and report differences")
    parser.add_argument("--panels", type=common.panel_names, metavar="LIST", help="only these, comma-separated")
    common.run_options(parser)


def run(args: argparse.Namespace) -> int:
    """Run what matches and return the worst code."""
    from console.config import load_config
    from console.verbs.output import tell
    from runners.findings import PANELS

    if args.replay and args.fresh:
        raise UsageError("--replay always runs anew; leave --fresh out")
    before = _read_evidence(args.replay) if args.replay else None
    patterns = args.patterns or ([f"{before.task.name}/{before.submission.name}"] if before else [])
    if not patterns:
        raise UsageError("name at least one TASK/NAME; '*' means all")
    config = load_config()
    with common.open_exchange(args, config) as exchange:
        snapshot = exchange.snapshot()
        chosen = common.find(snapshot, patterns)
        if before and [one.key for one in chosen] != [f"{before.task.name}/{before.submission.name}"]:
            raise UsageError(f"{args.replay} is evidence of {before.task.name}/{before.submission.name} alone")
        pairs = [(snapshot.tasks[one.task], one) for one in chosen if one.task in snapshot.tasks]
        lost = [one for one in chosen if one.task not in snapshot.tasks]
        for one in lost:
            tell(f"{one.key}: not determined: the exchange has no task {one.task}")
        common.require_consent(exchange, [task for task, _ in pairs], args)
        options = {"python": args.python, "device": args.device, "unsafe": args.unsafe}
        with common.runs_on(exchange, config, **options, panels=args.panels or PANELS) as runs:
            states = common.follow(runs, pairs, fresh=args.fresh, replay=before.seeds if before else ())
            codes = [_report(state, before, as_json=args.json) for state in states]
        return worst([*codes, *(Exit.NOT_DETERMINED for _ in lost)])


def _report(state: RunState, before: Evidence | None, *, as_json: bool) -> Exit:
    from console.verbs.output import tell

    if state.evidence is None:
        tell(f"{state.key}: {state.phase}: {state.message}")
        return Exit.NOT_DETERMINED
    print_evidence(state, as_json=as_json)
    return _compare(before, state.evidence) if before else _CODES[state.evidence.outcome]


def _read_evidence(path: str) -> Evidence:
    import msgspec

    from runners.evidence import decode

    data = common.read_file(path, MAX_EVIDENCE_BYTES)
    try:
        evidence = decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not evidence: {error}") from None
    if not evidence.seeds:
        raise UsageError(f"{path}: records no seeds, so there is nothing to replay")
    return evidence


def _compare(before: Evidence, after: Evidence) -> Exit:
    from console.verbs.compare import differences, surroundings
    from console.verbs.output import tell

    for line in surroundings(before, after):
        tell(f"replay: the machine: {line}")
    found = differences(before, after)
    for line in found:
        tell(f"replay: {line}")
    if not found:
        tell("replay: no differences")
    return Exit.FAILED if found else Exit.DONE


def print_evidence(state: RunState, *, as_json: bool) -> None:
    """Print the evidence of a run that is done."""
    from console.verbs.output import STATUS_TONE, Tone, print_json, print_text

    evidence = state.evidence
    assert evidence is not None
    if as_json:
        print_json(evidence)
        return
    parts: list[str | tuple[str, Tone]] = [(state.key, "strong"), "  "]
    parts.append((evidence.outcome, STATUS_TONE[evidence.outcome]))
    parts.append("  (from the store)" if state.started is None else "")
    for name, panel in evidence.panels.items():
        parts += ["  ", f"{name} ", (panel.status, STATUS_TONE[panel.status])]
    print_text(*parts)
    for finding in evidence.findings:
        where = f"  {finding.where}" if finding.where else ""
        print_text("  ", (finding.severity, STATUS_TONE[finding.severity]), f"  {finding.id}{where}  {finding.summary}")
    for name, panel in evidence.panels.items():
        if panel.reason:
            print_text("  ", (panel.status, STATUS_TONE[panel.status]), f"  {name}: {panel.reason}")
