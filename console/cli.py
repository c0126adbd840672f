"""The command ``kernel-review``: reads the command line, hands over to a verb, turns what went wrong into words."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from types import FrameType

from console.errors import Exit, Terminated

VERBS = {
    "demo": "make a scratch exchange from the samples and open it",
    "open": "open the console on a clone, a path or a URL (also without a verb)",
    "list": "the queue, with filters",
    "run": "run panels and print evidence",
    "diff": "the diff that the console shows",
    "review": "commit a review from a form",
    "log": "the committed reviews, with filters",
    "doctor": "what this machine can and cannot check, and why",
}
NOT_YET = ("claim", "release", "agreement", "check-task")
EPILOG = """\
TASK/NAME may be a glob: 'row-softmax/*'.

exit codes: 0 pass or done; 1 the candidate failed, or --replay differs; 2 wrong use, or a form that fails its
checks; 3 not determined, or the environment is at fault; 4 git refused. Of several: the first of 2, 4, 1, 3, 0.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code; argparse raises SystemExit for wrong use and for --help."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments and arguments[0] in NOT_YET:
        print(f"kernel-review: {arguments[0]}: not part of this version", file=sys.stderr)
        return Exit.USAGE
    args = _parser(arguments).parse_args(arguments)
    verb = importlib.import_module(f"console.verbs.{args.verb or 'open'}")
    with _signals():
        try:
            return int(verb.run(args))
        except KeyboardInterrupt:
            return 128 + signal.SIGINT
        except Terminated as end:
            return 128 + end.signum
        except BrokenPipeError:
            _drop_stdout()
            return 128 + signal.SIGPIPE
        except Exception as error:  # noqa: BLE001 - the last frame: every error leaves as words and a code
            return _report(error)


def _parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS, allow_abbrev=False)
    group = common.add_argument_group("with every verb")
    group.add_argument("--exchange", metavar="PATH|URL", help="the exchange; default: the repository you stand in")
    group.add_argument("--json", action="store_true", help="JSON on stdout, one object a line, and nothing else there")
    group.add_argument("--trust", action="store_true", help="let its reference.py run here; needed once for a URL")
    group.add_argument("--no-fetch", action="store_true", help="do not ask the remote for news first")
    parser = argparse.ArgumentParser(
        prog="kernel-review",
        allow_abbrev=False,
        description="Judge GPU-kernel submissions, evidence first. Without a verb: open the console.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[common],
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    parser.set_defaults(exchange=None, json=False, trust=False, no_fetch=False, verb=None)
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", title="verbs")
    # Parsers are slow to make, and loading every verb would take longer than printing the help: where the verb is
    # known the others are left out, and one that is not used is no more than a name.
    known = arguments[0] if arguments and arguments[0] in VERBS else None
    for name, help_text in VERBS.items():
        if known in (None, name):
            used = name in arguments
            parents = [common] if used else []
            verb = verbs.add_parser(name, help=help_text, description=help_text, parents=parents, allow_abbrev=False)
            if used:
                importlib.import_module(f"console.verbs.{name}").arguments(verb)
    return parser


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *args: object) -> None:
        from importlib.metadata import version

        print(f"kernel-review {version('kernel-review-console')}")
        parser.exit()


@contextlib.contextmanager
def _signals() -> Iterator[None]:
    """SIGTERM and SIGHUP end the verb as an exception does, so that runs and their processes end with it."""

    def end(signum: int, frame: FrameType | None) -> None:
        signal.signal(signum, signal.SIG_DFL)
        raise Terminated(signum)

    before = {one: signal.signal(one, end) for one in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def _drop_stdout() -> None:
    """Nobody reads: keep the interpreter from failing when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _report(error: Exception) -> int:
    from console.errors import exit_code, foreseen, words
    from console.exchange.text import visible_block

    if not foreseen(error):
        import traceback

        traceback.print_exception(error)
    print(f"kernel-review: {visible_block(words(error))}", file=sys.stderr)
    return exit_code(error)


if __name__ == "__main__":
    sys.exit(main())
