"""Who changed which submission and which review file, and when: one pass over the log, kept between starts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from console.exchange.kept import code_version, read_kept, write_kept
from console.exchange.process import Git
from console.exchange.text import decode_name, decode_words

LOG_SECONDS = 300.0
MAX_MOVES = 50
"""How many renames of one submission are followed."""

_LOG = (
    "log",
    "--reverse",
    "--topo-order",
    # A merge counts as a change of what it brings in; the state it brings in is kept under its own commit.
    "--diff-merges=first-parent",
    "--raw",
    "-r",
    "-t",
    "-z",
    "--no-abbrev",
    "--no-renames",
    "--no-show-signature",
    "--encoding=UTF-8",
    "--format=%x02%H%x00%an%x00%ae%x00%ct%x00%s",
)


class Commit(msgspec.Struct, frozen=True, array_like=True):
    """A commit that changed a submission or a review. ``when`` in seconds since 1970."""

    oid: str
    author: str
    email: str
    when: int
    subject: str


class State(msgspec.Struct, frozen=True, array_like=True):
    """What a commit (by its place in the list) made of a submission: its tree, empty when it removed it."""

    commit: int
    tree: str
    moved_from: str = ""


class History(msgspec.Struct, array_like=True):
    """Oldest first. Keys are ``TASK/NAME`` for submissions and paths for review files."""

    tip: str = ""
    commits: list[Commit] = []
    submissions: dict[str, list[State]] = {}
    reviews: dict[str, list[int]] = {}

    def states(self, key: str, tree: str) -> list[tuple[Commit, State]]:
        """Distinct states of a submission that is ``tree`` now, newest first, through renames.

        A merge never hides the commit that it merged; what a merge threw away is not a state.
        """
        found: list[tuple[Commit, State]] = []
        before = len(self.commits)
        for _ in range(MAX_MOVES):
            states = [state for state in self.submissions.get(key, ()) if state.commit < before]
            for state in reversed(states):
                if found and found[-1][1].tree == state.tree:
                    found.pop()
                if state.tree:
                    found.append((self.commits[state.commit], state))
                if state.moved_from or not state.tree:
                    break
            if not found or not found[-1][1].moved_from:
                break
            key, before = found[-1][1].moved_from, found[-1][1].commit
        start = next((place for place, (_, state) in enumerate(found) if state.tree == tree), 0)
        return found[start:]

    def last_change(self, path: str) -> Commit | None:
        """The newest commit that changed a review file."""
        places = self.reviews.get(path)
        return self.commits[places[-1]] if places else None

    def emails(self, path: str) -> set[str]:
        """Addresses of all who committed a review file, in small letters."""
        return {self.commits[place].email.casefold() for place in self.reviews.get(path, ())}


class _Change(msgspec.Struct, frozen=True):
    mode_old: bytes
    mode_new: bytes
    old: str
    new: str
    path: str


def load_history(git: Git, tip: str, cache: Path) -> History:
    """The history of ``tip``: from ``cache`` plus what is new, or all of it; written back to ``cache``."""
    version = code_version(__name__)
    known = read_kept(cache, version, History) or History()
    if known.tip == tip:
        return known
    if known.tip and git.try_run("merge-base", "--is-ancestor", known.tip, tip).code != 0:
        known = History()
    revisions = f"{known.tip}..{tip}" if known.tip else tip
    out = git.out(*_LOG, revisions, "--", "submissions", "reviews", seconds=LOG_SECONDS)
    for commit, changes in _commits(out):
        _add(known, commit, changes)
    known.tip = tip
    write_kept(cache, version, known)
    return known


def _commits(out: bytes) -> Iterator[tuple[Commit, list[_Change]]]:
    """Parse the log. Every field has its place, so no name, subject or path can pass for another."""
    fields = iter(out.split(b"\0"))
    token = next(fields, b"")
    while token:
        oid = token.lstrip(b"\n")[1:].decode("ascii")
        author, email, when, subject = (next(fields, b"") for _ in range(4))
        commit = Commit(oid, decode_words(author), decode_words(email), int(when or 0), decode_words(subject))
        changes = []
        token = next(fields, b"")
        while token.lstrip(b"\n").startswith(b":"):
            mode_old, mode_new, old, new, _ = token.lstrip(b"\n")[1:].split(b" ")
            path = decode_name(next(fields, b""))
            changes.append(_Change(mode_old, mode_new, old.decode("ascii"), new.decode("ascii"), path))
            token = next(fields, b"")
        yield commit, changes


def _add(history: History, commit: Commit, changes: list[_Change]) -> None:
    place = len(history.commits)
    removed: dict[str, str] = {}
    added: dict[str, str] = {}
    changed: dict[str, str] = {}
    files: dict[str, set[str]] = {}
    reviews = []
    for change in changes:
        parts = change.path.split("/", 3)
        if parts[0] == "submissions" and len(parts) >= 3:
            key = f"{parts[1]}/{parts[2]}"
            if len(parts) == 4:
                files.setdefault(key, set()).add(change.new if change.mode_new[:2] != b"00" else change.old)
            elif change.mode_new == b"040000":
                (added if change.mode_old != b"040000" else changed)[key] = change.new
            elif change.mode_old == b"040000":
                removed[key] = change.old
        elif parts[0] == "reviews" and len(parts) == 4 and b"040000" not in (change.mode_old, change.mode_new):
            reviews.append(change.path)
    if not (removed or added or changed or reviews):
        return
    history.commits.append(commit)
    origins = {} if not removed else {key: _origin(key, tree, removed, files) for key, tree in added.items()}
    for key, tree in (added | changed).items():
        history.submissions.setdefault(key, []).append(State(place, tree, origins.get(key, "")))
    for key in removed:
        history.submissions.setdefault(key, []).append(State(place, ""))
    for path in reviews:
        history.reviews.setdefault(path, []).append(place)


def _origin(key: str, tree: str, removed: dict[str, str], files: dict[str, set[str]]) -> str:
    """Of what the same commit removed in the same task, what ``key`` was before: same tree, or half of the files."""
    task = key.partition("/")[0] + "/"
    best, best_share = "", 0.5
    for other, other_tree in removed.items():
        if not other.startswith(task):
            continue
        if other_tree == tree:
            return other
        mine, theirs = files.get(key, set()), files.get(other, set())
        share = len(mine & theirs) / max(len(mine), len(theirs), 1)
        if share >= best_share:
            best, best_share = other, share
    return best
