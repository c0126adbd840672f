"""Commit a review from a form; --print-form writes one. Panels run first where there is no evidence."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from console.errors import EnvironmentFault, Exit, UsageError
from console.verbs import common

if TYPE_CHECKING:
    from console.config import Config
    from console.drafts import Drafts
    from console.exchange import Exchange
    from console.exchange.model import Preview, Published, Submission, Task
    from console.grading.commit import Commit
    from console.grading.draft import Draft
    from console.grading.problems import Problem
    from console.grading.rubric import Rubric
    from runners.evidence import Evidence


MAX_FORM_BYTES = 1024 * 1024


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the verb takes."""
    parser.add_argument("pattern", metavar="TASK/NAME", nargs="?", help="the submission")
    form = parser.add_mutually_exclusive_group(required=True)
    form.add_argument("--form", metavar="FILE", help="the filled form; - reads it from stdin")
    form.add_argument("--print-form", action="store_true", help="print a form to fill in, with anchors and suggestions")
    form.add_argument("--retry", action="store_true", help="send the commits again that were made and did not arrive")
    parser.add_argument("--dry-run", action="store_true", help="check the form and print the commit, make none")
    common.run_options(parser)


def run(args: argparse.Namespace) -> int:
    """Print a form, or check one and publish the review."""
    from console.config import load_config
    from console.drafts import Drafts
    from console.grading.rubric import parse_rubric

    if not args.pattern and not args.retry:
        raise UsageError("name a TASK/NAME")
    data = _read_form(args.form) if args.form else b""
    config = load_config()
    with common.open_exchange(args, config) as exchange:
        if args.retry:
            return _retry(args, exchange)
        snapshot = exchange.snapshot()
        submission = common.find_one(snapshot, args.pattern)
        task = common.task_of(snapshot, submission)
        rubric = parse_rubric(exchange.rubric(task), f"rubric of {task.name}")
        if not args.print_form and not exchange.grader.slug:
            raise UsageError("git knows no user.email here; set it, or `grader` in the configuration")
        evidence = _evidence(args, config, exchange, task, submission)
        drafts = Drafts(exchange.id)
        if args.print_form:
            return _print_form(args, drafts, submission, rubric, evidence)
        return _commit(args, exchange, drafts, submission, rubric, evidence, data)


def _read_form(name: str) -> bytes:
    return sys.stdin.buffer.read() if name == "-" else common.read_file(name, MAX_FORM_BYTES)


def _evidence(
    args: argparse.Namespace, config: Config, exchange: Exchange, task: Task, submission: Submission
) -> Evidence:
    with common.runs_on(exchange, config, python=args.python, device=args.device, unsafe=args.unsafe) as runs:
        runs.adopt(exchange.snapshot())
        state = runs.state(submission.key)
        if state.evidence is None or state.stale:
            common.require_consent(exchange, [task], args)
            (state,) = common.follow(runs, [(task, submission)])
    if state.evidence is None:
        raise EnvironmentFault(f"{submission.key}: the panels did not run: {state.phase}: {state.message}")
    return state.evidence


def _begun(drafts: Drafts, submission: Submission, rubric: Rubric, evidence: Evidence, *, kept: bool) -> Draft:
    """A new draft, or with ``kept`` the one that the console has of this very revision."""
    from console.grading.draft import Draft
    from console.verbs.output import tell

    if kept:
        loaded = drafts.load(submission.task, submission.name)
        if loaded.notice:
            tell(loaded.notice)
        if loaded.draft and (loaded.draft.tree, loaded.draft.rubric) == (submission.tree, rubric.digest):
            return loaded.draft
    return Draft.begin(submission.task, submission.name, submission.revision, submission.tree, rubric, evidence)


