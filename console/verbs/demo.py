"""Make a scratch exchange from the samples, with a bare remote of its own, and open it."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from console.errors import UsageError


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the verb takes."""
    parser.add_argument("folder", metavar="FOLDER", nargs="?", help="where to make it; default: a new temporary folder")
    parser.add_argument("--no-open", action="store_true", help="make it and print where the clone is")


def run(args: argparse.Namespace) -> int:
    """Make the exchange, then open the console on it."""
    from console.demo import make_demo
    from console.verbs.output import print_json, print_text, tell

    if args.folder:
        folder = Path(args.folder).expanduser()
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UsageError(f"{args.folder}: is there already and not empty")
        folder.mkdir(parents=True, exist_ok=True)
    else:
        folder = Path(tempfile.mkdtemp(prefix="kernel-review-demo-"))
    clone = make_demo(folder.resolve())
    if args.json:
        print_json({"clone": str(clone)})
        return 0
    if args.no_open:
        print_text(str(clone))
        return 0
    from console.verbs import open as opening

    args.exchange, args.trust, args.where = str(clone), True, None
    code = opening.run(args)
    tell(f"the demo is kept: kernel-review open {clone}")
    tell(f"what was pushed: git -C {clone.parent / 'remote.git'} log")
    return code
