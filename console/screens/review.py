"""The review: scenario, diff, panels and rubric, one at a time or side by side."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from textual.containers import Horizontal, Vertical
from textual.widget import Widget

from console.config import editor_command
from console.exchange.text import visible
from console.grading.draft import Draft
from console.schema import SchemaError
from console.screens.editor import edit_outside
from console.screens.prompts import reason_prompt
from console.screens.submission import SubmissionScreen
from console.view import rubric as rubric_view
from console.view.bases import BASE_WORDS, Base, bases_for
from console.view.desk import Desk, begun
from console.view.glyphs import SEVERITY_MARKS
from console.view.layout import LEFT, PANES, PaneName, beside, visible_panes
from console.view.scenario import lines_of
from console.view.spans import Line, Span, Tone
from console.widgets.bar import Bar
from console.widgets.bindings import bindings_for
from console.widgets.diff_pane import DiffPane
from console.widgets.line_view import LineView
from console.widgets.lines_of import Lines
from console.widgets.panes import PanelsPane, RubricPane
from runners.evidence import Finding
from runners.findings import Severity

if TYPE_CHECKING:
    from console.exchange.diff import Diff
    from console.exchange.model import Submission, Task

_FKEYS: dict[PaneName, str] = {"scenario": "F2", "diff": "F3", "panels": "F4", "rubric": "F5"}


class ReviewScreen(SubmissionScreen, inherit_bindings=True):
    """One submission. The draft is on disk after every change; runs go on when this screen is left."""

    SCOPES: ClassVar[tuple[str, ...]] = ("review", "submission")
    BINDINGS = bindings_for("review")
    AUTO_FOCUS = None
    CSS = """
    ReviewScreen #left, ReviewScreen #right { width: 1fr; }
    ReviewScreen #left { width: 3fr; }
    ReviewScreen #right { width: 2fr; }
    ReviewScreen #gap { width: 1; background: $background; }
    """

    def __init__(self, task: Task, submission: Submission) -> None:
        super().__init__()
        self.asked, self.submission = task, submission
        self.desk: Desk | None = None
        self._focus_pane: PaneName = "diff"
        self._left: PaneName = "diff"
        self._right: PaneName = "rubric"
        self._bases: tuple[Base, ...] = ()
        self._base: Base = "starter"

    def body(self) -> Iterable[Widget]:
        """Tabs, then two columns of panes, each under a title of its own where there is room."""
        yield Bar(id="tabs")
        with Horizontal():
            with Vertical(id="left"):
                yield Bar(raised=True, id="title-scenario")
                yield Lines(lambda width: lines_of(self.asked, width), id="scenario")
                yield Bar(raised=True, id="title-diff")
                yield DiffPane(id="diff")
            yield Bar(id="gap")
            with Vertical(id="right"):
                yield Bar(raised=True, id="title-panels")
                yield PanelsPane(id="panels")
                yield Bar(raised=True, id="title-rubric")
                yield RubricPane(id="rubric")

    # ---- panes

    def pane(self, name: PaneName) -> LineView:
        """A pane by name."""
        return self.query_one(f"#{name}", LineView)

    @property
    def diff(self) -> DiffPane:
        """The diff."""
        return self.query_one(DiffPane)

    @property
    def panels(self) -> PanelsPane:
        """The panels."""
        return self.query_one(PanelsPane)

    @property
    def rubric(self) -> RubricPane:
        """The form."""
        return self.query_one(RubricPane)

    def on_mount(self) -> None:
        """Show the frame at once, fill it as things arrive."""
        self.rubric.answered = self.answer
        super().on_mount()
        self.lay_out()
        self.set_focus(self.pane("diff"), scroll_visible=False)
        self._load()

    def lay_out(self) -> None:
        """Show the panes that fit, and their titles."""
        size = self.app.size
        shown = visible_panes(size.width, size.height, self._focus_pane, self._left, self._right)
        alone = len(shown) == 1
        for name in PANES:
            self.pane(name).display = name in shown
            self.query_one(f"#title-{name}").display = name in shown and not alone
        for side, names in (("#left", PANES[:2]), ("#right", PANES[2:])):
            self.query_one(side).display = any(name in shown for name in names)
        self.query_one("#gap").display = not alone
        self.query_one("#tabs").display = alone
        self.refresh_titles()

    def on_resize(self) -> None:
        """Another size may show other panes."""
        self.lay_out()
        super().on_resize()

    def on_descendant_focus(self) -> None:
        """The pane in focus decides what is shown."""
        if self.focused is not None and self.focused.id in PANES and self.focused.id != self._focus_pane:
            self._focus_pane = self.focused.id
            self._settle()

    def _settle(self) -> None:
        """What follows from the focus being in another pane."""
        name = self._focus_pane
        if name in LEFT:
            self._left = name
        else:
            self._right = name
        if name == "panels" and self.desk is not None:
            self.desk.see()
        self.lay_out()
        self.refresh_status()

    def show_pane(self, name: PaneName) -> None:
        """Go to a pane: shown first, then in focus, and only then are others hidden, so that no key finds no focus."""
        pane = self.pane(name)
        self._focus_pane = name
        pane.display = True
        self.set_focus(pane, scroll_visible=False)
        self._settle()

    def refresh_titles(self) -> None:
        """Tabs or titles, with what each pane has to say."""
        spans: list[Span] = []
        for name in PANES:
            focused = name == self._focus_pane
            more = self._about(name)
            tone: Tone = "title" if focused else "dim"
            title: Line = (Span(f" {_FKEYS[name]} ", "key" if focused else "faint"), Span(name, tone), *more)
            hidden = [other for other in PANES if (other in LEFT) == (name in LEFT) and not self.pane(other).display]
            also = tuple(Span(f"   {_FKEYS[other]} {other}", "dim") for other in hidden)
            self.query_one(f"#title-{name}", Bar).show((*title, *also))
            spans += [Span("▸" if focused else " ", "accent"), *title, Span("  ")]
        self.query_one("#tabs", Bar).show(tuple(spans))

    def _about(self, name: PaneName) -> Line:
        if name == "diff":
            return (Span(f" {self.diff.summary()}", "dim"),) if self.diff.model.rows else ()
        if self.desk is None:
            return ()
        if name == "panels":
            found: list[Span] = []
            if self.desk.state.phase in ("queued", "running"):
                found.append(Span(f" » {self.desk.state.phase}", "accent"))
            for severity in ("fail", "warn"):
                count = sum(one.severity == severity for one in self.desk.state.findings)
                if count:
                    mark = SEVERITY_MARKS[_severity(severity)]
                    found.append(Span(f" {mark.glyph}{count}", mark.tone))
            return tuple(found)
        if name == "rubric":
            levels = self.desk.draft.levels
            done = sum(level is not None for level in levels.values())
            return (Span(f" {done}/{len(levels)}", "good" if done == len(levels) else "dim"),)
        return ()

    # ---- loading

    def _load(self) -> None:
        app = self.console_app
        exchange, runs, drafts = app.exchange, app.runs, app.drafts
        task, submission, grader = self.asked, self.submission, app.grader.slug
        snapshot = app.snapshot
        records = [one for one in snapshot.reviews if one.key == submission.key] if snapshot is not None else []
        mine = next((one.review for one in records if one.grader == grader and one.review is not None), None)

        def read() -> tuple[Desk, str, tuple[Base, ...]]:
            from console.grading.rubric import parse_rubric

            rubric = parse_rubric(exchange.rubric(task))
            kept = drafts.load(submission.task, submission.name)
            draft, told = begun(submission, rubric, kept.draft, mine)
            told = "; ".join(part for part in (told, kept.notice) if part)
            files = exchange.files(submission.tree)
            desk = Desk(task, submission, rubric, files, draft, runs.state(submission.key), self._save)
            revisions = len(exchange.revisions(submission))
            return desk, told, bases_for(revisions, mine is not None)

        app.work(read, then=self._loaded, failed=self._not_loaded)

    def _loaded(self, loaded: tuple[Desk, str, tuple[Base, ...]]) -> None:
        self.desk, told, self._bases = loaded
        self._base = self._bases[0]
        if told:
            self.console_app.say(told, "accent")
        self.redraw()
        self._load_diff()
        if self._focus_pane == "panels":
            self.desk.see()

    def _not_loaded(self, error: BaseException) -> None:
        self.diff.show((), {}, "nothing could be read")
        self.console_app.say_error(error)

    def _load_diff(self) -> None:
        exchange, submission, base, desk = self.console_app.exchange, self.submission, self._base, self.desk
        if desk is None:
            return

        def got(diff: Diff) -> None:
            if base == self._base and self.is_mounted:
                self.diff.show(diff.files, desk.texts, f"no difference against the {BASE_WORDS[base]}")
                if diff.note and not self.console_app.said:
                    self.console_app.say(diff.note, "dim")
                self.refresh_titles()
                self.refresh_bars()

        def failed(error: BaseException) -> None:
            self.diff.show((), {}, f"no diff against the {BASE_WORDS[base]}")
            self.console_app.say_error(error)

        self.console_app.work(
            lambda: exchange.diff(submission, base),
            then=got,
            failed=failed,
            group="diff",
            exclusive=True,
        )

    def _save(self, draft: Draft) -> None:
        """The draft, on disk. What fails is said, and the draft lives on in memory."""
        try:
            notice = self.console_app.drafts.save(draft)
        except OSError as error:  # a lock that is not to be had is one, too
            self.console_app.say_error(error)
        else:
            if notice:
                self.console_app.say(notice, "warn")

    # ---- what is shown

    def redraw(self) -> None:
        """Everything that follows from draft and evidence."""
        if self.desk is None or not self.is_mounted:
            return
        self.panels.show(self.desk.state, self.desk.draft.overruled_codes)
        self.rubric.show(self.desk.form())
        self.diff.annotate(self.desk.marks(), self.desk.cited())
        self.refresh_titles()
        self.refresh_bars()

    def runs_changed(self, keys: frozenset[str]) -> None:
        """The run of this submission has something new."""
        if self.desk is not None and self.submission.key in keys:
            self.desk.update(self.console_app.runs.state(self.submission.key))
            if self._focus_pane == "panels":
                self.desk.see()
            self.redraw()

    def snapshot_changed(self) -> None:
        """A newer revision is told, not swapped in under the reader."""
        snapshot = self.console_app.snapshot
        newer = snapshot.submission(self.submission.key) if snapshot is not None else None
        if newer is not None and newer.tree != self.submission.tree:
            self.console_app.say("↑ a newer revision has come in: q, then enter, opens it", "warn")

    def header(self) -> tuple[Line, Line]:
        """Which submission, whose, which revision, and what it is compared with."""
        one = self.submission
        left: Line = (
            Span(f" {visible(one.task)}", "text"),
            Span("/", "dim"),
            Span(f"{visible(one.name)} ", "title"),
            Span(f" {visible(one.author)}  ", "dim"),
            Span(visible(one.revision[:7]), "faint"),
            Span(f"  {one.framework or ''}", "dim"),
        )
        right: list[Span] = []
        active = self.console_app.runs.active()
        if active:
            right.append(Span(f"» {active} running  ", "accent"))
        if self._bases:
            right.append(Span(f"vs {BASE_WORDS[self._base]} ", "dim"))
        return left, tuple(right)

    def status(self) -> tuple[Line, Line]:
        """Score on the right; on the left what the cursor is on."""
        if self.desk is None:
            return (Span(" reading", "dim"),), ()
        pane = self.pane(self._focus_pane)
        right: list[Span] = [*rubric_view.score_mark(self.desk.form()), Span("  ")]
        total = pane.count()
        if isinstance(pane, DiffPane):
            right.append(Span(f"{pane.cursor + 1}/{total} ", "dim"))
        return (Span(" "), *self._told()), tuple(right)

    def _told(self) -> Line:
        assert self.desk is not None
        if self._focus_pane == "diff":
            place = self.diff.place()
            if place is None:
                return ()
            finding = next((one for one in self.desk.state.findings if _at(one, place[0], place[1])), None)
            if finding is not None:
                mark = SEVERITY_MARKS[finding.severity]
                summary = Span(visible(finding.summary), "dim")
                return (Span(f"{mark.glyph} {visible(finding.id)}  ", mark.tone), summary)
            return (Span(f"{visible(place[0])}:{place[1]}", "dim"),)
        if self.desk.unseen and self._focus_pane == "rubric":
            return (Span("! new evidence: F4 looks at it", "warn"),)
        if self._focus_pane == "rubric":
            target = self.desk.criterion_at(self.rubric.current)
            return (Span(f"a in another pane attaches to {target}", "faint"),)
        return ()

    def on_line_view_moved(self) -> None:
        """The message line speaks of the line under the cursor."""
        self.refresh_status()

    # ---- what is current

    def current_submission(self) -> Submission:
        """The one that is open."""
        return self.submission

    def current_task(self, submission: Submission) -> Task | None:
        """The task that is shown, even when the exchange has a newer one."""
        return self.asked

    def current_finding(self) -> Finding | None:
        """The finding under the cursor: in the panels, or at the line of the diff."""
        if self.desk is None:
            return None
        if self._focus_pane == "panels":
            return self.panels.finding()
        place = self.diff.place()
        if self._focus_pane == "diff" and place is not None:
            return next((one for one in self.desk.state.findings if _at(one, place[0], place[1])), None)
        return None

    # ---- actions: panes

    def action_next_pane(self) -> None:
        """The next pane."""
        self.show_pane(beside(self._focus_pane, 1))

    def action_previous_pane(self) -> None:
        """The pane before."""
        self.show_pane(beside(self._focus_pane, -1))

    def action_show_scenario(self) -> None:
        """What was asked."""
        self.show_pane("scenario")

    def action_show_diff(self) -> None:
        """The code."""
        self.show_pane("diff")

    def action_show_panels(self) -> None:
        """What was measured."""
        self.show_pane("panels")

    def action_show_rubric(self) -> None:
        """The judgement."""
        self.show_pane("rubric")

    def action_next_base(self) -> None:
        """Compare with the next thing there is."""
        if len(self._bases) < 2:
            self.console_app.say(f"there is nothing to compare with but the {BASE_WORDS[self._base]}")
            return
        self._base = self._bases[(self._bases.index(self._base) + 1) % len(self._bases)]
        self._load_diff()
        self.refresh_bars()

    def action_search_diff(self) -> None:
        """Ask for what to search in the diff."""
        from console.screens.prompts import Ask

        def answered(text: str | None) -> None:
            if text is not None:
                self.diff.search(text)

        self.app.push_screen(Ask("search the diff", self.diff.needle), answered)

    def action_jump_to_code(self) -> None:
        """From a finding to its line."""
        finding = self.panels.finding()
        if finding is None or finding.where is None:
            self.console_app.say("no place in the code here")
            return
        if self.diff.go(finding.where.file, finding.where.line):
            self.show_pane("diff")
        else:
            self.console_app.say(f"{finding.where} is not in the diff", "warn")

    # ---- actions: the draft

    def answer(self, key: str, digit: int) -> None:
        """A digit on the form."""
        if self.desk is None:
            return
        answered = rubric_view.answer(self.desk.form(), key, digit)
        if isinstance(answered, str):
            self.console_app.say(answered)
        else:
            self._change(answered)

    def _change(self, draft: Draft, told: str = "") -> None:
        if self.desk is None:
            return
        changed = self.desk.change(draft)
        if self.desk.draft.evidence is None:
            self.desk.see()
        if told:
            self.console_app.say(told if changed else "nothing changed", "good" if changed else "dim")
        if changed:
            self.redraw()

    def action_clear_answer(self) -> None:
        """Take the answer under the cursor back."""
        if self.desk is not None:
            self._change(rubric_view.cleared(self.desk.form(), self.rubric.current))

    def action_take_suggestions(self) -> None:
        """Every suggestion, where nothing is decided yet."""
        if self.desk is None:
            return
        if not self.desk.suggestions:
            self.console_app.say("no suggestions: there is no evidence yet, r runs the panels")
            return
        self._change(rubric_view.all_taken(self.desk.form()), "suggestions taken; z takes them back")

    def action_undo(self) -> None:
        """The draft before the last change."""
        if self.desk is not None:
            self.console_app.say("undone" if self.desk.undo() else "nothing to undo")
            self.redraw()

    def action_attach(self) -> None:
        """Cite what the cursor is on."""
        if self.desk is None:
            return
        key = self.rubric.current
        if self._focus_pane == "diff":
            place = self.diff.place()
            if place is None:
                self.console_app.say("not a line of this submission")
                return
            draft, where = self.desk.attach_line(key, *place)
            self._change(draft, f"{place[0]}:{place[1]} → {where}")
        elif self._focus_pane == "panels":
            finding = self.panels.finding()
            panel = self.panels.current.partition(":")[2] if self.panels.current.startswith("panel:") else ""
            if finding is not None:
                draft, where = self.desk.attach_finding(key, finding)
                self._change(draft, f"{finding.id} → {where}")
            elif panel and self.desk.state.panels.get(panel) is not None:  # type: ignore[call-overload]
                draft, where = self.desk.attach_panel(key, panel)
                self._change(draft, f"panel {panel} → {where}")
            else:
                self.console_app.say("nothing to cite here")
        else:
            self.console_app.say("a cites a line of the diff, or a finding: go there first")

    def action_overrule_finding(self) -> None:
        """Refuse the finding under the cursor, or take the refusal back."""
        finding = self.panels.finding()
        desk = self.desk
        if finding is None or desk is None:
            self.console_app.say("no finding here")
            return
        if finding.code in desk.draft.overruled_codes:
            self._change(desk.draft.accept(finding.code), f"{finding.code} counts again")
            return
        reason_prompt(
            self.console_app,
            f"overrule {visible(finding.code)}: why?",
            lambda reason: self._change(desk.draft.overrule(finding.code, reason), f"{finding.code} overruled"),
        )

    def action_write_note(self) -> None:
        """Write the note of the criterion, or the summary, on this screen."""
        desk = self.desk
        if desk is None:
            return
        from console.screens.write import Write

        key = self.rubric.current
        title, text, hint = desk.note_of(key)
        desk.mark()
        self.app.push_screen(
            Write(title, text, lambda written: desk.retype(desk.with_note(key, written)), hint=hint),
            lambda _: self.redraw(),
        )

    def action_edit(self) -> None:
        """Write the same in $EDITOR."""
        desk = self.desk
        if desk is None:
            return
        key = self.rubric.current
        title, text, _ = desk.note_of(key)
        try:
            command = editor_command(self.console_app.config)
        except SchemaError as error:
            self.console_app.say_error(error)
            return
        written, told = edit_outside(self.app, command, text, title)
        if written is not None:
            self._change(desk.with_note(key, written))
        if told:
            self.console_app.say(told, "warn")

    def action_preview(self) -> None:
        """What would be committed."""
        from console.screens.preview import PreviewScreen

        if self.desk is not None:
            self.app.push_screen(PreviewScreen(self, self.desk))

    def go_to(self, where: str) -> None:
        """The place of a problem."""
        if where == "evidence":
            self.show_pane("panels")
            return
        self.show_pane("rubric")
        self.rubric.go(where)

    # ---- actions: other submissions

    def action_next_submission(self) -> None:
        """The next of the queue."""
        self._turn(1)

    def action_previous_submission(self) -> None:
        """The one before."""
        self._turn(-1)

    def _turn(self, step: int) -> None:
        keys = self.console_app.queue.order()
        place = keys.index(self.submission.key) + step if self.submission.key in keys else 0
        if 0 <= place < len(keys):
            self.app.pop_screen()
            self.console_app.queue.open(keys[place])
        else:
            self.console_app.say("this is the last of the queue" if step > 0 else "this is the first of the queue")


def _at(finding: Finding, file: str, line: int) -> bool:
    return finding.where is not None and (finding.where.file, finding.where.line) == (file, line)


def _severity(word: str) -> Severity:
    return "fail" if word == "fail" else "warn"
