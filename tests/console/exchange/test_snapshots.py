"""What a snapshot holds, and that one broken thing never hides the others."""

from __future__ import annotations

import errno
import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.exchange.kept import write_whole
from console.exchange.layout import (
    evidence_path,
    format_triage,
    name_problem,
    parse_triage,
    review_file,
    review_path,
    slug_problem,
    triage_path,
)
from console.exchange.model import TriageMark


def push(repo, hub) -> None:
    repo.git("push", "-q", str(hub), "HEAD:main")


def test_tasks_and_submissions(opened, hub) -> None:
    snapshot = opened(hub).snapshot()
    task = snapshot.tasks["softmax"]
    assert task.spec is not None
    assert (task.spec.entry, task.scenario, task.has_starter, task.problem) == (
        "softmax",
        "Write a softmax.\n",
        True,
        None,
    )
    first, second = snapshot.submissions
    assert (first.author, first.framework, first.problem) == ("Bo Author", "triton", None)
    assert (second.author, second.framework, second.problem) == ("a model", "torch", None)
    assert [file.path for file in second.files] == ["kernel.py", "submission.toml"]
    assert first.revision == second.revision == snapshot.head


def test_each_broken_thing_is_one_row(opened, hub, clone, sample) -> None:
    clone.commit(
        "much is wrong",
        {
            "tasks/typo/task.toml": str(sample["tasks/softmax/task.toml"]).replace("entry", "enrty"),
            "tasks/typo/reference.py": "",
            "tasks/none/reference.py": "",
            "tasks/blind/task.toml": sample["tasks/softmax/task.toml"],
            "submissions/typo/a/kernel.py": "x\n",
            "submissions/nothing/a/kernel.py": "x\n",
            "submissions/softmax/toml/kernel.py": "x\n",
            "submissions/softmax/toml/submission.toml": "author = [\n",
            "submissions/softmax/pallas/kernel.py": "x\n",
            "submissions/softmax/pallas/submission.toml": 'framework = "pallas"\n',
            "submissions/softmax/renamed/BOB kernel final (2).py": "x\n",
            "submissions/softmax/lfs/kernel.py": (
                f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 12345\n"
            ),
            "submissions/softmax/with space/kernel.py": "x\n",
            "submissions/softmax/file.py": "x\n",
            "submissions/README.md": "x\n",
        },
    )
    push(clone, hub)
    snapshot = opened(hub).snapshot()
    rows = {one.key: one.problem or "" for one in snapshot.submissions}
    assert "enrty" in rows["typo/a"] and "entry" in rows["typo/a"]
    assert "no task nothing" in rows["nothing/a"]
    assert "not TOML" in rows["softmax/toml"]
    assert "pallas" in rows["softmax/pallas"]
    assert rows["softmax/renamed"] == "no kernel.py; there is BOB kernel final (2).py"
    assert "12,345 bytes" in rows["softmax/lfs"]
    assert "letters, digits" in rows["softmax/with space"]
    assert rows["softmax/file.py"] == "a file, not a folder"
    assert rows["softmax/m-1"] == rows["softmax/m-2"] == ""
    assert snapshot.tasks["none"].problem == "no task.toml"
    assert snapshot.tasks["softmax"].problem is None
    assert any(one.startswith("tasks/typo: task.toml: enrty") for one in snapshot.problems)


def test_the_framework_is_told_by_the_source(opened, hub, clone, sample) -> None:
    both = str(sample["tasks/softmax/task.toml"]).replace('["triton", "torch"]', '["cuda", "triton"]')
    clone.commit(
        "two languages",
        {
            "tasks/both/task.toml": both,
            "tasks/both/reference.py": "",
            "submissions/both/cu/kernel.cu": "__global__ void f() {}\n",
            "submissions/both/py/kernel.py": sample["submissions/softmax/m-1/kernel.py"],
        },
    )
    push(clone, hub)
    rows = {one.key: (one.framework, one.problem) for one in opened(hub).snapshot().submissions}
    assert (rows["both/cu"], rows["both/py"]) == (("cuda", None), ("triton", None))


