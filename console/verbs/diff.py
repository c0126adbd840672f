"""The diff that the console shows, against whatever the grader names."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from console.exchange.diff import Diff, FileDiff
    from console.verbs.output import Tone

_SIGN = {"same": " ", "add": "+", "del": "-"}
_TONE: dict[str, Tone] = {"same": "plain", "add": "good", "del": "bad"}


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the verb takes."""
    parser.add_argument("pattern", metavar="TASK/NAME", help="the submission")
    parser.add_argument(
        "--against",
        default="starter",
        metavar="BASE",
        help="starter (default), previous, reviewed, reference, or a commit",
    )
    parser.add_argument("--stat", action="store_true", help="files and counts only")


def run(args: argparse.Namespace) -> int:
    """Print the diff."""
    from console.config import load_config
    from console.verbs.common import find_one, open_exchange
    from console.verbs.output import print_json

    with open_exchange(args, load_config()) as exchange:
        submission = find_one(exchange.snapshot(), args.pattern)
        diff = exchange.diff(submission, args.against)
    if args.json:
        print_json({"task": submission.task, "submission": submission.name, "against": args.against, "diff": diff})
    else:
        print_diff(diff, stat=args.stat)
    return 0


def print_diff(diff: Diff, *, stat: bool = False) -> None:
    """Print a diff for people, in the form that ``git diff`` made familiar."""
    from console.verbs.output import print_text

    print_text((f"{diff.old} .. {diff.new}", "strong"))
    if diff.note:
        print_text((diff.note, "dim"))
    for file in diff.files:
        _print_file(file, stat=stat)


def _print_file(file: FileDiff, *, stat: bool) -> None:
    from console.verbs.output import print_text

    moved = f"{file.old_path} -> " if file.old_path != file.path and file.status in ("renamed", "copied") else ""
    note = f"  ({file.note})" if file.note else ""
    print_text((f"{file.status} {moved}{file.path}", "strong"), f"  +{file.added} -{file.removed}{note}")
    if stat:
        return
    for hunk in file.hunks:
        old = sum(line.kind != "add" for line in hunk.lines)
        new = sum(line.kind != "del" for line in hunk.lines)
        print_text((f"@@ -{hunk.old},{old} +{hunk.new},{new} @@ {hunk.heading}".rstrip(), "dim"))
        for line in hunk.lines:
            print_text((_SIGN[line.kind] + line.text, _TONE[line.kind]))
