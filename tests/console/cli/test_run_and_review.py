from __future__ import annotations

import json
from pathlib import Path

import pytest

from console import cli
from console.grading.review import parse_review
from console.verbs.compare import differences, surroundings
from runners.evidence import Evidence, decode

from .conftest import FakeRuns, git

CRITERIA = ("correctness", "integrity", "numerics", "performance", "robustness", "reasoning", "writing")
FORM = 'outcome = "incorrect"\nmechanism = "flawed"\nbody = "Twice too large at kernel.py:6."\n' + "".join(
    f'[[criteria]]\nid = "{name}"\nlevel = 1\nnote = "n"\n'
    'cites = ["panel:correctness", "panel:integrity", "panel:timing"]\n'
    for name in CRITERIA
)


@pytest.fixture
def form(tmp_path: Path) -> Path:
    path = tmp_path / "form.toml"
    path.write_text(FORM)
    return path


@pytest.mark.parametrize(
    ("pattern", "fails", "code"),
    [
        ("softmax/good", {}, 0),
        ("softmax/bad", {}, 1),
        ("*", {}, 1),
        ("softmax/good", {"good": "no memory"}, 3),
        ("*", {"good": "no memory"}, 1),
        ("softmax/none", {}, 2),
    ],
)
def test_the_worst_code_of_a_glob(
    clone: Path, runs: list[FakeRuns], pattern: str, fails: dict[str, str], code: int
) -> None:
    FakeRuns.fails.update(fails)
    assert cli.main(["run", pattern, "--exchange", str(clone)]) == code


def test_run_prints_evidence_alone(clone: Path, runs: list[FakeRuns], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "softmax/*", "--exchange", str(clone), "--json"]) == 1
    out = capsys.readouterr().out
    assert out.isascii()
    evidence = {one.submission.name: one for one in map(decode, out.splitlines())}
    assert {name: one.outcome for name, one in evidence.items()} == {"good": "pass", "bad": "fail"}
    assert evidence["bad"].findings[0].summary.endswith("\u202e")
    assert runs[0].closed


def test_run_for_people(clone: Path, runs: list[FakeRuns], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "softmax/bad", "--exchange", str(clone)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "softmax/bad  fail  build pass  correctness fail  integrity fail  timing not-checked  "
        "resources pass  scope pass",
        "  fail  numerics/mismatch#1  kernel.py:6  what numerics/mismatch found <U+202E>",
        "  fail  integrity/input-mutated#1  kernel.py:6  what integrity/input-mutated found <U+202E>",
        "  not-checked  timing: not measured: interpreted",
    ]


def test_run_hands_its_options_on(clone: Path, runs: list[FakeRuns]) -> None:
    options = ["--panels", "correctness,build", "--unsafe", "--device", "cuda", "--python", "/opt/python"]
    assert cli.main(["run", "softmax/good", *options, "--exchange", str(clone)]) == 0
    assert runs[0].options == {
        "python": "/opt/python",
        "device": "cuda",
        "unsafe": True,
        "panels": ("build", "correctness"),
    }


def test_nothing_named_is_wrong_use(clone: Path, runs: list[FakeRuns], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "--exchange", str(clone)]) == 2
    assert "name at least one" in capsys.readouterr().err


def test_a_replay_reports_differences(
    clone: Path, runs: list[FakeRuns], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["run", "softmax/bad", "--exchange", str(clone), "--json"]) == 1
    saved = tmp_path / "evidence.json"
    saved.write_text(capsys.readouterr().out)
    assert cli.main(["run", "--replay", str(saved), "--exchange", str(clone)]) == 0
    assert runs[-1].replay == (7, 8)
    assert capsys.readouterr().err.endswith("replay: no differences\n")
    FakeRuns.findings["bad"] = ("numerics/mismatch", "numerics/mismatch")
    assert cli.main(["run", "--replay", str(saved), "--exchange", str(clone)]) == 1
    assert capsys.readouterr().err.splitlines()[-3:] == [
        "replay: integrity: fail before, pass now",
        "replay: integrity/input-mutated: 1 fewer than before",
        "replay: numerics/mismatch: 1 more than before",
    ]


