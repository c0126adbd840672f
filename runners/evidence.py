"""Evidence: everything that one run recorded, in the form that is printed, stored and committed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec

from runners.findings import PANELS, SEVERITY_RANK, PanelName, Severity, kind_of

PanelStatus = Literal["pass", "warn", "fail", "not-checked", "error"]
RunOutcome = Literal["pass", "fail", "not-determined"]

SCHEMA = 1
MUST_BE_CHECKED: tuple[PanelName, ...] = ("build", "correctness", "integrity")


class Place(msgspec.Struct, frozen=True):
    """A line of a file in the submission's tree."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One coded result, with the place and the numbers behind it."""

    id: str
    """``code#n``, unique in one evidence file."""
    code: str
    severity: Severity
    panel: PanelName
    summary: str
    where: Place | None = None
    detail: dict[str, Any] = {}


class PanelResult(msgspec.Struct, frozen=True, kw_only=True):
    """What one panel shows. ``facts`` holds plain JSON values that differ by panel."""

    status: PanelStatus
    reason: str | None = None
    seconds: float | None = None
    facts: dict[str, Any] = {}


class TaskRef(msgspec.Struct, frozen=True):
    """The task a run judged against, by content."""

    name: str
    tree: str


class SubmissionRef(msgspec.Struct, frozen=True):
    """The submission that was run, by content and by commit."""

    name: str
    tree: str
    revision: str


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """One run. Encoded with :func:`encode` it is one line of JSON."""

    schema: int = SCHEMA
    task: TaskRef
    submission: SubmissionRef
    environment: dict[str, Any]
    options: dict[str, Any] = {}
    seeds: tuple[int, ...] = ()
    outcome: RunOutcome
    panels: dict[PanelName, PanelResult]
    findings: tuple[Finding, ...] = ()


def number_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Give each finding its id ``code#n``, counting per code from 1 in the order given."""
    counts: dict[str, int] = {}
    numbered = []
    for finding in findings:
        counts[finding.code] = counts.get(finding.code, 0) + 1
        numbered.append(msgspec.structs.replace(finding, id=f"{finding.code}#{counts[finding.code]}"))
    return tuple(numbered)


def make_finding(
    code: str,
    summary: str,
    *,
    where: Place | None = None,
    detail: Mapping[str, Any] | None = None,
    severity: Severity | None = None,
) -> Finding:
    """A finding with the table's severity and panel; its number is given later by :func:`number_findings`."""
    kind = kind_of(code)
    return Finding(
        id=f"{code}#0",
        code=code,
        severity=severity or kind.severity,
        panel=kind.panel,
        summary=summary,
        where=where,
        detail=dict(detail or {}),
    )


def settle_panel(name: PanelName, result: PanelResult, findings: Iterable[Finding]) -> PanelResult:
    """A panel's status is its worst finding; ``build/environment`` makes it ``error``.

    A panel that was not checked stays so unless a finding convicts.
    """
    mine = [finding for finding in findings if finding.panel == name]
    worst = max((SEVERITY_RANK[finding.severity] for finding in mine), default=0)
    status = result.status
    if any(finding.code == "build/environment" for finding in mine):
        status = "error"
    elif worst == SEVERITY_RANK["fail"]:
        status = "fail"
    elif worst == SEVERITY_RANK["warn"] and status == "pass":
        status = "warn"
    return msgspec.structs.replace(result, status=status)


def outcome_of(panels: Mapping[PanelName, PanelResult], findings: Iterable[Finding]) -> RunOutcome:
    """``fail`` if any finding is ``fail``; else ``not-determined`` unless the three core panels passed."""
    if any(finding.severity == "fail" for finding in findings):
        return "fail"
    for name in MUST_BE_CHECKED:
        panel = panels.get(name)
        if panel is None or panel.status not in ("pass", "warn"):
            return "not-determined"
    return "pass"


def not_checked(reason: str, names: Iterable[PanelName] = PANELS) -> dict[PanelName, PanelResult]:
    """Panels that say why they were not checked."""
    return {name: PanelResult(status="not-checked", reason=reason) for name in names}


def encode(evidence: Evidence) -> bytes:
    """One line of JSON without a newline at its end; keys in the order of the struct."""
    return msgspec.json.encode(evidence)


def decode(data: bytes | str) -> Evidence:
    """Read evidence. Raises msgspec.ValidationError or msgspec.DecodeError with the path that is wrong."""
    return msgspec.json.decode(data, type=Evidence)
