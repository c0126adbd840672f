"""The last look before a commit: what is missing, who commits what where, and then the commit itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.app import SuspendNotSupported
from textual.widget import Widget

from console.actions import Action
from console.exchange.errors import GitRefused
from console.exchange.text import visible
from console.grading.problems import Problem
from console.screens.base import ConsoleScreen
from console.screens.lend import lend
from console.view import preview as view
from console.view.blocks import Block
from console.view.desk import Desk
from console.view.spans import Line, Span
from console.widgets.bindings import bindings_for
from console.widgets.block_view import BlockView

if TYPE_CHECKING:
    from console.exchange.model import Preview, Published
    from console.screens.review import ReviewScreen


class PreviewPane(BlockView):
    """The blocks of the preview."""

    def __init__(self, make: Callable[[int, str], Sequence[Block]]) -> None:
        super().__init__(id="preview")
        self._make = make

    def make(self, width: int, current: str) -> Sequence[Block]:
        """The blocks."""
        return self._make(width, current)


class PreviewScreen(ConsoleScreen, inherit_bindings=True):
    """Commits and pushes in a thread; a refusal is shown in git's words and can be tried again."""

    SCOPES: ClassVar[tuple[str, ...]] = ("preview",)
    BINDINGS = bindings_for("preview")
    AUTO_FOCUS = "PreviewPane"

    def __init__(self, review: ReviewScreen, desk: Desk) -> None:
        super().__init__()
        self._review, self._desk = review, desk
        self._problems: tuple[Problem, ...] = ()
        self._proposal: view.Proposal | None = None
        self._preview: Preview | None = None
        self._refusal: view.Refusal | None = None
        self._pending: str | None = None
        self._progress = ""

    def body(self) -> Iterable[Widget]:
        """One list."""
        yield PreviewPane(self._blocks)

    def on_mount(self) -> None:
        """Check, then ask git."""
        super().on_mount()
        self.set_focus(self.query_one(PreviewPane), scroll_visible=False)
        self._check()

    def _blocks(self, width: int, current: str) -> list[Block]:
        return view.blocks(width, self._problems, self._proposal, self._preview, self._refusal, self._progress, current)

    def _check(self) -> None:
        app, desk = self.console_app, self._desk
        self._problems = desk.problems()
        self._preview = None
        self._proposal = view.propose(desk.draft, desk.rubric, desk.state.evidence, desk.suggestions, app.grader.slug)
        if self._proposal is not None:
            files, message = self._proposal.files, self._proposal.message
            app.work(lambda: app.exchange.preview(files, message), then=self._previewed, group="preview")
        self._show()

    def _previewed(self, preview: Preview) -> None:
        self._preview = preview
        self._show(keep=bool(self._problems))

    def _show(self, *, keep: bool = True) -> None:
        if self.is_mounted:
            self.query_one(PreviewPane).reload(keep=keep)
            self.refresh_bars()

    # ---- rows

    def header(self) -> tuple[Line, Line]:
        """What is about to be committed."""
        one = self._desk.submission
        left: Line = (Span(" preview ", "title"), Span(f" {visible(one.key)}  {visible(one.revision[:7])}", "dim"))
        proposal = self._proposal
        if proposal is None:
            return left, ()
        review = proposal.review
        return left, (Span(f"{review.outcome}, {review.mechanism}, {review.score:.1f}/10 ", "strong"),)

    def status(self) -> tuple[Line, Line]:
        """Whether it can be committed."""
        if self._progress:
            return (Span(f" » {visible(self._progress)}", "accent"),), ()
        if self._refusal is not None:
            return (Span(" ✗ refused: r tries again, T with the terminal", "bad"),), ()
        if self._problems:
            return (Span(" ! not ready: enter goes to the problem", "warn"),), ()
        if self._preview is None:
            return (Span(" asking git", "dim"),), ()
        return (Span(" ✓ ready: c commits and pushes", "good"),), ()

    def offers(self, action: Action) -> bool:
        """Only what can be done now."""
        if action.id == "preview.retry":
            return self._refusal is not None
        if action.id == "preview.jump":
            return bool(self._problems)
        if action.id == "preview.commit":
            return self._preview is not None and not self._problems and not self._progress
        return True

    # ---- actions

    def _problem(self) -> Problem | None:
        key, _, number = self.query_one(PreviewPane).current.partition(":")
        return self._problems[int(number)] if key == "problem" and int(number) < len(self._problems) else None

    def action_jump(self) -> None:
        """To the place of the problem under the cursor, else of the first one."""
        problem = self._problem() or next(iter(self._problems), None)
        if problem is None:
            self.console_app.say("nothing is missing")
            return
        self.app.pop_screen()
        self._review.go_to(problem.where)

    def action_mend(self) -> None:
        """Attach what the problem asks for."""
        problem = self._problem()
        if problem is None or not problem.cites:
            self.console_app.say("nothing to attach here")
            return
        draft = self._desk.draft
        for cite in problem.cites:
            draft = draft.attach(problem.where, cite)
        number = self._problems.index(problem)
        self._desk.change(draft)
        self._review.redraw()
        self._check()
        if self._problems:
            self.query_one(PreviewPane).go(f"problem:{min(number, len(self._problems) - 1)}")

    def action_commit(self) -> None:
        """Commit and push."""
        if self._progress:
            return
        if self._problems or self._proposal is None or self._preview is None:
            self.console_app.say("not ready yet" if not self._problems else "something is missing: see above", "warn")
            return
        if self._pending is not None:
            self.action_retry()
            return
        files, message = self._proposal.files, self._proposal.message
        exchange = self.console_app.exchange
        self._publish("committing", lambda: exchange.publish(files, message, self._heard))

    def action_retry(self) -> None:
        """Push the commit that was refused; where there is none yet, commit again."""
        pending, exchange = self._pending, self.console_app.exchange
        if pending is None:
            if self._refusal is not None:
                self.action_commit()
            else:
                self.console_app.say("nothing was refused")
        elif not self._progress:
            self._publish("pushing", lambda: exchange.retry_pending(pending, self._heard))

    def action_attended(self) -> None:
        """Commit while git, gpg and hooks have the terminal."""
        if self._progress or self._problems or self._proposal is None or self._preview is None:
            self.console_app.say("not ready yet", "warn")
            return
        files, message, pending = self._proposal.files, self._proposal.message, self._pending
        exchange = self.console_app.exchange

        def send() -> Published:
            if pending is not None:
                return exchange.retry_pending(pending, print, attended=True)
            return exchange.publish(files, message, print, attended=True)

        try:
            published = lend(self.app, send)
        except SuspendNotSupported:
            self.console_app.say("this terminal cannot be lent", "warn")
        except Exception as error:  # noqa: BLE001 - shown like a refusal of the background thread
            self._refused(error)
        else:
            self._published(published)

    def _publish(self, word: str, work: Callable[[], Published]) -> None:
        self._progress, self._refusal = word, None
        self._show()
        self.console_app.work(work, then=self._published, failed=self._refused, group="publish")

    def _heard(self, text: str) -> None:
        """Called from the publishing thread."""
        self.app.call_later(self._progressed, text)

    def _progressed(self, text: str) -> None:
        if self._progress:
            self._progress = text
            self._show()

    def _refused(self, error: BaseException) -> None:
        from console.errors import words

        self._progress = ""
        if isinstance(error, GitRefused):
            self._pending = error.pending or self._pending
            self._refusal = view.Refusal(error.what, error.words, self._pending is not None)
            self.console_app.look_for_pending()
        else:
            self._refusal = view.Refusal("not committed", words(error), self._pending is not None)
        if self.is_mounted:
            self._show()
        else:
            self.console_app.say(f"{self._desk.submission.key}: {words(error)}", "bad")

    def _published(self, published: Published) -> None:
        app, desk = self.console_app, self._desk
        self._progress, self._pending = "", None
        app.look_for_pending()
        key = desk.submission.key
        try:
            app.drafts.discard(desk.submission.task, desk.submission.name)
        except OSError as error:
            app.say_error(error)
        here = app.screen is self
        told = f"{key} committed {published.commit[:7]}, pushed to {published.pushed_to}"
        if published.merge_hint:
            told += f"; to merge: {published.merge_hint}"
        following = app.queue.next_unreviewed(key) if here else None
        if here:
            app.pop_screen()
            app.pop_screen()
            if following is not None:
                app.queue.open(following)
        app.reread(lambda: app.say(told if following or not here else f"{told}; nothing else waits", "good"))
        app.say(told, "good")
