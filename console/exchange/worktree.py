"""A throw-away work tree of the private clone, in which ``git commit`` and its hooks run."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from console.exchange.errors import ExchangeError, GitRefused
from console.exchange.mirror import Mirror
from console.exchange.process import Git, checked, environment, run, with_config

PENDING = "refs/kr/pending/"
"""Commits that were made and have not arrived."""
COMMIT_SECONDS = 300.0

_UNSIGNED = re.compile("failed to sign|[Cc]ould not sign|failed to write commit object")
_NOBODY_TO_ASK = (
    "(A passphrase cannot be asked for under the screen: sign once in another terminal, so that the agent knows it.)"
)

_SPARSE = (
    ("core.sparseCheckout", "true"),
    ("core.sparseCheckoutCone", "true"),
    ("index.sparse", "false"),
    # A link is checked out as a file that holds its target: writing never leaves the work tree.
    ("core.symlinks", "false"),
)


class WorkTree:
    """Files at the top and in the folders that are written, on a HEAD of its own; everything else is only listed.

    HEAD is a symbolic reference to ``refs/kr/pending/ID``: git's own update of HEAD is what keeps a new commit, so
    there is no moment in which a crash could lose it.
    """

    def __init__(self, mirror: Mirror, identity: str, *, attended: bool) -> None:
        self.mirror = mirror
        self.id = identity
        self.ref = PENDING + identity
        self.path = mirror.home / "work" / identity
        self.attended = attended
        self.committed = False
        """Whether HEAD holds more than what was checked out."""
        self.git = Git(self.path, self._reading)

    def _reading(self) -> dict[str, str]:
        return with_config(self.mirror.git.env(), _SPARSE)

    def check_out(self, start: str, paths: tuple[str, ...]) -> None:
        """Make the work tree on ``start``, with the folders of ``paths``."""
        private = self.mirror.git
        private.out("worktree", "add", "--quiet", "--detach", "--no-checkout", str(self.path), start)
        info = Path(self.git.text("rev-parse", "--path-format=absolute", "--git-path", "info/sparse-checkout"))
        info.parent.mkdir(exist_ok=True)
        info.write_text(_cone(paths), "utf-8")
        self.git.out("read-tree", "-m", "-u", "HEAD")

    def attach(self) -> None:
        """From here on, HEAD is the kept reference."""
        self.git.out("update-ref", self.ref, "HEAD")
        self.git.out("symbolic-ref", "HEAD", self.ref)

    def head(self) -> str:
        """The commit that HEAD is at."""
        return self.git.text("rev-parse", "--verify", "HEAD")

    def write(self, files: Mapping[str, bytes]) -> dict[str, str]:
        """Put exactly these bytes into the index and into the work tree; the blob of each path.

        Raises ExchangeError where a link or a file stands in the way.
        """
        oids = {}
        for path, data in files.items():
            self._clear_way(path)
            oids[path] = self.git.out("hash-object", "-w", "--no-filters", "--stdin", stdin=data).decode().strip()
            self.git.out("update-index", "--add", "--cacheinfo", f"100644,{oids[path]},{path}")
            target = self.path / path
            target.parent.mkdir(parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
            with os.fdopen(os.open(target, flags, 0o644), "wb") as file:
                file.write(data)
        return oids

    def changed(self) -> bool:
        """Whether the index differs from what was checked out."""
        return self.git.try_run("diff-index", "--cached", "--quiet", "HEAD", "--").code != 0

    def _clear_way(self, path: str) -> None:
        parts = path.split("/")
        above = ["/".join(parts[:depth]) for depth in range(1, len(parts) + 1)]
        out = self.git.out("ls-tree", "-z", "--full-tree", "HEAD", "--", *above)
        for line in filter(None, out.split(b"\0")):
            head, _, found = line.partition(b"\t")
            name = found.decode("utf-8", "replace")
            # A folder that is asked for along with something in it is listed by all that it holds.
            if name not in above:
                continue
            wanted = (b"100644", b"100755") if name == path else (b"040000",)
            if head[:6] not in wanted:
                raise ExchangeError(f"{path}: {name} is a link or something else that is not written through")

    def commit(self, message: str) -> str:
        """``git commit`` as the grader's own repository would: identity, signature, hooks. The new commit.

        Raises GitRefused in the words of git, of a hook or of the signer.
        """
        settings = self.mirror.settings().commit()
        text = message.rstrip("\n") + "\n"
        self.as_user(
            settings,
            "committing",
            "commit",
            "--quiet",
            "--cleanup=verbatim",
            "-F",
            "-",
            stdin=text.encode("utf-8", "replace"),
        )
        self.committed = True
        return self.head()

    def rebase(self, onto: str, start: str) -> str:
        """Move the commits since ``start`` to ``onto``; the new commit, kept like the old one.

        Raises GitRefused where they do not fit, with the old commit kept.
        """
        self.git.out("update-ref", "--no-deref", "HEAD", self.head())
        settings = self.mirror.settings().rebase()
        try:
            self.as_user(settings, "moving the commit to the newer state", "rebase", "--quiet", "--onto", onto, start)
        except GitRefused:
            self.git.try_run("rebase", "--abort")
            self.git.out("symbolic-ref", "HEAD", self.ref)
            raise
        self.attach()
        return self.head()

    def as_user(self, settings: tuple[tuple[str, str], ...], what: str, *args: str, stdin: bytes = b"") -> None:
        """Run git in the grader's name here. Raises GitRefused, which names the commit where there is one to keep."""
        env = with_config(environment("user", attended=self.attended), (*settings, *_SPARSE))
        result = run(args, cwd=self.path, env=env, stdin=stdin, seconds=COMMIT_SECONDS, attended=self.attended)
        kept = self.id if self.committed else None
        if result.code > 0 and not self.attended and _UNSIGNED.search(result.words):
            raise GitRefused(what, f"{result.words}\n{_NOBODY_TO_ASK}", pending=kept)
        checked(result, what, COMMIT_SECONDS, pending=kept)

    def remove(self) -> None:
        """Take the work tree away; the kept reference stays."""
        self.mirror.git.try_run("worktree", "remove", "--force", "--force", str(self.path))
        shutil.rmtree(self.path, ignore_errors=True)


