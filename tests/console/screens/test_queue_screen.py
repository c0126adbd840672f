"""The queue by keyboard."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from fakes_for_screens import Bench, oid, screen_text, settle, snapshot_of, submission_of  # type: ignore[import-not-found]
from textual.app import App

from console.config import Config
from console.runs import PanelView, RunState
from console.screens.palette import PaletteScreen
from console.screens.prompts import Ask, Confirm
from console.screens.queue import QueueScreen
from console.screens.review import ReviewScreen
from console.view.spans import plain
from console.widgets.bar import Bar


async def test_rows_states_and_status(bench: Bench) -> None:
    bench.finish("row-softmax/m-002")
    async with bench.app().run_test() as pilot:
        await settle(pilot)
        text = screen_text(pilot)
        assert "m-001" in text
        assert "numerics/unstable" in text
        queue = pilot.app.screen
        assert isinstance(queue, QueueScreen)
        assert queue.order()[0] == "row-softmax/m-002"
        assert "wrong for rows with an offset" in text
        assert "ann-lee" in text
        assert "fetched" in text


async def test_filter_and_back(bench: Bench) -> None:
    async with bench.app().run_test() as pilot:
        await settle(pilot)
        await pilot.press("slash", *"author:model-b", "enter")
        queue = pilot.app.screen
        assert isinstance(queue, QueueScreen)
        assert queue.order() == ["row-softmax/m-002"]
        await pilot.press("escape")
        assert len(queue.order()) == 3


async def test_run_all_that_is_visible(bench: Bench) -> None:
    async with bench.app().run_test() as pilot:
        await settle(pilot)
        await pilot.press("slash", *"m-00", "enter", "R")
        await settle(pilot)
        assert sorted(key for key, _ in bench.runs.started) == [f"row-softmax/m-00{n}" for n in (1, 2, 3)]
        await pilot.press("R")
        assert len(bench.runs.started) == 3
        await pilot.pause(0.4)
        assert "3 running" in screen_text(pilot)
        await pilot.press("x")
        assert bench.runs.cancelled == ["row-softmax/m-001"]
        await pilot.press("ctrl+x")
        assert bench.runs.active() == 0


async def test_progress_changes_rows_where_they_stand(bench: Bench) -> None:
    async with bench.app().run_test() as pilot:
        await settle(pilot)
        panels = {"build": PanelView("pass"), "correctness": PanelView("running", 3, 9, "odd-width")}
        bench.runs.put(RunState(key="row-softmax/m-001", phase="running", panels=panels))  # type: ignore[arg-type]
        await pilot.pause(0.4)
        text = screen_text(pilot)
        assert "✓»" in text
        assert "correctness 3/9" in text


async def test_a_mark_needs_a_reason_and_is_published(bench: Bench) -> None:
    async with bench.app().run_test() as pilot:
        await settle(pilot)
        await pilot.press("w")
        assert isinstance(pilot.app.screen, Ask)
        await pilot.press("enter")
        assert isinstance(pilot.app.screen, Ask)
        await pilot.press(*"unclear [bold]", "enter")
        await settle(pilot)
        ((files, message),) = bench.exchange.published
        (path,) = files
        assert path == "reviews/row-softmax/m-001/triage.toml"
        assert b'mark = "wants-review"' in files[path]
        assert b"unclear [bold]" in files[path]
        assert message.startswith("triage(row-softmax/m-001): wants-review\n\nunclear")


async def test_escape_marks_nothing(bench: Bench) -> None:
    async with bench.app().run_test() as pilot:
        await settle(pilot)
        await pilot.press("D", *"no", "escape")
        await settle(pilot)
        assert bench.exchange.published == []


async def test_a_broken_row_stops_nothing(bench: Bench) -> None:
    broken = msgspec.structs.replace(submission_of("m-000", 0), problem="submission.toml: framework: no such value")
    bench.exchange.set(snapshot_of(broken, submission_of("m-001", 1)))
    async with bench.app().run_test() as pilot:
        await settle(pilot)
        assert "submission.toml: framework" in screen_text(pilot)
        await pilot.press("R")
        await settle(pilot)
        assert [key for key, _ in bench.runs.started] == ["row-softmax/m-001"]


async def test_a_new_revision_is_marked(bench: Bench) -> None:
    async with bench.app().run_test() as pilot:
        await settle(pilot)
        moved = msgspec.structs.replace(submission_of("m-002", 2), tree=oid(77), revision="f" * 40)
        bench.exchange.set(snapshot_of(submission_of("m-001", 1), moved))
        await pilot.press("ctrl+r")
        await settle(pilot)
        assert pilot.app.moved == {"row-softmax/m-002"}  # type: ignore[attr-defined]
        assert "fffffff" in screen_text(pilot)


async def test_a_fetch_that_fails_is_said_in_words(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    from console.exchange.errors import GitRefused

    def refuse() -> bool:
        raise GitRefused("fetch", "fatal: could not read from \x1b[31mremote")

    monkeypatch.setattr(bench.exchange, "fetch", refuse)
    async with bench.app().run_test(size=(120, 30)) as pilot:
        await settle(pilot)
        text = screen_text(pilot)
        assert "could not read from" in text
        assert "\x1b" not in text
        assert "not fetched" in text


async def test_quitting_asks_when_runs_are_active(bench: Bench) -> None:
    async with bench.app().run_test() as pilot:
        await settle(pilot)
        await pilot.press("q")
        assert pilot.app.is_running
        await pilot.press("r")
        await settle(pilot)
        await pilot.press("Q")
        assert isinstance(pilot.app.screen, Confirm)
        await pilot.press("n")
        assert pilot.app.is_running
        await pilot.press("Q", "y")
        await pilot.pause(0.1)
    assert pilot.app.return_value == 0


async def test_help_finds_and_does(bench: Bench) -> None:
    async with bench.app().run_test() as pilot:
        await settle(pilot)
        await pilot.press("question_mark")
        assert isinstance(pilot.app.screen, PaletteScreen)
        await pilot.press(*"run all")
        assert "Run every submission" in screen_text(pilot)
        await pilot.press("enter")
        await pilot.pause(0.1)
        await settle(pilot)
        assert len(bench.runs.started) == 3
        await pilot.press("ctrl+p", "escape")
        assert isinstance(pilot.app.screen, QueueScreen)


async def test_foreign_exceptions_do_not_end_the_console(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def leave() -> bool:
        raise SystemExit(1)

    monkeypatch.setattr(bench.exchange, "fetch", leave)
    async with bench.app().run_test() as pilot:
        await settle(pilot)
        assert pilot.app.is_running
        assert "not fetched" in screen_text(pilot)


@pytest.mark.parametrize("theme", ["dark", "light", "textual-ansi", "nord", "no-such-theme"])
async def test_every_theme_shows_the_queue(bench: Bench, theme: str) -> None:
    async with bench.app(Config(theme=theme, ascii=theme == "light")).run_test() as pilot:
        await settle(pilot)
        assert "m-001" in screen_text(pilot)


async def test_opening_and_coming_back(bench: Bench) -> None:
    async with bench.app().run_test() as pilot:
        await settle(pilot)
        await pilot.press("j", "enter")
        await settle(pilot)
        assert isinstance(pilot.app.screen, ReviewScreen)
        await pilot.press("q")
        assert isinstance(pilot.app.screen, QueueScreen)
        assert pilot.app.screen.table.cursor == 1


async def test_ten_thousand_rows(bench: Bench) -> None:
    bench.exchange.set(snapshot_of(*(submission_of(f"m-{n:05}", n) for n in range(10_000))))
    async with bench.app().run_test() as pilot:
        await settle(pilot)
        await pilot.press("G")
        queue = pilot.app.screen
        assert isinstance(queue, QueueScreen)
        assert queue.table.cursor == 9_999
        assert "m-09999" in screen_text(pilot)
        assert len(queue.table._cache) < 600
        await pilot.press("g")
        assert "m-00000" in screen_text(pilot)


async def test_the_footer_follows_the_registry(bench: Bench) -> None:
    async with bench.app().run_test(size=(200, 50)) as pilot:
        await settle(pilot)
        footer = plain(pilot.app.screen.query_one("#footer", Bar).shown)
        for word in ("open", "run all", "filter", "sort", "keys"):
            assert word in footer
        assert "back" not in footer
        await asyncio.sleep(0)


async def test_code_that_was_not_allowed_is_asked_first(bench: Bench) -> None:
    bench.exchange.needs_trust = True
    bench.exchange.changed_references = {"row-softmax"}
    async with bench.app().run_test() as pilot:
        await settle(pilot)
        await pilot.press("r")
        await settle(pilot)
        await pilot.press("n")
        await settle(pilot)
        assert bench.runs.started == []
        assert bench.exchange.needs_trust
        await pilot.press("r")
        await settle(pilot)
        await pilot.press("y")
        await settle(pilot)
        assert "reference.py has changed" in screen_text(pilot)
        await pilot.press("n")
        await settle(pilot)
        assert bench.runs.started == []
        await pilot.press("R")
        await settle(pilot)
        await pilot.press("y")
        await settle(pilot)
        assert len(bench.runs.started) == 3


async def test_commits_kept_from_before_are_pushed(bench: Bench) -> None:
    from console.exchange.model import Pending

    bench.exchange.kept = (Pending(id="review-9", commit=oid(9), subject="review(x/y)", when=1, paths=()),)
    async with bench.app().run_test(size=(120, 24)) as pilot:
        await settle(pilot)
        assert "1 kept" in screen_text(pilot)
        await pilot.press("P")
        await settle(pilot)
        assert bench.exchange.published == [({}, "review-9")]
        assert "kept" not in screen_text(pilot).splitlines()[0]


async def test_what_a_key_changes_is_painted_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The row, the message line and the footer together: each further paint comes a sixtieth of a second later."""
    async with bench.app().run_test() as pilot:
        await settle(pilot)
        painted = []
        display = App._display
        monkeypatch.setattr(App, "_display", lambda self, *a: (painted.append(a) if a[1] else None, display(self, *a)))
        await pilot.press("j")
        await settle(pilot)
        assert len(painted) == 1
        assert "2/" in plain(pilot.app.screen.query_one("#status", Bar).shown)
