from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import console
from console import drafts as module
from console.drafts import Drafts
from console.grading.draft import CriterionDraft, Draft

ROOT = Path(console.__file__).parents[1]


def draft(task: str = "t", submission: str = "m-1", body: str = "words") -> Draft:
    return Draft(
        task=task,
        submission=submission,
        revision="a" * 40,
        tree="b" * 40,
        rubric="sha256:" + "0" * 64,
        criteria=(CriterionDraft(id="right"),),
        body=body,
    )


@pytest.fixture
def drafts(tmp_path: Path) -> Drafts:
    return Drafts("exchange", tmp_path)


def test_what_was_saved_is_back(drafts: Drafts, tmp_path: Path) -> None:
    assert drafts.load("t", "m-1").draft is None
    assert drafts.save(draft()) == ""
    again = Drafts("exchange", tmp_path).load("t", "m-1")
    assert (again.draft, again.notice) == (draft(), "")
    assert drafts.keys() == {"t/m-1"}
    assert Drafts("another", tmp_path).keys() == frozenset()


def test_only_the_grader_can_read_it(drafts: Drafts) -> None:
    drafts.save(draft())
    path = drafts.path("t", "m-1")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_an_empty_draft_leaves_no_file(drafts: Drafts) -> None:
    drafts.save(draft())
    drafts.save(draft(body=""))
    assert drafts.keys() == frozenset()
    assert not drafts.path("t", "m-1").exists()


def test_a_committed_draft_is_gone(drafts: Drafts) -> None:
    drafts.save(draft())
    drafts.discard("t", "m-1")
    drafts.discard("t", "m-1")
    assert drafts.load("t", "m-1").draft is None


@pytest.mark.parametrize("data", [b"", b"\x00\xff", b"{", b'{"writer": "x"}', b'{"writer": "x", "draft": {"task": 1}}'])
def test_what_cannot_be_read_is_set_aside_and_named(drafts: Drafts, data: bytes) -> None:
    drafts.save(draft())
    path = drafts.path("t", "m-1")
    path.write_bytes(data)
    assert drafts.keys() == frozenset()
    loaded = drafts.load("t", "m-1")
    kept = path.with_name(path.name + ".unreadable-1")
    assert loaded.draft is None
    assert str(kept) in loaded.notice
    assert kept.read_bytes() == data
    path.write_bytes(b"{")
    assert "unreadable-2" in drafts.load("t", "m-1").notice
    assert kept.read_bytes() == data


def test_saving_over_what_cannot_be_read_keeps_it_too(drafts: Drafts) -> None:
    drafts.save(draft())
    drafts.path("t", "m-1").write_bytes(b"broken")
    assert "unreadable-1" in drafts.save(draft(body="new"))
    assert drafts.load("t", "m-1").draft == draft(body="new")


def test_a_draft_of_another_submission_is_not_taken_for_this_one(drafts: Drafts) -> None:
    drafts.save(draft(submission="m-2"))
    drafts.path("t", "m-2").rename(drafts.path("t", "m-1"))
    loaded = drafts.load("t", "m-1")
    assert loaded.draft is None
    assert "another submission" in loaded.notice


def test_two_consoles_on_one_draft(tmp_path: Path) -> None:
    one, two = Drafts("exchange", tmp_path), Drafts("exchange", tmp_path)
    one.save(draft(body="one"))
    assert two.load("t", "m-1").draft == draft(body="one")
    assert two.save(draft(body="one, then two")) == ""
    notice = one.save(draft(body="one again"))
    assert "another console" in notice
    assert two.load("t", "m-1").draft == draft(body="one again")
    (kept,) = [path for path in one.path("t", "m-1").parent.iterdir() if ".json.of-" in path.name]
    assert b"one, then two" in kept.read_bytes()
    assert str(kept) in notice
    assert two.save(draft(body="two again")) == ""
    for number in range(5):
        one.save(draft(body=f"one {number}"))
        two.save(draft(body=f"two {number}"))
    aside = [path for path in kept.parent.iterdir() if ".json.of-" in path.name]
    assert len(aside) == 2
    assert one.keys() == {"t/m-1"}


def test_a_crash_while_writing_leaves_the_old_draft(drafts: Drafts, monkeypatch: pytest.MonkeyPatch) -> None:
    drafts.save(draft(body="old"))

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        drafts.save(draft(body="new"))
    monkeypatch.undo()
    assert drafts.load("t", "m-1").draft == draft(body="old")
    assert not [path for path in drafts.path("t", "m-1").parent.iterdir() if path.name.startswith(".new-")]


def test_a_killed_process_loses_nothing_that_was_saved(tmp_path: Path) -> None:
    code = (
        "import os, sys, pathlib\n"
        "from console.drafts import Drafts\n"
        "from console.grading.draft import Draft\n"
        "d = Drafts('exchange', pathlib.Path(sys.argv[1]))\n"
        "one = Draft(task='t', submission='m-1', revision='a', tree='b', rubric='c', body='kept')\n"
        "d.save(one)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT)
    assert done.returncode == -9
    loaded = Drafts("exchange", tmp_path).load("t", "m-1").draft
    assert loaded is not None
    assert loaded.body == "kept"
    assert Drafts("exchange", tmp_path).save(draft(body="goes on")) != ""


names = st.text(min_size=1, max_size=300).filter(lambda s: s not in (".", ".."))


@given(st.tuples(names, names), st.tuples(names, names))
def test_every_name_has_a_file_of_its_own(one: tuple[str, str], two: tuple[str, str]) -> None:
    drafts = Drafts("exchange", Path("/nonexistent"))
    path = drafts.path(*one)
    assert path.parent == drafts.path(*two).parent
    assert len(os.fsencode(path.name)) <= 200
    assert (path == drafts.path(*two)) == (one == two)