def test_links_and_submodules_are_not_followed(opened, hub, clone) -> None:
    clone.write({"submissions/softmax/linked/x": ""})
    os.symlink("/etc", clone.path / "submissions/softmax/outside")
    clone.git("add", "-A")
    clone.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},submissions/softmax/sub")
    clone.git("commit", "-qm", "links")
    push(clone, hub)
    rows = {one.name: one.problem for one in opened(hub).snapshot().submissions}
    assert "symbolic link" in rows["outside"]
    assert "submodule" in rows["sub"]


def test_names_that_are_hostile_or_not_utf8(opened, hub, clone) -> None:
    base = os.fsencode(clone.path / "submissions" / "softmax")
    for name in (b"es\x1b[31mc", b"bokm\xe5l", b"new\nline", "\u202eevil".encode(), b"a" * 200, b"[red]x"):
        os.mkdir(os.path.join(base, name))
        with open(os.path.join(base, name, b"kernel\xff.py"), "w") as file:
            file.write("x\n")
    clone.git("add", "-A")
    clone.git("commit", "-qm", "odd", env={"GIT_AUTHOR_NAME": "Eve\x1b[8m"})
    push(clone, hub)
    exchange = opened(hub)
    snapshot = exchange.snapshot()
    odd = [one for one in snapshot.submissions if one.problem]
    assert len(odd) == 6
    assert {one.author for one in odd} == {"Eve\x1b[8m"}
    for one in odd:
        f"{one.key}{one.files[0].path}".encode()
        assert exchange.files(one.tree)[0].path == "kernel\\xff.py"
        assert exchange.diff(one, "starter").files[0].path == "kernel.py"
        assert exchange.revisions(one)[0].commit == snapshot.head


def test_names_that_differ_in_case_only(opened, hub, clone) -> None:
    clone.commit("case", {"submissions/softmax/M-1/kernel.py": "x\n"})
    push(clone, hub)
    snapshot = opened(hub).snapshot()
    assert len(snapshot.submissions) == 3
    assert "submissions/softmax/m-1 and submissions/softmax/M-1 differ in case only" in snapshot.problems


def test_a_repository_that_is_no_exchange(opened, new_repo) -> None:
    repo = new_repo("other")
    repo.commit("one", {"README.md": "x\n"})
    assert "neither tasks/ nor submissions/" in opened(repo.path).snapshot().problems[0]


def test_tasks_come_from_the_default_branch_only(opened, hub, clone) -> None:
    clone.git("checkout", "-q", "-b", "side")
    clone.commit("own task", {"tasks/mine/task.toml": "x\n", "submissions/mine/a/kernel.py": "x\n"})
    clone.git("push", "-q", "origin", "side")
    snapshot = opened(clone.path).snapshot()
    assert (list(snapshot.tasks), snapshot.unpushed) == (["softmax"], 0)


def test_a_second_look_reads_nothing_twice(opened, hub) -> None:
    first = opened(hub).snapshot()
    assert opened(hub).snapshot() == first


def test_caches_that_are_broken_are_made_anew(opened, hub, tmp_path) -> None:
    first = opened(hub).snapshot()
    caches = list((tmp_path / "state").rglob("*.msgpack"))
    assert caches
    for cache in caches:
        cache.write_bytes(b"\x93garbage")
    assert opened(hub).snapshot() == first


REVIEW = """+++
schema = 1
task = "softmax"
submission = "{name}"
revision = "{revision}"
tree = "{tree}"
grader = "{grader}"
outcome = "incorrect"
mechanism = "flawed"
score = 3.0
rubric = {{ name = "kernel", version = 1, digest = "sha256:{digest}" }}
evidence = "sha256:{digest}"
+++

It is wrong.
"""


def review(name: str, revision: str, tree: str, grader: str) -> str:
    return REVIEW.format(name=name, revision=revision, tree=tree, grader=grader, digest="a" * 64)


