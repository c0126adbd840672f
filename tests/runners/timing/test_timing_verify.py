from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from runners.contract import Case, TaskSpec, Tolerance
from runners.numerics.formats import format_of
from runners.reference import Reference
from runners.timing.verify import CaseVerifier, Unverifiable

REFERENCE = """
import torch

def make_inputs(case, draw):
    return {"x": draw.normal((case.rows, 64), torch.float32)}

def reference(x):
    return torch.softmax(x.double(), dim=1)

BASELINES = {"eager": lambda x: torch.softmax(x, dim=1)}
"""


@dataclass
class FakeSession:
    task: TaskSpec
    reference: Reference
    seeds: tuple[int, int] = (3, 4)


CASE = Case(name="block", args={"rows": 8})


def session(tmp_path: Path, tolerance: Tolerance, source: str = REFERENCE) -> FakeSession:
    (tmp_path / "reference.py").write_text(source)
    spec = TaskSpec(title="t", kind="fusion", frameworks=("torch",), entry="f", cases=(CASE,), tolerance=tolerance)
    return FakeSession(spec, Reference.load(tmp_path, spec))


def inputs(seed: int = 0) -> dict[str, torch.Tensor]:
    return {"x": torch.randn(8, 64, generator=torch.Generator().manual_seed(seed))}


@pytest.mark.parametrize(
    "tolerance", [Tolerance(), Tolerance(rule="absolute-relative", atol=1e-6, rtol=1e-5), Tolerance(rule="ulp", ulp=64)]
)
def test_right_and_wrong_calls_are_told_apart(tmp_path: Path, tolerance: Tolerance) -> None:
    verify = CaseVerifier(session(tmp_path, tolerance), CASE)  # type: ignore[arg-type]
    given = inputs()
    right = torch.softmax(given["x"], dim=1)
    assert verify(given, {"0": right}) == []
    one_off = right.clone()
    one_off[3, 5] += 1e-3
    (finding,) = verify(given, {"0": one_off})
    assert (finding.code, finding.severity) == ("numerics/mismatch", "fail")
    assert "[3, 5]" in finding.summary
    holed = right.clone()
    holed[0, 0] = float("nan")
    assert [finding.code for finding in verify(given, {"0": holed})] == ["numerics/non-finite"]
    assert verify(inputs(1), {"0": right}) != []


def test_an_error_inside_the_stated_band_is_not_wrong(tmp_path: Path) -> None:
    verify = CaseVerifier(session(tmp_path, Tolerance(atol=1e-2)), CASE)  # type: ignore[arg-type]
    given = inputs()
    assert verify(given, {"0": torch.softmax(given["x"], dim=1) + 1e-3}) == []
    assert verify(given, {"0": torch.softmax(given["x"], dim=1) + 1e-1}) != []


def test_positions_of_infinity_are_compared(tmp_path: Path) -> None:
    source = REFERENCE.replace("torch.softmax(x.double(), dim=1)", "1 / x.double()").replace(
        "torch.softmax(x, dim=1)", "1 / x"
    )
    verify = CaseVerifier(session(tmp_path, Tolerance(), source), CASE)  # type: ignore[arg-type]
    given = inputs()
    given["x"][2, 2] = 0.0
    right = 1 / given["x"]
    assert verify(given, {"0": right}) == []
    largest = right.clone()
    largest[2, 2] = format_of(torch.float32).max
    assert verify(given, {"0": largest}) != []


def test_a_task_without_a_rule_cannot_be_verified(tmp_path: Path) -> None:
    source = REFERENCE[: REFERENCE.index("BASELINES")]
    with pytest.raises(Unverifiable, match="needs a baseline"):
        CaseVerifier(session(tmp_path, Tolerance(), source), CASE)  # type: ignore[arg-type]
