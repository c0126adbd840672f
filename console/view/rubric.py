"""The rubric as a form: blocks to look at, digits to answer with. Every answer is a new draft."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from console.exchange.text import visible, visible_block
from console.grading.draft import CriterionDraft, Draft
from console.grading.rubric import Criterion, Rubric
from console.grading.suggest import Suggestion, VerdictHint
from console.grading.verdict import MEANINGS, OUTCOMES, mechanisms_for
from console.view.blocks import Block
from console.view.spans import Line, Span, Tone, fit, spread, wrap

BODY = "body"
OUTCOME = "outcome"
MECHANISM = "mechanism"


@dataclass(frozen=True)
class Form:
    """Everything the rubric pane shows."""

    rubric: Rubric
    draft: Draft
    suggestions: Mapping[str, Suggestion]
    hint: VerdictHint | None = None
    quoted: Callable[[str], str] = lambda cite: ""
    """The text of the line that a cite names, safe to show; empty for other cites."""

    def keys(self) -> tuple[str, ...]:
        """Keys of the form's blocks, in order."""
        overruled = tuple(f"overruled:{one.code}" for one in self.draft.overruled)
        return (OUTCOME, MECHANISM, *self.rubric.ids, *overruled, BODY)

    def criterion(self, key: str) -> Criterion | None:
        """The criterion behind a key; None for the other blocks."""
        return next((one for one in self.rubric.criteria if one.id == key), None)


def answer(form: Form, key: str, digit: int) -> Draft | str:
    """The draft after ``digit`` on the block ``key``, or why that digit means nothing there."""
    if key == OUTCOME:
        if 1 <= digit <= len(OUTCOMES):
            return form.draft.with_outcome(OUTCOMES[digit - 1])
        return f"outcome: 1 to {len(OUTCOMES)}"
    if key == MECHANISM:
        options = mechanisms_for(form.draft.outcome)
        if 1 <= digit <= len(options):
            return form.draft.with_mechanism(options[digit - 1])
        return f"mechanism: 1 to {len(options)}"
    criterion = form.criterion(key)
    if criterion is None:
        return "digits set the level of a criterion"
    if digit > criterion.top:
        return f"{criterion.id}: 0 to {criterion.top}"
    return form.draft.with_level(key, digit)


def cleared(form: Form, key: str) -> Draft:
    """The draft without the answer of a block; a criterion gives up its last cite first."""
    draft = form.draft
    if key == OUTCOME:
        return draft.with_outcome(None)
    if key == MECHANISM:
        return draft.with_mechanism(None)
    if key.startswith("overruled:"):
        return draft.accept(key.partition(":")[2])
    if form.criterion(key) is None:
        return draft
    one = draft.criterion(key)
    return draft.detach(key, one.cites[-1]) if one.cites else draft.with_level(key, None)


def all_taken(form: Form) -> Draft:
    """Every suggestion taken, the verdict's too, wherever the grader has not decided."""
    draft = form.draft.take_suggestions(form.suggestions)
    if form.hint is not None:
        if draft.outcome is None and form.hint.outcome is not None:
            draft = draft.with_outcome(form.hint.outcome)
        fits = form.hint.mechanism in mechanisms_for(draft.outcome)
        if draft.mechanism is None and form.hint.mechanism is not None and fits:
            draft = draft.with_mechanism(form.hint.mechanism)
    return draft


def score_line(form: Form) -> Line:
    """The running score, and the gates that cap it."""
    score = form.draft.score(form.rubric)
    spans: list[Span] = []
    if score.value is None:
        done = len(form.rubric.criteria) - len(score.missing)
        spans.append(Span(f"score –/10  {done} of {len(form.rubric.criteria)} levels set", "dim"))
    else:
        spans.append(Span(f"score {score.value:.1f}/10", "strong"))
        if score.raw is not None and score.raw != score.value:
            spans.append(Span(f"  {score.raw:.1f} before gates", "dim"))
    gates = [gate for name in score.failed_gates if (gate := form.rubric.criterion(name).gate)]
    if gates:
        word = "gate" if len(gates) == 1 else "gates"
        cap = min(gate.cap for gate in gates)
        spans.append(Span(f"  ✗ {word} {', '.join(score.failed_gates)}: cap {cap:g}", "bad"))
    return tuple(spans)


