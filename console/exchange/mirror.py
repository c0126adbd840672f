"""The private clone: where it lives, and how it is brought up to date."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec

from console.errors import EnvironmentFault
from console.exchange.errors import ExchangeError, GitRefused
from console.exchange.location import Location, ask
from console.exchange.process import NETWORK_SECONDS, Git, Result, checked, environment, reading, run, with_config
from console.exchange.settings import Settings, read_identity, read_settings

BASE = "refs/kr/base"
"""The branch that the exchange stands for, as last fetched."""
OVERLAY = "refs/kr/overlay"
"""``kernel-review`` of a path without a remote: reviews that are not merged yet."""
OVERLAY_BRANCH = "kernel-review"
LOCK_SECONDS = 300.0

_FETCH = (
    "fetch",
    "--quiet",
    "--no-tags",
    "--no-recurse-submodules",
    "--no-write-fetch-head",
    "--update-shallow",
    "--force",
)


class Tips(msgspec.Struct, frozen=True):
    """Commits as last fetched; empty strings where there is none."""

    base: str = ""
    overlay: str = ""
    branch: str = ""
    """The branch of ``base``; empty where its HEAD is detached."""
    shallow: bool = False
    """Whether history was cut off at the source."""


class _Advertised(msgspec.Struct, frozen=True):
    """What the source says it has."""

    branch: str
    tip: str
    overlay: str


class Mirror:
    """A bare repository of our own with everything that one branch of the source has."""

    def __init__(self, location: Location, state: Path) -> None:
        self.location = location
        self.home = state / "exchanges" / location.id
        self.folder = self.home / "repo.git"
        self._object_format = location.object_format
        self.git = Git(self.folder, self._reading)
        self._fetching = threading.Lock()
        self._deepened = False

    def _reading(self) -> dict[str, str]:
        return reading(self._object_format)

    @property
    def object_format(self) -> str:
        """``sha1`` or ``sha256``."""
        return self._object_format

    def settings(self) -> Settings:
        """What git is told in the grader's name, read anew: they may have changed it."""
        return read_settings(self.location, self.folder)

    def identity(self) -> tuple[str, str]:
        """The grader's name and email, empty where git knows none: a part of the settings that is quickly read."""
        return read_identity(self.location, self.folder)[:2]

    def as_user(self, *args: str, seconds: float = NETWORK_SECONDS) -> Result:
        """Run git in the private clone with the grader's ways to reach the source, but none of their hooks."""
        env = with_config(environment("user"), self.settings().reach()) | {"GIT_DIR": str(self.folder)}
        return run(args, cwd=self.folder, env=env, seconds=seconds)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """One process and one thread at a time."""
        from filelock import FileLock, Timeout

        try:
            with self._fetching, FileLock(self.home / "fetch.lock", timeout=LOCK_SECONDS):
                yield
        except Timeout:
            raise ExchangeError(f"another console holds {self.home / 'fetch.lock'} for {LOCK_SECONDS:g} s") from None

    def prepare(self) -> None:
        """Make the private clone where there is none, and fill it from what is at hand.

        A path without a remote is read anew each time. A clone's first filling comes from the clone itself, so that
        opening needs no network; an address is fetched once. Raises GitRefused when the first filling fails.
        """
        try:
            self.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            words = f"{self.home}: {error.strerror}; the console keeps its private clone there"
            raise EnvironmentFault(words) from None
        if not self._made():
            with self.locked():
                if not self._made():
                    self._create()
        if self.location.kind == "url":
            self._object_format = self.git.text("rev-parse", "--show-object-format")
        empty = not self.tips().base
        if self.location.local or (empty and not (self.location.kind == "clone" and self._seed())):
            self.fetch()

    def _made(self) -> bool:
        return (self.folder / "HEAD").exists()

    def _create(self) -> None:
        if self.location.kind == "url":
            self._object_format = self._format_of_source()
        building = Path(tempfile.mkdtemp(prefix="repo-", dir=self.home))
        try:
            init = ["init", "--quiet", "--bare", "--template=", f"--object-format={self._object_format}", str(building)]
            checked(run(init, cwd=self.home, env=self._reading()), "git init")
            building.rename(self.folder)
        except BaseException:
            shutil.rmtree(building, ignore_errors=True)
            raise

    def _format_of_source(self) -> str:
        env = with_config(environment("user"), (("protocol.ext.allow", "never"),))
        heads = run(["ls-remote", "--", self.location.source], cwd=self.home, env=env, seconds=NETWORK_SECONDS)
        first = checked(heads, f"reading {self.location.shown}", NETWORK_SECONDS).split(b"\t", 1)[0]
        return "sha256" if len(first) == 64 else "sha1"

    def tips(self) -> Tips:
        """The commits to read, as of the last fetch."""
        out = self.git.text("for-each-ref", "--format=%(refname) %(objectname)", BASE, OVERLAY)
        found = dict(line.split(" ", 1) for line in out.splitlines())
        return Tips(found.get(BASE, ""), found.get(OVERLAY, ""), self._branch(), self._is_shallow())

    def _branch(self) -> str:
        """The branch that HEAD names; a process less, since this repository is our own and keeps refs in files."""
        name = (self.folder / "HEAD").read_text("utf-8", "backslashreplace").strip()
        return name.removeprefix("ref: refs/heads/") if name.startswith("ref: ") else ""

    def fetch(self) -> bool:
        """Bring the private clone up to date; True when something changed. Raises GitRefused in git's words."""
        with self.locked():
            return self._fetch()

    def _fetch(self) -> bool:
        before = self.tips()
        there = self._advertised()
        wanted = []
        if there.tip and there.tip != before.base:
            wanted.append(f"+{f'refs/heads/{there.branch}' if there.branch else 'HEAD'}:{BASE}")
        if there.overlay and there.overlay != before.overlay:
            wanted.append(f"+refs/heads/{OVERLAY_BRANCH}:{OVERLAY}")
        deepen = self._is_shallow() and not self.location.local and not self._deepened and bool(there.tip)
        if deepen and not wanted:
            wanted.append(f"+{f'refs/heads/{there.branch}' if there.branch else 'HEAD'}:{BASE}")
        if wanted:
            depth = ("--unshallow",) if deepen else ()
            result = self.as_user(*_FETCH, *depth, "origin", *wanted)
            checked(result, f"fetching from {self.location.shown}", NETWORK_SECONDS)
            if deepen:
                self._deepened = True
                # It ends where history was cut off, and its tip would not tell.
                self.history_cache.unlink(missing_ok=True)
            self._tidy()
        if before.overlay and not there.overlay:
            self.git.out("update-ref", "-d", OVERLAY)
        self._remember_branch(there.branch, detached=bool(there.tip) and not there.branch)
        return self.tips() != before

    def _advertised(self) -> _Advertised:
        result = self.as_user("ls-remote", "--symref", "origin", "HEAD", f"refs/heads/{OVERLAY_BRANCH}")
        out = checked(result, f"reading {self.location.shown}", NETWORK_SECONDS).decode("utf-8", "backslashreplace")
        refs: dict[str, str] = {}
        branch = ""
        for line in out.splitlines():
            value, _, name = line.partition("\t")
            if value.startswith("ref: ") and name == "HEAD":
                branch = value.removeprefix("ref: refs/heads/")
            elif not value.startswith("ref: "):
                refs[name] = value
        overlay = refs.get(f"refs/heads/{OVERLAY_BRANCH}", "") if self.location.kind == "path" else ""
        if "HEAD" in refs or self.location.kind == "path":
            return _Advertised(branch or ("" if "HEAD" in refs else self.location.head), refs.get("HEAD", ""), overlay)
        return self._without_head()

    def _without_head(self) -> _Advertised:
        """HEAD names a branch that does not exist, as in a bare repository whose first push went to another one."""
        result = self.as_user("ls-remote", "--heads", "origin")
        out = checked(result, f"reading {self.location.shown}", NETWORK_SECONDS).decode("utf-8", "backslashreplace")
        heads = {
            name.removeprefix("refs/heads/"): oid
            for oid, _, name in (line.partition("\t") for line in out.splitlines())
        }
        heads.pop(OVERLAY_BRANCH, None)
        branch = _only_choice(tuple(heads))
        if heads and not branch:
            raise GitRefused(
                f"reading {self.location.shown}",
                "its HEAD names a branch that does not exist, and none of its branches is called main or master",
            )
        return _Advertised(branch, heads.get(branch, ""), "")

    def _seed(self) -> bool:
        """Fill from the remote-tracking branch of the grader's clone; False where it has none that will do."""
        assert self.location.folder is not None
        prefix = "refs/remotes/origin/"
        head = ask(self.location.folder, "symbolic-ref", "-q", f"{prefix}HEAD").out.decode("utf-8", "replace").strip()
        branch = head.removeprefix(prefix)
        if not branch:
            listed = ask(self.location.folder, "for-each-ref", "--format=%(refname)", prefix)
            names = listed.out.decode("utf-8", "replace").splitlines()
            branch = _only_choice(tuple(name.removeprefix(prefix) for name in names))
        if not branch:
            return False
        with self.locked():
            result = self.as_user(*_FETCH, str(self.location.git_dir), f"+{prefix}{branch}:{BASE}")
            if result.code == 0:
                self._remember_branch(branch, detached=False)
            return result.code == 0

    def _remember_branch(self, branch: str, *, detached: bool) -> None:
        if branch:
            self.git.out("symbolic-ref", "HEAD", f"refs/heads/{branch}")
        elif detached:
            self.git.out("update-ref", "--no-deref", "HEAD", BASE)

    @property
    def history_cache(self) -> Path:
        """Where the history of the base is kept between starts."""
        return self.home / "history.msgpack"

    def _is_shallow(self) -> bool:
        return (self.folder / "shallow").exists()

    def _tidy(self) -> None:
        """Let git pack what fetches left, in the foreground, when it thinks it is worth it."""
        env = with_config(self._reading(), (("gc.auto", "6700"), ("gc.autoDetach", "false")))
        run(["gc", "--auto", "--quiet"], cwd=self.folder, env=env, seconds=NETWORK_SECONDS)

    def unpushed(self, base: str) -> int:
        """Commits of the grader's HEAD that neither ``base`` nor any branch of origin has; 0 without an origin."""
        if self.location.kind != "clone" or self.location.folder is None or not base:
            return 0
        counted = ask(
            self.location.folder, "rev-list", "--count", "--ignore-missing", "HEAD", "--not", base, "--remotes=origin"
        )
        return int(counted.out) if counted.code == 0 else 0


def _only_choice(branches: tuple[str, ...]) -> str:
    """The branch to take where no HEAD says which: the only one, else main, else master, else none."""
    if len(branches) == 1:
        return branches[0]
    return next((name for name in ("main", "master") if name in branches), "")
