"""The form of a review without a screen: TOML with what only the grader can say; all else is computed."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

from tomlkit.items import String as TomlString
from tomlkit.items import StringType

from console.grading.cites import panel_cite
from console.grading.draft import Draft
from console.grading.review import LevelNumber, Overruled, escape_front
from console.grading.rubric import Criterion, Rubric
from console.grading.suggest import Suggestion, VerdictHint
from console.grading.text import one_line
from console.grading.verdict import MECHANISMS, OUTCOMES, Mechanism, Outcome, allowed
from console.schema import SchemaError, Strict, convert, load_toml, nearest

_WIDTH = 78


class FormCriterion(Strict, frozen=True, kw_only=True):
    """One criterion of the form; without a level the draft's stays."""

    id: str
    level: LevelNumber | None = None
    note: str = ""
    cites: tuple[str, ...] = ()


class Form(Strict, frozen=True, kw_only=True):
    """What a form says."""

    outcome: Outcome
    mechanism: Mechanism
    criteria: tuple[FormCriterion, ...]
    overruled: tuple[Overruled, ...] = ()
    body: str = ""


def parse_form(data: bytes, rubric: Rubric, file: str = "form") -> Form:
    """Read a form and hold it against the rubric. Raises SchemaError that names file, key and what to do."""
    form = convert(load_toml(data, file), Form, file)
    if not allowed(form.outcome, form.mechanism):
        raise SchemaError(file, "mechanism", f"`{form.outcome}` cannot be `{form.mechanism}`")
    seen: set[str] = set()
    for index, one in enumerate(form.criteria):
        key = f"criteria[{index}]"
        if one.id not in rubric.ids:
            raise SchemaError(file, f"{key}.id", f"no criterion is called `{one.id}`; {nearest(one.id, rubric.ids)}")
        if one.id in seen:
            raise SchemaError(file, f"{key}.id", f"`{one.id}` is scored twice")
        seen.add(one.id)
        top = rubric.criterion(one.id).top
        if one.level is not None and one.level > top:
            raise SchemaError(file, f"{key}.level", f"must be between 0 and {top}")
    return form


def fill(draft: Draft, form: Form, suggestions: Mapping[str, Suggestion], file: str = "form") -> Draft:
    """The draft with what the form says; suggested levels are kept beside it. Raises SchemaError for a bad cite."""
    filled = draft.with_suggestions(suggestions).with_outcome(form.outcome).with_mechanism(form.mechanism)
    filled = filled.with_body(form.body)
    for index, one in enumerate(form.criteria):
        filled = filled.with_note(one.id, one.note)
        if one.level is not None:
            filled = filled.with_level(one.id, one.level)
        for cite in one.cites:
            try:
                filled = filled.attach(one.id, cite)
            except ValueError as error:
                raise SchemaError(file, f"criteria[{index}].cites", str(error)) from None
    for overruling in form.overruled:
        filled = filled.overrule(overruling.code, overruling.reason)
    return filled


def print_form(
    draft: Draft, rubric: Rubric, suggestions: Mapping[str, Suggestion], hint: VerdictHint | None = None
) -> str:
    """A form to fill in: anchors and suggestions as comments, what the draft already says as values."""
    lines = _comment(f"Review of {draft.task}/{draft.submission} at {draft.revision}.")
    lines += _comment("A line that begins with # is a comment: take the # away to give a level.")
    if hint:
        told = " ".join(part for part in (hint.outcome, hint.mechanism) if part) or "nothing"
        lines += ["", *_comment(f"The evidence suggests {told}: {hint.reason}")]
    lines += [
        "",
        f"outcome = {_quoted(draft.outcome or '')}  # {' | '.join(OUTCOMES)}",
        f"mechanism = {_quoted(draft.mechanism or '')}  # {' | '.join(MECHANISMS)}",
        "",
        *_comment("Summary; findings with file:line and the quoted line; what would change it."),
        f"body = {_block(draft.body)}",
    ]
    for criterion in rubric.criteria:
        lines += ["", *_criterion(draft, criterion, suggestions.get(criterion.id))]
    lines.append("")
    if not draft.overruled:
        lines += ["# [[overruled]]", '# code = "integrity/context"', '# reason = ""']
    for one in draft.overruled:
        lines += ["[[overruled]]", f"code = {_quoted(one.code)}", f"reason = {_quoted(one.reason)}"]
    return escape_front("\n".join(lines) + "\n")


def _criterion(draft: Draft, criterion: Criterion, suggestion: Suggestion | None) -> list[str]:
    one = next((c for c in draft.criteria if c.id == criterion.id), None)
    gate = f" A level below {criterion.gate.below} caps the total at {criterion.gate.cap:g}." if criterion.gate else ""
    lines = _comment(f"{criterion.question} Weight {criterion.weight:g}.{gate}")
    for number, level in enumerate(criterion.levels):
        lines += _comment(f"{number} {level.name}: {level.anchor}", indent="    ")
    level_set = one is not None and one.level is not None
    if suggestion:
        lines += _comment(f"Suggested {suggestion.level}, because {suggestion.reason}")
    shown = one.level if one and level_set else suggestion.level if suggestion else ""
    needed = tuple(panel_cite(panel) for panel in criterion.needs)
    cites = (one.cites if one else ()) or (suggestion.cites if suggestion else needed)
    return [
        *lines,
        "[[criteria]]",
        f"id = {_quoted(criterion.id)}",
        f"{'' if level_set else '# '}level = {shown}".rstrip(),
        f"note = {_quoted(one.note if one else '')}",
        f"cites = [{', '.join(_quoted(cite) for cite in cites)}]",
    ]


def _comment(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(one_line(text), _WIDTH, initial_indent="# ", subsequent_indent=f"# {indent}")


def _quoted(text: str) -> str:
    return TomlString.from_raw(text, StringType.SLB).as_string()


def _block(text: str) -> str:
    """A multi-line string whose text begins on a line of its own; ``text`` does not begin with a newline."""
    written = TomlString.from_raw(f"{text}\n" if text else "", StringType.MLB).as_string()
    return f'"""\n{written[3:]}'
