"""Open the console on a clone, a path or a URL."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from console.errors import UsageError

if TYPE_CHECKING:
    from console.config import Config


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the verb takes."""
    parser.add_argument("where", metavar="EXCHANGE", nargs="?", help="path or URL; default: this repository")


def run(args: argparse.Namespace) -> int:
    """Open the console and return when the grader quits."""
    if args.json:
        raise UsageError("the console is a screen; `list --json` prints the queue")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("the console needs a terminal; list, run, diff, review and log work without one")
    from console.config import load_config

    config = load_config()
    args.exchange = getattr(args, "where", None) or args.exchange
    args.no_fetch = True  # the console fetches by itself, without keeping the grader waiting
    return open_console(args, config)


def open_console(args: argparse.Namespace, config: Config) -> int:
    """The console on the exchange that the arguments name."""
    from console import app
    from console.verbs.common import open_exchange, runs_on

    exchange = open_exchange(args, config)
    with runs_on(exchange, config) as runs:
        return app.run(exchange, config, runs)
