"""Diffs: every shape is named, nothing in a file can pass for something else, all of it bounded."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from console.exchange import ExchangeError
from console.exchange import diff as diffs
from console.exchange.comparing import compare
from console.exchange.diff import Diff, FileDiff, build_files, parse_patch, parse_raw
from console.exchange.objects import Objects
from console.exchange.process import Git, reading
from console.exchange.views import MAX_FILE, MAX_LINE, file_views


def compared(repo, old: str = "HEAD~1", new: str = "HEAD") -> Diff:
    git = Git(repo.path, reading)
    objects = Objects(git)
    try:
        trees = (repo.git("rev-parse", f"{old}^{{tree}}"), repo.git("rev-parse", f"{new}^{{tree}}"))
        return compare(git, objects, trees, ("old", "new"))
    finally:
        objects.close()


def by_path(diff: Diff) -> dict[str, FileDiff]:
    return {file.path: file for file in diff.files}


@pytest.fixture
def shapes(new_repo):
    """Case 55 and more: each way in which a file can change."""
    repo = new_repo("shapes")
    repo.commit(
        "one",
        {
            "k.py": "a\nb\nc\nd\ne\nf\n",
            "w.bin": b"\0\1\2bin",
            "nn.txt": "line 1 of a longer file\nline 2 of a longer file\nline 3 of a longer file\nno newline",
            "run.sh": "#!/bin/sh\n",
            "gone.py": "x = 1\n",
            "becomes-link": "text\n",
            "same.py": "same\n",
            "end.py": "a\nb",
        },
    )
    repo.write({"k.py": "a\r\nb\r\nc\r\nd\r\ne\r\nf\r\n", "w.bin": b"\0\1\2bin2", "empty.py": "", "end.py": "a\nb\n"})
    repo.git("mv", "nn.txt", "renamed.txt")
    repo.write({"renamed.txt": (repo.path / "renamed.txt").read_bytes() + b" at end"})
    (repo.path / "run.sh").chmod(0o755)
    (repo.path / "becomes-link").unlink()
    os.symlink("/etc/passwd\x1b[2J", repo.path / "becomes-link")
    os.symlink("../../outside", repo.path / "up.py")
    (repo.path / "gone.py").unlink()
    repo.git("add", "-A")
    repo.git("update-index", "--add", "--cacheinfo", f"160000,{'0123456789' * 4},vendored")
    repo.git("commit", "-qm", "two")
    return repo


def test_each_change_is_named(shapes) -> None:
    files = by_path(compared(shapes))
    assert "same.py" not in files
    assert files["k.py"].line_ends_only
    assert files["k.py"].note == "line ends only: LF to CRLF"
    assert (files["renamed.txt"].status, files["renamed.txt"].old_path) == ("renamed", "nn.txt")
    assert "renamed from nn.txt" in files["renamed.txt"].note
    assert "no newline at the end" in files["renamed.txt"].note
    assert (files["run.sh"].hunks, files["run.sh"].note) == ((), "mode: plain file to executable")
    assert (files["w.bin"].kind, files["w.bin"].hunks, files["w.bin"].note) == ("binary", (), "binary, 7 bytes")
    assert (files["empty.py"].status, files["empty.py"].hunks) == ("added", ())
    assert (files["gone.py"].status, files["gone.py"].removed) == ("removed", 1)
    assert (files["becomes-link"].status, files["becomes-link"].kind) == ("type-changed", "symlink")
    assert "symbolic link to /etc/passwd\u241b[2J, not followed" in files["becomes-link"].note
    assert files["up.py"].note == "symbolic link to ../../outside, not followed"
    assert files["vendored"].note == "submodule at 012345678901: its content is not here"
    assert files["end.py"].note == "a newline was added at the end"


def test_numbers_of_lines(new_repo) -> None:
    repo = new_repo("r")
    repo.commit("one", {"f": "".join(f"{number}\n" for number in range(1, 31))})
    repo.commit("two", {"f": "".join(f"{number}\n" for number in range(1, 31) if number != 5).replace("25", "x\ny")})
    (file,) = compared(repo).files
    first, second = file.hunks
    assert (first.old, first.new, second.old, second.new) == (2, 2, 22, 21)
    assert [(line.kind, line.old, line.new, line.text) for line in second.lines if line.kind != "same"] == [
        ("del", 25, 0, "25"),
        ("add", 0, 24, "x"),
        ("add", 0, 25, "y"),
    ]
    assert (file.added, file.removed) == (2, 2)


def test_no_file_can_pass_for_a_header(new_repo) -> None:
    repo = new_repo("r")
    evil = (
        "-- a/x\n++ b/x\n@@ -1,2 +1,2 @@\ndiff --git a/y b/y\n"
        "Binary files a and b differ\n\\ No newline at end of file\n"
    )
    repo.commit("one", {"a": evil, "new\n@@ -1 +1 @@\nline": "1\n", "z": "1\n"})
    repo.commit("two", {"a": evil.replace("\n", "!\n"), "new\n@@ -1 +1 @@\nline": "2\n", "z": "2\n"})
    diff = compared(repo)
    assert [file.path for file in diff.files] == ["a", "new\n@@ -1 +1 @@\nline", "z"]
    assert [file.kind for file in diff.files] == ["text"] * 3
    assert [line.text + "\n" for line in diff.files[0].hunks[0].lines if line.kind == "del"] == evil.splitlines(True)
    assert [(file.added, file.removed) for file in diff.files] == [(6, 6), (1, 1), (1, 1)]


def test_a_repository_cannot_hide_a_change_or_start_a_program(new_repo, tmp_path) -> None:
    repo = new_repo("r")
    repo.commit("one", {".gitattributes": "*.py -diff\n*.txt diff=evil\n", "a.py": "1\n", "b.txt": "1\n"})
    for key in ("diff.evil.command", "diff.evil.textconv", "diff.external", "core.pager"):
        repo.git("config", key, f"touch {tmp_path}/pwned; true")
    repo.git("config", "diff.noprefix", "true")
    repo.commit("two", {"a.py": "2\n", "b.txt": "2\n"})
    bare = tmp_path / "bare.git"
    subprocess.run(["git", "clone", "-q", "--bare", repo.path, bare], check=True)
    (bare / "config").write_text((repo.path / ".git" / "config").read_text().replace("bare = false", "bare = true"))
    repo.path = bare
    files = by_path(compared(repo))
    assert [(files[name].added, files[name].removed) for name in ("a.py", "b.txt")] == [(1, 1), (1, 1)]
    assert not (tmp_path / "pwned").exists()


def test_other_encodings_are_read_and_named(new_repo) -> None:
    repo = new_repo("r")
    repo.commit(
        "one", {"l.py": b"caf\xe9 = 1\n", "u.py": "x\n", "b.py": b"\xef\xbb\xbfx=1\n", "w.py": b"\xff\xfeh\0\n\0"}
    )
    repo.commit(
        "two", {"l.py": b"caf\xe9 = 2\n", "u.py": "\u65e5\n", "b.py": b"\xef\xbb\xbfx=2\n", "w.py": b"\xff\xfei\0\n\0"}
    )
    files = by_path(compared(repo))
    assert files["l.py"].hunks[0].lines[0].text == "caf\u00e9 = 1"
    assert files["l.py"].note == "not UTF-8; read as Latin-1"
    assert files["u.py"].hunks[0].lines[1].text == "\u65e5"
    assert files["b.py"].note == "begins with a byte order mark"
    assert files["w.py"].note == "UTF-16, 6 bytes"


def test_the_bounds_are_said(new_repo, monkeypatch) -> None:
    monkeypatch.setattr(diffs, "MAX_LINES", 10)
    repo = new_repo("r")
    repo.commit("one", {"keep": "x"})
    repo.commit(
        "two",
        {
            "big.txt": b"0123456789abcdef\n" * (MAX_FILE // 16),
            "line.js": "x" * (MAX_LINE + 1),
            "many.py": "x\n" * 30,
            "pointer.py": f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 12345\n",
        },
    )
    files = by_path(compared(repo))
    assert (files["big.txt"].kind, files["big.txt"].hunks) == ("too-large", ())
    assert "not compared line by line" in files["big.txt"].note
    assert f"a line of {MAX_LINE + 1:,} characters" in files["line.js"].note
    assert len(files["line.js"].hunks[0].lines[0].text) == MAX_LINE + 1
    assert files["many.py"].added == 9
    assert "21 more lines are not shown" in files["many.py"].note
    assert (files["pointer.py"].kind, files["pointer.py"].hunks) == ("lfs", ())
    assert "12,345 bytes" in files["pointer.py"].note


def test_twenty_thousand_lines() -> None:
    body = b"".join(b"+x_%d = tl.load(ptr)\n" % number for number in range(20_000))
    patch = b"diff --git a/k b/k\nnew file mode 100644\n--- /dev/null\n+++ b/k\n@@ -0,0 +1,20000 @@\n" + body
    raw = parse_raw(b":000000 100644 %s %s A\0k\0" % (b"0" * 40, b"1" * 40))
    (file,) = build_files(raw, parse_patch(patch), {})
    assert file.added == 20_000
    assert file.hunks[0].lines[-1].new == 20_000


LINES = st.lists(
    st.binary(max_size=12).map(lambda data: data.replace(b"\n", b""))
    | st.sampled_from([b"a", b"b", b"@@ -1 +1 @@", b"-", b"+"]),
    max_size=12,
)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(LINES, LINES, st.booleans())
def test_the_new_file_follows_from_the_old_one_and_the_diff(old: list[bytes], new: list[bytes], end: bool) -> None:
    before, after = (b"\n".join(lines) + (b"\n" if end and lines else b"") for lines in (old, new))
    with tempfile.TemporaryDirectory() as folder:
        git = Git(Path(folder), reading)
        git.out("init", "-q", "--bare", ".")
        trees = []
        for content in (before, after):
            oid = git.out("hash-object", "-w", "--stdin", stdin=content).decode().strip()
            trees.append(git.out("mktree", stdin=f"100644 blob {oid}\tf\n".encode()).decode().strip())
        objects = Objects(git)
        diff = compare(git, objects, (trees[0], trees[1]), ("old", "new"))
        objects.close()
    if before == after:
        assert diff.files == ()
        return
    (file,) = diff.files
    if file.kind != "text":
        assert b"\0" in before + after
        return
    encoding = "latin-1" if "Latin-1" in file.note else "utf-8"
    source = before.decode(encoding, "replace").split("\n")
    result: list[str] = []
    at = 1
    for hunk in file.hunks:
        start = hunk.old if any(line.kind != "add" for line in hunk.lines) else hunk.old + 1
        result += source[at - 1 : start - 1]
        at = start
        for line in hunk.lines:
            if line.kind != "add":
                assert line.old == at
                assert source[at - 1] == line.text
                at += 1
            if line.kind != "del":
                result.append(line.text)
                assert line.new == len(result)
    result += source[at - 1 :]
    wanted = after.decode(encoding, "replace").split("\n")
    assert [line for line in result if line] == [line for line in wanted if line]


@given(st.binary(max_size=400))
def test_any_bytes_parse_without_a_crash(data: bytes) -> None:
    parse_patch(data)
    parse_patch(b"diff --git a/x b/x\n@@ -1,5 +1,5 @@\n" + data)


def test_what_a_submission_is_compared_with(opened, hub, clone, new_repo) -> None:
    exchange = opened(clone.path)
    first = exchange.snapshot().submissions[0]
    whole = exchange.diff(first, "previous")
    assert whole.whole
    assert whole.note == "this is the first revision: whole files are shown"
    assert whole.files[0].added == 8
    commit = clone.commit("second", {"submissions/softmax/m-1/kernel.py": "def softmax(x):\n    return x\n"})
    clone.git("push", "-q", "origin", "main")
    exchange.fetch()
    second = exchange.snapshot().submissions[0]
    assert exchange.diff(second, "previous").files[0].removed == 6
    assert exchange.diff(second, "previous").old == f"revision {first.revision[:9]}"
    assert exchange.diff(second, "starter").files[0].added == 1
    assert exchange.diff(second, "reference").files[0].path == "kernel.py"
    assert exchange.diff(second, first.revision[:10]).files == exchange.diff(second, "previous").files
    assert exchange.diff(second, commit).files == ()
    assert exchange.diff(second, "reviewed").whole
    for against in ("0" * 40, "sideways", "--output=x"):
        with pytest.raises(ExchangeError):
            exchange.diff(second, against)


def test_what_was_reviewed_last(opened, hub, clone) -> None:
    exchange = opened(clone.path)
    first = exchange.snapshot().submissions[0]
    front = f"""+++
