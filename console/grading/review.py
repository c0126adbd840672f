"""The review file: TOML front matter between ``+++`` lines, then prose."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from console.grading.cites import parse_cite
from console.grading.text import plain, storable
from console.grading.verdict import Mechanism, Outcome, require_allowed
from console.schema import SchemaError, Strict, convert, load_toml

if TYPE_CHECKING:
    from tomlkit.items import AoT

MAX_REVIEW_BYTES = 1024 * 1024
FENCE = "+++"

ObjectId = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{7,64}$")]
Digest = Annotated[str, msgspec.Meta(pattern="^sha256:[0-9a-f]{64}$")]
LevelNumber = Annotated[int, msgspec.Meta(ge=0, le=9)]

_NOT_IN_TOML = re.compile("[\x7f-\x9f\u061c\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u2069\ufeff]")


class RubricRef(Strict, frozen=True, kw_only=True):
    """The rubric that was used, by content."""

    name: str
    version: int
    digest: Digest


class CriterionScore(Strict, frozen=True, kw_only=True):
    """One criterion as the grader left it. ``suggested`` is what the evidence suggested, where it did."""

    id: str
    level: LevelNumber
    suggested: LevelNumber | None = None
    note: str = ""
    cites: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "note", storable(self.note))
        for cite in self.cites:
            parse_cite(cite)


class Overruled(Strict, frozen=True, kw_only=True):
    """A finding code that the grader does not accept, and why."""

    code: str
    reason: str

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "reason", storable(self.reason))


class Review(Strict, frozen=True, kw_only=True):
    """A grader's committed judgement. ``body`` is prose: LF lines, hostile characters written as escapes."""

    schema: Literal[1] = 1
    task: str
    submission: str
    revision: ObjectId
    tree: ObjectId
    grader: str
    outcome: Outcome
    mechanism: Mechanism
    score: float
    rubric: RubricRef
    evidence: Digest
    criteria: tuple[CriterionScore, ...] = ()
    overruled: tuple[Overruled, ...] = ()
    body: str = ""

    def __post_init__(self) -> None:
        require_allowed(self.outcome, self.mechanism)
        for name in (self.task, self.submission, self.grader):
            if not name or name in (".", "..") or "/" in name or "\0" in name or storable(name) != name:
                raise ValueError(f"{name!r} cannot be the name of a task, submission or grader")
        if not (math.isfinite(self.score) and 0 <= self.score <= 10):
            raise ValueError("score is between 0 and 10")
        ids = [criterion.id for criterion in self.criteria]
        if len(set(ids)) != len(ids):
            raise ValueError("a criterion is scored twice")
        msgspec.structs.force_setattr(self, "body", canonical_body(self.body))

    @property
    def path(self) -> str:
        """Where the review lies in the exchange."""
        return f"reviews/{self.task}/{self.submission}/{self.grader}.md"

    @property
    def evidence_path(self) -> str:
        """Where the evidence lies that the review rests on."""
        return f"reviews/{self.task}/{self.submission}/{self.grader}.evidence.json"

    @property
    def levels(self) -> dict[str, int]:
        """Levels by criterion id."""
        return {criterion.id: criterion.level for criterion in self.criteria}


def canonical_body(text: str) -> str:
    """Prose as the file holds it: no blank lines before, no white space after, nothing that a terminal obeys."""
    return plain(text).lstrip("\n").rstrip(" \t\n")


def format_review(review: Review) -> str:
    """The file's text; :func:`parse_review` gives the same review back."""
    import tomlkit  # slow to import, and reviews are read far more often than written

    document = tomlkit.document()
    for key in ("schema", "task", "submission", "revision", "tree", "grader", "outcome", "mechanism"):
        document.add(key, _item(getattr(review, key)))
    document.add("score", tomlkit.float_(repr(float(review.score))))
    rubric = tomlkit.inline_table()
    rubric.update({key: _item(getattr(review.rubric, key)) for key in ("name", "version", "digest")})
    document.add("rubric", rubric)
    document.add("evidence", _item(review.evidence))
    if review.criteria:
        document.add("criteria", _tables([_criterion_table(criterion) for criterion in review.criteria]))
    if review.overruled:
        document.add("overruled", _tables([{"code": one.code, "reason": one.reason} for one in review.overruled]))
    lines = [line for line in escape_front(tomlkit.dumps(document)).split("\n") if line]
    return "\n".join([FENCE, *lines, FENCE, review.body]).rstrip("\n") + "\n"


def escape_front(toml: str) -> str:
    """TOML of basic strings in which characters that a terminal obeys stand as escapes; it means the same."""
    return _NOT_IN_TOML.sub(lambda match: f"\\u{ord(match.group()):04x}", toml)


def _criterion_table(criterion: CriterionScore) -> dict[str, Any]:
    table: dict[str, Any] = {"id": criterion.id, "level": criterion.level}
    if criterion.suggested is not None:
        table["suggested"] = criterion.suggested
    if criterion.note:
        table["note"] = criterion.note
    if criterion.cites:
        table["cites"] = list(criterion.cites)
    return table


def _item(value: object) -> Any:
    from tomlkit import item

    return item(value)


def _tables(rows: list[dict[str, Any]]) -> AoT:
    from tomlkit import table as new_table
    from tomlkit.items import AoT, Table

    tables: list[Table] = []
    for row in rows:
        table = new_table()
        for key, value in row.items():
            table.add(key, _item(value))
        tables.append(table)
    return AoT(tables)


def parse_review(text: str, file: str = "review") -> Review:
    """Read a review file; tolerant of CRLF and of a byte order mark, strict on keys. Raises SchemaError."""
    if len(text) > MAX_REVIEW_BYTES:
        raise SchemaError(file, "", f"larger than {MAX_REVIEW_BYTES} characters")
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    if lines[0].rstrip() != FENCE:
        raise SchemaError(file, "", f"does not begin with a `{FENCE}` line")
    closing = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() == FENCE), None)
    if closing is None:
        raise SchemaError(file, "", f"the front matter has no closing `{FENCE}` line")
    raw = load_toml(storable("\n".join(lines[1:closing])).encode(), file)
    for key in ("schema", "rubric"):
        if key not in raw:
            raise SchemaError(file, key, "required key is missing")
    if "body" in raw:
        raise SchemaError(file, "body", "unknown key; the prose stands after the front matter")
    return convert({**raw, "body": "\n".join(lines[closing + 1 :])}, Review, file)
