from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.grading.triage import parse_triage, triage_file, triage_message
from console.schema import SchemaError


@given(st.text())
def test_the_mark_is_read_back_and_the_message_is_one_subject(reason: str) -> None:
    ((path, data),) = triage_file("t", "m-1", "reject", reason, "ann", "b" * 40).items()
    assert path == "reviews/t/m-1/triage.toml"
    mark = parse_triage(data)
    assert (mark.mark, mark.reason, mark.grader, mark.tree) == ("reject", reason.strip(), "ann", "b" * 40)
    lines = triage_message("t", "m-1", "reject", reason).split("\n")
    assert lines[0].startswith("triage(t/m-1): reject")
    assert lines[1:] == ["", "Review-Task: t", "Review-Submission: m-1", "Review-Triage: reject", ""]


def test_strict() -> None:
    with pytest.raises(SchemaError, match="did you mean `reason`"):
        parse_triage(b'mark = "reject"\nreson = "x"\ngrader = "a"\ntree = "bbbbbbb"\n')
    with pytest.raises(SchemaError, match="mark"):
        parse_triage(b'mark = "rejected"\nreason = "x"\ngrader = "a"\ntree = "bbbbbbb"\n')
