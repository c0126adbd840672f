"""What this machine can and cannot check, and why."""

from __future__ import annotations

import argparse


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the verb takes."""
    parser.add_argument("--python", metavar="PATH", help="the Python that would run candidates")


def run(args: argparse.Namespace) -> int:
    """Print the findings of the examination."""
    raise NotImplementedError
