"""The rubric as a form."""

from __future__ import annotations

from pathlib import Path

from console.grading.draft import Draft
from console.grading.rubric import parse_rubric
from console.grading.suggest import Suggestion, VerdictHint
from console.view.rubric import BODY, MECHANISM, OUTCOME, Form, all_taken, answer, blocks, cleared, score_line
from console.view.spans import plain, width_of

RUBRIC = parse_rubric((Path(__file__).parents[3] / "rubrics" / "kernel.toml").read_bytes())
FIRST = RUBRIC.criteria[0]


def form(draft: Draft | None = None, **suggestions: int) -> Form:
    draft = draft or Draft.begin("softmax", "m-1", "a" * 40, "1" * 40, RUBRIC)
    wrapped = {name: Suggestion(level, "because", ("panel:build",)) for name, level in suggestions.items()}
    return Form(RUBRIC, draft, wrapped, VerdictHint("incorrect", "flawed", "because"))


def changed(one: Form, key: str, digit: int) -> Draft:
    draft = answer(one, key, digit)
    assert isinstance(draft, Draft)
    return draft


def test_digits_set_levels_and_nothing_beyond() -> None:
    assert changed(form(), FIRST.id, 2).levels[FIRST.id] == 2
    assert isinstance(answer(form(), FIRST.id, FIRST.top + 1), str)
    assert isinstance(answer(form(), BODY, 1), str)


def test_only_allowed_pairs_can_be_picked() -> None:
    draft = changed(form(), OUTCOME, 1)
    assert draft.outcome == "correct"
    seen = set()
    digit = 1
    while isinstance(picked := answer(form(draft), MECHANISM, digit), Draft):
        seen.add(picked.mechanism)
        digit += 1
    assert "flawed" not in seen
    assert {"sound", "coincidental"} <= seen
    picked = changed(form(draft), MECHANISM, 2)
    assert changed(form(picked), OUTCOME, 2).mechanism in (None, picked.mechanism)


def test_taking_all_leaves_what_is_decided() -> None:
    draft = changed(form(), FIRST.id, 0)
    second = RUBRIC.criteria[1].id
    taken = all_taken(form(draft, **{FIRST.id: 3, second: 1}))
    assert taken.levels[FIRST.id] == 0
    assert taken.levels[second] == 1
    assert (taken.outcome, taken.mechanism) == ("incorrect", "flawed")
    correct = all_taken(form(changed(form(), OUTCOME, 1)))
    assert (correct.outcome, correct.mechanism) == ("correct", None)


def test_clearing_gives_up_cites_before_the_level() -> None:
    draft = changed(form(), FIRST.id, 1).attach(FIRST.id, "kernel.py:3")
    once = cleared(form(draft), FIRST.id)
    assert once.criterion(FIRST.id).cites == ()
    assert once.levels[FIRST.id] == 1
    assert cleared(form(once), FIRST.id).levels[FIRST.id] is None


def test_a_failed_gate_is_told_in_words() -> None:
    draft = form().draft
    for criterion in RUBRIC.criteria:
        draft = draft.with_level(criterion.id, criterion.top)
    assert "10.0/10" in plain(score_line(form(draft)))
    gated = next(one for one in RUBRIC.criteria if one.gate)
    line = plain(score_line(form(draft.with_level(gated.id, 0))))
    assert f"gate {gated.id}: cap" in line


def test_blocks_show_anchors_only_where_the_cursor_is() -> None:
    one = form()
    for width in (76, 120):
        made = blocks(one, width, FIRST.id)
        assert [block.key for block in made if block.key] == list(one.keys())
        for block in made:
            assert all(width_of(line) <= width for line in block.lines if line)
    text = "\n".join(plain(line) for block in blocks(one, 78, FIRST.id) for line in block.lines)
    assert FIRST.levels[0].anchor.split()[0] in text
    assert RUBRIC.criteria[1].levels[0].anchor.strip().split("\n")[0][:30] not in text


def test_markup_is_text() -> None:
    draft = form().draft.with_note(FIRST.id, "[bold]no[/bold] \x1b[31m").with_level(FIRST.id, 1)
    text = "\n".join(plain(line) for block in blocks(form(draft), 78, FIRST.id) for line in block.lines)
    assert "[bold]no[/bold]" in text
    assert "\x1b" not in text


def test_failed_gates_fit_a_narrow_screen_with_the_lowest_cap() -> None:
    one = form()
    for criterion in RUBRIC.criteria:
        one = form(changed(one, criterion.id, 0))
    line = score_line(one)
    gates = [criterion for criterion in RUBRIC.criteria if criterion.gate]
    assert len(gates) > 1
    assert f"gates {', '.join(gate.id for gate in gates)}: cap 1" in plain(line)
    assert width_of(line) + len(" kernel v1") <= 79


def test_the_cursor_stands_on_the_row_that_says_summary() -> None:
    for current in (BODY, OUTCOME):
        (body,) = (block for block in blocks(form(), 79, current) if block.key == BODY)
        assert plain(body.lines[0]).startswith("summary")
