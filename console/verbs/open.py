"""Open the console on a clone, a path or a URL."""

from __future__ import annotations

import argparse

from console.errors import UsageError


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the verb takes."""
    parser.add_argument("where", metavar="EXCHANGE", nargs="?", help="path or URL; default: this repository")


def run(args: argparse.Namespace) -> int:
    """Open the console and return when the grader quits."""
    if args.json:
        raise UsageError("the console is a screen; `list --json` prints the queue")
    from console import app
    from console.config import load_config
    from console.verbs.common import open_exchange, runs_on

    app.require_terminal()
    app.load_textual()
    args.exchange = getattr(args, "where", None) or args.exchange
    args.no_fetch = True  # the console fetches by itself, without keeping the grader waiting
    config = load_config()
    with open_exchange(args, config) as exchange, runs_on(exchange, config) as runs:
        return app.run(exchange, config, runs)
