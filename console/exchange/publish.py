"""Reviews on their way into the exchange: committed by ``git commit``, pushed, and never lost in between."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Mapping

import msgspec

from console.exchange.errors import ExchangeError, GitRefused
from console.exchange.layout import review_file
from console.exchange.mirror import BASE, OVERLAY, OVERLAY_BRANCH, Mirror
from console.exchange.model import Grader, Pending, Preview, Published
from console.exchange.text import decode_name, decode_words, visible
from console.exchange.worktree import PENDING, WorkTree, in_use, new_id, work_tree

MAX_TRIES = 40
"""Eight writers in a tight loop needed up to 39 tries for one push."""
MAX_TRIES_SIGNED = 3
"""Each try after the first asks for another signature."""
MAX_FILE = 32 * 1024 * 1024
MAX_FILES = 20
MAX_MESSAGE = 64 * 1024

Progress = Callable[[str], None]

# What a push says when another writer was faster or is at it; all of it git's own, in the C locale.
_CONTENTION = re.compile(
    r"cannot lock ref|failed to update ref|failed to lock|unable to lock|fetch first|non-fast-forward|stale info"
    r"|incorrect old value|remote ref updated since checkout|reference already exists|Unable to create '[^']*\.lock'"
)


class Target(msgspec.Struct, frozen=True):
    """Where commits go: a branch of the source, our reference for it, and the commit it is at."""

    branch: str
    ref: str
    start: str


class Publisher:
    """Sends files under reviews/ to where the exchange is kept."""

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror

    def target(self) -> Target:
        """As of the last fetch. Raises GitRefused where there is no branch to push to, or nothing on it yet."""
        tips = self._mirror.tips()
        where = self._mirror.location
        if not tips.base:
            raise GitRefused(f"publishing to {where.shown}", "it has no commits yet, so there is nothing to review")
        if where.kind == "path":
            merged = not tips.overlay or self._contains(tips.base, tips.overlay)
            return Target(OVERLAY_BRANCH, OVERLAY, tips.base if merged else tips.overlay)
        if not tips.branch:
            raise GitRefused(f"publishing to {where.shown}", "its HEAD is detached, so there is no default branch")
        return Target(tips.branch, BASE, tips.base)

    def describe(self, target: Target) -> str:
        """The target for people."""
        return f"branch {visible(target.branch)} of {self._mirror.location.shown}"

    def merge_hint(self) -> str:
        """What makes reviews part of the branch that people read, where that is not the target."""
        where = self._mirror.location
        return f"git -C {where.shown} merge {OVERLAY_BRANCH}" if where.kind == "path" else ""

    def preview(self, files: Mapping[str, bytes], message: str, grader: Grader) -> Preview:
        """What :meth:`publish` would do. Raises ExchangeError for files that it would not take."""
        _check(files, message, grader)
        settings = self._mirror.settings()
        problem, branch, words = settings.identity_problem, "", ""
        try:
            target = self.target()
            branch, words = target.branch, self.describe(target)
        except GitRefused as error:
            problem = problem or str(error)
        return Preview(
            name=settings.name,
            email=settings.email,
            signing=settings.signing,
            hooks=settings.hooks,
            hooks_dir=str(settings.hooks_dir),
            target=words,
            remote=self._mirror.location.shown,
            branch=branch,
            message=message.rstrip("\n") + "\n",
            files=dict(files),
            problem=problem,
        )

    def publish(
        self, files: Mapping[str, bytes], message: str, grader: Grader, progress: Progress, *, attended: bool = False
    ) -> Published:
        """Commit and push. Raises ExchangeError before there is a commit, GitRefused with ``pending`` once there is."""
        _check(files, message, grader)
        identity = new_id()
        progress("fetching")
        try:
            self._mirror.fetch()
        except GitRefused as error:
            # The commit is made and kept all the same; the push will say in full what is wrong.
            progress(f"not fetched: {error.words.splitlines()[0] if error.words else error.what}")
        target = self.target()
        with work_tree(self._mirror, identity, attended=attended) as tree:
            tree.check_out(target.start, tuple(files))
            tree.attach()
            try:
                blobs = tree.write(files)
                if not tree.changed():
                    raise GitRefused("committing", "the exchange holds exactly this already: nothing to commit")
                progress("committing")
                commit = tree.commit(message)
                changed = self._changed_by_hooks(tree, target.start, commit, blobs)
            except BaseException:
                self._forget(tree, unless_since=target.start)
                raise
            published = self._send(tree, target, commit, progress)
        return msgspec.structs.replace(published, changed_by_hooks=changed)

    def _forget(self, tree: WorkTree, *, unless_since: str) -> None:
        """Drop the kept reference, unless there is a commit that it keeps."""
        if self._mirror.git.try_run("rev-parse", "--verify", "-q", tree.ref).out.decode().strip() == unless_since:
            self._mirror.git.try_run("update-ref", "-d", tree.ref)

    def _changed_by_hooks(self, tree: WorkTree, start: str, commit: str, blobs: dict[str, str]) -> tuple[str, ...]:
        """Published paths that a hook changed. Raises GitRefused, and drops the commit, where it touched others."""
        out = self._mirror.git.out("diff-tree", "-r", "--raw", "-z", "--no-abbrev", "--no-renames", start, commit)
        fields = out.split(b"\0")
        committed = {
            decode_name(path): head.split(b" ")[3].decode()
            for head, path in zip(fields[::2], fields[1::2], strict=False)
        }
        others = [visible(path) for path in committed if path not in blobs]
        if others:
            self._mirror.git.try_run("update-ref", "-d", tree.ref)
            raise GitRefused("committing", f"a hook also changed {', '.join(others[:5])}; only reviews are published")
        return tuple(path for path, oid in blobs.items() if path in committed and committed[path] != oid)

    def _send(self, tree: WorkTree, target: Target, commit: str, progress: Progress) -> Published:
        signs = self._mirror.settings().signs
        limit = MAX_TRIES_SIGNED if signs else MAX_TRIES
        for number in range(1, limit + 1):
            progress("pushing" if number == 1 else f"pushing, try {number}")
            refusal = self._push(tree, target, commit)
            if refusal is None:
                return self._arrived(tree, target, commit, number)
            try:
                self._mirror.fetch()
                newer = self.target()
            except GitRefused:
                raise refusal from None
            if self._contains(newer.start, commit):
                return self._arrived(tree, newer, commit, number)
            if newer.start == target.start and not _CONTENTION.search(refusal.words):
                raise refusal
            if number < limit:
                # Others who lost the same race must not come back at the same moment.
                time.sleep(random.uniform(0.01, 0.05) * min(number, 10))  # noqa: S311
                if newer.start != target.start:
                    progress("someone else was faster: moving the commit to the newer state")
                    commit = tree.rebase(newer.start, target.start)
                target = newer
        raise GitRefused(
            f"pushing to {self.describe(target)}",
            f"others were faster {limit} times"
            + ("; each try needs another signature, so the next is yours to start" if signs else ""),
            pending=tree.id,
            retry=True,
        )

    def _push(self, tree: WorkTree, target: Target, commit: str) -> GitRefused | None:
        """Push once, with the grader's pre-push hook; None when it arrived."""
        refspec = f"{commit}:refs/heads/{target.branch}"
        try:
            tree.as_user(
                self._mirror.settings().commit(),
                f"pushing to {self.describe(target)}",
                "push",
                "--quiet",
                "origin",
                refspec,
            )
        except GitRefused as refusal:
            return refusal
        return None

    def _arrived(self, tree: WorkTree, target: Target, commit: str, tries: int) -> Published:
        git = self._mirror.git
        with self._mirror.locked():
            now = git.try_run("rev-parse", "--verify", "-q", target.ref).out.decode().strip()
            if not (now and self._contains(now, commit)):
                git.out("update-ref", target.ref, commit)
            git.out("update-ref", "-d", tree.ref)
        return Published(commit=commit, pushed_to=self.describe(target), tries=tries, merge_hint=self.merge_hint())

    def _contains(self, tip: str, commit: str) -> bool:
        return self._mirror.git.try_run("merge-base", "--is-ancestor", commit, tip).code == 0

    def pending(self) -> tuple[Pending, ...]:
        """Commits that have not arrived and that no process is sending, oldest first; forgets those that have."""
        git = self._mirror.git
        tips = self._mirror.tips()
        out = git.out(
            "for-each-ref", "--format=%(refname)%00%(objectname)%00%(committerdate:unix)%00%(subject)", PENDING
        )
        waiting = []
        for line in filter(None, out.split(b"\n")):
            name, commit, when, subject = line.split(b"\0", 3)
            identity, oid = name.decode().removeprefix(PENDING), commit.decode()
            if in_use(self._mirror, identity):
                continue
            if any(tip and self._contains(tip, oid) for tip in (tips.base, tips.overlay)):
                git.try_run("update-ref", "-d", name.decode(), oid)
                continue
            paths = git.out("diff-tree", "-r", "--name-only", "-z", "--no-commit-id", oid).split(b"\0")
            names = tuple(decode_name(path) for path in paths if path)
            waiting.append(Pending(id=identity, commit=oid, subject=decode_words(subject), when=int(when), paths=names))
        return tuple(waiting)

    def retry(self, identity: str, progress: Progress, *, attended: bool = False) -> Published:
        """Send a pending commit again. Raises ExchangeError where there is none of that id."""
        waiting = next((one for one in self.pending() if one.id == identity), None)
        if waiting is None:
            raise ExchangeError(f"no review is waiting under {visible(identity)}")
        progress("fetching")
        try:
            self._mirror.fetch()
            target = self.target()
        except GitRefused as error:
            raise GitRefused(error.what, error.words, pending=identity) from None
        if self._contains(target.start, waiting.commit):
            self._mirror.git.try_run("update-ref", "-d", PENDING + identity)
            return Published(
                commit=waiting.commit, pushed_to=self.describe(target), tries=0, merge_hint=self.merge_hint()
            )
        start = self._mirror.git.text("rev-parse", "--verify", f"{waiting.commit}^")
        with work_tree(self._mirror, identity, attended=attended) as tree:
            tree.check_out(waiting.commit, waiting.paths)
            tree.attach()
            tree.committed = True
            commit = waiting.commit if start == target.start else tree.rebase(target.start, start)
            return self._send(tree, target, commit, progress)


def _check(files: Mapping[str, bytes], message: str, grader: Grader) -> None:
    """Raises ExchangeError unless every path is this grader's review, its evidence, or a triage mark."""
    if not files or len(files) > MAX_FILES:
        raise ExchangeError(f"between 1 and {MAX_FILES} files can be published at once")
    if not message.strip() or "\0" in message or len(message) > MAX_MESSAGE:
        raise ExchangeError(f"a commit message has between 1 and {MAX_MESSAGE} characters, and no NUL")
    for path, data in files.items():
        what = review_file(path)
        if what is None:
            raise ExchangeError(
                f"{visible(path)}: only reviews/TASK/NAME/GRADER.md, its evidence and marks are published"
            )
        if what.grader and what.grader != grader.slug:
            raise ExchangeError(f"{visible(path)}: the review of another grader; you are {grader.slug or 'nobody yet'}")
        if len(data) > MAX_FILE:
            raise ExchangeError(f"{visible(path)}: larger than {MAX_FILE} bytes")