def _cone(paths: tuple[str, ...]) -> str:
    """Patterns in git's cone form: files at the top, and every folder on the way to ``paths`` with its files."""
    lines = ["/*", "!/*/"]
    folders = sorted({path.rpartition("/")[0] for path in paths})
    parents = {"/".join(folder.split("/")[:depth]) for folder in folders for depth in range(1, folder.count("/") + 1)}
    for parent in sorted(parents - set(folders)):
        lines += [f"/{parent}/", f"!/{parent}/*/"]
    lines += [f"/{folder}/" for folder in folders]
    return "\n".join(lines) + "\n"


def new_id() -> str:
    """A name for a commit on its way: sorts by time."""
    return f"{int(time.time()):010x}-{secrets.token_hex(4)}"


@contextlib.contextmanager
def work_tree(mirror: Mirror, identity: str, *, attended: bool = False) -> Iterator[WorkTree]:
    """A work tree that no other process takes for abandoned. Raises ExchangeError when it is in use."""
    from filelock import FileLock, Timeout

    folder = mirror.home / "work"
    folder.mkdir(exist_ok=True)
    lock = FileLock(folder / f"{identity}.lock")
    try:
        # Together: a sweep must not come between the file of a lock and the lock.
        with mirror.locked():
            sweep(mirror)
            # Whoever asks whether it is in use holds it for a moment.
            lock.acquire(timeout=5)
    except Timeout:
        raise ExchangeError("another console is sending this review just now") from None
    tree = WorkTree(mirror, identity, attended=attended)
    try:
        yield tree
    finally:
        tree.remove()
        Path(lock.lock_file).unlink(missing_ok=True)
        lock.release()


def in_use(mirror: Mirror, identity: str) -> bool:
    """Whether a process is sending this commit just now."""
    from filelock import FileLock, Timeout

    file = mirror.home / "work" / f"{identity}.lock"
    if not file.exists():
        return False
    try:
        with FileLock(file, timeout=0):
            return False
    except Timeout:
        return True


def sweep(mirror: Mirror) -> None:
    """Remove the work trees of processes that died."""
    for file in (mirror.home / "work").glob("*.lock"):
        if not in_use(mirror, file.stem):
            WorkTree(mirror, file.stem, attended=False).remove()
            file.unlink(missing_ok=True)
