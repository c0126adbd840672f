from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from console import cli

from .conftest import FakeRuns, git

FORM = """
outcome = "incorrect"
mechanism = "flawed"
body = "Twice too large at kernel.py:6."
overruled = [{ code = "integrity/input-mutated", reason = "the task allows it" }]
"""


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def names(entries: list[dict[str, object]]) -> list[object]:
    return [entry["submission"] for entry in entries]


def test_list_for_programs(clone: Path, runs: list[FakeRuns], capsys: pytest.CaptureFixture[str]) -> None:
    FakeRuns.stored.add("bad")
    assert cli.main(["list", "--exchange", str(clone), "--json"]) == 0
    bad, good = lines(capsys)
    assert (bad["submission"], bad["outcome"], bad["author"]) == ("bad", "fail", "model-\x1b[31mb")
    assert bad["worst"]["id"] == "numerics/mismatch#1"  # type: ignore[index]
    assert bad["panels"]["timing"] == "not-checked"  # type: ignore[index]
    assert (good["submission"], good["outcome"], good["worst"], good["reviews"]) == ("good", None, None, [])
    assert runs[0].started == []
    assert runs[0].closed


def test_list_for_people(clone: Path, runs: list[FakeRuns], capsys: pytest.CaptureFixture[str]) -> None:
    FakeRuns.stored.update({"bad", "good"})
    assert cli.main(["list", "--exchange", str(clone)]) == 0
    out = re.sub(r"\b[0-9a-f]{9}\b", "<commit>", capsys.readouterr().out)
    assert out.splitlines() == [
        "SUBMISSION    AUTHOR        REVISION   RUN   REVIEWS  MARK  WORST FINDING",
        "softmax/bad   model-␛[31mb  <commit>  fail  -        -     numerics/mismatch#1 what numerics/mismatch found "
        "<U+202E>",
        "softmax/good  model-a       <commit>  pass  -        -",
    ]


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (["softmax/g*"], ["good"]),
        (["--author", "MODEL-A"], ["good"]),
        (["--outcome", "none"], ["good"]),
        (["--outcome", "fail"], ["bad"]),
        (["--finding", "numerics/*"], ["bad"]),
        (["--mark", "reject"], []),
        (["--unreviewed"], ["bad", "good"]),
    ],
)
def test_list_filters(
    clone: Path, runs: list[FakeRuns], capsys: pytest.CaptureFixture[str], options: list[str], found: list[str]
) -> None:
    FakeRuns.stored.add("bad")
    assert cli.main(["list", *options, "--exchange", str(clone), "--json"]) == 0
    assert names(lines(capsys)) == found


def test_a_pattern_that_matches_nothing_is_two(
    clone: Path, runs: list[FakeRuns], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["list", "softmax/godo", "--exchange", str(clone), "--json"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "kernel-review: no submission matches 'softmax/godo'; did you mean 'softmax/good'?\n"


def test_the_repository_around_us_is_the_default(
    clone: Path, runs: list[FakeRuns], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(clone / "tasks")
    assert cli.main(["list", "--json"]) == 0
    assert names(lines(capsys)) == ["bad", "good"]


def test_so_is_the_configured_exchange_elsewhere(
    clone: Path,
    runs: list[FakeRuns],
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    config = home / "XDG_CONFIG_HOME" / "kernel-review" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'exchange = "{clone}"\n')
    monkeypatch.chdir(tmp_path)
    assert cli.main(["list", "--json"]) == 0
    assert names(lines(capsys)) == ["bad", "good"]
    config.write_text('exchnge = "x"\n')
    assert cli.main(["list", "--json"]) == 2
    assert "did you mean `exchange`?" in capsys.readouterr().err


def test_the_log_of_what_was_reviewed(
    clone: Path, runs: list[FakeRuns], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    criteria = "".join(
        f'[[criteria]]\nid = "{name}"\nlevel = 1\nnote = "n"\ncites = ["panel:correctness", "panel:integrity", '
        f'"panel:timing"]\n'
        for name in ("correctness", "integrity", "numerics", "performance", "robustness", "reasoning", "writing")
    )
    form = tmp_path / "form.toml"
    form.write_text(FORM + criteria)
    assert cli.main(["review", "softmax/bad", "--form", str(form), "--exchange", str(clone), "--json"]) == 0
    capsys.readouterr()

    assert cli.main(["log", "--exchange", str(clone), "--json"]) == 0
    (entry,) = lines(capsys)
    assert (entry["submission"], entry["grader"], entry["outcome"], entry["mechanism"], entry["score"]) == (
        "bad",
        "ann-lee",
        "incorrect",
        "flawed",
        3.3,
    )
    assert (entry["current"], entry["overruled"]) == (True, ["integrity/input-mutated"])

    assert cli.main(["log", "--exchange", str(clone)]) == 0
    header, row = capsys.readouterr().out.splitlines()
    assert header.split() == ["DATE", "SUBMISSION", "GRADER", "OUTCOME", "MECHANISM", "SCORE"]
    assert row.split()[1:] == ["softmax/bad", "ann-lee", "incorrect", "flawed", "3.3"]

    for options, count in [
        (["softmax/*"], 1),
        (["softmax/good"], 0),
        (["--grader", "ann*"], 1),
        (["--outcome", "correct"], 0),
        (["--mechanism", "flawed"], 1),
        (["--min-score", "3.3"], 1),
        (["--max-score", "3.2"], 0),
        (["--since", "2020-01-01"], 1),
        (["--since", "2999-01-01"], 0),
        (["--current"], 1),
        (["--overruled", "integrity/*"], 1),
        (["--overruled", "memory/*"], 0),
    ]:
        assert cli.main(["log", *options, "--exchange", str(clone), "--json", "--no-fetch"]) == 0
        assert len(lines(capsys)) == count, options

    assert cli.main(["list", "--unreviewed", "--exchange", str(clone), "--json"]) == 0
    assert names(lines(capsys)) == ["good"]
    git(clone, "pull", "-q", "origin", "main")
    kernel = clone / "submissions/softmax/bad/kernel.py"
    kernel.write_text(kernel.read_text() + "# again\n")
    git(clone, "commit", "-qam", "a new revision")
    git(clone, "push", "-q", "origin", "main")
    assert cli.main(["log", "--current", "--exchange", str(clone), "--json"]) == 0
    assert lines(capsys) == []
    assert cli.main(["log", "--exchange", str(clone)]) == 0
    assert capsys.readouterr().out.splitlines()[1].endswith("of an older revision")


def test_a_day_that_is_none(clone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(["log", "--since", "yesterday"])
    assert end.value.code == 2
    assert "write 2026-03-31" in capsys.readouterr().err