def test_reviews_and_marks(opened, hub, clone) -> None:
    submission = opened(hub).snapshot().submissions[0]
    good = review("m-1", submission.revision, submission.tree, "bo")
    mark = TriageMark(
        task="softmax", submission="m-1", mark="reject", reason='no "kernel"', grader="bo", tree=submission.tree
    )
    commit = clone.commit(
        "reviews",
        {
            review_path("softmax", "m-1", "bo"): good,
            evidence_path("softmax", "m-1", "bo"): "{}",
            review_path("softmax", "m-1", "copied"): good,
            review_path("softmax", "m-2", "eve"): "not a review\x1b[2J",
            triage_path("softmax", "m-1"): format_triage(mark),
            triage_path("softmax", "m-2"): 'mark = "maybe"\n',
        },
        author="Bo <bo@example.org>",
    )
    push(clone, hub)
    exchange = opened(hub)
    exchange.fetch()
    snapshot = exchange.snapshot()
    records = {f"{one.submission}/{one.grader}": one for one in snapshot.reviews}
    record = records["m-1/bo"]
    assert record.review is not None
    assert (record.review.outcome, record.commit, record.author, record.problem) == ("incorrect", commit, "Bo", None)
    assert exchange.evidence(record) == b"{}"
    assert exchange.evidence(records["m-2/eve"]) is None
    assert records["m-1/copied"].review is None
    assert "the file stands under 'copied'" in (records["m-1/copied"].problem or "")
    assert "+++" in (records["m-2/eve"].problem or "")
    assert snapshot.triage == (mark,)
    assert any("m-2/triage.toml" in problem for problem in snapshot.problems)
    assert opened(hub).snapshot() == snapshot
    os.symlink(good, clone.path / "reviews/softmax/m-2/zed.md")
    clone.commit("a link whose target reads like a review")
    push(clone, hub)
    again = opened(hub, state="other").snapshot()
    assert {one.grader: one.problem for one in again.reviews if one.grader in ("bo", "zed")} == {
        "bo": None,
        "zed": "not a regular file",
    }


def test_reviews_of_an_unmerged_branch_are_read_together(opened, new_repo, sample) -> None:
    repo = new_repo("local")
    repo.commit("one", sample)
    tree = repo.git("rev-parse", "HEAD:submissions/softmax/m-1")
    head = repo.git("rev-parse", "HEAD")
    repo.commit("by bo", {"reviews/softmax/m-1/bo.md": review("m-1", head, tree, "bo")})
    repo.git("checkout", "-q", "-b", "kernel-review")
    repo.commit("by cy", {"reviews/softmax/m-1/cy.md": review("m-1", head, tree, "cy")})
    repo.commit("no task", {"tasks/extra/task.toml": "x\n"})
    repo.git("checkout", "-q", "main")
    exchange = opened(repo.path)
    assert [one.grader for one in exchange.snapshot().reviews] == ["bo", "cy"]
    assert list(exchange.snapshot().tasks) == ["softmax"]
    repo.git("branch", "-qD", "kernel-review")
    assert exchange.fetch()
    assert [one.grader for one in exchange.snapshot().reviews] == ["bo"]


def test_history_through_merges_and_renames(opened, hub, clone) -> None:
    first = clone.git("rev-parse", "HEAD")
    clone.git("checkout", "-q", "-b", "side")
    side = clone.commit("side", {"submissions/softmax/m-1/kernel.py": "side\n"}, author="Cy <cy@example.org>")
    clone.git("checkout", "-q", "main")
    clone.commit("elsewhere", {"submissions/softmax/m-9/kernel.py": "nine\n"})
    clone.git("merge", "-q", "--no-ff", "-m", "merge", "side")
    clone.git("mv", "submissions/softmax/m-1", "submissions/softmax/moved")
    clone.commit("a rename alone is no revision")
    clone.git("mv", "submissions/softmax/m-2", "submissions/softmax/also-moved")
    changed = clone.commit("renamed and changed", {"submissions/softmax/also-moved/kernel.py": "new\n"})
    push(clone, hub)
    exchange = opened(hub)
    snapshot = exchange.snapshot()
    moved, also = snapshot.submission("softmax/moved"), snapshot.submission("softmax/also-moved")
    assert moved is not None and also is not None
    assert (moved.revision, moved.author) == (side, "Cy")
    assert [one.commit for one in exchange.revisions(moved)] == [side, first]
    assert [(one.commit, one.moved_from) for one in exchange.revisions(also)] == [
        (changed, "softmax/m-2"),
        (first, ""),
    ]


def test_a_submission_that_came_back_begins_anew(opened, hub, clone) -> None:
    clone.git("rm", "-rq", "submissions/softmax/m-1")
    clone.commit("gone")
    back = clone.commit("back", {"submissions/softmax/m-1/kernel.py": "again\n"})
    push(clone, hub)
    exchange = opened(hub)
    submission = exchange.snapshot().submission("softmax/m-1")
    assert submission is not None
    assert [one.commit for one in exchange.revisions(submission)] == [back]


