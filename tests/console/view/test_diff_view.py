"""Rows of a diff, where they are, and how they are coloured."""

from __future__ import annotations

import difflib

from hypothesis import given
from hypothesis import strategies as st

from console.exchange.diff import FileDiff, Hunk, Line
from console.view.diff import build
from console.view.spans import plain
from console.view.syntax import BLOCK, Highlighter


def file_of(old: list[str], new: list[str], path: str = "kernel.py") -> FileDiff:
    hunks = []
    for group in difflib.SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(1):
        lines: list[Line] = []
        for tag, a, b, c, d in group:
            if tag == "equal":
                lines += [Line("same", a + n + 1, c + n + 1, new[c + n]) for n in range(b - a)]
            else:
                lines += [Line("del", n + 1, 0, old[n]) for n in range(a, b)]
                lines += [Line("add", 0, n + 1, new[n]) for n in range(c, d)]
        hunks.append(Hunk(group[0][1] + 1, group[0][3] + 1, "f", tuple(lines)))
    return FileDiff(
        path=path,
        old_path=path,
        status="modified",
        kind="text",
        old_mode="100644",
        new_mode="100644",
        old_oid="1",
        new_oid="2",
        hunks=tuple(hunks),
    )


LINES = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=30)


@given(LINES, LINES)
def test_a_whole_file_is_the_file(old: list[str], new: list[str]) -> None:
    model = build([file_of(old, new)], {"kernel.py": new}, whole=True)
    lines = [row for row in model.rows if row.kind in ("same", "add")]
    assert [row.text for row in lines] == new
    assert [row.new for row in lines] == list(range(1, len(new) + 1))
    kept = [row.text for row in model.rows if row.kind in ("same", "del")]
    assert kept == old
    assert [row.old for row in model.rows if row.kind in ("same", "del")] == list(range(1, len(old) + 1))


@given(LINES, LINES)
def test_hunks_are_reached_forwards_and_backwards(old: list[str], new: list[str]) -> None:
    model = build([file_of(old, new), file_of(new, old, "other.py")])
    y, forwards = 0, []
    while (following := model.next_hunk(y)) != y:
        forwards.append(following)
        y = following
    assert tuple(forwards) == model.hunk_rows
    y, backwards = len(model.rows), []
    while (before := model.previous_hunk(y)) != y:
        backwards.append(before)
        y = before
    assert tuple(reversed(backwards)) == model.hunk_rows


def test_places_and_back() -> None:
    new = [f"line {n}" for n in range(40)]
    old = [*new[:20], "gone", *new[21:]]
    model = build([file_of(old, new)])
    row = model.find("kernel.py", 21)
    assert row is not None
    assert model.place(row) == ("kernel.py", 21)
    assert model.find("kernel.py", 1) is None
    assert build([file_of(old, new)], {"kernel.py": new}, whole=True).find("kernel.py", 1) is not None
    assert model.find("nowhere.py", 1) is None
    assert model.place(0) is None


def test_search_goes_round_and_minds_capitals() -> None:
    model = build([file_of(["x"], ["alpha", "Beta", "beta"])])
    first = model.search("beta", 0)
    assert first is not None
    second = model.search("beta", first)
    assert second == first + 1
    assert model.search("beta", second) == first
    assert model.search("beta", first, backwards=True) == second
    assert model.search("Beta", second) == first
    assert model.search("gamma", 0) is None


@given(st.lists(st.sampled_from(["x = 1", '"""doc', 'end"""', "# it's", "y = '''a'''", "def f(): pass"]), max_size=200))
def test_highlighting_changes_no_text(lines: list[str]) -> None:
    colours = Highlighter("kernel.py", lines)
    assert [plain(colours.line(number)) for number in range(len(lines))] == lines


def test_a_block_may_begin_inside_a_string() -> None:
    lines = ['"""open', *["text"] * (BLOCK * 2), '"""', "x = 1"]
    colours = Highlighter("kernel.py", lines)
    assert {span.tone for span in colours.line(BLOCK + 3)} == {"string"}
    assert "number" in {span.tone for span in colours.line(len(lines) - 1)}


def test_hostile_text_is_shown_not_obeyed() -> None:
    lines = ["x = '\x1b[31m'  # \u202e", "y" * 5000 + "\x07"]
    colours = Highlighter("kernel.py", lines)
    for number in range(2):
        assert not set(plain(colours.line(number))) & set("\x1b\u202e\x07")


def test_prose_is_wrapped_and_keeps_its_lines() -> None:
    new = ["word " * 30, "short"]
    model = build([file_of([], new, "answer.md")], width=40)
    lines = [row for row in model.rows if row.kind == "add"]
    assert len(lines) > 3
    assert {row.new for row in lines} == {1, 2}
    assert [row.part for row in lines][:3] == [0, 1, 2]
    assert " ".join(row.text for row in lines).split() == " ".join(new).split()
    assert model.find("answer.md", 2) == len(model.rows) - 1
