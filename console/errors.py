"""The one place that turns exceptions into words for people and into exit codes."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum


class Exit(IntEnum):
    """What a verb's exit code says."""

    DONE = 0
    FAILED = 1
    """The candidate failed; with ``--replay``, there are differences."""
    USAGE = 2
    NOT_DETERMINED = 3
    """Not determined, or the environment is at fault."""
    REFUSED = 4
    """Git said no."""


_WORST_FIRST = (Exit.USAGE, Exit.REFUSED, Exit.FAILED, Exit.NOT_DETERMINED, Exit.DONE)


def worst(codes: Iterable[Exit]) -> Exit:
    """The code that stands for several, by the order 2, 4, 1, 3, 0; DONE for none."""
    return min(codes, key=_WORST_FIRST.index, default=Exit.DONE)


class UsageError(Exception):
    """Wrong use of the command line, in words that say what to do instead."""


class EnvironmentFault(Exception):
    """The machine lacks what is needed; nobody's work is at fault."""


class Terminated(BaseException):
    """A signal asked the process to end."""

    def __init__(self, signum: int) -> None:
        super().__init__(signum)
        self.signum = signum


def exit_code(error: BaseException) -> Exit:
    """The code for an exception. One that nobody foresaw is never charged to a submission."""
    from console.exchange.errors import ExchangeError, GitRefused
    from console.grading.draft import DraftError
    from console.grading.verdict import VerdictError
    from console.schema import SchemaError
    from runners.contract import TaskError

    if isinstance(error, GitRefused):
        return Exit.REFUSED
    if isinstance(error, (UsageError, ExchangeError, SchemaError, TaskError, DraftError, VerdictError)):
        return Exit.USAGE
    return Exit.NOT_DETERMINED


def foreseen(error: BaseException) -> bool:
    """False for a fault of this program, of which people should see where it happened."""
    from runners.client import RunnerError
    from runners.environment import PythonProblem

    environment = (EnvironmentFault, RunnerError, PythonProblem, OSError, MemoryError)
    return isinstance(error, environment) or exit_code(error) is not Exit.NOT_DETERMINED


def words(error: BaseException) -> str:
    """What went wrong, as a sentence without a name of a class. It may quote foreign text: show it with ``visible``."""
    if isinstance(error, TimeoutError) and not str(error):
        return "timed out"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, MemoryError):
        return "this machine has no memory left"
    if foreseen(error):
        return str(error)
    return f"a fault in kernel-review itself: {type(error).__name__}: {error}"