def test_history_grows_as_if_read_at_once(opened, hub, clone) -> None:
    exchange = opened(hub)
    for number in range(3):
        clone.commit(f"{number}", {"submissions/softmax/m-1/kernel.py": f"{number}\n"})
        push(clone, hub)
        exchange.fetch()
        exchange.snapshot()
    submission = exchange.snapshot().submissions[0]
    again = opened(hub, state="other")
    assert exchange.revisions(submission) == again.revisions(submission)
    assert len(again.revisions(submission)) == 4


def test_a_commit_whose_text_is_not_utf8(opened, hub, clone) -> None:
    clone.commit("x", {"submissions/softmax/m-1/kernel.py": "two\n"})
    raw = clone.git("cat-file", "commit", "HEAD").encode("utf-8", "surrogateescape")
    raw = raw.replace(b"Ann Lee", b"J\xf6rg").rpartition(b"\n\n")[0] + b"\n\nna\xefve \x1b[2J\n"
    oid = clone.git("hash-object", "-w", "-t", "commit", "--literally", "--stdin", stdin=raw)
    clone.git("update-ref", "refs/heads/main", oid)
    push(clone, hub)
    exchange = opened(hub)
    submission = exchange.snapshot().submissions[0]
    assert (submission.revision, submission.author) == (oid, "J\u00f6rg")
    assert exchange.revisions(submission)[0].subject == "na\u00efve \x1b[2J"


def test_a_submission_without_a_commit_of_its_own(opened, hub, clone) -> None:
    subprocess.run(["git", "-C", hub, "config", "receive.denyNonFastForwards", "true"], check=True)
    assert all(one.revision for one in opened(hub).snapshot().submissions)


def test_rubrics(opened, hub, clone, sample) -> None:
    exchange = opened(hub)
    task = exchange.snapshot().tasks["softmax"]
    assert b"criteria" in exchange.rubric(task)
    toml = 'rubric = "own.toml"\n'.join(str(sample["tasks/softmax/task.toml"]).split("[[cases]]\n", 1)[:1]) + (
        'rubric = "own"\n[[cases]]\nname = "small"\nargs = { rows = 3 }\n'
    )
    clone.commit("own rubric", {"tasks/softmax/task.toml": toml, "tasks/softmax/own.toml": "mine = 1\n"})
    push(clone, hub)
    exchange.fetch()
    assert exchange.rubric(exchange.snapshot().tasks["softmax"]) == b"mine = 1\n"


@given(st.text(max_size=30))
def test_names_and_paths_agree(name: str) -> None:
    if name_problem(name) is None:
        path = review_path("softmax", name, "ann")
        found = review_file(path)
        assert found is not None
        assert (found.kind, found.task, found.submission, found.grader) == ("review", "softmax", name, "ann")
        assert path.count("/") == 3
    else:
        assert review_file(f"reviews/softmax/{name}/ann.md") is None
    if slug_problem(name) is not None:
        assert review_file(f"reviews/softmax/m-1/{name}.md") is None


@given(st.text(max_size=200))
def test_marks_come_back_as_they_were(reason: str) -> None:
    mark = TriageMark(task="t", submission="s", mark="wants-review", reason=reason, grader="ann", tree="a" * 40)
    read = parse_triage(format_triage(mark), "t", "s")
    assert (read.mark, read.grader, read.tree) == (mark.mark, mark.grader, mark.tree)
    assert parse_triage(format_triage(read), "t", "s") == read


def test_a_full_disk_stops_nobody_from_reading(opened, clone, monkeypatch) -> None:
    def full(path: Path, data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    exchange = opened(clone.path)
    monkeypatch.setattr("console.exchange.kept.write_whole", full)
    assert [one.key for one in exchange.snapshot().submissions]


def test_a_full_disk_is_said_with_the_file_it_is_about(tmp_path, monkeypatch) -> None:
    name = tmp_path / "new"
    name.touch()
    monkeypatch.setattr(tempfile, "mkstemp", lambda **_: (os.open("/dev/full", os.O_WRONLY), str(name)))
    with pytest.raises(OSError, match="No space left") as caught:
        write_whole(tmp_path / "consent.json", b"x" * 100_000)
    assert caught.value.filename == str(tmp_path / "consent.json")
    assert not name.exists()
