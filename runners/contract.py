"""What a task promises and what a run is asked to do: the typed form of ``task.toml`` and of a run request."""

from __future__ import annotations

import difflib
import re
from typing import Any, Literal

import msgspec
import tomli

from runners.evidence import Evidence, Finding, PanelResult
from runners.findings import PanelName

Framework = Literal["torch", "triton", "cuda", "pallas", "nki", "serving", "answer"]
Kind = Literal["generation", "translation", "migration", "debugging", "optimization", "fusion", "serving", "answer"]
Use = Literal["correctness", "timing"]
Overflow = Literal["saturate", "inf"]
Rule = Literal["derived", "absolute-relative", "ulp", "exact"]
Device = Literal["cpu", "cuda"]

RUNNABLE: tuple[Framework, ...] = ("torch", "triton")
"""Frameworks that this version runs; the panels of the others say ``not-checked``."""

MAX_TASK_TOML_BYTES = 256 * 1024
MAX_CASES = 200


class TaskError(Exception):
    """A ``task.toml`` that cannot be used: names the file, the key and what to do."""

    def __init__(self, file: str, key: str, message: str) -> None:
        super().__init__(f"{file}: {key}: {message}" if key else f"{file}: {message}")
        self.file, self.key, self.message = file, key, message


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    pass


class Case(_Strict, frozen=True):
    """One set of sizes, dtypes and options that a task asks for."""

    name: str
    args: dict[str, int | float | bool | str | list[int | float | str]] = {}
    use: tuple[Use, ...] = ("correctness", "timing")


class OutputRule(_Strict, frozen=True):
    """How an output is stored: dtype (a torch dtype's name) and what becomes of a too large value."""

    dtype: str | None = None
    overflow: Overflow | None = None


class Tolerance(_Strict, frozen=True):
    """How close an output must come; with ``derived``, atol and rtol widen the band that warns."""

    rule: Rule = "derived"
    atol: float | None = None
    rtol: float | None = None
    ulp: int | None = None
    cap: float | None = None


class Stress(_Strict, frozen=True):
    """Input families that the task takes out, and why."""

    without: tuple[str, ...] = ()
    reason: str = ""


class TimingPlan(_Strict, frozen=True):
    """What the candidate's time is compared with; threads per side."""

    baseline: str | None = None
    threads: int = 1


class Limits(_Strict, frozen=True):
    """Per process: wall-clock seconds for one request of the judge, memory in MiB."""

    wall_seconds: float = 60.0
    memory_mib: int = 4096


class TaskSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A task as the runners see it. Build it with :func:`parse_task`."""

    title: str
    kind: Kind
    frameworks: tuple[Framework, ...]
    entry: str
    cases: tuple[Case, ...]
    rubric: str = "kernel"
    targets: tuple[str, ...] = ()
    inplace: tuple[str, ...] = ()
    output: OutputRule = OutputRule()
    outputs: dict[str, OutputRule] = {}
    tolerance: Tolerance = Tolerance()
    tolerances: dict[str, Tolerance] = {}
    stress: Stress = Stress()
    timing: TimingPlan = TimingPlan()
    limits: Limits = Limits()

    def output_rule(self, name: str) -> OutputRule:
        """The rule for output ``name``: its own table over the common one."""
        own = self.outputs.get(name, OutputRule())
        return OutputRule(dtype=own.dtype or self.output.dtype, overflow=own.overflow or self.output.overflow)

    def tolerance_for(self, name: str) -> Tolerance:
        """The tolerance for output ``name``: its own table where there is one, else the common one."""
        return self.tolerances.get(name, self.tolerance)

    def cases_for(self, use: Use) -> tuple[Case, ...]:
        """The cases meant for ``use``."""
        return tuple(case for case in self.cases if use in case.use)


class _TaskFile(_Strict, frozen=True):
    schema: Literal[1]
    title: str
    kind: Kind
    frameworks: tuple[Framework, ...]
    entry: str
    cases: tuple[Case, ...]
    rubric: str = "kernel"
    targets: tuple[str, ...] = ()
    inplace: tuple[str, ...] = ()
    output: dict[str, Any] = {}
    tolerance: dict[str, Any] = {}
    stress: Stress = Stress()
    timing: TimingPlan = TimingPlan()
    limits: Limits = Limits()


_UNKNOWN = re.compile(r"Object contains unknown field `([^`]*)`(?: - at `\$?\.?([^`]*)`)?")
_MISSING = re.compile(r"Object missing required field `([^`]*)`(?: - at `\$?\.?([^`]*)`)?")
_AT = re.compile(r" - at `\$?\.?([^`]*)`")


def _keys_of(path: str) -> tuple[str, ...]:
    table: dict[str, type[msgspec.Struct]] = {
        "cases": Case,
        "output": OutputRule,
        "tolerance": Tolerance,
        "stress": Stress,
        "timing": TimingPlan,
        "limits": Limits,
    }
    return table.get(path.split("[")[0].split(".")[0], _TaskFile).__struct_fields__


def _explain(file: str, prefix: str, error: msgspec.ValidationError) -> TaskError:
    text = str(error)
    unknown = _UNKNOWN.search(text)
    if unknown:
        key, parent = unknown.group(1), ".".join(filter(None, (prefix, unknown.group(2))))
        near = difflib.get_close_matches(key, _keys_of(parent), n=1)
        hint = f"did you mean `{near[0]}`?" if near else f"known keys: {', '.join(_keys_of(parent))}"
        return TaskError(file, ".".join(filter(None, (parent, key))), f"unknown key; {hint}")
    missing = _MISSING.search(text)
    if missing:
        key, parent = missing.group(1), ".".join(filter(None, (prefix, missing.group(2))))
        return TaskError(file, ".".join(filter(None, (parent, key))), "required key is missing")
    at = _AT.search(text)
    key = ".".join(filter(None, (prefix, at.group(1) if at else "")))
    return TaskError(file, key, _AT.sub("", text))


def _split(file: str, prefix: str, table: dict[str, Any], into: type[Any]) -> tuple[Any, dict[str, Any]]:
    """Split ``[output]`` into the common rule and the tables of single outputs."""
    common = {key: value for key, value in table.items() if not isinstance(value, dict)}
    try:
        base = msgspec.convert(common, into)
    except msgspec.ValidationError as error:
        raise _explain(file, prefix, error) from None
    single = {}
    for name, value in table.items():
        if isinstance(value, dict):
            try:
                single[name] = msgspec.convert(value, into)
            except msgspec.ValidationError as error:
                raise _explain(file, f"{prefix}.{name}", error) from None
    return base, single


def _load(data: bytes, file: str) -> dict[str, Any]:
    if len(data) > MAX_TASK_TOML_BYTES:
        raise TaskError(file, "", f"larger than {MAX_TASK_TOML_BYTES} bytes")
    try:
        return tomli.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise TaskError(file, "", f"not UTF-8 at byte {error.start}") from None
    except (ValueError, RecursionError) as error:  # a ValueError also for a number of too many digits
        raise TaskError(file, "", f"not TOML: {error}") from None


def parse_task(data: bytes, file: str = "task.toml") -> TaskSpec:
    """Read ``task.toml``. Raises TaskError that names file, key and the nearest valid key."""
    raw = _load(data, file)
    try:
        parsed = msgspec.convert(raw, _TaskFile)
    except msgspec.ValidationError as error:
        raise _explain(file, "", error) from None
    output, outputs = _split(file, "output", parsed.output, OutputRule)
    tolerance, tolerances = _split(file, "tolerance", parsed.tolerance, Tolerance)
    if not parsed.frameworks:
        raise TaskError(file, "frameworks", "name at least one framework")
    if not parsed.cases:
        raise TaskError(file, "cases", "a task needs at least one [[cases]]")
    if len(parsed.cases) > MAX_CASES:
        raise TaskError(file, "cases", f"more than {MAX_CASES} cases")
    names = [case.name for case in parsed.cases]
    if len(set(names)) != len(names):
        raise TaskError(file, "cases", "two cases have the same name")
    if not parsed.entry.isidentifier():
        raise TaskError(file, "entry", f"{parsed.entry!r} is not a Python name")
    if not (parsed.limits.wall_seconds > 0 and parsed.limits.memory_mib >= 256):
        raise TaskError(file, "limits", "wall_seconds must be above 0, memory_mib at least 256")
    if not 1 <= parsed.timing.threads <= 1024:
        raise TaskError(file, "timing.threads", "must be between 1 and 1024")
    for where, one in (("tolerance", tolerance), *((f"tolerance.{k}", v) for k, v in tolerances.items())):
        if one.rule == "absolute-relative" and one.atol is None and one.rtol is None:
            raise TaskError(file, where, "absolute-relative needs atol, rtol or both")
        if one.rule == "ulp" and one.ulp is None:
            raise TaskError(file, where, "ulp needs the key `ulp`")
    return TaskSpec(
        title=parsed.title,
        kind=parsed.kind,
        frameworks=parsed.frameworks,
        entry=parsed.entry,
        cases=parsed.cases,
        rubric=parsed.rubric,
        targets=parsed.targets,
        inplace=parsed.inplace,
        output=output,
        outputs=outputs,
        tolerance=tolerance,
        tolerances=tolerances,
        stress=parsed.stress,
        timing=parsed.timing,
        limits=parsed.limits,
    )


class SubmissionFile(_Strict, frozen=True):
    """``submission.toml``: who wrote it, and in which of the task's frameworks."""

    author: str = ""
    framework: Framework | None = None


