"""The main job by keyboard alone, in a terminal of 80 columns: from ``demo`` to a review on the remote."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from console.demo import make_demo
from console.grading.review import parse_review

if TYPE_CHECKING:
    from .conftest import Open, Terminal

if sys.platform != "linux":
    pytest.skip("runs need Linux", allow_module_level=True)

COMMAND = ("-m", "console.cli")
TASK, NAME, GRADER = "row-softmax", "m-017", "ann-lee"
DIFF, PANELS, RUBRIC = "\x1bOR", "\x1bOS", "\x1b[15~"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A grader's home on a machine that has never seen the console."""
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / ".gitconfig").write_text("[user]\n\tname = Ann Lee\n\temail = ann.lee@kernels.example\n")
    for name in [name for name in os.environ if name.startswith(("GIT_", "XDG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return folder


def git(where: Path, *arguments: str) -> bytes:
    return subprocess.run(["git", "-C", str(where), *arguments], check=True, capture_output=True).stdout


def open_review(one: Terminal) -> None:
    """From the queue to the review of the submission."""
    one.wait_for("○ todo")
    one.press(f"/{NAME}\r", "1/1 of")
    one.press("\r", f"{TASK}/{NAME}", "answer.md")


def test_from_demo_to_a_review_on_the_remote(terminal: Open, tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    one = terminal(*COMMAND, "demo", folder)
    open_review(one)
    one.press("r" + PANELS, "build  ")
    one.wait_for("run: pass")
    shown = one.press(RUBRIC, "outcome ", "0 of 7 levels set")
    assert "suggested correct" in shown
    # Every suggestion, then what nothing measured: mechanism, performance, robustness, reasoning, writing, summary.
    one.press("t", "●correct", "rubric 4/7")
    one.press("j1", "●sound")
    one.press("jjjj3", "rubric 5/7")
    one.press("j3", "robustness  ▰▰▰")
    one.press("j3", "rubric 6/7")
    one.press("j1", "rubric 7/7")
    one.press("cTwo sentences say nothing.", "note on writing", "say nothing.")
    one.press("\x13", "✎ note")
    one.press(DIFF, "F3 diff", "answer.md")
    one.press("a", "answer.md:1 → writing")
    one.press(RUBRIC, "▌writing")
    one.press("jcRight, and for the right reason.", "summary: what decided it", "right reason.")
    one.press("\x13", "▌summary", "   Right, and for the right reason.")
    # One thing was forgotten; the preview can mend it.
    one.press("p", "1 thing keeps this", "cite the timing panel")
    shown = one.press("a", "✓ ready")
    assert "review(row-softmax/m-017): correct, sound, 9.6/10" in shown
    assert "Ann Lee" in shown
    assert "ann.lee@kernels.example" in shown
    # Committed, pushed, and on to the next one.
    shown = one.press("c", "pushed to branch main")
    assert f"{TASK}/{NAME}" not in shown.splitlines()[0]
    one.send("Q")
    assert one.ended() == (0, None)

    remote = folder / "remote.git"
    place = f"main:reviews/{TASK}/{NAME}/{GRADER}"
    review = parse_review(git(remote, "show", f"{place}.md").decode(), "the review")
    evidence = git(remote, "show", f"{place}.evidence.json")
    assert review.evidence == f"sha256:{hashlib.sha256(evidence).hexdigest()}"
    assert (review.outcome, review.mechanism, review.grader) == ("correct", "sound", GRADER)
    assert review.tree == git(remote, "rev-parse", f"main:submissions/{TASK}/{NAME}").decode().strip()
    assert (review.score, review.levels["writing"]) == (9.6, 1)
    assert review.criteria[-1].cites == ("answer.md:1",)
    assert "right reason" in review.body
    recorded = json.loads(evidence)
    assert recorded["outcome"] == "pass"
    assert recorded["submission"]["tree"] == review.tree
    assert recorded["panels"]["correctness"]["status"] == "pass"
    author, subject, body = git(remote, "log", "-1", "--format=%ae%x00%s%x00%b", "main").decode().split("\0")
    assert (author, subject) == (
        "ann.lee@kernels.example",
        f"review({TASK}/{NAME}): correct, sound, {review.score:.1f}/10",
    )
    assert f"Review-Evidence: {review.evidence}" in body
    changed = git(remote, "diff-tree", "-r", "--name-only", "--no-commit-id", "main").decode().split()
    assert changed == [f"reviews/{TASK}/{NAME}/{GRADER}{end}" for end in (".evidence.json", ".md")]
    # The grader's own clone was not touched, and no draft is left of what is committed.
    assert git(folder / "exchange", "status", "--porcelain") == b""
    assert not list((tmp_path / "home").rglob("drafts/*/*.json"))


def test_a_draft_survives_a_kill(terminal: Open, tmp_path: Path) -> None:
    clone = make_demo(tmp_path / "demo")
    one = terminal(*COMMAND, "open", clone)
    open_review(one)
    one.press(RUBRIC, "outcome ")
    one.press("jj2", "1 of 7 levels set")
    one.press("chalf a sent", "half a sent")
    os.kill(one.process.pid, signal.SIGKILL)
    assert one.ended() == (None, signal.SIGKILL)

    two = terminal(*COMMAND, "open", clone)
    two.wait_for("○ todo")
    two.press(f"/{NAME}\r", "1/1 of", "draft")
    two.press("\r", "answer.md")
    two.press(RUBRIC, "1 of 7 levels set")
    two.press("jj", "half a sent")
    two.send("Q")
    assert two.ended() == (0, None)


def test_a_hangup_ends_it_and_the_runs_with_it(terminal: Open, tmp_path: Path) -> None:
    clone = make_demo(tmp_path / "demo")
    one = terminal(*COMMAND, "open", clone)
    open_review(one)
    one.press("r" + RUBRIC, "outcome ", "» 1 running")
    one.press("1", "●correct")
    assert one.hang_up() == 128 + signal.SIGHUP
    assert _still_there(tmp_path) == []
    (draft,) = (tmp_path / "home").rglob("drafts/*/*.json")
    assert json.loads(draft.read_bytes())["draft"]["outcome"] == "correct"


def test_the_signal_alone_gives_the_terminal_back(terminal: Open, tmp_path: Path) -> None:
    clone = make_demo(tmp_path / "demo")
    one = terminal(*COMMAND, "open", clone)
    open_review(one)
    os.kill(one.process.pid, signal.SIGHUP)
    assert one.ended() == (128 + signal.SIGHUP, None)
    for gives_back in (b"\x1b[?1049l", b"\x1b[?25h", b"\x1b[?2004l"):
        assert one.raw.rfind(gives_back) > one.raw.rfind(gives_back[:-1] + (b"l" if gives_back[-1:] == b"h" else b"h"))


def _still_there(home: Path) -> list[int]:
    """Processes that were started under this home, without the test's own."""
    mark = os.fsencode(f"HOME={home}")
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            state = (process / "stat").read_text().rpartition(")")[2].split()[0]
            if mark in (process / "environ").read_bytes() and state != "Z" and int(process.name) != os.getpid():
                found.append(int(process.name))
        except OSError:
            continue
    return found
