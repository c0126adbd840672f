"""The way from an open submission to a committed review, by keyboard."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import msgspec
import pytest
from fakes_for_screens import (  # type: ignore[import-not-found]
    Bench,
    evidence_of,
    oid,
    screen_text,
    settle,
    snapshot_of,
    submission_of,
)
from textual.events import Paste
from textual.pilot import Pilot
from textual.widgets import TextArea

from console.config import Config
from console.drafts import Drafts
from console.exchange.errors import GitRefused
from console.grading.draft import Draft
from console.grading.review import parse_review
from console.screens.preview import PreviewPane, PreviewScreen
from console.screens.queue import QueueScreen
from console.screens.review import ReviewScreen

KEY = "row-softmax/m-001"


async def opened(pilot: Pilot[int]) -> ReviewScreen:
    await settle(pilot)
    await pilot.press("enter")
    await settle(pilot)
    assert isinstance(pilot.app.screen, ReviewScreen)
    return pilot.app.screen


def draft_of(review: ReviewScreen) -> Draft:
    assert review.desk is not None
    return review.desk.draft


async def test_one_pane_at_a_time_when_narrow(bench: Bench) -> None:
    async with bench.app().run_test() as pilot:
        review = await opened(pilot)
        shown = [name for name in ("scenario", "diff", "panels", "rubric") if review.query_one(f"#{name}").display]
        assert shown == ["diff"]
        assert "import triton" in screen_text(pilot)
        await pilot.press("f2")
        assert "Write a Triton kernel" in screen_text(pilot)
        await pilot.press("tab", "tab")
        assert "not run" in screen_text(pilot)
        await pilot.press("shift+tab")
        assert "import triton" in screen_text(pilot)


async def test_three_panes_when_wide(bench: Bench) -> None:
    bench.finish(KEY)
    async with bench.app().run_test(size=(200, 50)) as pilot:
        review = await opened(pilot)
        shown = [name for name in ("scenario", "diff", "panels", "rubric") if review.query_one(f"#{name}").display]
        assert shown == ["diff", "panels", "rubric"]
        assert "F2 scenario" in screen_text(pilot)
        await pilot.press("f2")
        assert "F3 diff" in screen_text(pilot)
        assert review.query_one("#rubric").display
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        shown = [name for name in ("scenario", "diff", "panels", "rubric") if review.query_one(f"#{name}").display]
        assert shown == ["scenario"]


async def test_from_open_to_commit_to_the_next(bench: Bench) -> None:
    bench.finish(KEY)
    async with bench.app().run_test(size=(100, 40)) as pilot:
        review = await opened(pilot)
        await pilot.press("f5", "t")
        draft = draft_of(review)
        assert (draft.outcome, draft.mechanism) == ("incorrect", "flawed")
        assert draft.levels["correctness"] is not None
        await pilot.press("p")
        await settle(pilot)
        assert isinstance(pilot.app.screen, PreviewScreen)
        missing = [problem.where for problem in pilot.app.screen._problems]
        assert missing
        await pilot.press("c")
        assert bench.exchange.published == []
        await pilot.press("enter")
        assert isinstance(pilot.app.screen, ReviewScreen)
        assert review.rubric.current == missing[0]
        assert review.desk is not None
        for criterion in review.desk.rubric.criteria:
            review.rubric.go(criterion.id)
            await pilot.press("c", *"because", "escape")
            if draft_of(review).levels[criterion.id] is None:
                await pilot.press("1")
        await pilot.press("p")
        await settle(pilot)
        while (screen := pilot.app.screen) and isinstance(screen, PreviewScreen) and screen._problems:
            before = screen._problems
            await pilot.press("a")
            await settle(pilot)
            assert screen._problems != before, before
        text = screen_text(pilot)
        assert "Ann Lee <ann-lee@example.org>" in text
        assert "commit-msg" in text
        assert "origin (git@example.org:exchange)" in text
        await pilot.press("c")
        await settle(pilot)
        ((files, message),) = bench.exchange.published
        committed = parse_review(files["reviews/row-softmax/m-001/ann-lee.md"].decode())
        assert committed.mechanism == "flawed"
        assert committed.criteria[0].suggested is not None
        assert "reviews/row-softmax/m-001/ann-lee.evidence.json" in files
        assert message.startswith("review(row-softmax/m-001): incorrect, flawed")
        assert isinstance(pilot.app.screen, ReviewScreen)
        assert pilot.app.screen.submission.name == "m-002"
        assert Drafts("fake", bench.folder).keys() == frozenset()


async def test_what_is_missing_stays_under_the_cursor(bench: Bench) -> None:
    bench.finish(KEY)
    async with bench.app().run_test(size=(80, 24)) as pilot:
        review = await opened(pilot)
        await pilot.press("f5", "t")
        assert review.desk is not None
        for criterion in review.desk.rubric.criteria:
            review.rubric.go(criterion.id)
            await pilot.press("2" if criterion.id == "performance" else "3")
        await pilot.press("p")
        await settle(pilot)
        preview = pilot.app.screen
        assert isinstance(preview, PreviewScreen)
        place = max(number for number, problem in enumerate(preview._problems) if problem.cites)
        before = preview._problems
        pane = preview.query_one(PreviewPane)
        assert pane.go(f"problem:{place}")
        await pilot.press("a")
        await settle(pilot)
        assert preview._problems != before
        assert pane.current == f"problem:{min(place, len(preview._problems) - 1)}"
        assert pane.go("message")
        first = preview._problems[0].where
        await pilot.press("enter")
        assert pilot.app.screen is review
        assert review.rubric.current == first


async def test_a_refusal_keeps_everything_and_can_be_tried_again(bench: Bench) -> None:
    bench.finish(KEY, fail=False)
    bench.exchange.refusal = GitRefused("push", "remote: hook [red]says no[/red]", pending="review-1")
    async with bench.app().run_test(size=(100, 40)) as pilot:
        review = await opened(pilot)
        assert review.desk is not None
        draft = draft_of(review).with_outcome("correct").with_mechanism("sound")
        for criterion in review.desk.rubric.criteria:
            draft = draft.with_level(criterion.id, criterion.top)
            for panel in criterion.needs:
                draft = draft.attach(criterion.id, f"panel:{panel}")
        review._change(draft)
        await pilot.press("p")
        await settle(pilot)
        await pilot.press("ctrl+s")
        await settle(pilot)
        assert "remote: hook [red]says no[/red]" in screen_text(pilot)
        assert "the local commit are kept" in screen_text(pilot)
        assert [one.id for one in pilot.app.pending] == ["review-1"]  # type: ignore[attr-defined]
        assert Drafts("fake", bench.folder).keys() == {KEY}
        await pilot.press("r")
        await settle(pilot)
        assert bench.exchange.published == [({}, "review-1")]
        assert Drafts("fake", bench.folder).keys() == frozenset()


async def test_every_change_is_on_disk_and_back_after_a_crash(bench: Bench) -> None:
    async with bench.app().run_test() as pilot:
        await opened(pilot)
        await pilot.press("f5", "j", "j", "2", "c", *"half")
        loaded = Drafts("fake", bench.folder).load("row-softmax", "m-001").draft
        assert loaded is not None
        assert loaded.criteria[0].level == 2
        assert loaded.criteria[0].note == "half"
    async with bench.app().run_test() as pilot:
        review = await opened(pilot)
        assert "draft restored" in screen_text(pilot)
        assert draft_of(review).criteria[0].note == "half"
        await pilot.press("f5", "j", "j", "minus")
        assert draft_of(review).criteria[0].level is None
        await pilot.press("z")
        assert draft_of(review).criteria[0].level == 2


async def test_a_draft_of_an_earlier_revision_rests_on_no_evidence(bench: Bench) -> None:
    bench.finish(KEY)
    async with bench.app().run_test() as pilot:
        review = await opened(pilot)
        await pilot.press("f5", "t")
        assert draft_of(review).evidence is not None
    moved = msgspec.structs.replace(submission_of("m-001", 1), tree=oid(77))
    bench.exchange.set(snapshot_of(moved))
    bench.runs.states.clear()
    async with bench.app().run_test() as pilot:
        review = await opened(pilot)
        assert draft_of(review).evidence is None
        assert draft_of(review).tree == oid(77)
        assert "earlier revision" in screen_text(pilot)


async def test_attaching_a_line_and_a_finding(bench: Bench) -> None:
    bench.finish(KEY)
    async with bench.app().run_test() as pilot:
        review = await opened(pilot)
        await pilot.press("f5", *"jjjj", "f3", *"jjj", "a")
        criterion = draft_of(review).criteria[2]
        assert criterion.cites == ("kernel.py:4",) or criterion.cites[0].startswith("kernel.py:")
        assert "> " in draft_of(review).body or "`kernel.py:" in draft_of(review).body
        await pilot.press("f4", "j", "j", "a")
        assert draft_of(review).criteria[2].cites[-1] == "finding:numerics/unstable#1"
        await pilot.press("enter")
        await pilot.pause()
        assert review.diff.place() is not None
        assert review.diff.place()[:2] == ("kernel.py", 13)  # type: ignore[index]
        assert "numerics/unstable#1" in screen_text(pilot)
        await pilot.press("i")
        assert "wrong under" in screen_text(pilot) or "stress" in screen_text(pilot)


async def test_what_is_written_after_a_quotation_is_no_part_of_it(bench: Bench) -> None:
    async with bench.app().run_test() as pilot:
        review = await opened(pilot)
        await pilot.press("f3", *"jjj", "a")
        quoted = draft_of(review).body
        await pilot.press("f5", "end", "c", *"Right", "ctrl+s")
        await settle(pilot)
        assert draft_of(review).body == f"{quoted}\n\nRight"


async def test_a_field_holds_nothing_that_a_terminal_obeys(bench: Bench) -> None:
    async with bench.app().run_test() as pilot:
        review = await opened(pilot)
        await pilot.press("f5", "j", "j", "c")
        await settle(pilot)
        pilot.app.post_message(Paste("ab\x9b31m\u202e\x1b[31m\nnext"))
        await settle(pilot)
        assert pilot.app.screen.query_one(TextArea).text == "ab\\x9b31m\\u202e\\x1b[31m\nnext"
        await pilot.press("ctrl+s")
        review._change(draft_of(review).with_note(draft_of(review).criteria[0].id, "raw \x9b31m"))
        await pilot.press("c")
        await settle(pilot)
        assert pilot.app.screen.query_one(TextArea).text == "raw \\x9b31m"


async def test_overruling_needs_a_reason_and_changes_what_is_suggested(bench: Bench) -> None:
    bench.finish(KEY)
    async with bench.app().run_test() as pilot:
        review = await opened(pilot)
        assert review.desk is not None
        before = dict(review.desk.suggestions)
        await pilot.press("f4", "j", "j", "o", "enter", *"harness", "enter")
        await settle(pilot)
        assert [(one.code, one.reason) for one in draft_of(review).overruled] == [("numerics/unstable", "harness")]
        assert dict(review.desk.suggestions) != before
        assert "overruled" in screen_text(pilot)
        await pilot.press("o")
        assert draft_of(review).overruled == ()


async def test_panels_fill_in_while_one_reads(bench: Bench) -> None:
    async with bench.app().run_test() as pilot:
        review = await opened(pilot)
        await pilot.press("r", "f4")
        await settle(pilot)
        await pilot.pause(0.4)
        assert "queued" in screen_text(pilot)
        bench.finish(KEY)
        await pilot.pause(0.4)
        text = screen_text(pilot)
        assert "run: fail" in text
        assert "kernel.py:13" in text
        assert review.desk is not None
        assert review.desk.suggestions


async def test_leaving_cancels_no_run(bench: Bench) -> None:
    async with bench.app().run_test() as pilot:
        await opened(pilot)
        await pilot.press("r", "q")
        await settle(pilot)
        assert isinstance(pilot.app.screen, QueueScreen)
        assert bench.runs.active() == 1
        bench.finish(KEY)
        await pilot.pause(0.4)
        assert "numerics/unstable" in screen_text(pilot)


async def test_diff_keys(bench: Bench) -> None:
    async with bench.app().run_test() as pilot:
        review = await opened(pilot)
        await pilot.press("d")
        await settle(pilot)
        assert "vs previous revision" in screen_text(pilot)
        assert any(row.kind == "del" for row in review.diff.model.rows)
        start = review.diff.cursor
        await pilot.press("right_square_bracket")
        assert review.diff.cursor > start
        await pilot.press("v")
        assert [row.new for row in review.diff.model.rows if row.new] == list(range(1, 21))
        await pilot.press("slash", *"softmax", "enter")
        await pilot.pause()
        found = review.diff.cursor
        assert "softmax" in review.diff.model.rows[found].text
        await pilot.press("n", "N")
        assert review.diff.cursor == found
        await pilot.press("l")
        assert "‹" in screen_text(pilot)


def editor(folder: Path, body: str) -> str:
    script = folder / "editor"
    script.write_text(f"#!/bin/sh\n{body}\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return str(script)


@pytest.mark.parametrize(
    ("script", "note"),
    [("printf 'from outside' > \"$1\"", "from outside"), ('echo lost > "$1"; exit 3', "kept"), ("exit 1", "kept")],
)
async def test_the_editor_never_loses_text(
    bench: Bench, tmp_path: Path, script: str, note: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import contextlib

    from textual.app import App

    monkeypatch.setattr(App, "suspend", lambda self: contextlib.nullcontext())
    monkeypatch.setattr("tempfile.tempdir", os.fspath(tmp_path))  # what a failed editor wrote is kept
    command = editor(tmp_path, script)
    async with bench.app(Config(editor=command)).run_test() as pilot:
        review = await opened(pilot)
        await pilot.press("f5", "j", "j", "c", *"kept", "escape", "e")
        assert draft_of(review).criteria[0].note == note


async def test_an_editor_that_is_not_there(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with bench.app(Config(editor=os.fspath(tmp_path / "nothing"))).run_test() as pilot:
        review = await opened(pilot)
        await pilot.press("f5", "j", "j", "c", *"kept", "escape", "e")
        assert draft_of(review).criteria[0].note == "kept"
        assert pilot.app.is_running


async def test_evidence_of_another_revision_is_a_problem(bench: Bench) -> None:
    bench.finish(KEY)
    state = bench.runs.states[KEY]
    other = evidence_of(msgspec.structs.replace(submission_of("m-001", 1), tree=oid(99)))
    bench.runs.states[KEY] = msgspec.structs.replace(state, evidence=other, stale=True)
    async with bench.app().run_test() as pilot:
        await opened(pilot)
        await pilot.press("f4")
        assert "stale" in screen_text(pilot)
        await pilot.press("p")
        await settle(pilot)
        assert "another revision" in screen_text(pilot)
