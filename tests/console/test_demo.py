"""The scratch exchange of ``demo``: a remote, a clone, a history, and nothing that gives a verdict away."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from console import cli, demo
from console.demo import data_folder, make_demo
from console.exchange.errors import ExchangeError, GitRefused
from console.grading.draft import Draft
from console.grading.problems import check
from console.grading.review import parse_review
from console.grading.rubric import digest_of, parse_rubric
from runners.contract import parse_task
from runners.evidence import decode

NOW = 1_800_000_000.0
REVISED = ("row-softmax/m-017", "tiled-matmul/m-061", "layer-norm/m-081")


def git(where: Path, *arguments: str) -> str:
    return subprocess.run(["git", "-C", str(where), *arguments], check=True, capture_output=True, text=True).stdout


@pytest.fixture
def no_identity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git without configuration of a user or of the machine; the file that is the user's."""
    config = tmp_path / "gitconfig"
    config.write_text("")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return config


@pytest.fixture
def clone(tmp_path: Path, no_identity: Path) -> Path:
    return make_demo(tmp_path / "demo", now=NOW)


def test_the_clone_is_clean_and_follows_the_bare_remote(clone: Path) -> None:
    remote = clone.parent / "remote.git"
    assert git(remote, "rev-parse", "--is-bare-repository").strip() == "true"
    assert git(clone, "status", "--porcelain") == ""
    assert git(clone, "rev-parse", "HEAD") == git(remote, "rev-parse", "main")
    assert Path(git(clone, "remote", "get-url", "origin").strip()) == remote
    subprocess.run(["git", "-C", str(remote), "fsck", "--strict"], check=True, capture_output=True)


def test_every_sample_is_there_and_nothing_else(clone: Path) -> None:
    samples = data_folder("sample_submissions")
    for part in ("tasks", "submissions"):
        expected = {
            f"{part}/{path.relative_to(samples / part).as_posix()}": path.read_bytes()
            for path in (samples / part).rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }
        names = git(clone, "ls-tree", "-r", "--name-only", "HEAD", "--", part).split()
        assert {name: (clone / name).read_bytes() for name in names} == expected
    assert {path.name for path in clone.iterdir()} == {".git", "README.md", "tasks", "submissions", "reviews"}


def test_no_verdict_travels(clone: Path) -> None:
    everything = git(clone, "log", "--all", "--name-only", "--format=%B")
    assert "verdicts" not in everything
    assert "earlier/" not in everything


def test_the_history_has_several_people_and_runs_forward(clone: Path) -> None:
    rows = [line.split("\t") for line in git(clone, "log", "--reverse", "--format=%at\t%an\t%ct").splitlines()]
    times = [int(row[0]) for row in rows]
    assert times == sorted(times)
    assert times[-1] < NOW
    assert [row[0] for row in rows] == [row[2] for row in rows]
    assert len({row[1] for row in rows}) >= 3


@pytest.mark.parametrize("key", REVISED)
def test_some_submissions_have_an_earlier_revision(clone: Path, key: str) -> None:
    revisions = git(clone, "log", "--format=%H", "--", f"submissions/{key}").split()
    assert len(revisions) == 2
    kernels = {git(clone, "show", f"{commit}:submissions/{key}/kernel.py") for commit in revisions}
    assert len(kernels) == 2


def test_reviews_belong_to_the_revision_they_name(clone: Path) -> None:
    paths = sorted((clone / "reviews").rglob("*.md"))
    assert paths
    for path in paths:
        review = parse_review(path.read_text(), path.name)
        submission = f"submissions/{review.task}/{review.submission}"
        assert path == clone / review.path
        assert review.tree == git(clone, "rev-parse", f"HEAD:{submission}").strip()
        assert review.revision == git(clone, "log", "-1", "--format=%H", "--", submission).strip()
        evidence = decode((clone / review.evidence_path).read_bytes())
        assert evidence.submission.tree == review.tree
        assert evidence.submission.revision == review.revision
        assert evidence.task.tree == git(clone, "rev-parse", f"HEAD:tasks/{review.task}").strip()


