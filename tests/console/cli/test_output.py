from __future__ import annotations

import io
import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.verbs import output


class Terminal(io.StringIO):
    encoding = "ascii"

    def isatty(self) -> bool:
        return True


def test_colour_is_for_terminals_that_want_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert output.paint("x", "bad", Terminal()) == "\x1b[31mx\x1b[0m"
    assert output.paint("x", "plain", Terminal()) == "x"
    assert output.paint("x", "bad", io.StringIO()) == "x"
    monkeypatch.setenv("NO_COLOR", "1")
    assert output.paint("x", "bad", Terminal()) == "x"
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert output.paint("x", "bad", Terminal()) == "x"


def test_foreign_text_is_shown_and_never_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    stream = Terminal()
    monkeypatch.setattr(sys, "stdout", stream)
    output.print_text("a\x1b[31m", ("b\nc\u202e", "bad"))
    output.print_block("one\r\x07\ntwo")
    text = stream.getvalue()
    assert text.count("\n") == 3
    assert text.isascii()
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "\r" not in text


def test_columns_hold_wide_characters(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    output.table([["名前", "x"], ["abcde", "y"]])
    assert capsys.readouterr().out == "名前   x\nabcde  y\n"


def test_one_endless_cell_does_not_push_the_others_away(capsys: pytest.CaptureFixture[str]) -> None:
    output.table([["x" * 5000, "y", "z" * 300], ["a", "b", "c"]])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("(+4900 characters)  y  " + "z" * 300)
    assert len(lines[1]) < 150


@given(
    st.dictionaries(st.text(), st.text(), max_size=3).filter(
        lambda d: all(c < "\ud800" or c > "\udfff" for t in (*d, *d.values()) for c in t)
    )
)
def test_json_is_one_line_of_ascii_that_means_the_same(value: dict[str, str]) -> None:
    stream = io.StringIO()
    before, sys.stdout = sys.stdout, stream
    try:
        output.print_json(value)
    finally:
        sys.stdout = before
    line = stream.getvalue()
    assert line.isascii()
    assert line.endswith("\n")
    assert line[:-1].isprintable()
    assert json.loads(line) == value