def parse_submission(data: bytes, file: str = "submission.toml") -> SubmissionFile:
    """Read ``submission.toml``. Raises TaskError like :func:`parse_task`."""
    raw = _load(data, file)
    try:
        return msgspec.convert(raw, SubmissionFile)
    except msgspec.ValidationError as error:
        text = str(error)
        unknown = _UNKNOWN.search(text)
        if unknown:
            fields = SubmissionFile.__struct_fields__
            near = difflib.get_close_matches(unknown.group(1), fields, n=1)
            hint = f"did you mean `{near[0]}`?" if near else f"known keys: {', '.join(fields)}"
            raise TaskError(file, unknown.group(1), f"unknown key; {hint}") from None
        at = _AT.search(text)
        raise TaskError(file, at.group(1) if at else "", _AT.sub("", text)) from None


_TRITON_JIT = re.compile(r"^\s*@(?:triton\.)?jit\b|@triton\.jit\b|@triton\.autotune\b", re.MULTILINE)


def choose_framework(spec: TaskSpec, declared: Framework | None, source: str) -> Framework:
    """The framework of a submission: what it declares if the task allows it, else by its source.

    Raises ValueError when the declared one is not among the task's.
    """
    if declared is not None:
        if declared not in spec.frameworks:
            raise ValueError(f"framework {declared!r} is not one of the task's: {', '.join(spec.frameworks)}")
        return declared
    if "triton" in spec.frameworks and _TRITON_JIT.search(source):
        return "triton"
    return spec.frameworks[0]


class RunRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What the console asks a runner to do. Folders hold regular files only, written by the console."""

    task: TaskSpec
    task_name: str
    task_tree: str
    task_dir: str
    submission_name: str
    submission_tree: str
    revision: str
    submission_dir: str
    framework: Framework
    device: Device = "cpu"
    environment: dict[str, Any] = {}
    """What the console knows of the machine; goes into the evidence."""
    panels: tuple[PanelName, ...] = ("build", "correctness", "integrity", "timing", "resources", "scope")
    replay_seeds: tuple[int, ...] = ()
    unsafe: bool = False


class PanelStarted(msgspec.Struct, frozen=True, tag="panel-started"):
    """A panel has begun."""

    panel: PanelName


class Progress(msgspec.Struct, frozen=True, tag="progress"):
    """How far a panel is: ``done`` of ``total`` steps (0: unknown), in words."""

    panel: PanelName
    done: int
    total: int
    text: str


class Found(msgspec.Struct, frozen=True, tag="found"):
    """A finding, as soon as it is known; its number may still change."""

    finding: Finding


class PanelDone(msgspec.Struct, frozen=True, tag="panel-done"):
    """A panel has ended."""

    panel: PanelName
    result: PanelResult


class Waiting(msgspec.Struct, frozen=True, tag="waiting"):
    """The run waits for a lock; ``holder`` says whose."""

    holder: str


class RunEnded(msgspec.Struct, frozen=True, tag="run-ended"):
    """The last event of every run that was not cancelled."""

    evidence: Evidence


RunEvent = PanelStarted | Progress | Found | PanelDone | Waiting | RunEnded
