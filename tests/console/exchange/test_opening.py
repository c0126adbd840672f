"""Every kind of place opens, or is refused in words; nothing of the grader's repository changes."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

import pytest

from console.errors import EnvironmentFault
from console.exchange import Exchange, ExchangeError, GitRefused
from console.exchange.layout import slug_of


def contents(folder: Path) -> dict[str, bytes | None]:
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def test_a_clone_stands_for_its_origin(opened, clone, hub) -> None:
    clone.commit("not pushed", {"submissions/softmax/m-3/kernel.py": "x\n"})
    before = contents(clone.path)
    exchange = opened(clone.path)
    snapshot = exchange.snapshot()
    assert [one.key for one in snapshot.submissions] == ["softmax/m-1", "softmax/m-2"]
    assert (snapshot.branch, snapshot.unpushed, snapshot.problems) == ("main", 1, ())
    exchange.fetch()
    assert contents(clone.path) == before


def test_a_clone_opens_without_its_remote(opened, clone, hub) -> None:
    hub.rename(hub.with_name("gone.git"))
    exchange = opened(clone.path)
    assert len(exchange.snapshot().submissions) == 2
    with pytest.raises(GitRefused, match="does not appear to be a git repository"):
        exchange.fetch()


def test_fetch_brings_what_is_new(opened, clone, hub, new_repo) -> None:
    exchange = opened(clone.path)
    first = exchange.snapshot()
    assert exchange.snapshot() is first
    assert not exchange.fetch()
    other = new_repo("seed")
    commit = other.commit("second", {"submissions/softmax/m-1/kernel.py": "changed\n"})
    other.git("push", "-q", str(hub), "main")
    assert exchange.fetch()
    assert not exchange.fetch()
    submission = exchange.snapshot().submission("softmax/m-1")
    assert submission is not None
    assert submission.revision == commit
    assert [one.commit for one in exchange.revisions(submission)] == [commit, first.head]


def test_a_branch_that_was_rewritten_is_read_anew(opened, clone, hub, new_repo) -> None:
    exchange = opened(clone.path)
    exchange.snapshot()
    other = new_repo("seed")
    other.git("rm", "-rq", "submissions/softmax/m-2")
    other.git("commit", "-q", "--amend", "-m", "begins otherwise")
    other.git("push", "-qf", str(hub), "main")
    assert exchange.fetch()
    snapshot = exchange.snapshot()
    assert [one.key for one in snapshot.submissions] == ["softmax/m-1"]
    assert snapshot.submissions[0].revision == snapshot.head


@pytest.mark.parametrize("place", ["", "submissions/softmax", ".git"])
def test_folders_of_a_clone(opened, clone, place: str) -> None:
    exchange = opened(clone.path / place)
    assert (exchange.name, len(exchange.snapshot().submissions)) == ("clone", 2)


def test_one_clone_is_one_exchange_wherever_it_is_entered(opened, clone) -> None:
    assert opened(clone.path).id == opened(clone.path / "submissions").id


def test_a_bare_repository_stands_for_itself(opened, hub) -> None:
    exchange = opened(hub)
    assert (exchange.name, exchange.snapshot().branch, len(exchange.snapshot().submissions)) == ("hub", "main", 2)
    assert not exchange.needs_trust


def test_a_bare_repository_whose_head_names_no_branch(opened, hub) -> None:
    subprocess.run(["git", "-C", hub, "symbolic-ref", "HEAD", "refs/heads/master"], check=True)
    assert opened(hub).snapshot().branch == "main"
    subprocess.run(["git", "-C", hub, "branch", "-m", "main", "trunk"], check=True)
    subprocess.run(["git", "-C", hub, "branch", "other", "trunk"], check=True)
    with pytest.raises(GitRefused, match="none of its branches is called main or master"):
        opened(hub, state="other")


def test_a_path_without_a_remote_stands_for_its_branch(opened, new_repo, sample) -> None:
    repo = new_repo("local")
    repo.git("checkout", "-q", "-b", "work")
    repo.commit("one", sample)
    repo.write({"submissions/softmax/uncommitted/kernel.py": "x\n"})
    exchange = opened(repo.path)
    assert (exchange.snapshot().branch, len(exchange.snapshot().submissions)) == ("work", 2)
    repo.commit("two", {"submissions/softmax/m-3/kernel.py": "x\n"})
    exchange.close()
    assert len(opened(repo.path).snapshot().submissions) == 4


def test_a_work_tree_stands_for_its_own_branch(opened, new_repo, sample, tmp_path) -> None:
    repo = new_repo("local")
    repo.commit("one", sample)
    repo.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    side = new_repo("side")
    side.commit("two", {"submissions/softmax/m-3/kernel.py": "x\n"})
    snapshot = opened(side.path).snapshot()
    assert (snapshot.branch, len(snapshot.submissions)) == ("side", 3)


def test_an_unborn_branch_is_named(opened, new_repo) -> None:
    snapshot = opened(new_repo("unborn").path).snapshot()
    assert (snapshot.head, snapshot.branch, snapshot.submissions) == ("", "main", ())
    assert "branch main has no commits yet" in snapshot.problems[0]


def test_an_empty_bare_repository_is_named(opened, new_repo, tmp_path) -> None:
    subprocess.run(["git", "init", "-q", "--bare", tmp_path / "empty.git"], check=True)
    assert "no commits yet" in opened(tmp_path / "empty.git").snapshot().problems[0]


def test_a_detached_head_is_named(opened, new_repo, sample) -> None:
    repo = new_repo("detached")
    first = repo.commit("one", sample)
    repo.commit("two", {"submissions/softmax/m-3/kernel.py": "x\n"})
    repo.git("checkout", "-q", first)
    exchange = opened(repo.path)
    snapshot = exchange.snapshot()
    assert (snapshot.head, snapshot.branch, len(snapshot.submissions)) == (first, "", 2)
    assert f"HEAD is detached, so its commit {first[:12]} is read" in snapshot.problems[0]
    repo.git("checkout", "-q", "main")
    assert exchange.fetch()
    assert exchange.snapshot().branch == "main"


def test_a_shallow_clone_is_deepened_from_its_origin(opened, hub, new_repo, tmp_path) -> None:
    seed = new_repo("seed")
    seed.commit("two", {"submissions/softmax/m-1/kernel.py": "second\n"})
    seed.git("push", "-q", str(hub), "main")
    subprocess.run(["git", "clone", "-q", "--depth", "1", f"file://{hub}", tmp_path / "shallow"], check=True)
    exchange = opened(tmp_path / "shallow")
    snapshot = exchange.snapshot()
    assert any("shallow" in problem for problem in snapshot.problems)
    assert len(exchange.revisions(snapshot.submissions[0])) == 1
    assert exchange.fetch()
    assert exchange.snapshot().problems == ()


def test_a_shallow_repository_without_a_remote(opened, hub, tmp_path) -> None:
    where = tmp_path / "shallow"
    subprocess.run(["git", "clone", "-q", "--depth", "1", f"file://{hub}", where], check=True)
    subprocess.run(["git", "-C", where, "remote", "remove", "origin"], check=True)
    exchange = opened(where)
    assert len(exchange.snapshot().submissions) == 2
    assert not exchange.fetch()


def test_sha256_repositories(opened, new_repo, sample, tmp_path) -> None:
    repo = new_repo("long", "--object-format=sha256")
    repo.commit("one", sample)
    repo.git("init", "-q", "--bare", "--object-format=sha256", str(tmp_path / "long.git"))
    repo.git("push", "-q", str(tmp_path / "long.git"), "main")
    for where in (repo.path, f"file://{tmp_path / 'long.git'}"):
        exchange = opened(where)
        snapshot = exchange.snapshot()
        assert len(snapshot.head) == 64
        assert exchange.diff(snapshot.submissions[0], "previous").files[0].added == 8


def test_an_origin_given_by_a_relative_path(opened, clone, hub) -> None:
    clone.git("remote", "set-url", "origin", "../hub.git")
    exchange = opened(clone.path / "submissions")
    assert not exchange.fetch()
    assert exchange.source == str(hub)


def test_rewritten_addresses_are_followed(opened, clone, hub, own_git) -> None:
    own_git.write_text(own_git.read_text() + f'[url "{hub.parent}/"]\n\tinsteadOf = short:\n')
    clone.git("remote", "set-url", "origin", "short:hub.git")
    assert not opened(clone.path).fetch()


def test_an_address_needs_trust_once(opened, hub) -> None:
    where = f"file://{hub}"
    exchange = opened(where)
    assert exchange.needs_trust
    assert len(exchange.snapshot().submissions) == 2
    assert opened(where).needs_trust
    assert not opened(where, trust=True).needs_trust
    assert not opened(where).needs_trust
    assert opened(where, state="other").needs_trust


def test_a_broken_consent_file_is_no_consent(opened, hub, tmp_path) -> None:
    exchange = opened(f"file://{hub}", trust=True)
    (tmp_path / "state" / "consent.json").write_text("yes")
    with pytest.raises(ExchangeError, match=r"consent\.json: cannot be read"):
        _ = exchange.needs_trust


def test_a_changed_reference_is_to_be_confirmed(opened, hub, new_repo) -> None:
    exchange = opened(hub)
    assert not exchange.reference_changed(exchange.snapshot().tasks["softmax"])
    seed = new_repo("seed")
    seed.commit("new reference", {"tasks/softmax/reference.py": "def reference(x): return x\n"})
    seed.git("push", "-q", str(hub), "main")
    exchange.fetch()
    task = exchange.snapshot().tasks["softmax"]
    assert exchange.reference_changed(task)
    exchange.confirm_reference(task)
    assert not exchange.reference_changed(task)


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("/nowhere/at/all", "no such path"),
        ("", "name a path"),
        ("ext::sh -c 'touch pwned'", "may run programs"),
        ("fd::17", "may run programs"),
        ("--upload-pack=touch pwned", "no such path"),
        ("a\nb", "name a path"),
        ("\x1b[2Jx", "\u241b"),
    ],
)
def test_what_is_no_place_is_said(opened, where: str, words: str) -> None:
    with pytest.raises(ExchangeError, match=words):
        opened(where)


def test_a_folder_without_git_and_a_file(opened, tmp_path) -> None:
    (tmp_path / "plain").mkdir()
    with pytest.raises(ExchangeError, match="not a git repository"):
        opened(tmp_path / "plain")
    (tmp_path / "file").write_text("")
    with pytest.raises(ExchangeError, match="not a folder"):
        opened(tmp_path / "file")


def test_an_address_that_answers_not(opened, tmp_path) -> None:
    with pytest.raises(GitRefused, match="does not appear to be a git repository"):
        opened(f"file://{tmp_path}/none.git")


def test_secrets_in_an_address_are_never_shown(opened) -> None:
    with pytest.raises(GitRefused) as caught:
        opened("http://ann:s3cret@127.0.0.1:9/x.git")
    assert "s3cret" not in str(caught.value)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_another_owner_is_refused_in_gits_words(opened, new_repo, sample, own_git) -> None:
    repo = new_repo("theirs")
    repo.commit("one", sample)
    for path in (repo.path, *repo.path.rglob("*")):
        os.lchown(path, 65534, 65534)
    before = own_git.read_bytes()
    with pytest.raises(GitRefused, match=r"git config --global --add safe\.directory"):
        opened(repo.path)
    assert own_git.read_bytes() == before


def test_no_identity_still_opens(opened, clone, own_git) -> None:
    own_git.write_text("[user]\n\tuseConfigOnly = true\n")
    exchange = opened(clone.path)
    assert exchange.grader.slug == ""
    assert exchange.snapshot().submissions
    assert "user.email" in exchange.preview({"reviews/softmax/m-1/triage.toml": b"x"}, "triage").problem


def test_the_grader_is_git_s_or_the_configured_one(opened, clone) -> None:
    assert (opened(clone.path).grader.name, opened(clone.path).grader.slug) == ("Ann Lee", "ann-lee")
    clone.git("config", "user.email", "bob@example.org")
    assert opened(clone.path).grader.slug == "bob"
    assert opened(clone.path, grader="lead").grader.slug == "lead"
    with pytest.raises(ExchangeError, match="slug"):
        opened(clone.path, grader="../x")


@pytest.mark.parametrize(
    ("email", "slug"),
    [
        ("Ann.Lee+x@example.org", "ann-lee-x"),
        ("12345+annlee@users.noreply.github.com", "annlee"),
        ("annlee@users.noreply.github.com", "annlee"),
        ("", ""),
        ("...@x", ""),
    ],
)
def test_slugs(email: str, slug: str) -> None:
    assert slug_of(email) == slug


def test_fetching_while_reading(opened, hub, new_repo) -> None:
    exchange = opened(hub)
    seed = new_repo("seed")
    errors: list[BaseException] = []
    stop = threading.Event()

    def fetch() -> None:
        while not stop.is_set():
            try:
                exchange.fetch()
            except BaseException as error:
                errors.append(error)
                return

    thread = threading.Thread(target=fetch)
    thread.start()
    try:
        for number in range(8):
            seed.commit(f"{number}", {f"submissions/softmax/n-{number}/kernel.py": f"{number}\n"})
            seed.git("push", "-q", str(hub), "main")
            snapshot = exchange.snapshot()
            for submission in snapshot.submissions:
                assert exchange.files(submission.tree)
    finally:
        stop.set()
        thread.join()
    assert not errors
    exchange.fetch()
    assert len(exchange.snapshot().submissions) == 10


def test_two_consoles_share_a_private_clone(opened, hub) -> None:
    first, second = opened(hub), opened(hub)
    threads = [threading.Thread(target=one.fetch) for one in (first, second) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert first.snapshot() == second.snapshot()


def test_the_state_folder_follows_xdg(hub, tmp_path) -> None:
    with Exchange.open(str(hub)) as exchange:
        assert exchange.snapshot().head
    assert list((tmp_path / "state" / "kernel-review" / "exchanges").iterdir())


def test_a_state_folder_that_cannot_be_made(hub, tmp_path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EnvironmentFault, match="private clone"):
        Exchange.open(str(hub), state=tmp_path / "file")


def test_what_was_opened_before_asks_git_little(opened, clone, monkeypatch) -> None:
    """Each process costs the grader some milliseconds of the start."""
    first = opened(clone.path).snapshot()
    asked = []

    class Counted(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, args, **options) -> None:
            asked.append(args[1])
            super().__init__(args, **options)

    monkeypatch.setattr(subprocess, "Popen", Counted)
    again = opened(clone.path)
    assert again.snapshot() == first
    assert again.grader.name == "Ann Lee"
    assert sorted(asked) == ["config", "for-each-ref", "for-each-ref", "ls-tree", "rev-list", "rev-parse", "var"]
