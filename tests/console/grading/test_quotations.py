from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from console.grading.quote import mentions, quotation, quotes, same_line, text_lines


def test_lines_are_counted_as_git_counts_them() -> None:
    assert text_lines("a\r\nb\n\nc") == ["a", "b", "", "c"]
    assert text_lines("a\n") == ["a"]
    assert text_lines("") == []
    assert text_lines("a\x0cb\u2028c\n") == ["a\x0cb\u2028c"]


def test_mentions_are_files_and_nothing_else() -> None:
    prose = "kernel.py:14, (lib/a-b.cu:3) at 12:30 on http://host.py:80 see Makefile:2, v1.2:3 and `gone.md:1`."
    assert list(mentions(prose, {"Makefile"})) == [
        ("kernel.py", 14),
        ("lib/a-b.cu", 3),
        ("Makefile", 2),
        ("gone.md", 1),
    ]


def test_a_quotation_is_read_back() -> None:
    prose = "Here:\n\n" + quotation("kernel.py", 3, ["  a = 1  ", "", "\tb\x1b[2J"]) + "\n\nand on."
    assert "\x1b" not in prose
    read = list(quotes(prose, {"kernel.py"}))
    assert [(file, line) for file, line, _ in read] == [("kernel.py", 3), ("kernel.py", 4), ("kernel.py", 5)]
    assert all(
        same_line(quoted, actual) for (_, _, quoted), actual in zip(read, ["  a = 1  ", "", "\tb\x1b[2J"], strict=True)
    )


def test_only_a_mention_at_the_end_of_the_line_before_makes_a_quotation() -> None:
    assert list(quotes("kernel.py:3 says\n> so", {"kernel.py"})) == []
    assert list(quotes("as in (`kernel.py:3`):\n> so\n\n> else", {"kernel.py"})) == [("kernel.py", 3, " so")]
    assert list(quotes("> so\nkernel.py:3\n", {"kernel.py"})) == []


@given(st.lists(st.text().filter(lambda s: "\n" not in s and "\r" not in s), max_size=4), st.integers(1, 999))
def test_whatever_a_file_says_its_quotation_holds(lines: list[str], start: int) -> None:
    read = list(quotes(quotation("k.py", start, lines), {"k.py"}))
    assert len(read) == len(lines)
    assert all(same_line(text, actual) for (_, _, text), actual in zip(read, lines, strict=True))