def test_a_review_would_pass_the_checks_before_a_commit(clone: Path) -> None:
    for path in sorted((clone / "reviews").rglob("*.md")):
        review = parse_review(path.read_text(), path.name)
        submission = clone / "submissions" / review.task / review.submission
        task = clone / "tasks" / review.task
        beside = task / f"{parse_task((task / 'task.toml').read_bytes()).rubric}.toml"
        installed = data_folder("rubrics") / beside.name
        rubric = parse_rubric((beside if beside.exists() else installed).read_bytes(), beside.name)
        evidence = decode((clone / review.evidence_path).read_bytes())
        draft = Draft.begin(review.task, review.submission, review.revision, review.tree, rubric, evidence)
        draft = draft.with_outcome(review.outcome).with_mechanism(review.mechanism).with_body(review.body)
        for one in review.criteria:
            draft = draft.with_level(one.id, one.level).with_note(one.id, one.note)
            for cite in one.cites:
                draft = draft.attach(one.id, cite)
        files = {file.name: file.read_text() for file in submission.iterdir()}
        assert check(draft, rubric, evidence, files) == ()
        assert digest_of((clone / review.evidence_path).read_bytes()) == review.evidence


def test_triage_marks_name_the_tree(clone: Path) -> None:
    paths = sorted((clone / "reviews").rglob("triage.toml"))
    assert paths
    for path in paths:
        key = path.parent.relative_to(clone / "reviews").as_posix()
        assert git(clone, "rev-parse", f"HEAD:submissions/{key}").strip() in path.read_text()


def test_the_same_moment_gives_the_same_commits(clone: Path, tmp_path: Path) -> None:
    again = make_demo(tmp_path / "again", now=NOW)
    assert git(again, "rev-parse", "HEAD") == git(clone, "rev-parse", "HEAD")


def test_a_grader_without_a_name_gets_one_in_the_clone_only(clone: Path, no_identity: Path) -> None:
    assert git(clone, "config", "--local", "--get", "user.email").strip() == "demo-grader@kernels.example"
    assert no_identity.read_text() == ""


def test_a_grader_with_a_name_keeps_it(tmp_path: Path, no_identity: Path) -> None:
    no_identity.write_text("[user]\n\tname = Ann Lee\n\temail = ann@lee.example\n")
    clone = make_demo(tmp_path / "demo", now=NOW)
    assert git(clone, "config", "user.email").strip() == "ann@lee.example"
    local = subprocess.run(["git", "-C", str(clone), "config", "--local", "--get", "user.email"], capture_output=True)
    assert local.stdout == b""


def test_an_occupied_folder_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("keep")
    with pytest.raises(ExchangeError, match="not an empty folder"):
        make_demo(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_git_is_heard_when_it_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "BRANCH", "not a branch..name")
    with pytest.raises(GitRefused):
        make_demo(tmp_path / "demo")


def test_variables_of_another_repository_do_not_lead_git_astray(
    tmp_path: Path, no_identity: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    subprocess.run(["git", "init", "--quiet", str(other)], check=True)
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    clone = make_demo(tmp_path / "demo", now=NOW)
    monkeypatch.delenv("GIT_DIR")
    assert git(clone, "log", "--oneline")
    assert git(other, "for-each-ref") == ""


def test_data_of_an_installed_package_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "console"
    (package / "data" / "rubrics").mkdir(parents=True)
    (tmp_path / "sample_submissions").mkdir()
    monkeypatch.setattr(demo, "__file__", str(package / "demo.py"))
    assert data_folder("rubrics") == package / "data" / "rubrics"
    assert data_folder("sample_submissions") == tmp_path / "sample_submissions"


def test_the_demo_says_at_the_end_where_everything_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from console.verbs import open as opening

    monkeypatch.setattr(opening, "run", lambda args: 0)
    folder = tmp_path / "demo"
    assert cli.main(["demo", str(folder)]) == 0
    told = capsys.readouterr().err
    assert f"kernel-review open {folder / 'exchange'}" in told
    remote = re.search(r"git -C (\S+) log", told)
    assert remote is not None
    log = subprocess.run(["git", "-C", remote[1], "log", "--oneline"], capture_output=True, text=True, check=True)
    assert "review(" in log.stdout
