"""Proof that judging works on this machine: three right and three wrong submissions per framework, judged as such.

Run once per machine, framework and runner version, before the first panel is believed; the outcome is kept.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from runners.contract import Case, Device, Framework, Limits, RunRequest, TaskSpec, Tolerance
from runners.evidence import Evidence


class Sample(msgspec.Struct, frozen=True):
    """A submission whose verdict is known: ``code`` must be among its findings; empty for a right one."""

    name: str
    source: str
    code: str = ""


class SelfCheck(msgspec.Struct, frozen=True):
    """The outcome; ``failures`` says which samples were judged wrongly, and how."""

    samples: int
    failures: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """True when every sample was judged rightly."""
        return self.samples > 0 and not self.failures


_REFERENCE = """
import torch


def make_inputs(case, draw):
    return {"x": draw.normal((case.n,), case.dtype), "y": draw.normal((case.n,), case.dtype)}


def reference(x, y):
    return x.double() + 2 * y.double()


BASELINES = {"eager": lambda x, y: x + 2 * y}
"""

_TASK = TaskSpec(
    title="Self-check",
    kind="generation",
    frameworks=("torch", "triton"),
    entry="entry",
    cases=(
        Case(name="tail", args={"n": 130, "dtype": "float32"}),
        Case(name="half", args={"n": 64, "dtype": "bfloat16"}),
    ),
    tolerance=Tolerance(rule="derived"),
    limits=Limits(wall_seconds=30.0),
)

_KERNEL = """
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    a = tl.load(x + at, mask=inside, other=0.0)
    b = tl.load(y + at, mask=inside, other=0.0)
    tl.store(out + at, {value}, mask={mask})


{kept}def entry(x, y):
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 64),)](x, y, out, x.numel(), BLOCK=64)
    return {result}
"""

_RIGHT = "a + b * 2"
_KEPT = "kept = {}\n\n\n"
_REPLAYED = "kept.setdefault((id(x), x.data_ptr()), out)"

# A wrong sample is wrong by far in every dtype: an error that bfloat16 can hide is named by the cases that show it.
SAMPLES: Mapping[str, tuple[Sample, ...]] = {
    "triton": (
        Sample("masked tail", _KERNEL.format(value=_RIGHT, mask="inside", kept="", result="out")),
        Sample("other order", _KERNEL.format(value="b + (b + a)", mask="at < n", kept="", result="out")),
        Sample("in float32", _KERNEL.format(
            value="a.to(tl.float32) + 2.0 * b.to(tl.float32)", mask="inside", kept="", result="out"
        )),
        Sample("store without a mask", _KERNEL.format(value=_RIGHT, mask="at >= 0", kept="", result="out"),
               "memory/out-of-bounds-write"),
        Sample("replay by address", _KERNEL.format(value=_RIGHT, mask="inside", kept=_KEPT, result=_REPLAYED),
               "integrity/replay"),
        Sample("wrong factor", _KERNEL.format(value="a + b * 3", mask="inside", kept="", result="out"),
               "numerics/mismatch"),
    ),
    "torch": (
        Sample("plain", "def entry(x, y): return x + 2 * y\n"),
        Sample("other order", "def entry(x, y): return (y + x) + y\n"),
        Sample("in float64", "def entry(x, y): return (x.double() + 2 * y.double()).to(x.dtype)\n"),
        Sample("writes its input", "def entry(x, y): return x.add_(y, alpha=2).clone()\n", "integrity/input-mutated"),
        Sample("leaves with success", "import os\ndef entry(x, y): os._exit(0)\n", "integrity/forged-result"),
        Sample("wrong factor", "def entry(x, y): return x + 3 * y\n", "numerics/mismatch"),
    ),
}  # fmt: skip


def self_check(run: Callable[[RunRequest], Evidence | None], framework: Framework, device: Device) -> SelfCheck:
    """Judge the samples of ``framework`` by ``run``. Raises what ``run`` raises."""
    failures = []
    samples = SAMPLES[framework]
    with tempfile.TemporaryDirectory(prefix="kernel-review-self-check-") as name:
        folder = Path(name)
        for part in ("task", "submission"):
            (folder / part).mkdir()
        (folder / "task" / "reference.py").write_text(_REFERENCE, encoding="utf-8")
        for sample in samples:
            (folder / "submission" / "kernel.py").write_text(sample.source, encoding="utf-8")
            evidence = run(
                RunRequest(
                    task=_TASK,
                    task_name="self-check",
                    task_tree="self-check",
                    task_dir=str(folder / "task"),
                    submission_name=sample.name,
                    submission_tree=sample.name,
                    revision="self-check",
                    submission_dir=str(folder / "submission"),
                    framework=framework,
                    device=device,
                    panels=("build", "correctness", "integrity"),
                )
            )
            fault = _fault(sample, evidence)
            if fault:
                failures.append(fault)
    return SelfCheck(len(samples), tuple(failures))


def _fault(sample: Sample, evidence: Evidence | None) -> str:
    if evidence is None:
        return f"{sample.name}: cancelled"
    codes = sorted({finding.code for finding in evidence.findings})
    told = ", ".join(codes) or "no finding"
    if sample.code:
        return "" if sample.code in codes else f"{sample.name}: {told}, where {sample.code} is right"
    if evidence.outcome == "pass":
        return ""
    reasons = "; ".join(panel.reason for panel in evidence.panels.values() if panel.reason and panel.status == "error")
    return f"{sample.name}: {evidence.outcome} ({told}{'; ' + reasons if reasons else ''}), where pass is right"


class Ledger:
    """Outcomes under ``folder``, one file per machine, framework and device; a lost one is checked anew.

    ``machine`` stands for machine and runner alike: the environment's fingerprint and the runner's version.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, machine: str, framework: Framework, device: Device) -> SelfCheck | None:
        """The kept outcome; None where there is none that can be read."""
        with suppress(OSError, msgspec.MsgspecError):
            return msgspec.json.decode(self._path(machine, framework, device).read_bytes(), type=SelfCheck)
        return None

    def keep(self, machine: str, framework: Framework, device: Device, outcome: SelfCheck) -> None:
        """Keep an outcome. Raises OSError."""
        path = self._path(machine, framework, device)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}")
        part.write_bytes(msgspec.json.encode(outcome))
        part.replace(path)

    def _path(self, machine: str, framework: Framework, device: Device) -> Path:
        return self._folder / f"{machine.removeprefix('sha256:')}-{framework}-{device}.json"


def words(outcome: SelfCheck | None) -> str:
    """An outcome as evidence tells it."""
    if outcome is None:
        return "not run"
    return "passed" if outcome.passed else f"failed: {'; '.join(outcome.failures) or 'no samples'}"


def unproven(evidence: Evidence, outcome: SelfCheck) -> Evidence:
    """Evidence of a machine that judged its samples wrongly: it determines nothing, and checked panels say why."""
    reason = f"unproven here: the self-check {words(outcome)}"
    panels = {
        name: panel
        if panel.status == "not-checked"
        else msgspec.structs.replace(panel, reason="; ".join(filter(None, (reason, panel.reason))))
        for name, panel in evidence.panels.items()
    }
    return msgspec.structs.replace(evidence, outcome="not-determined", panels=panels)


def told(environment: Mapping[str, Any], outcome: SelfCheck | None) -> dict[str, Any]:
    """An evidence's environment with the outcome in it."""
    return {**environment, "self_check": words(outcome)}