schema = 1
task = "softmax"
submission = "m-1"
revision = "{first.revision}"
tree = "{first.tree}"
grader = "ann-lee"
outcome = "correct"
mechanism = "sound"
score = 9.0
rubric = {{ name = "kernel", version = 1, digest = "sha256:{"a" * 64}" }}
evidence = "sha256:{"a" * 64}"
+++

Good.
"""
    exchange.publish({"reviews/softmax/m-1/ann-lee.md": front.encode()}, "review")
    clone.git("pull", "-q")
    clone.commit("second", {"submissions/softmax/m-1/kernel.py": "def softmax(x):\n    return x\n"})
    clone.git("push", "-q", "origin", "main")
    exchange.fetch()
    second = exchange.snapshot().submissions[0]
    diff = exchange.diff(second, "reviewed")
    assert diff.old == f"what ann-lee reviewed, {first.revision[:9]}"
    assert diff.files == exchange.diff(second, "previous").files


def test_files_as_they_are_shown(new_repo) -> None:
    repo = new_repo("r")
    repo.write(
        {
            "big.txt": b"0123456789\n" * 200_000,
            "bin": b"\0\1",
            "crlf.py": "a\r\nb\r\n",
            "empty": "",
            "latin.py": b"caf\xe9\n",
            "mixed.py": "a\r\nb\n",
            "one.js": "x" * 2_000_000,
            "wide.py": "\u65e5" * 5000,
        }
    )
    os.symlink("/etc/passwd", repo.path / "link.py")
    repo.commit()
    objects = Objects(Git(repo.path, reading))
    views = {view.path: view for view in file_views(objects, repo.git("rev-parse", "HEAD^{tree}"))}
    objects.close()
    assert (views["big.txt"].kind, views["big.txt"].size) == ("too-large", 2_200_000)
    assert views["big.txt"].text.endswith("0123456789\n")
    assert views["bin"].note == "binary, 2 bytes"
    assert (views["crlf.py"].text, views["crlf.py"].note) == ("a\nb\n", "CRLF line ends")
    assert (views["empty"].text, views["empty"].note, views["empty"].lines) == ("", "empty", ())
    assert views["latin.py"].text == "caf\u00e9\n"
    assert views["mixed.py"].note == "mixed line ends"
    assert views["mixed.py"].lines == ("a", "b")
    assert len(views["one.js"].text) == MAX_LINE + 1
    assert "5,000 characters" in views["wide.py"].note
    assert (views["link.py"].kind, views["link.py"].text) == ("symlink", "")


def test_materialised_trees_hold_regular_files_only(opened, hub, clone, tmp_path) -> None:
    base = clone.path / "submissions" / "softmax" / "m-1"
    os.symlink("/etc/passwd", base / "link.py")
    (base / "run.sh").write_text("#!/bin/sh\n")
    (base / "run.sh").chmod(0o755)
    (base / "deep").mkdir()
    (base / "deep" / "x.py").write_text("x\n")
    (Path(os.fsdecode(os.path.join(os.fsencode(base), b"\xe5.py")))).write_text("y\n")
    clone.git("add", "-A")
    clone.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},submissions/softmax/m-1/sub")
    clone.git("commit", "-qm", "odd files")
    clone.git("push", "-q", "origin", "main")
    exchange = opened(hub)
    tree = exchange.snapshot().submissions[0].tree
    into = tmp_path / "run" / "submission"
    exchange.materialise(tree, into)
    assert sorted(os.listdir(os.fsencode(into))) == [b"deep", b"kernel.py", b"run.sh", b"\xe5.py"]
    assert os.access(into / "run.sh", os.X_OK)
    assert (into / "deep" / "x.py").read_text() == "x\n"
    with pytest.raises(ExchangeError, match="not empty"):
        exchange.materialise(tree, into)


def test_a_tree_that_leads_out_of_itself_is_not_written(opened, hub, new_repo, tmp_path) -> None:
    seed = new_repo("seed")
    blob = seed.git("hash-object", "-w", "--stdin", stdin=b"x\n")
    inner = seed.git(
        "hash-object", "-w", "-t", "tree", "--literally", "--stdin", stdin=b"100644 ..\0" + bytes.fromhex(blob)
    )
    middle = seed.git("mktree", stdin=f"040000 tree {inner}\tm-3\n".encode())
    top = seed.git("mktree", stdin=f"040000 tree {middle}\tsoftmax\n".encode())
    root = seed.git("mktree", stdin=f"040000 tree {top}\tsubmissions\n".encode())
    commit = seed.git("commit-tree", "-m", "evil", root)
    seed.git("update-ref", "refs/heads/evil", commit)
    seed.git("push", "-q", "-f", str(hub), "evil:main")
    exchange = opened(hub)
    submission = exchange.snapshot().submissions[0]
    with pytest.raises(ExchangeError, match="leads out of it"):
        exchange.materialise(submission.tree, tmp_path / "run")
    assert os.listdir(tmp_path / "run") == []