def score_mark(form: Form) -> Line:
    """The running score in short, for a row that has other things to say."""
    score = form.draft.score(form.rubric)
    total = Span(f"{score.value:.1f}/10" if score.value is not None else "–/10", "strong" if score.value else "dim")
    return (Span("✗ gate ", "bad"), total) if score.failed_gates else (total,)


def blocks(form: Form, width: int, current: str) -> list[Block]:
    """Score, verdict, criteria, what is overruled, and the summary."""
    title = f"{visible(form.rubric.id)} v{form.rubric.version}"
    made = [
        Block("", [spread(score_line(form), (Span(title, "faint"),), width), ()]),
        Block(OUTCOME, list(_choice(OUTCOME, OUTCOMES, form.draft.outcome, width, current == OUTCOME))),
        Block(
            MECHANISM,
            [
                *_choice(
                    MECHANISM,
                    mechanisms_for(form.draft.outcome),
                    form.draft.mechanism,
                    width,
                    current == MECHANISM,
                ),
                *_verdict_hint(form, width),
                (),
            ],
        ),
    ]
    size = max(len(one.id) for one in form.rubric.criteria) + 1
    for criterion in form.rubric.criteria:
        lines = list(_criterion(form, criterion, width, size, unfolded=current == criterion.id))
        made.append(Block(criterion.id, lines))
    for one in form.draft.overruled:
        text = (Span("⊘ overruled ", "dim"), Span(visible(one.code), "text"), Span(f"  {visible(one.reason)}", "dim"))
        made.append(Block(f"overruled:{one.code}", [spread(text, (), width)]))
    made.append(Block("", [()]))
    made.append(Block(BODY, list(_body(form, width, unfolded=current == BODY))))
    return made


def _choice(name: str, options: tuple[str, ...], chosen: str | None, width: int, unfolded: bool) -> Iterator[Line]:
    spans = [Span(f"{name:<11}", "strong")]
    if unfolded:
        for number, option in enumerate(options, 1):
            mine = option == chosen
            spans.append(Span(f"{number} ", "key"))
            spans.append(Span(f"{'●' if mine else ' '}{option}  ", "strong" if mine else "text"))
    elif chosen is None:
        spans.append(Span("– not set", "dim"))
    else:
        spans += [Span(f"● {chosen}", "accent"), Span(f"  {MEANINGS[chosen]}", "dim")]
    yield spread(tuple(spans), (), width)
    if unfolded and chosen is not None:
        yield (Span(f"           {MEANINGS[chosen]}", "dim"),)


def _verdict_hint(form: Form, width: int) -> Iterator[Line]:
    hint = form.hint
    if hint is None or (hint.outcome is None and hint.mechanism is None):
        return
    words = ", ".join(word for word in (hint.outcome, hint.mechanism) if word)
    taken = hint.outcome == form.draft.outcome and hint.mechanism in (None, form.draft.mechanism)
    if not taken:
        yield spread((Span(f"  ◇ suggested {words}", "accent"), Span(f"  {visible(hint.reason)}", "dim")), (), width)


def _bar(one: CriterionDraft, criterion: Criterion) -> Span:
    if one.level is None:
        return Span("▱" * criterion.top, "faint")
    gate = criterion.gate
    tone: Tone = "bad" if gate and one.level < gate.below else "good" if one.level == criterion.top else "accent"
    return Span("▰" * one.level + "▱" * (criterion.top - one.level), tone)


