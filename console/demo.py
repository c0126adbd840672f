"""A scratch exchange to try the console on: a bare remote with a history, and a clone of it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from email.utils import parseaddr
from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec

from console.exchange.errors import ExchangeError
from console.exchange.layout import format_triage, slug_of, submission_path, triage_path
from console.exchange.model import Mark, TriageMark
from console.exchange.process import Git, environment
from console.grading.draft import Draft
from console.grading.form import fill, parse_form
from console.grading.message import commit_message
from console.grading.review import format_review
from console.grading.rubric import Rubric, parse_rubric
from console.grading.suggest import suggest
from console.schema import Strict, convert, load_toml
from runners.contract import parse_task
from runners.evidence import SubmissionRef, decode, encode

BRANCH = "main"
Hours = Annotated[float, msgspec.Meta(ge=0)]

Files = Mapping[str, bytes]


class _Commit(Strict, frozen=True, kw_only=True):
    author: str
    hours: Hours
    subject: str
    add: tuple[str, ...]
    earlier: bool = False


class _ReviewEntry(Strict, frozen=True, kw_only=True):
    author: str
    hours: Hours
    task: str
    submission: str

    @property
    def grader(self) -> str:
        """The slug that the author's address gives."""
        return slug_of(parseaddr(self.author)[1])


class _TriageEntry(_ReviewEntry, frozen=True, kw_only=True):
    mark: Mark
    reason: str


class _History(Strict, frozen=True, kw_only=True):
    commits: tuple[_Commit, ...]
    reviews: tuple[_ReviewEntry, ...] = ()
    triage: tuple[_TriageEntry, ...] = ()


def data_folder(name: str) -> Path:
    """A folder of the project's data: in the installed package, else beside it in a checkout."""
    package = Path(__file__).resolve().parent
    packaged = package / "data" / name
    return packaged if packaged.is_dir() else package.parent / name


def make_demo(dest: Path, *, now: float | None = None) -> Path:
    """Make ``remote.git`` and ``exchange``, a clone of it, under ``dest``; the clone's path.

    The clone gets a name and an email only where git knows none. ``now``, seconds since 1970, is when the history
    ends. Raises ExchangeError where ``dest`` is not an empty folder, GitRefused in git's words.
    """
    dest = dest.resolve()
    if dest.exists() and (not dest.is_dir() or any(dest.iterdir())):
        raise ExchangeError(f"{dest} is not an empty folder; name a new one")
    samples = data_folder("sample_submissions")
    history = convert(load_toml((samples / "history.toml").read_bytes(), "history.toml"), _History, "history.toml")
    end = time.time() if now is None else now
    remote, clone = _git(dest / "remote.git"), _git(dest / "exchange")
    for git in (remote, clone):
        git.folder.mkdir(parents=True)
    remote.out("init", "--quiet", "--bare", "--template=", f"--initial-branch={BRANCH}")
    _import(remote, b"".join(_work(samples, history.commits, end)))
    _import(remote, b"".join(_judgements(samples, history, remote, end)))
    clone.out("clone", "--quiet", remote.folder, ".")
    for key, value in (("user.name", "Demo Grader"), ("user.email", "demo-grader@kernels.example")):
        if not clone.text("config", "--default", "", "--get", key):
            clone.out("config", key, value)
    return clone.folder


def _git(folder: Path) -> Git:
    """Git as its user has it, in ``folder``."""
    return Git(folder, partial(environment, "user"))


def _work(samples: Path, commits: Iterable[_Commit], end: float) -> Iterator[bytes]:
    """The commits of tasks and submissions, as git fast-import reads them."""
    for commit in commits:
        files = {path: data for name in commit.add for path, data in _files(samples / name, name)}
        if commit.earlier:
            first = {f"submissions/{path}": data for path, data in _files(samples / "earlier", "")}
            files.update({path: data for path, data in first.items() if path in files})
        yield _commit(commit.author, end - commit.hours * 3600, commit.subject, files)


def _judgements(samples: Path, history: _History, remote: Git, end: float) -> Iterator[bytes]:
    """The commits of reviews and triage marks, by time."""
    for entry in sorted((*history.reviews, *history.triage), key=lambda one: -one.hours):
        path = submission_path(entry.task, entry.submission)
        tree = remote.text("rev-parse", f"{BRANCH}:{path}")
        if isinstance(entry, _TriageEntry):
            message, files = _triage(entry, tree)
        else:
            revision = remote.text("log", "-1", "--format=%H", BRANCH, "--", path)
            message, files = _review(samples, entry, tree, revision)
        yield _commit(entry.author, end - entry.hours * 3600, message, files)


def _triage(entry: _TriageEntry, tree: str) -> tuple[str, Files]:
    mark = TriageMark(
        task=entry.task,
        submission=entry.submission,
        mark=entry.mark,
        reason=entry.reason,
        grader=entry.grader,
        tree=tree,
    )
    return f"triage({mark.key}): {mark.mark}", {triage_path(mark.task, mark.submission): format_triage(mark)}


def _review(samples: Path, entry: _ReviewEntry, tree: str, revision: str) -> tuple[str, Files]:
    """A recorded run and a filled-in form, made into a review of the revision that was imported."""
    task, name = entry.task, entry.submission
    recorded = samples / "reviews" / task / name
    evidence = decode((recorded / "evidence.json").read_bytes())
    evidence = msgspec.structs.replace(evidence, submission=SubmissionRef(name, evidence.submission.tree, revision))
    rubric = _rubric(samples / "tasks" / task)
    form = parse_form((recorded / "form.toml").read_bytes(), rubric, "form.toml")
    draft = fill(Draft.begin(task, name, revision, tree, rubric, evidence), form, suggest(rubric, evidence))
    review = draft.to_review(rubric, evidence, entry.grader)
    files = {review.path: format_review(review).encode(), review.evidence_path: encode(evidence)}
    return commit_message(review, rubric), files


def _rubric(task: Path) -> Rubric:
    """The rubric that the task names: beside it, else an installed one."""
    file = f"{parse_task((task / 'task.toml').read_bytes()).rubric}.toml"
    beside = task / file
    return parse_rubric((beside if beside.is_file() else data_folder("rubrics") / file).read_bytes(), file)


def _files(root: Path, name: str) -> Iterator[tuple[str, bytes]]:
    """Every file under ``root``, or ``root`` itself, by its path in the exchange."""
    if root.is_file():
        yield name, root.read_bytes()
        return
    for entry in sorted(root.iterdir(), key=lambda one: one.name):
        if entry.name != "__pycache__":
            yield from _files(entry, f"{name}/{entry.name}".lstrip("/"))


def _commit(author: str, when: float, message: str, files: Files) -> bytes:
    """One commit on top of the branch, in the input format of git fast-import."""
    person = f"{author} {int(when)} +0000".encode()
    lines = [f"commit refs/heads/{BRANCH}".encode(), b"author " + person, b"committer " + person]
    lines.append(_data(message.encode()))
    for path, content in files.items():
        lines += [f"M 100644 inline {path}".encode(), _data(content)]
    return b"\n".join(lines) + b"\n"


def _data(content: bytes) -> bytes:
    return b"data %d\n%s" % (len(content), content)


def _import(repository: Git, stream: bytes) -> None:
    # A stream that names no parent would begin the branch anew, so the second one has to say where it goes on.
    known = repository.text("for-each-ref", "--format=%(objectname)", f"refs/heads/{BRANCH}")
    start = f"reset refs/heads/{BRANCH}\nfrom {known}\n\n".encode() if known else b""
    repository.out("fast-import", "--quiet", "--done", stdin=start + stream + b"done\n")