def _print_form(
    args: argparse.Namespace, drafts: Drafts, submission: Submission, rubric: Rubric, evidence: Evidence
) -> int:
    from console.grading.form import print_form
    from console.grading.suggest import suggest, suggest_verdict
    from console.verbs.output import print_json

    draft = _begun(drafts, submission, rubric, evidence, kept=True)
    codes = draft.overruled_codes
    form = print_form(draft, rubric, suggest(rubric, evidence, codes), suggest_verdict(evidence, codes))
    if args.json:
        print_json({"task": submission.task, "submission": submission.name, "form": form})
    else:
        sys.stdout.buffer.write(form.encode())
        sys.stdout.flush()
    return Exit.DONE


def _commit(
    args: argparse.Namespace,
    exchange: Exchange,
    drafts: Drafts,
    submission: Submission,
    rubric: Rubric,
    evidence: Evidence,
    data: bytes,
) -> int:
    from console.grading.commit import prepare
    from console.grading.form import fill, parse_form
    from console.grading.problems import check
    from console.grading.suggest import suggest
    from console.verbs.output import tell

    form = parse_form(data, rubric, args.form)
    codes = [one.code for one in form.overruled]
    draft = _begun(drafts, submission, rubric, evidence, kept=False)
    draft = fill(draft, form, suggest(rubric, evidence, codes), args.form)
    files = {view.path: view.text if view.kind == "text" else None for view in exchange.files(submission.tree)}
    problems = check(draft, rubric, evidence, files)
    if problems:
        _tell_problems(args, problems)
        return Exit.USAGE
    commit = prepare(draft, rubric, evidence, exchange.grader.slug)
    if args.dry_run:
        _print_commit(args, commit, exchange.preview(commit.files, commit.message))
        return Exit.DONE
    published = _send(lambda: exchange.publish(commit.files, commit.message, tell))
    drafts.discard(submission.task, submission.name)
    _print_published(args, commit.message.split("\n", 1)[0], published)
    return Exit.DONE


def _send(publish: Callable[[], Published]) -> Published:
    from console.exchange.errors import GitRefused
    from console.verbs.output import tell

    try:
        return publish()
    except GitRefused as error:
        if error.pending:
            tell("the commit is kept; `kernel-review review --retry` sends it again")
        raise


def _retry(args: argparse.Namespace, exchange: Exchange) -> int:
    from console.verbs.output import tell

    waiting = exchange.pending()
    for one in waiting:
        _print_published(args, one.subject, _send(partial(exchange.retry_pending, one.id, tell)))
    if not waiting:
        tell("no commit is waiting to be sent")
    return Exit.DONE


def _print_published(args: argparse.Namespace, subject: str, published: Published) -> None:
    from console.verbs.output import print_json, print_text, tell

    if published.changed_by_hooks:
        tell(f"a hook has changed {', '.join(published.changed_by_hooks)}")
    if args.json:
        print_json({"subject": subject, **msgspec.to_builtins(published)})
        return
    print_text(subject)
    print_text(f"{published.commit[:9]} pushed to {published.pushed_to}")
    if published.merge_hint:
        print_text(f"to merge it: {published.merge_hint}")


def _tell_problems(args: argparse.Namespace, problems: tuple[Problem, ...]) -> None:
    from console.verbs.output import print_json, tell

    if args.json:
        print_json({"problems": problems})
    for problem in problems:
        hint = f" (cites = [{', '.join(problem.cites)}])" if problem.cites else ""
        tell(f"{args.form}: {problem.where}: {problem.message}{hint}")


def _print_commit(args: argparse.Namespace, commit: Commit, preview: Preview) -> None:
    from console.verbs.output import print_block, print_json, print_text

    if args.json:
        files = {path: data.decode() for path, data in commit.files.items()}
        print_json({**msgspec.to_builtins(preview), "files": files})
        return
    who = f"{preview.name} <{preview.email}>, signing: {preview.signing}, hooks: {', '.join(preview.hooks) or 'none'}"
    print_text((f"to {preview.target} as {who}", "dim"))
    if preview.problem:
        print_text((preview.problem, "warn"))
    print_block(commit.message)
    for path, data in commit.files.items():
        print_text((f"== {path} ({len(data)} bytes)", "strong"))
        if path.endswith(".md"):
            print_block(data.decode())