def _criterion(form: Form, criterion: Criterion, width: int, size: int, *, unfolded: bool) -> Iterator[Line]:
    one = form.draft.criterion(criterion.id)
    suggestion = form.suggestions.get(criterion.id)
    top = max(each.top for each in form.rubric.criteria)
    left: list[Span] = [Span(f"{criterion.id:<{size}}", "strong"), _bar(one, criterion)]
    left.append(Span(" " * (top - criterion.top + 1)))
    if one.level is None:
        left.append(Span("–/" + str(criterion.top), "dim"))
    else:
        left.append(Span(f"{one.level}/{criterion.top} ", "strong"))
        left.append(Span(visible(criterion.levels[one.level].name), "text"))
    if suggestion is not None and suggestion.level != one.level:
        left.append(Span(f"  ◇{suggestion.level} suggested", "accent"))
    right: list[Span] = []
    if one.note:
        right.append(Span(" ✎ note", "dim"))
    if one.cites:
        right.append(Span(f" ¶{len(one.cites)} cited", "dim"))
    if criterion.gate is not None:
        failed = one.level is not None and one.level < criterion.gate.below
        right.append(Span(f" {'✗ ' if failed else ''}gate {criterion.gate.cap:g}", "bad" if failed else "faint"))
    right.append(Span(f" ×{criterion.weight:g}", "faint"))
    yield spread(tuple(left), tuple(right), width)
    if unfolded:
        yield from _unfolded(form, criterion, one, suggestion, width)


def _unfolded(
    form: Form, criterion: Criterion, one: CriterionDraft, suggestion: Suggestion | None, width: int
) -> Iterator[Line]:
    for text in wrap(visible(criterion.question), max(10, width - 2)):
        yield (Span(f"  {text}", "text"),)
    names = max(len(level.name) for level in criterion.levels)
    for number, level in enumerate(criterion.levels):
        chosen = number == one.level
        suggested = suggestion is not None and suggestion.level == number
        mark = "●" if chosen else "◇" if suggested else " "
        head = Span(f"{number} ", "key"), Span(f"{fit(visible(level.name), names)}  ", "strong" if chosen else "text")
        pad = " " * (names + 8)
        for turn, text in enumerate(wrap(visible(level.anchor), max(10, width - len(pad)))):
            if turn:
                yield (Span(pad), Span(text, "text" if chosen else "dim"))
            else:
                yield (Span(f"  {mark} ", "accent"), *head, Span(text, "text" if chosen else "dim"))
    if suggestion is not None:
        for turn, text in enumerate(wrap(visible(suggestion.reason), max(10, width - 18))):
            head_text = f"  ◇ suggested {suggestion.level}    " if not turn else " " * 18
            yield (Span(head_text[:18], "accent"), Span(text, "dim"))
    if criterion.needs:
        yield (Span("  rests on        ", "dim"), Span(", ".join(criterion.needs), "dim"))
    for turn, cite in enumerate(one.cites):
        quoted = form.quoted(cite)
        yield (
            Span(f"  {'cites' if not turn else '':<16}", "dim"),
            Span(visible(cite), "accent"),
            Span(f"  {quoted.strip()}" if quoted else "", "dim"),
        )
    if one.note:
        for turn, text in enumerate(wrap(visible_block(one.note), max(10, width - 18))):
            yield (Span(f"  {'note' if not turn else '':<16}", "dim"), Span(text, "text"))


def _body(form: Form, width: int, *, unfolded: bool) -> Iterator[Line]:
    text = form.draft.body
    if not text:
        yield (Span(f"{'summary':<11}", "strong"), Span("– none yet: c writes it here, e in your editor", "dim"))
        return
    lines = list(wrap(visible_block(text), max(10, width - 2)))
    yield (Span(f"{'summary':<11}", "strong"), Span(f"{len(text.split())} words", "dim"))
    for line in lines if unfolded else lines[:2]:
        yield (Span(f"  {line}", "text"),)
