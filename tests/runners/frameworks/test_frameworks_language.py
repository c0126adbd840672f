"""Arithmetic, logic and asserts of interpreted kernels are those of hardware and of torch."""

from __future__ import annotations

import pytest

from .conftest import Run, line_of

FILE = "language.py"


@pytest.mark.parametrize(
    "name",
    [
        "bf16_arithmetic",
        "conversions",
        "saturation",
        "dots",
        "bf16_reductions",
        "combined",
        "logic",
        "scalars",
        "assertion_holds",
        "special_functions",
        "bf16_atomics",
        "default_dot",
    ],
)
def test_right_values_and_no_reports(run: Run, name: str) -> None:
    outcome = run(FILE, name)
    assert outcome.failure is None
    assert outcome.codes == []
    assert outcome.close


def test_tf32_rounds_on_request(run: Run) -> None:
    assert run(FILE, "default_dot", tf32=True).close is False


@pytest.mark.parametrize(
    ("name", "code", "marker"),
    [
        ("block_branch", "build/compile", "block-branch"),
        ("assertion_fails", "build/launch", "assert"),
        ("static_assertion", "build/compile", "static-assert"),
        ("bad_range", "build/compile", "arange"),
        ("inline_assembly", "build/environment", "assembly"),
        ("uncovered_function", "build/environment", "uncovered"),
    ],
)
def test_failures_name_their_line(run: Run, name: str, code: str, marker: str) -> None:
    failure = run(FILE, name).failure
    assert failure is not None
    assert (failure["code"], failure["file"]) == (code, FILE)
    assert failure["line"] in (line_of(FILE, marker), line_of(FILE, marker) + 1)


def test_a_failed_kernel_that_is_swallowed(run: Run) -> None:
    assert run(FILE, "falls_back_from_error").codes == ["integrity/silent-fallback"]


def test_a_fallback_from_what_only_the_interpreter_lacks_is_not_charged(run: Run) -> None:
    assert run(FILE, "falls_back_from_assembly").codes == ["build/environment"]
