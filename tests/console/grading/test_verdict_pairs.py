from __future__ import annotations

import msgspec
import pytest

from console.grading.verdict import MEANINGS, MECHANISMS, OUTCOMES, Verdict, VerdictError, allowed, mechanisms_for


def test_the_two_pairs_that_contradict_themselves_cannot_be_built() -> None:
    for outcome in OUTCOMES:
        for mechanism in MECHANISMS:
            if (outcome, mechanism) in (("correct", "flawed"), ("incorrect", "coincidental")):
                assert not allowed(outcome, mechanism)
                with pytest.raises(VerdictError):
                    Verdict(outcome, mechanism)
            else:
                assert str(Verdict(outcome, mechanism)) == f"{outcome}, {mechanism}"


def test_nor_by_replacing_or_reading() -> None:
    with pytest.raises(VerdictError):
        msgspec.structs.replace(Verdict("incorrect", "flawed"), outcome="correct")
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"outcome": "correct", "mechanism": "flawed"}, Verdict)


def test_what_is_offered_is_what_is_allowed() -> None:
    assert "flawed" not in mechanisms_for("correct")
    assert "coincidental" not in mechanisms_for("incorrect")
    assert mechanisms_for(None) == MECHANISMS
    assert set(MEANINGS) == {*OUTCOMES, *MECHANISMS}
