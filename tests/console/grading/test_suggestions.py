from __future__ import annotations

from console.grading.rubric import Rubric
from console.grading.suggest import suggest, suggest_verdict
from runners.evidence import Evidence, make_finding

from .conftest import evidence_with


def test_a_pass_suggests_with_the_panel_as_reason(small: Rubric) -> None:
    one = suggest(small, evidence_with())["right"]
    assert (one.level, one.reason, one.cites) == (2, "correctness: pass", ("panel:correctness",))


def test_the_lowest_level_wins_and_carries_its_findings(small: Rubric) -> None:
    found = evidence_with(
        make_finding("numerics/unexplained", "odd"),
        make_finding("numerics/unstable", "NaN"),
        make_finding("numerics/mismatch", "far off"),
    )
    one = suggest(small, found)["right"]
    assert one.level == 0
    assert one.cites == ("finding:numerics/unstable#1", "finding:numerics/mismatch#1", "panel:correctness")
    assert one.reason == "numerics/unstable#1: NaN; numerics/mismatch#1: far off"


def test_a_warning_suggests_its_own_level(small: Rubric) -> None:
    assert suggest(small, evidence_with(make_finding("numerics/unexplained", "odd")))["right"].level == 1


def test_many_reasons_are_counted(small: Rubric) -> None:
    many = evidence_with(*(make_finding("numerics/mismatch", f"case {n}") for n in range(9)))
    one = suggest(small, many)["right"]
    assert one.reason.endswith("case 2; and 6 more")
    assert len(one.cites) == 10


def test_a_panel_that_was_not_checked_suggests_nothing(small: Rubric) -> None:
    assert suggest(small, evidence_with(unchecked=("correctness",))) == {}


def test_neither_do_the_hints_of_such_a_panel(small: Rubric) -> None:
    hint = make_finding("numerics/unexplained", "odd")
    unchecked = evidence_with(hint, unchecked=("correctness",))
    assert unchecked.panels["correctness"].status == "not-checked"
    assert suggest(small, unchecked) == {}


def test_but_a_conviction_does(small: Rubric) -> None:
    convicted = evidence_with(make_finding("numerics/mismatch", "x"), unchecked=("correctness",))
    assert suggest(small, convicted)["right"].level == 0


def test_a_fault_of_the_machine_is_never_charged(kernel: Rubric) -> None:
    broken = evidence_with(
        make_finding("build/environment", "no driver"), unchecked=("correctness", "integrity", "timing")
    )
    assert suggest(kernel, broken) == {}


def test_what_the_grader_overruled_does_not_count(small: Rubric, unstable: Evidence) -> None:
    assert suggest(small, unstable)["right"].level == 0
    assert "right" not in suggest(small, unstable, {"numerics/unstable"})


def test_a_pass_says_nothing_about_the_mechanism() -> None:
    hint = suggest_verdict(evidence_with())
    assert (hint.outcome, hint.mechanism) == ("correct", None)


def test_findings_say_how_it_went_wrong(unstable: Evidence) -> None:
    hint = suggest_verdict(unstable)
    assert (hint.outcome, hint.mechanism) == ("incorrect", "flawed")
    assert hint.cites == ("finding:numerics/unstable#1",)


def test_cheating_outweighs_a_mistake() -> None:
    both = evidence_with(make_finding("numerics/mismatch", "m"), make_finding("integrity/replay", "r"))
    assert suggest_verdict(both).mechanism == "hacked"
    assert suggest_verdict(evidence_with(make_finding("integrity/reference-access", "r"))).mechanism == "leaked"


def test_a_slip_of_hygiene_is_no_cheat() -> None:
    assert suggest_verdict(evidence_with(make_finding("integrity/input-mutated", "x"))).mechanism is None


def test_what_was_not_determined_stays_so() -> None:
    hint = suggest_verdict(evidence_with(unchecked=("correctness",)))
    assert (hint.outcome, hint.mechanism) == ("not-determined", None)


def test_an_overruled_failure_leaves_the_verdict_open(unstable: Evidence) -> None:
    hint = suggest_verdict(unstable, {"numerics/unstable"})
    assert (hint.outcome, hint.mechanism) == (None, None)
