from __future__ import annotations

import itertools

import pytest

from console.errors import EnvironmentFault, Exit, UsageError, exit_code, foreseen, words, worst
from console.exchange.errors import ExchangeError, GitRefused
from console.grading.draft import DraftError
from console.grading.verdict import VerdictError
from console.schema import SchemaError
from runners.client import RunnerError
from runners.contract import TaskError
from runners.environment import PythonProblem


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (UsageError("say what"), 2, "say what"),
        (ExchangeError("no git here"), 2, "no git here"),
        (SchemaError("f.toml", "key", "wrong"), 2, "f.toml: key: wrong"),
        (TaskError("task.toml", "kind", "wrong"), 2, "task.toml: kind: wrong"),
        (DraftError("not a draft"), 2, "not a draft"),
        (VerdictError("cannot be"), 2, "cannot be"),
        (GitRefused("push", "protected branch"), 4, "push: protected branch"),
        (EnvironmentFault("no terminal"), 3, "no terminal"),
        (RunnerError("did not start"), 3, "did not start"),
        (PythonProblem("/opt/python: gone"), 3, "/opt/python: gone"),
        (FileNotFoundError(2, "No such file or directory", "form.toml"), 3, "form.toml: No such file or directory"),
        (OSError(28, "No space left on device"), 3, "No space left on device"),
        (OSError("odd"), 3, "odd"),
        (TimeoutError(), 3, "timed out"),
        (MemoryError(), 3, "this machine has no memory left"),
    ],
)
def test_every_typed_error_has_words_and_a_code(error: Exception, code: int, text: str) -> None:
    assert (exit_code(error), words(error), foreseen(error)) == (code, text, True)


def test_what_nobody_foresaw_is_our_fault_and_no_submission_s() -> None:
    error = KeyError("x")
    assert (exit_code(error), foreseen(error)) == (Exit.NOT_DETERMINED, False)
    assert words(error) == "a fault in kernel-review itself: KeyError: 'x'"


def test_the_worst_of_several() -> None:
    order = [Exit.USAGE, Exit.REFUSED, Exit.FAILED, Exit.NOT_DETERMINED, Exit.DONE]
    for one, two in itertools.combinations(order, 2):
        assert worst([two, one]) == worst([one, two]) == one
    assert worst([]) == Exit.DONE
