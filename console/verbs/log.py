"""The committed reviews: task, submission, grader, outcome, mechanism, score; newest first."""

from __future__ import annotations

import argparse
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from console.grading.verdict import MECHANISMS, OUTCOMES

if TYPE_CHECKING:
    from console.exchange.model import ReviewRecord, Snapshot
    from console.verbs.output import Tone


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the verb takes."""
    parser.add_argument("patterns", metavar="TASK/NAME", nargs="*", help="only these; may be globs")
    parser.add_argument("--grader", metavar="SLUG", help="by this grader; may be a glob")
    parser.add_argument("--outcome", choices=OUTCOMES)
    parser.add_argument("--mechanism", choices=MECHANISMS)
    parser.add_argument("--min-score", type=float, metavar="N", help="a score of at least N")
    parser.add_argument("--max-score", type=float, metavar="N", help="a score of at most N")
    parser.add_argument("--since", type=_day, metavar="YYYY-MM-DD", help="committed on that day (UTC) or later")
    parser.add_argument("--current", action="store_true", help="only reviews of the newest revision")
    parser.add_argument("--overruled", metavar="CODE", help="overrules this finding; may be a glob")


def _day(text: str) -> int:
    try:
        return int(datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=timezone.utc).timestamp())
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no day; write 2026-03-31") from None


def run(args: argparse.Namespace) -> int:
    """Print the reviews."""
    from console.config import load_config
    from console.verbs.common import matching, open_exchange
    from console.verbs.output import print_json

    with open_exchange(args, load_config()) as exchange:
        snapshot = exchange.snapshot()
    records = sorted(snapshot.reviews, key=lambda record: (-record.when, record.path))
    # A review outlives its submission, and a submission may have no review yet: naming either is no mistake.
    matching([*(one.key for one in snapshot.submissions), *(one.key for one in records)], args.patterns)
    entries = [one for one in (entry(snapshot, record) for record in records) if wanted(one, args)]
    if args.json:
        for one in entries:
            print_json(one)
    else:
        _print(entries)
    return 0


def entry(snapshot: Snapshot, record: ReviewRecord) -> dict[str, Any]:
    """One review as plain data; the judgement is null where the file cannot be read."""
    review = record.review
    submission = snapshot.submission(record.key)
    return {
        "task": record.task,
        "submission": record.submission,
        "grader": record.grader,
        "commit": record.commit,
        "author": record.author,
        "when": record.when,
        "outcome": review.outcome if review else None,
        "mechanism": review.mechanism if review else None,
        "score": review.score if review else None,
        "levels": review.levels if review else {},
        "overruled": [one.code for one in review.overruled] if review else [],
        "revision": review.revision if review else None,
        "current": review is not None and submission is not None and review.tree == submission.tree,
        "rubric": f"{review.rubric.name}@{review.rubric.version}" if review else None,
        "problem": record.problem,
    }


def wanted(one: dict[str, Any], args: argparse.Namespace) -> bool:
    """True when a review passes every filter."""
    from fnmatch import fnmatchcase

    key, score = f"{one['task']}/{one['submission']}", one["score"]
    return (
        (not args.patterns or any(key == pattern or fnmatchcase(key, pattern) for pattern in args.patterns))
        and (not args.grader or fnmatchcase(one["grader"], args.grader))
        and (not args.outcome or one["outcome"] == args.outcome)
        and (not args.mechanism or one["mechanism"] == args.mechanism)
        and (args.min_score is None or (score is not None and score >= args.min_score))
        and (args.max_score is None or (score is not None and score <= args.max_score))
        and (args.since is None or one["when"] >= args.since)
        and (not args.current or one["current"])
        and (not args.overruled or any(fnmatchcase(code, args.overruled) for code in one["overruled"]))
    )


def _print(entries: list[dict[str, Any]]) -> None:
    from console.verbs.output import STATUS_TONE, table, tell

    rows: list[list[str]] = [["DATE", "SUBMISSION", "GRADER", "OUTCOME", "MECHANISM", "SCORE", ""]]
    tones: list[list[Tone]] = [["dim"] * 7]
    for one in entries:
        day = datetime.fromtimestamp(one["when"], timezone.utc).strftime("%Y-%m-%d")
        score = "-" if one["score"] is None else f"{one['score']:.1f}"
        note = one["problem"] or ("" if one["current"] else "of an older revision")
        rows.append(
            [
                day,
                f"{one['task']}/{one['submission']}",
                one["grader"],
                one["outcome"] or "-",
                one["mechanism"] or "-",
                score,
                note,
            ]
        )
        note_tone: Tone = "warn" if one["problem"] else "dim"
        tones.append(
            ["dim", "strong", "plain", STATUS_TONE.get(one["outcome"] or "", "dim"), "plain", "plain", note_tone]
        )
    table(rows, tones)
    if not entries:
        tell("no review matches")
