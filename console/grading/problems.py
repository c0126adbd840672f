"""The checks before a commit: what still keeps a draft from being a review that can be defended."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from console.grading.cites import Cite, finding_cite, panel_cite, parse_cite
from console.grading.draft import CriterionDraft, Draft, evidence_digest
from console.grading.quote import mentions, quotes, same_line, text_lines
from console.grading.rubric import Criterion, Rubric
from runners.evidence import Evidence

_NOT_THE_CODE = ("hacked", "leaked")


class Problem(msgspec.Struct, frozen=True):
    """One thing to put right.

    ``where`` is a criterion's id, ``outcome``, ``mechanism``, ``evidence``, ``rubric``, ``overruled`` or ``body``;
    any one of ``cites``, attached there, would put it right.
    """

    where: str
    message: str
    cites: tuple[str, ...] = ()


def check(
    draft: Draft,
    rubric: Rubric,
    evidence: Evidence | None,
    files: Mapping[str, str | None],
    *,
    stale: bool = False,
) -> tuple[Problem, ...]:
    """Every problem, in the order of the screen; empty when the draft can be committed.

    ``files`` are the revision's files by path, None for one that is not text. ``stale`` says that the evidence
    belongs to another key than the one a run would have now.
    """
    problems = _verdict(draft, evidence) + _evidence(draft, evidence, stale)
    if draft.rubric != rubric.digest:
        problems.append(Problem("rubric", "the rubric has changed since this draft was begun"))
    known = {criterion.id: criterion for criterion in draft.criteria}
    for criterion in rubric.criteria:
        one = known.get(criterion.id, CriterionDraft(id=criterion.id))
        problems += _criterion(criterion, one, evidence, files)
    problems += [
        Problem("overruled", f"{one.code}: say why it is overruled") for one in draft.overruled if not one.reason
    ]
    return tuple(problems + _body(draft, files))


def _verdict(draft: Draft, evidence: Evidence | None) -> list[Problem]:
    problems = []
    if draft.outcome is None:
        problems.append(Problem("outcome", "not set"))
    if draft.mechanism is None:
        problems.append(Problem("mechanism", "not set"))
    if evidence is None or draft.outcome is None:
        return problems
    if evidence.outcome == "fail" and draft.outcome != "incorrect":
        standing = [f for f in evidence.findings if f.severity == "fail" and f.code not in draft.overruled_codes]
        if draft.mechanism in _NOT_THE_CODE:
            standing = [finding for finding in standing if finding.panel != "integrity"]
        codes = ", ".join(dict.fromkeys(finding.code for finding in standing))
        if codes:
            problems.append(Problem("outcome", f"`{draft.outcome}`, but the run failed: overrule {codes}"))
    if evidence.outcome == "pass" and draft.outcome == "incorrect" and not _says_why(draft):
        problems.append(Problem("outcome", "`incorrect`, but the run passed: say in the summary what it missed"))
    return problems


def _says_why(draft: Draft) -> bool:
    cited = any(parse_cite(cite).kind == "line" for criterion in draft.criteria for cite in criterion.cites)
    return bool(draft.body) or (cited and any(criterion.note for criterion in draft.criteria))


def _evidence(draft: Draft, evidence: Evidence | None, stale: bool) -> list[Problem]:
    if evidence is None:
        return [Problem("evidence", "there is none yet: run the panels")]
    if (evidence.task.name, evidence.submission.name) != (draft.task, draft.submission):
        return [Problem("evidence", "belongs to another submission")]
    if evidence.submission.tree != draft.tree:
        return [Problem("evidence", "belongs to another revision: run the panels on this one")]
    if stale:
        return [Problem("evidence", "is stale: the task, the runner or the machine has changed since; run the panels")]
    if draft.evidence != evidence_digest(evidence):
        return [Problem("evidence", "has changed since the levels were set: look at the panels again")]
    return []


def _criterion(
    criterion: Criterion, one: CriterionDraft, evidence: Evidence | None, files: Mapping[str, str | None]
) -> list[Problem]:
    cites = [parse_cite(cite) for cite in one.cites]
    problems = [Problem(criterion.id, message) for message in _broken(cites, evidence, files)]
    problems += [Problem(criterion.id, message) for message in _mentioned(one.note, files)]
    if one.level is None:
        return [Problem(criterion.id, "no level"), *problems]
    if not 0 <= one.level <= criterion.top:
        return [Problem(criterion.id, f"level {one.level} is not between 0 and {criterion.top}"), *problems]
    if one.level < criterion.top and not one.note and not any(c.kind in ("finding", "line") for c in cites):
        problems.append(Problem(criterion.id, "a point is lost without a note or a cited finding"))
    for panel in criterion.needs:
        if evidence and not _cites_panel(panel, cites, evidence):
            problems.append(Problem(criterion.id, f"cite the {panel} panel or a finding of it", (panel_cite(panel),)))
    return problems


def _cites_panel(panel: str, cites: list[Cite], evidence: Evidence) -> bool:
    panels = {finding.id: finding.panel for finding in evidence.findings}
    return any(
        (cite.kind == "panel" and cite.target == panel) or (cite.kind == "finding" and panels.get(cite.target) == panel)
        for cite in cites
    )


def _broken(cites: list[Cite], evidence: Evidence | None, files: Mapping[str, str | None]) -> list[str]:
    recorded = {panel_cite(name) for name in evidence.panels} if evidence else set()
    recorded |= {finding_cite(finding.id) for finding in evidence.findings} if evidence else set()
    messages = []
    for cite in cites:
        if cite.kind == "line":
            messages += _missing_line(cite.target, cite.line, files)
        elif evidence and str(cite) not in recorded:
            messages.append(f"cites {cite}, which is not in the evidence")
    return messages


def _missing_line(file: str, line: int, files: Mapping[str, str | None]) -> list[str]:
    if file not in files:
        return [f"{file}:{line}: this revision has no such file"]
    text = files[file]
    if text is None:
        return [f"{file}:{line}: the file is not text"]
    count = len(text_lines(text))
    return [] if line <= count else [f"{file}:{line}: the file has {count} lines"]


def _mentioned(prose: str, files: Mapping[str, str | None]) -> list[str]:
    return [message for file, line in mentions(prose, files) for message in _missing_line(file, line, files)]


def _body(draft: Draft, files: Mapping[str, str | None]) -> list[Problem]:
    problems = [Problem("body", message) for message in _mentioned(draft.body, files)]
    for file, line, quoted in quotes(draft.body, files):
        text = files.get(file)
        lines = text_lines(text) if text is not None else []
        if line <= len(lines) and not same_line(quoted, lines[line - 1]):
            problems.append(Problem("body", f"{file}:{line} is quoted, but that line reads otherwise in this revision"))
    return problems
