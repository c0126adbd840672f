"""The queue: what there is to judge, what the panels say, where each review stands."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, cast

from textual.widget import Widget

from console.actions import Action
from console.exchange.text import visible
from console.screens.submission import SubmissionScreen
from console.view.glyphs import PANEL_LETTERS, PANEL_MARKS, REVIEW_MARKS
from console.view.queue import (
    SORT_MODES,
    Filter,
    QueueRow,
    SortMode,
    heading,
    rows_of,
    sort_rows,
    with_run,
    worst_of,
)
from console.view.spans import BLANK, Line, Span, Tone, joined
from console.widgets.bar import Bar
from console.widgets.bindings import bindings_for
from console.widgets.queue_table import QueueTable
from runners.evidence import Finding
from runners.findings import PANELS

if TYPE_CHECKING:
    from textual.widgets import Input

    from console.exchange.model import Submission

CHUNK = 500
"""Rows that are looked up in the evidence store before the screen hears of them."""


class QueueScreen(SubmissionScreen, inherit_bindings=True):
    """Rows that fill in while one reads them."""

    SCOPES: ClassVar[tuple[str, ...]] = ("queue", "submission")
    BINDINGS = bindings_for("queue")
    AUTO_FOCUS = "QueueTable"

    def __init__(self) -> None:
        super().__init__()
        self._rows: dict[str, QueueRow] = {}
        self._filter = Filter()
        self._sort: SortMode = SORT_MODES[0]
        self._submissions: dict[str, Submission] = {}
        self._reading = 0
        self._resumed = False

    def body(self) -> Iterable[Widget]:
        """Column heads, rows, filter line."""
        yield Bar(id="heading")
        yield QueueTable(id="table")

    def on_mount(self) -> None:
        """The exchange may have been read already."""
        super().on_mount()
        self.set_focus(self.table, scroll_visible=False)
        self.snapshot_changed()

    @property
    def table(self) -> QueueTable:
        """The rows on screen."""
        return self.query_one(QueueTable)

    # ---- what is shown

    def snapshot_changed(self) -> None:
        """New rows; what runs have to say is looked up behind them."""
        app = self.console_app
        snapshot = app.snapshot
        if snapshot is None:
            return
        self._submissions = {one.key: one for one in snapshot.submissions}
        fresh = rows_of(snapshot, grader=app.grader.slug, drafts=app.drafts.keys(), moved=app.moved)
        self._rows = {row.key: row for row in fresh}
        self._arrange()
        self._reading += 1
        self.call_after_refresh(self._read_runs, list(self._rows), self._reading)

    def _read_runs(self, keys: list[str], reading: int) -> None:
        """Stored evidence is read from disk, so not on the event loop."""
        head, rest = keys[:CHUNK], keys[CHUNK:]
        runs = self.console_app.runs

        def got(rows: list[QueueRow]) -> None:
            if reading != self._reading:
                return
            self._rows.update({row.key: row for row in rows if row.key in self._rows})
            if rest:
                self._read_runs(rest, reading)
            else:
                self._arrange()
                self.refresh_bars()

        chosen = [self._rows[key] for key in head]
        self.console_app.work(lambda: [with_run(row, runs.state(row.key)) for row in chosen], then=got, group="rows")

    def runs_changed(self, keys: frozenset[str]) -> None:
        """Rows change where they stand, so that nothing jumps; they are sorted again when the last run has ended."""
        shown = {row.key: y for y, row in enumerate(self.table.rows)}
        for key in keys & self._rows.keys():
            row = with_run(self._rows[key], self.console_app.runs.state(key))
            if row != self._rows[key]:
                self._rows[key] = row
                if key in shown:
                    self.table.replace(shown[key], row)
        if keys and not self.console_app.runs.active():
            self._arrange()

    def on_screen_resume(self) -> None:
        """Drafts may have come and gone."""
        resumed, self._resumed = self._resumed, True
        if resumed and self._rows:
            self.snapshot_changed()
        super().on_screen_resume()

    def _arrange(self) -> None:
        """Filter and sort. The cursor stays on its row, but at the top it stays at the top: the worst is there."""
        table = self.table
        keep = table.row.key if table.row is not None and table.cursor else ""
        every = list(self._rows.values())
        table.show(sort_rows(self._filter(every), self._sort), every, keep)
        self._show_heading()

    def _show_heading(self) -> None:
        line = heading(self.table.columns)
        self.query_one("#heading", Bar).show((Span(" "), *line))

    def on_resize(self) -> None:
        """The columns follow the width."""
        super().on_resize()
        self.call_after_refresh(self._show_heading)

    def header(self) -> tuple[Line, Line]:
        """Where we are, who we are, what is going on."""
        app = self.console_app
        exchange, snapshot = app.exchange, app.snapshot
        branch = visible(snapshot.branch) if snapshot is not None else ""
        left: Line = (
            Span(f" {visible(exchange.name)} ", "title"),
            Span(f" {branch}", "dim"),
            Span(f"  {visible(app.grader.slug) or 'no git identity'}" if snapshot is not None else "", "dim"),
        )
        active = app.runs.active()
        unpushed = snapshot.unpushed if snapshot is not None else 0
        problems = len(snapshot.problems) if snapshot is not None else 0
        parts: list[Line] = [
            (Span(f"» {active} running", "accent"),) if active else BLANK,
            (Span(f"! {problems} not readable", "warn"),) if problems else BLANK,
            (Span(f"↑ {unpushed} unpushed", "warn"),) if unpushed else BLANK,
            (Span(f"↑ {len(app.pending)} kept, P pushes", "warn"),) if app.pending else BLANK,
            app.fetched,
        ]
        return left, (*joined(parts, Span("  ")), Span(" "))

    def status(self) -> tuple[Line, Line]:
        """The row under the cursor in full words."""
        app = self.console_app
        if app.snapshot is None:
            return (Span(" reading the exchange", "dim"),), BLANK
        total, shown = len(self._rows), self.table.count()
        place = f"{self.table.cursor + 1 if shown else 0}/{shown}" + (f" of {total}" if shown != total else "")
        right: Line = (Span(f"by {self._sort}  ", "faint"), Span(f"{place} ", "dim"))
        row = self.table.row
        if row is None:
            empty = "nothing matches the filter: esc shows all" if total else "no submissions yet"
            return (Span(f" {empty}", "dim"),), right
        return (Span(" "), *self._told(row)), right

    def _told(self, row: QueueRow) -> Line:
        if row.problem:
            return (Span(row.problem, "bad"),)
        if row.phase == "running":
            state = self.console_app.runs.state(row.key)
            for name in PANELS:
                panel = state.panels.get(name)
                if panel is not None and panel.status == "running":
                    count = f" {panel.done}/{panel.total}" if panel.total else ""
                    return (Span(f"» {name}{count}", "accent"), Span(f"  {visible(panel.text)}", "dim"))
            return (Span("» running", "accent"), Span(f"  {visible(state.message)}", "dim"))
        if row.severity is not None:
            tone: Tone = "bad" if row.severity == "fail" else "warn" if row.severity == "warn" else "dim"
            return (Span(row.worst, tone), Span(f"  {row.summary}", "dim"))
        if any(row.panels):
            spans: list[Span] = []
            for name, phase in zip(PANELS, row.panels, strict=True):
                if phase is not None:
                    mark = PANEL_MARKS[phase]
                    spans.append(Span(f"{PANEL_LETTERS[name]} {mark.word}  ", mark.tone))
            return tuple(spans)
        mark = REVIEW_MARKS[row.state]
        return (mark.span, Span("  not run yet: r runs it, enter opens it", "dim"))

    def on_line_view_moved(self) -> None:
        """The message line speaks of the row under the cursor."""
        self.refresh_status()

    def offers(self, action: Action) -> bool:
        """What makes no sense here is not in the footer."""
        if action.id == "app.back":
            return False
        if self.table.row is None:
            return action.scope != "submission" and action.id not in ("queue.open", "queue.run_visible")
        return True

    # ---- what is current

    def current_submission(self) -> Submission | None:
        """The one under the cursor."""
        row = self.table.row
        return self._submissions.get(row.key) if row is not None else None

    def current_finding(self) -> Finding | None:
        """The worst of the row."""
        row = self.table.row
        return worst_of(self.console_app.runs.state(row.key).findings) if row is not None else None

    def order(self) -> list[str]:
        """Keys as they stand in the queue."""
        return [row.key for row in self.table.rows]

    def next_unreviewed(self, after: str) -> str | None:
        """The next submission that waits for this grader; round the end."""
        waiting = ("draft", "todo", "outdated", "wants-review")
        keys = self.order()
        start = keys.index(after) + 1 if after in keys else 0
        for key in (*keys[start:], *keys[:start]):
            if key != after and self._rows[key].state in waiting:
                return key
        return None

    # ---- actions

    def action_open(self) -> None:
        """Open the review."""
        row = self.table.row
        if row is not None:
            self.open(row.key)

    def open(self, key: str) -> None:
        """Open the review of ``key``."""
        from console.screens.review import ReviewScreen

        submission = self._submissions.get(key)
        snapshot = self.console_app.snapshot
        if submission is None or snapshot is None:
            return
        task = snapshot.tasks.get(submission.task)
        if task is None:
            self.console_app.say(f"{key}: there is no task {submission.task}", "bad")
            return
        if not submission.files and submission.problem:
            self.console_app.say(f"{key}: {submission.problem}", "bad")
            return
        self.console_app.moved.discard(key)
        self.app.push_screen(ReviewScreen(task, submission))

    def action_run_visible(self) -> None:
        """Queue every row that the filter shows."""
        idle = [key for key in self.order() if self._rows[key].phase not in ("queued", "running")]
        chosen = [self._submissions[key] for key in idle if not self.why_not(self._submissions[key])]
        if len(chosen) < len(idle):
            self.console_app.say(f"{len(idle) - len(chosen)} of {len(idle)} are broken and not run", "warn")
        self.run_all(chosen)

    def action_cancel_all(self) -> None:
        """Cancel every run."""
        self.console_app.runs.cancel_all()

    def action_sort(self) -> None:
        """The next way to sort."""
        self._sort = SORT_MODES[(SORT_MODES.index(self._sort) + 1) % len(SORT_MODES)]
        self._arrange()
        self.refresh_status()

    async def action_filter(self) -> None:
        """Write a filter. The field is made on first use: most sessions begin without one."""
        from textual.widgets import Input

        if not self.query("#filter"):
            made = Input(placeholder="words, task:… author:… state:… finding:…", id="filter")
            made.cursor_blink = False
            await self.mount(made, before="#status")
        field = self.query_one("#filter", Input)
        field.add_class("-open")
        self.set_focus(field, scroll_visible=False)

    def action_unfilter(self) -> None:
        """Show every row."""
        for field in self.query("#filter").results():
            cast("Input", field).value = ""
            field.remove_class("-open")
        self.set_focus(self.table, scroll_visible=False)

    def action_problems(self) -> None:
        """What could not be read, in words."""
        problems = self.console_app.snapshot.problems if self.console_app.snapshot is not None else ()
        if problems:
            from console.screens.prompts import Tell

            self.app.push_screen(Tell("not readable in this exchange", "\n".join(visible(one) for one in problems)))
        else:
            self.console_app.say("everything in the exchange could be read")

    def action_push(self) -> None:
        """Send what was committed and did not arrive."""
        self.console_app.push_pending()

    def action_fetch(self) -> None:
        """Ask the remote."""
        self.console_app.fetch()

    def on_input_changed(self, event: Input.Changed) -> None:
        """The rows follow while one writes."""
        self._filter = Filter(event.value)
        self._arrange()
        self.refresh_status()

    def on_input_submitted(self) -> None:
        """Enter goes to the rows; the filter stays."""
        if not self._filter.text.strip():
            self.query("#filter").remove_class("-open")
        self.set_focus(self.table, scroll_visible=False)
