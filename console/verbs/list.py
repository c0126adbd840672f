"""The queue: every submission with its run, its worst finding, its reviews and its mark."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from console.exchange.model import Snapshot, Submission
    from console.runs import RunState
    from console.verbs.output import Tone

SHORT = 9
"""Characters of a commit's name for people."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the verb takes."""
    parser.add_argument("patterns", metavar="TASK/NAME", nargs="*", help="only these; may be globs")
    parser.add_argument("--author", metavar="TEXT", help="author contains TEXT")
    parser.add_argument(
        "--outcome", choices=("pass", "fail", "not-determined", "none"), help="of the newest run; none: not run yet"
    )
    parser.add_argument("--finding", metavar="CODE", help="has this finding; may be a glob: 'memory/*'")
    parser.add_argument("--unreviewed", action="store_true", help="no review of the newest revision")
    parser.add_argument("--mark", choices=("wants-review", "reject", "environment"), help="has this triage mark")


def run(args: argparse.Namespace) -> int:
    """Print the queue."""
    from console.config import load_config
    from console.verbs.common import find, open_exchange, runs_on
    from console.verbs.output import print_json, tell

    config = load_config()
    with open_exchange(args, config) as exchange, runs_on(exchange, config) as runs:
        snapshot = exchange.snapshot()
        chosen = find(snapshot, args.patterns) if args.patterns else list(snapshot.submissions)
        runs.adopt(snapshot)
        entries = [entry(snapshot, submission, runs.state(submission.key)) for submission in chosen]
    entries = [one for one in entries if wanted(one, args)]
    for problem in snapshot.problems:
        tell(problem)
    if snapshot.unpushed:
        tell(f"{snapshot.unpushed} commits of this clone are not on its origin yet, and are not shown")
    if args.json:
        for one in entries:
            print_json(one)
    else:
        _print(entries)
    return 0


def entry(snapshot: Snapshot, submission: Submission, state: RunState) -> dict[str, Any]:
    """One row of the queue as plain data."""
    from console.view.queue import worst_of

    task = snapshot.tasks.get(submission.task)
    worst = worst_of(state.findings)
    reviews = [one for one in snapshot.reviews if one.key == submission.key]
    mark = next((one for one in snapshot.triage if one.key == submission.key), None)
    return {
        "task": submission.task,
        "submission": submission.name,
        "revision": submission.revision,
        "tree": submission.tree,
        "author": submission.author,
        "when": submission.when,
        "framework": submission.framework,
        "problem": submission.problem or (task.problem if task else f"no task is called {submission.task}"),
        "outcome": state.evidence.outcome if state.evidence else None,
        "stale": state.stale,
        "panels": {name: view.status for name, view in state.panels.items()},
        "worst": {"id": worst.id, "severity": worst.severity, "summary": worst.summary} if worst else None,
        "findings": [finding.code for finding in state.findings],
        "reviews": [
            {
                "grader": one.grader,
                "outcome": one.review.outcome if one.review else None,
                "mechanism": one.review.mechanism if one.review else None,
                "score": one.review.score if one.review else None,
                "current": one.review is not None and one.review.tree == submission.tree,
                "problem": one.problem,
            }
            for one in reviews
        ],
        "triage": {
            "mark": mark.mark,
            "reason": mark.reason,
            "grader": mark.grader,
            "current": mark.tree == submission.tree,
        }
        if mark
        else None,
    }


def wanted(one: dict[str, Any], args: argparse.Namespace) -> bool:
    """True when a row passes every filter."""
    from fnmatch import fnmatchcase

    return (
        (not args.author or args.author.casefold() in one["author"].casefold())
        and (not args.outcome or (one["outcome"] or "none") == args.outcome)
        and (not args.finding or any(fnmatchcase(code, args.finding) for code in one["findings"]))
        and (not args.unreviewed or not any(review["current"] for review in one["reviews"]))
        and (not args.mark or (one["triage"] is not None and one["triage"]["mark"] == args.mark))
    )


def _print(entries: list[dict[str, Any]]) -> None:
    from console.verbs.output import STATUS_TONE, table, tell

    rows: list[list[str]] = [["SUBMISSION", "AUTHOR", "REVISION", "RUN", "REVIEWS", "MARK", "WORST FINDING"]]
    tones: list[list[Tone]] = [["dim"] * 7]
    for one in entries:
        outcome = one["outcome"] or "-"
        worst = one["problem"] or (f"{one['worst']['id']} {one['worst']['summary']}" if one["worst"] else "")
        severity: Tone = "warn" if one["problem"] else STATUS_TONE[one["worst"]["severity"]] if one["worst"] else "dim"
        rows.append(
            [
                f"{one['task']}/{one['submission']}",
                one["author"],
                one["revision"][:SHORT],
                f"{outcome}, stale" if one["stale"] else outcome,
                "; ".join(_review_word(review) for review in one["reviews"]) or "-",
                (one["triage"]["mark"] + ("" if one["triage"]["current"] else ", older")) if one["triage"] else "-",
                worst,
            ]
        )
        tones.append(["strong", "plain", "dim", STATUS_TONE.get(outcome, "dim"), "plain", "plain", severity])
    table(rows, tones)
    if not entries:
        tell("no submission matches")


def _review_word(review: dict[str, Any]) -> str:
    if review["problem"]:
        return f"{review['grader']}: unreadable"
    return f"{review['grader']}: {review['outcome']} {review['score']:.1f}" + ("" if review["current"] else ", older")
