"""Reviews arrive once, by git commit as the grader has it, and are never lost."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from pathlib import Path

import psutil
import pytest

from console.exchange import ExchangeError, GitRefused
from console.exchange import publish as publishing

FILES = {"reviews/softmax/m-1/ann-lee.md": b"a review\r\n  \n", "reviews/softmax/m-1/ann-lee.evidence.json": b"{}"}
PATH = "reviews/softmax/m-1/ann-lee.md"
MESSAGE = "review(softmax/m-1): incorrect\n\n# a heading, kept\n\nReview-Task: softmax\n"


def in_hub(hub: Path, *args: str) -> str:
    done = subprocess.run(["git", "-C", str(hub), *args], capture_output=True, check=True)
    return done.stdout.decode().rstrip("\n")


def test_a_review_arrives(opened, clone, hub) -> None:
    before = {str(path): path.stat().st_mtime_ns for path in clone.path.rglob("*")}
    exchange = opened(clone.path)
    said: list[str] = []
    published = exchange.publish(FILES, MESSAGE, said.append)
    assert said == ["fetching", "committing", "pushing"]
    assert (published.tries, published.merge_hint, published.changed_by_hooks) == (1, "", ())
    assert in_hub(hub, "rev-parse", "main") == published.commit
    assert (
        in_hub(hub, "log", "-1", "--format=%an|%ae|%cn|%B", "main") + "\n"
        == f"Ann Lee|ann.lee@example.org|Ann Lee|{MESSAGE}"
    )
    assert in_hub(hub, "diff-tree", "--no-commit-id", "--name-only", "-r", "main").splitlines() == sorted(FILES)
    blob = subprocess.run(
        ["git", "-C", hub, "cat-file", "blob", f"main:{PATH}"], capture_output=True, check=True
    ).stdout
    assert blob == FILES[PATH]
    assert [one.grader for one in exchange.snapshot().reviews] == ["ann-lee"]
    assert exchange.pending() == ()
    assert {str(path): path.stat().st_mtime_ns for path in clone.path.rglob("*")} == before


def test_nothing_is_left_behind(opened, clone, tmp_path) -> None:
    exchange = opened(clone.path)
    exchange.publish(FILES, MESSAGE)
    (home,) = (tmp_path / "state" / "exchanges").iterdir()
    assert list((home / "work").iterdir()) == []
    refs = subprocess.run(["git", "-C", home / "repo.git", "for-each-ref"], capture_output=True, check=True).stdout
    assert [line.split()[2] for line in refs.decode().splitlines()] == ["refs/kr/base"]
    exchange.close()
    assert not psutil.Process().children(recursive=True)


def test_a_second_review_replaces_the_first(opened, clone, hub) -> None:
    exchange = opened(clone.path)
    exchange.publish(FILES, MESSAGE)
    exchange.publish({PATH: b"changed\n"}, "review again")
    assert in_hub(hub, "show", f"main:{PATH}") == "changed"
    with pytest.raises(GitRefused, match="nothing to commit"):
        exchange.publish({PATH: b"changed\n"}, "the same once more")
    assert exchange.pending() == ()


def test_the_same_again_is_told_apart_from_a_refusal_of_git(opened, clone, hub) -> None:
    exchange = opened(clone.path)
    first = exchange.publish(FILES, MESSAGE)
    with pytest.raises(GitRefused, match="holds exactly this already") as caught:
        exchange.publish(FILES, MESSAGE)
    assert caught.value.pending is None
    assert in_hub(hub, "rev-parse", "main") == first.commit
    assert exchange.pending() == ()


def test_the_preview_says_what_will_be_done(opened, clone, hub) -> None:
    clone.git("config", "user.name", "Ann in this clone")
    clone.hook("pre-commit", "exit 0")
    clone.hook("pre-push", "exit 0")
    preview = opened(clone.path).preview(FILES, MESSAGE)
    assert (preview.name, preview.email, preview.signing) == ("Ann in this clone", "ann.lee@example.org", "none")
    assert (preview.hooks, preview.hooks_dir) == (("pre-commit", "pre-push"), str(clone.path / ".git" / "hooks"))
    assert (preview.branch, preview.target, preview.problem) == ("main", f"branch main of {hub}", "")
    assert (preview.message, preview.files) == (MESSAGE, FILES)


@pytest.mark.parametrize(
    "path",
    [
        "submissions/softmax/m-1/kernel.py",
        "reviews/softmax/m-1/../../../x.md",
        "reviews/softmax/../ann-lee.md",
        "/reviews/softmax/m-1/ann-lee.md",
        "reviews/softmax/m-1/x/ann-lee.md",
        "reviews/softmax/m-1/ann-lee.exe",
        ".git/hooks/pre-commit",
        "reviews/soft\x1b[2Jmax/m-1/ann-lee.md",
        "reviews/softmax/m-1/bob.md",
    ],
)
def test_only_ones_own_reviews_are_published(opened, clone, path) -> None:
    with pytest.raises(ExchangeError):
        opened(clone.path).publish({path: b"x"}, MESSAGE)


@pytest.mark.parametrize("message", ["", " \n", "a\0b"])
def test_a_message_is_needed(opened, clone, message) -> None:
    with pytest.raises(ExchangeError, match="message"):
        opened(clone.path).publish(FILES, message)


@pytest.mark.parametrize("place", ["reviews", "reviews/softmax", "reviews/softmax/m-1", PATH])
def test_a_link_in_the_way_is_not_written_through(opened, clone, hub, tmp_path, place) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    target = clone.path / place
    target.parent.mkdir(parents=True, exist_ok=True)
    os.symlink(outside, target)
    clone.commit("a link")
    clone.git("push", "-q", "origin", "main")
    with pytest.raises(ExchangeError, match="not written through"):
        opened(clone.path).publish(FILES, MESSAGE)
    assert list(outside.iterdir()) == []


# ---- hooks and signatures


def test_a_pre_commit_hook_that_refuses(opened, clone, hub) -> None:
    clone.hook("pre-commit", 'echo "policy: grades need a ticket \033[2J" >&2; exit 1')
    exchange = opened(clone.path)
    before = in_hub(hub, "rev-parse", "main")
    with pytest.raises(GitRefused) as caught:
        exchange.publish(FILES, MESSAGE)
    assert (caught.value.what, caught.value.words) == ("committing", "policy: grades need a ticket \u241b[2J")
    assert caught.value.pending is None
    assert exchange.pending() == ()
    assert in_hub(hub, "rev-parse", "main") == before


def test_hooks_see_the_review_and_the_files_at_the_top(opened, clone, hub, tmp_path) -> None:
    clone.commit("a policy", {"policy.txt": "ok\n"})
    clone.git("push", "-q", "origin", "main")
    clone.hook("pre-commit", f'test -f {PATH} && cat policy.txt && git diff --cached --name-only > "{tmp_path}/seen"')
    opened(clone.path).publish(FILES, MESSAGE)
    assert (tmp_path / "seen").read_text().splitlines() == sorted(FILES)


def test_a_commit_message_hook_edits(opened, clone, hub) -> None:
    clone.hook("commit-msg", 'echo "Ticket: 42" >> "$1"')
    clone.hook("prepare-commit-msg", 'echo "Prepared: $2" >> "$1"')
    opened(clone.path).publish(FILES, MESSAGE)
    assert in_hub(hub, "log", "-1", "--format=%B", "main").endswith("Prepared: message\nTicket: 42")


def test_a_hook_that_changes_the_review_is_told(opened, clone, hub) -> None:
    clone.hook("pre-commit", f"echo tidy > {PATH}; git add {PATH}")
    published = opened(clone.path).publish(FILES, MESSAGE)
    assert published.changed_by_hooks == (PATH,)
    assert in_hub(hub, "show", f"main:{PATH}") == "tidy"


def test_a_hook_that_adds_other_files_is_refused(opened, clone, hub) -> None:
    clone.hook("pre-commit", "echo x > CHANGELOG; git add CHANGELOG")
    exchange = opened(clone.path)
    with pytest.raises(GitRefused, match="a hook also changed CHANGELOG"):
        exchange.publish(FILES, MESSAGE)
    assert exchange.pending() == ()


@pytest.mark.parametrize("where", ["hooks", "relative", "global"])
def test_the_hooks_path_of_the_clone(opened, clone, hub, own_git, tmp_path, where) -> None:
    folder = clone.path / "hooks"
    folder.mkdir()
    (folder / "pre-commit").write_text("#!/bin/sh\necho no >&2; exit 1\n")
    (folder / "pre-commit").chmod(0o755)
    if where == "global":
        own_git.write_text(own_git.read_text() + f"[core]\n\thooksPath = {folder}\n")
    else:
        clone.git("config", "core.hooksPath", "hooks" if where == "relative" else str(folder))
    with pytest.raises(GitRefused, match="no"):
        opened(clone.path / "submissions").publish(FILES, MESSAGE)


def test_a_pre_push_hook_that_refuses_keeps_the_commit(opened, clone, hub) -> None:
    clone.hook("pre-push", 'read local oid remote there; echo "not to $1 $remote" >&2; exit 1')
    exchange = opened(clone.path)
    with pytest.raises(GitRefused) as caught:
        exchange.publish(FILES, MESSAGE)
    assert "not to origin refs/heads/main" in caught.value.words
    (waiting,) = exchange.pending()
    assert waiting.id == caught.value.pending
    assert (waiting.subject, set(waiting.paths)) == ("review(softmax/m-1): incorrect", set(FILES))
    clone.hook("pre-push", "exit 0")
    published = exchange.retry_pending(waiting.id)
    assert in_hub(hub, "rev-parse", "main") == published.commit == waiting.commit
    assert exchange.pending() == ()
    with pytest.raises(ExchangeError, match="no review is waiting"):
        exchange.retry_pending(waiting.id)


def test_a_hook_of_the_other_side_is_quoted_and_not_tried_again(opened, clone, hub) -> None:
    (hub / "hooks").mkdir(exist_ok=True)
    hook = hub / "hooks" / "pre-receive"
    hook.write_text(f"#!/bin/sh\necho x >> {hub}/asked\necho 'protected branch: ask a lead' >&2\nexit 1\n")
    hook.chmod(0o755)
    exchange = opened(clone.path)
    with pytest.raises(GitRefused, match="protected branch: ask a lead") as caught:
        exchange.publish(FILES, MESSAGE)
    assert not caught.value.retry
    assert (hub / "asked").read_text() == "x\n"
    assert len(exchange.pending()) == 1


def test_a_hook_that_asks_the_terminal_gets_none(opened, clone) -> None:
    clone.hook("pre-commit", 'read answer < /dev/tty || { echo "no terminal" >&2; exit 1; }; exit 0')
    with pytest.raises(GitRefused, match="no terminal"):
        opened(clone.path).publish(FILES, MESSAGE)


def test_with_the_screen_out_of_the_way_git_keeps_its_terminal(opened, clone, hub, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("GPG_TTY", "/dev/pts/99")
    session = os.getsid(0)
    clone.hook("pre-commit", f'echo "$GPG_TTY $(ps -o sid= -p $$)" > "{tmp_path}/seen"')
    published = opened(clone.path).publish(FILES, MESSAGE, attended=True)
    assert in_hub(hub, "rev-parse", "main") == published.commit
    assert (tmp_path / "seen").read_text().split() == ["/dev/pts/99", str(session)]


def test_a_hook_that_never_ends_is_ended(opened, clone, monkeypatch) -> None:
    monkeypatch.setattr("console.exchange.worktree.COMMIT_SECONDS", 0.5)
    clone.hook("pre-commit", "sleep 765")
    with pytest.raises(GitRefused, match=r"not done after 0\.5 s"):
        opened(clone.path).publish(FILES, MESSAGE)
    assert not [one for one in psutil.process_iter(["cmdline"]) if one.info["cmdline"] == ["sleep", "765"]]


def test_a_signer_that_fails_is_quoted(opened, clone, hub) -> None:
    clone.git("config", "commit.gpgsign", "true")
    clone.git("config", "gpg.program", "/bin/false")
    exchange = opened(clone.path)
    assert exchange.preview(FILES, MESSAGE).signing == "openpgp, the default key"
    with pytest.raises(GitRefused, match="gpg failed to sign the data"):
        exchange.publish(FILES, MESSAGE)
    assert exchange.pending() == ()


def test_a_passphrase_is_not_asked_for_on_the_screen(opened, clone, monkeypatch) -> None:
    """Case 61: with pinentry for the terminal as the only one, gpg fails at once, and the words say what to do."""
    if shutil.which("gpg") is None or shutil.which("pinentry-curses") is None:
        pytest.skip("no gpg with a pinentry for the terminal")
    monkeypatch.delenv("DISPLAY", raising=False)
    home = Path(tempfile.mkdtemp(prefix="gpg"))  # the agent's socket needs a short path
    monkeypatch.setenv("GNUPGHOME", str(home))
    monkeypatch.setenv("GPG_TTY", os.ttyname(0) if os.isatty(0) else "")
    (home / "gpg-agent.conf").write_text(f"pinentry-program {shutil.which('pinentry-curses')}\n")
    try:
        generate = ["gpg", "--batch", "--pinentry-mode", "loopback", "--passphrase", "secret", "--quick-gen-key"]
        subprocess.run([*generate, "Ann Lee <ann.lee@example.org>", "ed25519", "sign"], check=True, capture_output=True)
        subprocess.run(["gpgconf", "--kill", "gpg-agent"], check=True)
        clone.git("config", "commit.gpgsign", "true")
        with pytest.raises(GitRefused, match=r"sign once in another terminal"):
            opened(clone.path).publish(FILES, MESSAGE)
    finally:
        subprocess.run(["gpgconf", "--kill", "gpg-agent"], check=False)
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def signing(clone, own_git, tmp_path):
    if shutil.which("ssh-keygen") is None:
        pytest.skip("no ssh-keygen")
    key = tmp_path / "home" / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    allowed = tmp_path / "home" / "allowed"
    allowed.write_text(f"ann.lee@example.org {key.with_suffix('.pub').read_text()}")
    for name, value in (
        ("commit.gpgsign", "true"),
        ("gpg.format", "ssh"),
        ("user.signingkey", "~/key.pub"),
        ("gpg.ssh.allowedSignersFile", str(allowed)),
    ):
        clone.git("config", name, value)
    return allowed


def verified(hub: Path, allowed: Path, commit: str) -> bool:
    check = ["git", "-C", str(hub), "-c", f"gpg.ssh.allowedSignersFile={allowed}", "verify-commit", commit]
    return subprocess.run(check, capture_output=True).returncode == 0


def test_commits_are_signed(opened, clone, hub, signing) -> None:
    exchange = opened(clone.path)
    assert exchange.preview(FILES, MESSAGE).signing == "ssh, ~/key.pub"
    published = exchange.publish(FILES, MESSAGE)
    assert verified(hub, signing, published.commit)


def race(hub: Path, clone, monkeypatch, times: int) -> None:
    """Another writer is faster, ``times`` times: between the fetch and the push."""
    left = [times]
    push = publishing.Publisher._push

    def slower(self, tree, target, commit):
        if left[0]:
            left[0] -= 1
            clone.git("fetch", "-q")
            clone.git("checkout", "-q", "-B", "main", "origin/main")
            clone.commit(f"faster {left[0]}", {f"submissions/softmax/n-{left[0]}/kernel.py": "x\n"})
            clone.git("push", "-q", "--no-verify", "origin", "main")
        return push(self, tree, target, commit)

    monkeypatch.setattr(publishing.Publisher, "_push", slower)


def test_a_newer_remote_is_fetched_and_the_commit_moved(opened, clone, hub, monkeypatch) -> None:
    exchange = opened(clone.path)
    race(hub, clone, monkeypatch, 2)
    published = exchange.publish(FILES, MESSAGE)
    assert published.tries == 3
    assert in_hub(hub, "log", "--format=%s", "main").splitlines() == [
        "review(softmax/m-1): incorrect",
        "faster 0",
        "faster 1",
        "the exchange begins",
    ]
    assert in_hub(hub, "log", "-1", "--format=%B", "main") + "\n" == MESSAGE
    assert exchange.snapshot().head == published.commit


def test_hooks_run_once_for_a_commit_that_moves(opened, clone, hub, monkeypatch, tmp_path) -> None:
    exchange = opened(clone.path)
    race(hub, clone, monkeypatch, 1)
    wait = clone.path / ".git" / "hooks"
    wait.mkdir(exist_ok=True)
    script = f'#!/bin/sh\ngit diff --cached --name-only | grep -q reviews && echo ran >> "{tmp_path}/ran"\nexit 0\n'
    for name in ("pre-commit", "pre-rebase", "post-checkout"):
        (wait / name).write_text(script)
        (wait / name).chmod(0o755)
    exchange.publish(FILES, MESSAGE)
    assert (tmp_path / "ran").read_text() == "ran\n"


def test_a_moved_commit_is_signed_again(opened, clone, hub, signing, monkeypatch) -> None:
    exchange = opened(clone.path)
    race(hub, clone, monkeypatch, 1)
    published = exchange.publish(FILES, MESSAGE)
    assert published.tries == 2
    assert verified(hub, signing, published.commit)


def test_who_signs_is_asked_after_three_tries(opened, clone, hub, signing, monkeypatch) -> None:
    exchange = opened(clone.path)
    race(hub, clone, monkeypatch, 3)
    with pytest.raises(GitRefused, match="others were faster 3 times") as caught:
        exchange.publish(FILES, MESSAGE)
    assert caught.value.retry
    (waiting,) = exchange.pending()
    assert waiting.id == caught.value.pending
    published = exchange.retry_pending(waiting.id)
    assert verified(hub, signing, published.commit)
    assert in_hub(hub, "rev-list", "--merges", "--count", "main") == "0"


def test_the_same_review_changed_elsewhere_is_a_conflict_in_words(opened, clone, hub, monkeypatch) -> None:
    exchange = opened(clone.path)
    push = publishing.Publisher._push

    def slower(self, tree, target, commit):
        monkeypatch.setattr(publishing.Publisher, "_push", push)
        clone.commit("from another machine", {PATH: "other\n"})
        clone.git("push", "-q", "origin", "main")
        return push(self, tree, target, commit)

    monkeypatch.setattr(publishing.Publisher, "_push", slower)
    with pytest.raises(GitRefused, match="newer state") as caught:
        exchange.publish(FILES, MESSAGE)
    (waiting,) = exchange.pending()
    assert waiting.id == caught.value.pending
    assert in_hub(hub, "show", f"main:{PATH}") == "other"


def test_a_rewritten_branch_does_not_bring_the_old_commits_back(opened, clone, hub, monkeypatch) -> None:
    exchange = opened(clone.path)
    push = publishing.Publisher._push

    def rewritten(self, tree, target, commit):
        monkeypatch.setattr(publishing.Publisher, "_push", push)
        clone.git("commit", "-q", "--amend", "-m", "begins otherwise")
        clone.git("push", "-qf", "origin", "main")
        return push(self, tree, target, commit)

    monkeypatch.setattr(publishing.Publisher, "_push", rewritten)
    exchange.publish(FILES, MESSAGE)
    assert in_hub(hub, "log", "--format=%s", "main").splitlines() == [
        "review(softmax/m-1): incorrect",
        "begins otherwise",
    ]


# ---- where it goes


def test_a_bare_path_is_pushed_to(opened, hub) -> None:
    published = opened(hub).publish(FILES, MESSAGE)
    assert in_hub(hub, "rev-parse", "main") == published.commit


def test_an_address_is_pushed_to(opened, hub) -> None:
    published = opened(f"file://{hub}").publish(FILES, MESSAGE)
    assert in_hub(hub, "rev-parse", "main") == published.commit


def test_a_path_without_a_remote_gets_a_branch(opened, new_repo, sample) -> None:
    repo = new_repo("local")
    head = repo.commit("one", sample)
    exchange = opened(repo.path)
    first = exchange.publish(FILES, MESSAGE)
    assert first.merge_hint == f"git -C {repo.path} merge kernel-review"
    assert repo.git("rev-parse", "main", "kernel-review").splitlines() == [head, first.commit]
    assert repo.git("status", "--porcelain") == ""
    assert [one.grader for one in exchange.snapshot().reviews] == ["ann-lee"]
    second = exchange.publish({"reviews/softmax/m-2/ann-lee.md": b"x\n"}, "second")
    assert repo.git("rev-parse", "kernel-review~1") == first.commit
    repo.git("merge", "-q", "kernel-review")
    repo.commit("more work", {"submissions/softmax/m-3/kernel.py": "x\n"})
    third = exchange.publish({"reviews/softmax/m-3/ann-lee.md": b"x\n"}, "third")
    assert repo.git("rev-parse", "kernel-review~1") == repo.git("rev-parse", "main")
    assert repo.git("rev-parse", "kernel-review") == third.commit != second.commit


def test_a_branch_that_is_checked_out_is_refused_in_gits_words(opened, new_repo, sample) -> None:
    repo = new_repo("local")
    repo.commit("one", sample)
    repo.git("checkout", "-q", "-b", "kernel-review")
    exchange = opened(repo.path)
    with pytest.raises(GitRefused, match="checked out"):
        exchange.publish(FILES, MESSAGE)
    assert len(exchange.pending()) == 1


def test_nothing_to_push_to_is_said_before_a_commit(opened, clone, hub, new_repo) -> None:
    with pytest.raises(GitRefused, match="no commits yet"):
        opened(new_repo("unborn").path).publish(FILES, MESSAGE)
    head = in_hub(hub, "rev-parse", "main")
    subprocess.run(["git", "-C", hub, "update-ref", "--no-deref", "HEAD", head], check=True)
    exchange = opened(hub)
    with pytest.raises(GitRefused, match="detached"):
        exchange.publish(FILES, MESSAGE)
    assert "detached" in exchange.preview(FILES, MESSAGE).problem


def test_a_remote_that_is_gone_keeps_the_commit(opened, clone, hub) -> None:
    exchange = opened(clone.path)
    exchange.snapshot()
    hub.rename(hub.with_name("gone.git"))
    with pytest.raises(GitRefused, match="does not appear to be a git repository"):
        exchange.publish(FILES, MESSAGE)
    (waiting,) = exchange.pending()
    with pytest.raises(GitRefused) as caught:
        exchange.retry_pending(waiting.id)
    assert caught.value.pending == waiting.id
    hub.with_name("gone.git").rename(hub)
    other = opened(clone.path)
    assert other.pending() == (waiting,)
    other.retry_pending(waiting.id)
    assert in_hub(hub, "log", "-1", "--format=%s", "main") == "review(softmax/m-1): incorrect"
    assert exchange.pending() == ()


def test_no_identity_is_refused_in_gits_words(opened, clone, own_git) -> None:
    own_git.write_text("[user]\n\tuseConfigOnly = true\n")
    exchange = opened(clone.path, grader="ann-lee")
    with pytest.raises(GitRefused, match=r"user\.email"):
        exchange.publish(FILES, MESSAGE)


def test_another_persons_slug_is_refused(opened, clone, hub) -> None:
    opened(clone.path).publish(FILES, MESSAGE)
    clone.git("config", "user.email", "ann.lee@elsewhere.example")
    exchange = opened(clone.path)
    with pytest.raises(ExchangeError, match=r"committed by ann\.lee@example\.org"):
        exchange.publish({"reviews/softmax/m-2/ann-lee.md": b"x"}, MESSAGE)
    assert "set another `grader`" in exchange.preview(FILES, MESSAGE).problem
    renamed = opened(clone.path, grader="ann-two")
    renamed.publish({"reviews/softmax/m-2/ann-two.md": b"x"}, MESSAGE)


# ---- several writers, and crashes

WRITER = textwrap.dedent(
    """
    import sys
    from pathlib import Path
    from console.exchange import Exchange
    where, state, slug, count = sys.argv[1:]
    with Exchange.open(where, state=Path(state), grader=slug) as exchange:
        for number in range(int(count)):
            files = {f"reviews/softmax/m-{number}/{slug}.md": f"{slug} {number}\\n".encode()}
            exchange.publish(files, f"review m-{number} by {slug}", lambda _: None)
    """
)


def test_writers_at_once(clone, hub, tmp_path) -> None:
    """Two with a private clone of their own, two that share one: every review lands once, in one line."""
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(clone.path), str(tmp_path / state), slug, "4"])
        for slug, state in (("ann", "a"), ("bo", "b"), ("cy", "c"), ("di", "c"))
    ]
    assert [writer.wait() for writer in writers] == [0, 0, 0, 0]
    subjects = in_hub(hub, "log", "--format=%s", "main").splitlines()
    wanted = {f"review m-{number} by {slug}" for number in range(4) for slug in ("ann", "bo", "cy", "di")}
    assert sorted(subjects) == sorted([*wanted, "the exchange begins"])
    assert in_hub(hub, "rev-list", "--merges", "--count", "main") == "0"
    for slug in ("ann", "di"):
        assert in_hub(hub, "show", f"main:reviews/softmax/m-3/{slug}.md") == f"{slug} 3"


def test_threads_of_one_console(opened, clone, hub) -> None:
    exchange = opened(clone.path)
    errors: list[BaseException] = []

    def write(number: int) -> None:
        try:
            exchange.publish({f"reviews/softmax/m-{number}/ann-lee.md": b"x\n"}, f"review {number}")
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert in_hub(hub, "rev-list", "--count", "main") == "5"
    assert len(exchange.snapshot().reviews) == 4


@pytest.mark.parametrize("hook", ["pre-push", "pre-commit"])
def test_a_console_that_is_killed_on_the_way(opened, clone, hub, tmp_path, hook) -> None:
    started = tmp_path / "started"
    clone.hook(hook, f'echo $$ > "{started}.new"; mv "{started}.new" "{started}"; sleep 600')
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(clone.path), str(tmp_path / "state"), "ann", "1"])
    while not started.exists():
        assert writer.poll() is None
        time.sleep(0.02)
    exchange = opened(clone.path, grader="ann")
    assert exchange.pending() == (), "it is still being sent"
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    os.killpg(os.getpgid(int(started.read_text())), signal.SIGKILL)
    clone.hook(hook, "exit 0")
    waiting = exchange.pending()
    if hook == "pre-commit":
        assert waiting == ()
        exchange.publish({"reviews/softmax/m-0/ann.md": b"ann 0\n"}, "review m-0 by ann")
    else:
        assert [one.subject for one in waiting] == ["review m-0 by ann"]
        exchange.retry_pending(waiting[0].id)
    assert in_hub(hub, "show", "main:reviews/softmax/m-0/ann.md") == "ann 0"
    assert exchange.pending() == ()
    (home,) = (tmp_path / "state" / "exchanges").iterdir()
    assert list((home / "work").iterdir()) == []