@pytest.mark.parametrize("text", ["", "{}", "\x00", '{"schema": 1}'])
def test_what_cannot_be_replayed_is_wrong_use(
    clone: Path, runs: list[FakeRuns], tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    saved = tmp_path / "evidence.json"
    saved.write_text(text)
    assert cli.main(["run", "--replay", str(saved), "--exchange", str(clone)]) == 2
    assert "not evidence" in capsys.readouterr().err
    assert cli.main(["run", "--replay", str(tmp_path / "gone"), "--exchange", str(clone)]) == 2


def test_a_replay_names_what_was_judged_and_where(
    clone: Path, runs: list[FakeRuns], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["run", "softmax/good", "--exchange", str(clone), "--json"]) == 0
    one: Evidence = decode(capsys.readouterr().out)
    import msgspec

    other = msgspec.structs.replace(
        one,
        submission=msgspec.structs.replace(one.submission, tree="f" * 40),
        environment={**one.environment, "torch": "2.9"},
    )
    assert differences(one, one) == ()
    assert [line.split(":")[0] for line in differences(one, other)] == ["the submission has changed"]
    assert surroundings(one, other) == ("torch: 2.13.0 before, 2.9 now",)


def test_a_form_is_printed_filled_in_and_committed(
    clone: Path, runs: list[FakeRuns], form: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["review", "softmax/bad", "--print-form", "--exchange", str(clone)]) == 0
    printed = capsys.readouterr().out
    assert "# The evidence suggests incorrect flawed: numerics/mismatch#1" in printed
    assert printed.count("[[criteria]]") == 7

    assert cli.main(["review", "softmax/bad", "--form", str(form), "--dry-run", "--exchange", str(clone)]) == 0
    dry = capsys.readouterr().out
    assert "review(softmax/bad): incorrect, flawed, 3.3/10" in dry
    assert "== reviews/softmax/bad/ann-lee.md" in dry
    head = git(clone, "rev-parse", "origin/main")
    assert git(clone, "ls-remote", "origin", "main").split()[0] == head.strip()

    assert cli.main(["review", "softmax/bad", "--form", str(form), "--exchange", str(clone), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    git(clone, "fetch", "-q", "origin")
    assert git(clone, "rev-parse", "origin/main").strip() == told["commit"]
    message = git(clone, "log", "-1", "--format=%B", "origin/main")
    assert message.startswith("review(softmax/bad): incorrect, flawed, 3.3/10\n\nTwice too large at kernel.py:6.\n\n")
    text = git(clone, "show", "origin/main:reviews/softmax/bad/ann-lee.md")
    review = parse_review(text)
    assert (review.grader, review.score, review.criteria[0].suggested) == ("ann-lee", 3.3, 0)
    stored = git(clone, "show", "origin/main:reviews/softmax/bad/ann-lee.evidence.json")
    assert decode(stored).outcome == "fail"
    from console.grading.rubric import digest_of

    assert review.evidence == digest_of(stored.encode())
    assert git(clone, "status", "--porcelain") == ""


def test_a_form_from_standard_input(
    clone: Path, runs: list[FakeRuns], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import io
    import sys

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(FORM.encode())))
    assert cli.main(["review", "softmax/bad", "--form", "-", "--dry-run", "--exchange", str(clone), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert set(told["files"]) == {"reviews/softmax/bad/ann-lee.md", "reviews/softmax/bad/ann-lee.evidence.json"}
    assert told["message"].startswith("review(softmax/bad)")


def test_a_form_that_fails_its_checks_commits_nothing(
    clone: Path, runs: list[FakeRuns], form: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    form.write_text(FORM.replace("kernel.py:6", "kernel.py:60").replace('level = 1\nnote = "n"', "level = 1", 1))
    assert cli.main(["review", "softmax/bad", "--form", str(form), "--exchange", str(clone), "--json"]) == 2
    captured = capsys.readouterr()
    problems = json.loads(captured.out)["problems"]
    assert [(one["where"], one["message"]) for one in problems] == [
        ("correctness", "a point is lost without a note or a cited finding"),
        ("body", "kernel.py:60: the file has 6 lines"),
    ]
    assert f"{form}: body: kernel.py:60: the file has 6 lines" in captured.err
    assert git(clone, "ls-remote", "origin", "main").split()[0] == git(clone, "rev-parse", "HEAD").strip()


def test_evidence_that_is_there_is_used_and_missing_evidence_is_made(
    clone: Path, runs: list[FakeRuns], form: Path
) -> None:
    assert cli.main(["review", "softmax/bad", "--form", str(form), "--dry-run", "--exchange", str(clone)]) == 0
    assert runs[-1].started == ["softmax/bad"]
    FakeRuns.stored.add("bad")
    assert cli.main(["review", "softmax/bad", "--form", str(form), "--dry-run", "--exchange", str(clone)]) == 0
    assert runs[-1].started == []


def test_panels_that_did_not_run_leave_no_review(
    clone: Path, runs: list[FakeRuns], form: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    FakeRuns.fails["bad"] = "the runner did not start"
    assert cli.main(["review", "softmax/bad", "--form", str(form), "--exchange", str(clone)]) == 3
    assert "the runner did not start" in capsys.readouterr().err


def test_a_refusing_hook_is_four_and_the_commit_is_kept(
    clone: Path, runs: list[FakeRuns], form: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hook = tmp_path / "remote.git" / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\necho closed for today >&2\nexit 1\n")
    hook.chmod(0o755)
    assert cli.main(["review", "softmax/bad", "--form", str(form), "--exchange", str(clone)]) == 4
    err = capsys.readouterr().err
    assert "closed for today" in err
    assert "review --retry" in err
    hook.unlink()
    assert cli.main(["review", "--retry", "--exchange", str(clone), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["subject"].startswith("review(softmax/bad): incorrect")
    assert "review(softmax/bad)" in git(tmp_path / "remote.git", "log", "-1", "--format=%s", "main")


def test_one_submission_is_reviewed_at_a_time(
    clone: Path, runs: list[FakeRuns], form: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["review", "softmax/*", "--form", str(form), "--exchange", str(clone)]) == 2
    assert "matches 2 submissions" in capsys.readouterr().err


def test_an_address_needs_trust_before_it_runs(
    clone: Path, runs: list[FakeRuns], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    address = f"file://{tmp_path / 'remote.git'}"
    assert cli.main(["list", "--exchange", address]) == 0
    assert cli.main(["run", "softmax/good", "--exchange", address]) == 2
    assert "--trust" in capsys.readouterr().err
    assert cli.main(["run", "softmax/good", "--exchange", address, "--trust"]) == 0
    assert cli.main(["run", "softmax/good", "--exchange", address]) == 0
    git(clone, "rm", "-q", "tasks/softmax/scenario.md")
    (clone / "tasks/softmax/reference.py").write_text("# other\n")
    git(clone, "commit", "-qam", "another reference")
    git(clone, "push", "-q", "origin", "main")
    assert cli.main(["run", "softmax/good", "--exchange", address]) == 2
    assert "tasks/softmax/reference.py has changed" in capsys.readouterr().err
    assert cli.main(["run", "softmax/good", "--exchange", str(clone)]) == 0
    assert cli.main(["run", "softmax/good", "--exchange", address, "--trust"]) == 0


def test_the_diff(clone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["diff", "softmax/bad", "--exchange", str(clone)]) == 0
    out = capsys.readouterr().out.splitlines()
    assert "no starter files" in out[1]
    assert "added kernel.py  +6 -0" in out
    assert "+    return x * 2  # ␛[31m" in out
    assert cli.main(["diff", "softmax/bad", "--stat", "--exchange", str(clone)]) == 0
    assert not [line for line in capsys.readouterr().out.splitlines() if line.startswith("+")]
    assert cli.main(["diff", "softmax/bad", "--exchange", str(clone), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [file["path"] for file in told["diff"]["files"]] == ["kernel.py", "submission.toml"]
    assert cli.main(["diff", "softmax/bad", "--against", "yesterday", "--exchange", str(clone)]) == 2
    assert cli.main(["diff", "softmax/*", "--exchange", str(clone)]) == 2


def test_a_submission_without_a_task_stops_no_other(
    clone: Path, runs: list[FakeRuns], capsys: pytest.CaptureFixture[str]
) -> None:
    (clone / "submissions" / "gone" / "one").mkdir(parents=True)
    (clone / "submissions" / "gone" / "one" / "kernel.py").write_text("x = 1\n")
    git(clone, "add", "-A")
    git(clone, "commit", "-qm", "a submission without a task")
    git(clone, "push", "-q", "origin", "main")
    assert cli.main(["run", "softmax/good", "gone/*", "--exchange", str(clone)]) == 3
    told = capsys.readouterr()
    assert told.out.startswith("softmax/good  pass")
    assert "gone/one: not determined: the exchange has no task gone" in told.err


@pytest.mark.parametrize("name", ["link", "module", "file"])
def test_what_is_no_folder_is_said_and_not_charged_to_git(
    clone: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    place = clone / "submissions" / "softmax" / name
    if name == "link":
        place.symlink_to("/etc")
    elif name == "file":
        place.write_text("x")
    git(clone, "add", "-A")
    if name == "module":
        git(clone, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},submissions/softmax/module")
    git(clone, "commit", "-qm", "no folder")
    git(clone, "push", "-q", "origin", "main")
    assert cli.main(["diff", f"softmax/{name}", "--exchange", str(clone)]) == 2
    assert "not a folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    "argv", [["review", "softmax/good", "--form", "{}"], ["run", "--replay", "{}"], ["review", "a/b", "--form", "."]]
)
def test_a_file_that_cannot_be_read_is_wrong_use(
    clone: Path, tmp_path: Path, argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    named = [one.format(tmp_path / "none") for one in argv]
    assert cli.main([*named, "--exchange", str(clone)]) == 2
    assert capsys.readouterr().out == ""


def test_an_empty_exchange_is_not_the_repository_around(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(clone)
    assert cli.main(["list"]) == 0
    assert cli.main(["list", "--exchange", ""]) == 2


@pytest.mark.parametrize(("pattern", "code"), [("softmax/*", 0), ("softmax/good", 0), ("none/*", 2)])
def test_the_log_of_what_is_not_there(clone: Path, pattern: str, code: int) -> None:
    assert cli.main(["log", pattern, "--exchange", str(clone)]) == code
