"""The rubric: how a grader scores. Read from TOML, checked whole, identified by the digest of its bytes."""

from __future__ import annotations

import hashlib
import re
from fnmatch import fnmatchcase
from typing import Literal

import msgspec

from console.schema import SchemaError, Strict, convert, load_toml, nearest
from runners.evidence import PanelStatus
from runners.findings import FINDINGS, PanelName, Severity

Axis = Literal["answer", "reasoning", "evidence", "writing"]

MAX_CRITERIA = 50
_ID = re.compile(r"[a-z][a-z0-9-]{0,39}")


class Level(Strict, frozen=True, kw_only=True):
    """One step of a criterion: a short name and an anchor that a grader can match the work against."""

    name: str
    anchor: str


class Gate(Strict, frozen=True, kw_only=True):
    """A level under ``below`` caps the total at ``cap`` (of 10)."""

    below: int
    cap: float


class SuggestRule(Strict, frozen=True, kw_only=True):
    """One line of the table that suggests a level.

    Either ``when``: patterns of finding codes, matched by findings of at least ``severity``; or ``panel`` with
    ``status``. Findings and panels that were not checked never match.
    """

    level: int
    when: tuple[str, ...] = ()
    severity: Severity = "warn"
    panel: PanelName | None = None
    status: PanelStatus | None = None


class Criterion(Strict, frozen=True, kw_only=True):
    """One question with its levels, lowest first: the number of a level is its place."""

    id: str
    question: str
    axis: Axis
    weight: float
    levels: tuple[Level, ...]
    gate: Gate | None = None
    needs: tuple[PanelName, ...] = ()
    suggest: tuple[SuggestRule, ...] = ()

    @property
    def top(self) -> int:
        """The number of the highest level."""
        return len(self.levels) - 1


class Rubric(msgspec.Struct, frozen=True, kw_only=True):
    """A rubric that holds together. Build it with :func:`parse_rubric`."""

    id: str
    version: int
    title: str
    criteria: tuple[Criterion, ...]
    digest: str
    """``sha256:`` and the hexadecimal SHA-256 of the file's bytes."""

    def criterion(self, name: str) -> Criterion:
        """The criterion called ``name``. Raises KeyError."""
        for criterion in self.criteria:
            if criterion.id == name:
                return criterion
        raise KeyError(name)

    @property
    def ids(self) -> tuple[str, ...]:
        """The criteria's ids, in order."""
        return tuple(criterion.id for criterion in self.criteria)


class _RubricFile(Strict, frozen=True, kw_only=True):
    schema: Literal[1]
    id: str
    version: int
    criteria: tuple[Criterion, ...]
    title: str = ""


def digest_of(data: bytes) -> str:
    """``sha256:`` and the hexadecimal SHA-256 of ``data``: how rubrics and evidence are named in a review."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def parse_rubric(data: bytes, file: str = "rubric.toml") -> Rubric:
    """Read a rubric. Raises SchemaError that names file, key and what to do."""
    parsed = convert(load_toml(data, file), _RubricFile, file)
    if not _ID.fullmatch(parsed.id):
        raise SchemaError(file, "id", "lower-case letters, digits and hyphens, at most 40")
    if parsed.version < 1:
        raise SchemaError(file, "version", "counts from 1")
    if not 1 <= len(parsed.criteria) <= MAX_CRITERIA:
        raise SchemaError(file, "criteria", f"a rubric has between 1 and {MAX_CRITERIA} criteria")
    seen: set[str] = set()
    for index, criterion in enumerate(parsed.criteria):
        key = f"criteria[{index}]"
        if criterion.id in seen:
            raise SchemaError(file, f"{key}.id", f"`{criterion.id}` is used twice")
        seen.add(criterion.id)
        _check_criterion(criterion, file, key)
    if not sum(criterion.weight for criterion in parsed.criteria) > 0:
        raise SchemaError(file, "criteria", "at least one weight must be above 0")
    return Rubric(
        id=parsed.id,
        version=parsed.version,
        title=parsed.title,
        criteria=parsed.criteria,
        digest=digest_of(data),
    )


def _check_criterion(criterion: Criterion, file: str, key: str) -> None:
    if not _ID.fullmatch(criterion.id):
        raise SchemaError(file, f"{key}.id", "lower-case letters, digits and hyphens, at most 40")
    if not 0 <= criterion.weight <= 1000:
        raise SchemaError(file, f"{key}.weight", "must be between 0 and 1000")
    if not 2 <= len(criterion.levels) <= 10:
        raise SchemaError(file, f"{key}.levels", "a criterion has between 2 and 10 levels, one digit key each")
    for number, level in enumerate(criterion.levels):
        if not level.name.strip() or not level.anchor.strip():
            raise SchemaError(file, f"{key}.levels[{number}]", "name and anchor must not be empty")
    if criterion.gate and not (1 <= criterion.gate.below <= criterion.top and 0 <= criterion.gate.cap <= 10):
        raise SchemaError(file, f"{key}.gate", f"below is between 1 and {criterion.top}, cap between 0 and 10")
    for number, rule in enumerate(criterion.suggest):
        _check_rule(rule, criterion.top, file, f"{key}.suggest[{number}]")


def _check_rule(rule: SuggestRule, top: int, file: str, key: str) -> None:
    if not 0 <= rule.level <= top:
        raise SchemaError(file, f"{key}.level", f"must be between 0 and {top}")
    if bool(rule.when) == (rule.panel is not None):
        raise SchemaError(file, key, "give either `when` or `panel` with `status`")
    if (rule.panel is None) != (rule.status is None):
        raise SchemaError(file, key, "`panel` and `status` go together")
    if rule.status in ("not-checked", "error"):
        raise SchemaError(file, f"{key}.status", f"`{rule.status}` says nothing about a submission")
    for pattern in rule.when:
        if not any(fnmatchcase(code, pattern) for code in FINDINGS):
            raise SchemaError(file, f"{key}.when", f"no finding is called `{pattern}`; {nearest(pattern, FINDINGS)}")
