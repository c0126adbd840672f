"""Levels and verdicts that the evidence suggests, each with its reason. The grader decides; both are kept."""

from __future__ import annotations

from collections.abc import Collection
from fnmatch import fnmatchcase

import msgspec

from console.grading.cites import finding_cite, panel_cite
from console.grading.rubric import Criterion, Rubric, SuggestRule
from console.grading.verdict import Mechanism, Outcome
from runners.evidence import Evidence, Finding
from runners.findings import SEVERITY_RANK

_SAYS_NOTHING = ("not-checked", "error")
_MAX_NAMED = 3

_LEAKED = ("integrity/reference-access",)
_SLIPS = (
    "integrity/input-mutated",
    "integrity/aliased",
    "integrity/global-state",
    "integrity/library-fallback",
    "integrity/silent-fallback",
    "integrity/hint",
)


class Suggestion(msgspec.Struct, frozen=True):
    """A level, why, and the cites that carry it. The reason holds foreign text."""

    level: int
    reason: str
    cites: tuple[str, ...]


class VerdictHint(msgspec.Struct, frozen=True):
    """What the evidence says about the verdict; None where it says nothing."""

    outcome: Outcome | None
    mechanism: Mechanism | None
    reason: str
    cites: tuple[str, ...] = ()


def suggest(rubric: Rubric, evidence: Evidence, overruled: Collection[str] = ()) -> dict[str, Suggestion]:
    """Suggested levels by criterion id; a criterion about which the evidence says nothing is absent.

    Of the rules that match, those with the lowest level count. Panels that were not checked or are in error never
    match, nor do their findings, nor findings whose code is in ``overruled``.
    """
    found = {criterion.id: _suggest_one(criterion, evidence, overruled) for criterion in rubric.criteria}
    return {name: suggestion for name, suggestion in found.items() if suggestion}


def _suggest_one(criterion: Criterion, evidence: Evidence, overruled: Collection[str]) -> Suggestion | None:
    matches: list[tuple[int, str, str]] = []
    for rule in criterion.suggest:
        if rule.panel is not None:
            panel = evidence.panels.get(rule.panel)
            if panel and panel.status == rule.status and panel.status not in _SAYS_NOTHING:
                matches.append((rule.level, f"{rule.panel}: {panel.status}", panel_cite(rule.panel)))
        else:
            matches += [
                (rule.level, f"{finding.id}: {finding.summary}", finding_cite(finding.id))
                for finding in _speaking(evidence, overruled)
                if _matches(rule, finding)
            ]
    if not matches:
        return None
    level = min(match[0] for match in matches)
    unique = {cite: reason for match_level, reason, cite in matches if match_level == level}
    reasons = list(unique.values())
    more = f"; and {len(reasons) - _MAX_NAMED} more" if len(reasons) > _MAX_NAMED else ""
    needed = [panel_cite(name) for name in criterion.needs if name in evidence.panels]
    return Suggestion(level, "; ".join(reasons[:_MAX_NAMED]) + more, tuple(dict.fromkeys([*unique, *needed])))


def _speaking(evidence: Evidence, overruled: Collection[str]) -> list[Finding]:
    def speaks(finding: Finding) -> bool:
        panel = evidence.panels.get(finding.panel)
        return panel is not None and panel.status not in _SAYS_NOTHING and finding.code not in overruled

    return [finding for finding in evidence.findings if speaks(finding)]


def _matches(rule: SuggestRule, finding: Finding) -> bool:
    return SEVERITY_RANK[finding.severity] >= SEVERITY_RANK[rule.severity] and any(
        fnmatchcase(finding.code, pattern) for pattern in rule.when
    )


def suggest_verdict(evidence: Evidence, overruled: Collection[str] = ()) -> VerdictHint:
    """What the evidence says about outcome and mechanism.

    A pass says nothing about the mechanism: panels cannot tell sound from coincidental.
    """
    convicting = [f for f in evidence.findings if f.severity == "fail" and f.code not in overruled]
    if not convicting:
        if evidence.outcome == "pass":
            return VerdictHint("correct", None, "the run passed; whether the reasoning is sound, only reading can tell")
        if evidence.outcome == "fail":
            return VerdictHint(None, None, "every finding that fails it is overruled")
        return VerdictHint("not-determined", None, "the run did not determine it")
    mechanism, reasons = _mechanism(convicting)
    named = "; ".join(f"{finding.id}: {finding.summary}" for finding in reasons[:_MAX_NAMED])
    return VerdictHint("incorrect", mechanism, named, tuple(finding_cite(finding.id) for finding in reasons))


def _mechanism(convicting: list[Finding]) -> tuple[Mechanism | None, list[Finding]]:
    leaked = [finding for finding in convicting if finding.code in _LEAKED]
    if leaked:
        return "leaked", leaked
    hacked = [f for f in convicting if f.panel == "integrity" and f.code not in _SLIPS]
    if hacked:
        return "hacked", hacked
    if any(finding.panel == "correctness" for finding in convicting):
        return "flawed", [finding for finding in convicting if finding.panel == "correctness"]
    return None, convicting
