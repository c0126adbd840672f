"""A review in the making: frozen; every change is a method that returns a new draft."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from console.grading.cites import parse_cite
from console.grading.review import CriterionScore, Overruled, Review, RubricRef, canonical_body
from console.grading.rubric import Rubric, digest_of
from console.grading.score import Score, score
from console.grading.suggest import Suggestion
from console.grading.text import storable
from console.grading.verdict import Mechanism, Outcome, allowed, require_allowed
from console.schema import Strict
from runners.evidence import Evidence, encode


class DraftError(Exception):
    """A draft that cannot be read, or that is no review yet."""


class CriterionDraft(Strict, frozen=True, kw_only=True):
    """One criterion so far; ``suggested`` is what the evidence suggested when the grader saw it."""

    id: str
    level: int | None = None
    suggested: int | None = None
    note: str = ""
    cites: tuple[str, ...] = ()


class Draft(Strict, frozen=True, kw_only=True):
    """What the grader has said so far about one revision, on one body of evidence."""

    task: str
    submission: str
    revision: str
    tree: str
    rubric: str
    """Digest of the rubric it was begun with."""
    evidence: str | None = None
    """Digest of the evidence that the grader saw."""
    outcome: Outcome | None = None
    mechanism: Mechanism | None = None
    criteria: tuple[CriterionDraft, ...] = ()
    overruled: tuple[Overruled, ...] = ()
    body: str = ""

    def __post_init__(self) -> None:
        require_allowed(self.outcome, self.mechanism)

    @classmethod
    def begin(
        cls, task: str, submission: str, revision: str, tree: str, rubric: Rubric, evidence: Evidence | None = None
    ) -> Draft:
        """An empty draft for a revision."""
        return cls(
            task=task,
            submission=submission,
            revision=revision,
            tree=tree,
            rubric=rubric.digest,
            evidence=evidence_digest(evidence) if evidence else None,
            criteria=tuple(CriterionDraft(id=name) for name in rubric.ids),
        )

    # reading

    def criterion(self, name: str) -> CriterionDraft:
        """The state of criterion ``name``. Raises KeyError."""
        for criterion in self.criteria:
            if criterion.id == name:
                return criterion
        raise KeyError(name)

    @property
    def levels(self) -> dict[str, int | None]:
        """Levels by criterion id; None where the grader has not set one."""
        return {criterion.id: criterion.level for criterion in self.criteria}

    @property
    def overruled_codes(self) -> frozenset[str]:
        """The codes that the grader does not accept."""
        return frozenset(one.code for one in self.overruled)

    @property
    def empty(self) -> bool:
        """True when the grader has said nothing yet."""
        said = any(c.level is not None or c.note or c.cites for c in self.criteria)
        return not (said or self.outcome or self.mechanism or self.overruled or self.body)

    def score(self, rubric: Rubric) -> Score:
        """The total so far, by a rubric with the same criteria."""
        return score(rubric, self.levels)

    # changing

    def _set(self, name: str, **changes: object) -> Draft:
        changed = msgspec.structs.replace(self.criterion(name), **changes)
        return msgspec.structs.replace(self, criteria=tuple(changed if c.id == name else c for c in self.criteria))

    def with_level(self, name: str, level: int | None) -> Draft:
        """Set or clear a level. Raises KeyError for an unknown criterion."""
        return self._set(name, level=level)

    def with_note(self, name: str, note: str) -> Draft:
        """Replace a criterion's note."""
        return self._set(name, note=storable(note).strip())

    def attach(self, name: str, cite: str) -> Draft:
        """Add a cite to a criterion, once. Raises ValueError for text that is no cite."""
        parse_cite(cite)
        return self._set(name, cites=tuple(dict.fromkeys([*self.criterion(name).cites, cite])))

    def detach(self, name: str, cite: str) -> Draft:
        """Take a cite away; nothing happens where there is none."""
        return self._set(name, cites=tuple(one for one in self.criterion(name).cites if one != cite))

    def with_suggestions(self, suggestions: Mapping[str, Suggestion]) -> Draft:
        """Keep what the evidence suggests now, beside the levels; sets no level."""
        draft = self
        for name in draft.levels:
            suggestion = suggestions.get(name)
            draft = draft._set(name, suggested=suggestion.level if suggestion else None)
        return draft

    def take_suggestion(self, name: str, suggestion: Suggestion) -> Draft:
        """Set a criterion to its suggested level and attach what carries it."""
        cites = tuple(dict.fromkeys([*self.criterion(name).cites, *suggestion.cites]))
        return self._set(name, level=suggestion.level, suggested=suggestion.level, cites=cites)

    def take_suggestions(self, suggestions: Mapping[str, Suggestion]) -> Draft:
        """Take every suggestion for a criterion that has no level yet; what the grader set stays."""
        draft = self.with_suggestions(suggestions)
        for name, level in self.levels.items():
            if level is None and name in suggestions:
                draft = draft.take_suggestion(name, suggestions[name])
        return draft

    def with_outcome(self, outcome: Outcome | None) -> Draft:
        """Set the outcome; a mechanism that cannot stand beside it is cleared."""
        mechanism = self.mechanism if allowed(outcome, self.mechanism) else None
        return msgspec.structs.replace(self, outcome=outcome, mechanism=mechanism)

    def with_mechanism(self, mechanism: Mechanism | None) -> Draft:
        """Set the mechanism. Raises VerdictError when it cannot stand beside the outcome."""
        return msgspec.structs.replace(self, mechanism=mechanism)

    def overrule(self, code: str, reason: str) -> Draft:
        """Refuse a finding code with a reason; a second time replaces the reason."""
        others = tuple(one for one in self.overruled if one.code != code)
        return msgspec.structs.replace(self, overruled=(*others, Overruled(code=code, reason=reason.strip())))

    def accept(self, code: str) -> Draft:
        """Take an overruling back."""
        return msgspec.structs.replace(self, overruled=tuple(one for one in self.overruled if one.code != code))

    def with_body(self, body: str) -> Draft:
        """Replace the prose; hostile characters in it become escapes."""
        return msgspec.structs.replace(self, body=canonical_body(body))

    def with_evidence(self, evidence: Evidence) -> Draft:
        """The grader has seen this evidence: levels and cites rest on it from here."""
        return msgspec.structs.replace(self, evidence=evidence_digest(evidence))

    def for_revision(self, revision: str, tree: str) -> Draft:
        """The same words for another revision; they rest on no evidence until the grader has seen some."""
        return msgspec.structs.replace(self, revision=revision, tree=tree, evidence=None)

    def for_rubric(self, rubric: Rubric) -> Draft:
        """The same words under another version of the rubric; criteria are matched by id."""
        known = {criterion.id: criterion for criterion in self.criteria}
        kept = []
        for criterion in rubric.criteria:
            one = known.get(criterion.id, CriterionDraft(id=criterion.id))
            fits = one.level is None or one.level <= criterion.top
            kept.append(one if fits else msgspec.structs.replace(one, level=None))
        return msgspec.structs.replace(self, rubric=rubric.digest, criteria=tuple(kept))

    # leaving

    def to_review(self, rubric: Rubric, evidence: Evidence, grader: str) -> Review:
        """The review. Raises DraftError where :func:`console.grading.problems.check` would have found a gap."""
        total = self.score(rubric)
        if total.value is None or self.outcome is None or self.mechanism is None:
            raise DraftError("a level, the outcome or the mechanism is missing")
        return Review(
            task=self.task,
            submission=self.submission,
            revision=self.revision,
            tree=self.tree,
            grader=grader,
            outcome=self.outcome,
            mechanism=self.mechanism,
            score=total.value,
            rubric=RubricRef(name=rubric.id, version=rubric.version, digest=rubric.digest),
            evidence=evidence_digest(evidence),
            criteria=tuple(
                CriterionScore(id=c.id, level=c.level, suggested=c.suggested, note=c.note, cites=c.cites)
                for c in self.criteria
                if c.level is not None
            ),
            overruled=self.overruled,
            body=self.body,
        )

    def to_json(self) -> bytes:
        """The draft as it is kept on disk."""
        return msgspec.json.format(msgspec.json.encode(self), indent=1)

    @classmethod
    def from_json(cls, data: bytes) -> Draft:
        """Read a kept draft. Raises DraftError."""
        try:
            return msgspec.json.decode(data, type=cls)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise DraftError(str(error)) from None


def evidence_digest(evidence: Evidence) -> str:
    """How a review names its evidence: the digest of the evidence file's bytes."""
    return digest_of(encode(evidence))
