"""What can be done with the submission at hand, in the queue and in a review alike."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, ClassVar

from console.exchange.text import visible
from console.screens.base import ConsoleScreen
from console.widgets.bindings import bindings_for
from runners.evidence import Finding

if TYPE_CHECKING:
    from console.exchange.model import Mark, Published, Submission, Task


class SubmissionScreen(ConsoleScreen, inherit_bindings=True):
    """A screen on which one submission is current."""

    SCOPES: ClassVar[tuple[str, ...]] = ("submission",)
    BINDINGS = bindings_for("submission")

    def current_submission(self) -> Submission | None:
        """The submission that the keys mean."""
        raise NotImplementedError

    def current_finding(self) -> Finding | None:
        """The finding that the keys mean."""
        raise NotImplementedError

    def current_task(self, submission: Submission) -> Task | None:
        """The submission's task, when it can be run."""
        snapshot = self.console_app.snapshot
        return snapshot.tasks.get(submission.task) if snapshot is not None else None

    def why_not(self, submission: Submission) -> str:
        """Why a submission cannot be run; empty when it can."""
        task = self.current_task(submission)
        problem = submission.problem or (task.problem if task is not None else "no such task")
        if task is None or task.spec is None or problem:
            return f"{submission.key} cannot be run: {problem or 'its task has no task.toml'}"
        return ""

    def run_all(self, submissions: Sequence[Submission], *, fresh: bool = False) -> None:
        """Queue runs. What would execute code that the grader has not allowed is asked first, once for each task."""
        from console.screens.consent import Consent

        pairs = [(task, one) for one in submissions if (task := self.current_task(one)) is not None]
        consent = Consent(self.console_app)

        def start(allowed: Collection[str]) -> None:
            chosen = [(task, one) for task, one in pairs if task.name in allowed]
            for task, one in chosen:
                self.console_app.runs.start(task, one, fresh=fresh)
            self.runs_changed(frozenset(one.key for _, one in chosen))
            self.console_app.refresh_bars()

        consent.ask({task.name: task for task, _ in pairs}, start)

    def _run(self, *, fresh: bool) -> None:
        submission = self.current_submission()
        if submission is None:
            self.console_app.say("no submission here")
        elif refused := self.why_not(submission):
            self.console_app.say(refused, "warn")
        else:
            self.run_all([submission], fresh=fresh)

    def action_run(self) -> None:
        """Run the panels."""
        self._run(fresh=False)

    def action_run_fresh(self) -> None:
        """Run the panels whatever is stored."""
        self._run(fresh=True)

    def action_cancel(self) -> None:
        """Cancel the run."""
        submission = self.current_submission()
        if submission is not None:
            self.console_app.runs.cancel(submission.key)

    def action_wants_review(self) -> None:
        """Mark for a person."""
        self._mark("wants-review")

    def action_reject(self) -> None:
        """Mark as rejected."""
        self._mark("reject")

    def action_environment(self) -> None:
        """Mark as a fault of the machine."""
        self._mark("environment")

    def _mark(self, mark: Mark) -> None:
        submission = self.current_submission()
        if submission is None:
            return
        from console.screens.prompts import reason_prompt

        reason_prompt(
            self.console_app,
            f"mark {visible(submission.key)} as {mark}: why?",
            lambda reason: self._publish_mark(submission, mark, reason),
        )

    def _publish_mark(self, submission: Submission, mark: Mark, reason: str) -> None:
        from console.exchange.layout import format_triage, triage_path
        from console.exchange.model import TriageMark
        from console.grading.text import one_line

        app = self.console_app
        one = TriageMark(
            task=submission.task,
            submission=submission.name,
            mark=mark,
            reason=one_line(reason),
            grader=app.grader.slug,
            tree=submission.tree,
        )
        message = f"triage({submission.key}): {mark}\n\n{one.reason}\n"

        def publish() -> Published:
            path = triage_path(one.task, one.submission)
            return app.exchange.publish({path: format_triage(one)}, message, lambda _text: None)

        def done(published: Published) -> None:
            app.say(f"{submission.key}: {mark}, pushed to {published.pushed_to}", "good")
            app.reread()

        app.say(f"{submission.key}: {mark}, committing", "dim")
        app.work(publish, then=done, group="publish")

    def action_explain(self) -> None:
        """What the finding means."""
        finding = self.current_finding()
        if finding is None:
            self.console_app.say("no finding here")
            return
        from console.screens.prompts import Tell
        from console.view.panels import explain

        self.console_app.push_screen(Tell(visible(finding.id), explain(finding)))
