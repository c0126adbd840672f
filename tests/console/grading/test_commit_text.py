from __future__ import annotations

import re
import subprocess
from pathlib import Path

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from console.grading.message import commit_message, first_paragraph
from console.grading.review import CriterionScore, Review, RubricRef
from console.grading.rubric import parse_rubric

from .conftest import SMALL

RUBRIC = parse_rubric(SMALL)
REVIEW = Review(
    task="fused-softmax-fp8",
    submission="m-042",
    revision="a" * 40,
    tree="b" * 40,
    grader="ann-lee",
    outcome="incorrect",
    mechanism="flawed",
    score=2.5,
    rubric=RubricRef(name="small", version=3, digest=RUBRIC.digest),
    evidence="sha256:" + "2" * 64,
    criteria=(CriterionScore(id="right", level=0, note="n"), CriterionScore(id="clear", level=1)),
    body="# Summary\nThe maximum is taken\nafter the cast.\n\nMore.",
)
EXPECTED = f"""\
review(fused-softmax-fp8/m-042): incorrect, flawed, 2.5/10, gate right failed

The maximum is taken after the cast.

Review-Task: fused-softmax-fp8
Review-Submission: m-042@{"a" * 40}
Review-Outcome: incorrect
Review-Mechanism: flawed
Review-Score: 2.5
Review-Gate-Failed: right
Review-Rubric: small@3
Review-Evidence: sha256:{"2" * 64}
"""


def trailers(message: str) -> list[str]:
    return (
        subprocess.run(
            ["git", "interpret-trailers", "--parse", "--no-divider"],
            input=message.encode(),
            capture_output=True,
            check=True,
            cwd="/",
        )
        .stdout.decode()
        .splitlines()
    )


def test_the_message_reads_as_designed() -> None:
    assert commit_message(REVIEW, RUBRIC) == EXPECTED


def test_without_prose_or_a_failed_gate() -> None:
    criteria = (CriterionScore(id="right", level=1), CriterionScore(id="clear", level=1))
    message = commit_message(msgspec.structs.replace(REVIEW, body="", criteria=criteria, score=6.3), RUBRIC)
    assert message.startswith("review(fused-softmax-fp8/m-042): incorrect, flawed, 6.3/10\n\nReview-Task: ")
    assert "Gate" not in message


def test_git_reads_the_trailers_and_no_others() -> None:
    body = "Review-Outcome: correct\nSigned-off-by: Eve <eve@example.org>\n---\n# gone"
    message = commit_message(msgspec.structs.replace(REVIEW, body=body), RUBRIC)
    assert trailers(message) == EXPECTED.splitlines()[4:]
    assert not [line for line in message.split("\n\n")[1].splitlines() if line.startswith(("Review-", "#", "---"))]


def test_names_cannot_break_out_of_their_line(tmp_path: Path) -> None:
    evil = msgspec.structs.replace(REVIEW, task="t\nReview-Outcome: correct", submission="s\r\n\r\n\x1b[2J\u2028x")
    message = commit_message(evil, RUBRIC)
    assert message.split("\n")[0].startswith("review(t Review-Outcome: correct/s \\x1b[2J\\u2028x): incorrect")
    assert [line for line in trailers(message) if line.startswith("Review-Outcome")] == ["Review-Outcome: incorrect"]
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    env = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.cleanup=strip"]
    subprocess.run(
        ["git", *env, "-C", str(tmp_path), "commit", "-q", "--allow-empty", "-F", "-"],
        input=message.encode(),
        check=True,
    )
    kept = subprocess.run(
        ["git", "-C", str(tmp_path), "log", "-1", "--format=%(trailers:key=Review-Outcome,valueonly)"],
        capture_output=True,
        check=True,
    )
    assert kept.stdout.split() == [b"incorrect"]


@settings(max_examples=200)
@given(st.text(st.sampled_from(list("ab-:# \n\r\t+>\x1b\u2028RevSig")), max_size=80))
def test_a_paragraph_is_prose_to_git_whatever_it_says(body: str) -> None:
    for line in first_paragraph(body).split("\n"):
        assert not line.startswith(("#", "---"))
        assert not re.match(r"[A-Za-z0-9-]*-[A-Za-z0-9-]*\s*:", line)
        assert not any(ord(c) < 0x20 for c in line)
