"""Hostile text: shown, never obeyed; decoded whatever it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.exchange.text import (
    MAX_WORDS,
    decode,
    decode_name,
    git_words,
    looks_binary,
    visible,
    visible_block,
    without_secrets,
)

anything = st.text(st.characters(), max_size=200)


@given(anything)
def test_nothing_a_terminal_obeys_is_left(text: str) -> None:
    shown = visible(text)
    assert all(char.isprintable() or char in "\u00a0\u3000" for char in shown)
    assert not set(shown) & set("\x1b\n\r\t\u202e\u2066\u200b\ufeff\u00ad\u2028\ufe0f\ue000")
    shown.encode("utf-8")


@given(anything)
def test_showing_twice_changes_nothing(text: str) -> None:
    assert visible(visible(text)) == visible(text)


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=200))
def test_plain_text_stays(text: str) -> None:
    assert visible(text) == text


@given(anything, st.integers(1, 50))
def test_what_is_cut_is_counted(text: str, limit: int) -> None:
    shown = visible(text, limit)
    if len(text) > limit:
        assert shown == f"{visible(text[:limit])}\u2026 (+{len(text) - limit} characters)"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b]52;c;ZQ==\x07", "\u241b]52;c;ZQ==\u2407"),
        ("exec(bad)\b\b\bpass", "exec(bad)\u2408\u2408\u2408pass"),
        ("a\x9b31m", "a<U+009B>31m"),
        ("if \u202eadmin", "if <U+202E>admin"),
        ("a\u200bb\ufeff", "a<U+200B>b<U+FEFF>"),
        ("two\nlines", "two\u240alines"),
        ("a\tb", "a   b"),
        ("\ud800", "<U+D800>"),
        ("\u3164x", "<U+3164>x"),
        ("caf\u00e9 \u65e5\u672c [red]x[/]", "caf\u00e9 \u65e5\u672c [red]x[/]"),
        ("\U000e0041", "<U+E0041>"),
        ("a" + "\u0301" * 5, "a\u0301\u0301\u0301<U+0301><U+0301>"),
    ],
)
def test_known_tricks(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_a_block_keeps_its_lines_and_no_more_than_its_bound() -> None:
    assert visible_block("a\r\nb\x1b\rc\n") == "a\nb\u241b\u240dc\n"
    assert visible_block("1\n2\n3\n4", lines=2) == "1\n2\n\u2026 (+2 lines)"


@given(st.binary(max_size=300))
def test_every_file_decodes_to_text_without_lone_surrogates(data: bytes) -> None:
    decode(data).text.encode("utf-8")
    decode_name(data).encode("utf-8")


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_utf8_is_read_as_it_is(text: str) -> None:
    data = text.encode("utf-8")
    if not data.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        assert decode(data).text == text
    assert decode(b"\xef\xbb\xbf" + data).text == text


@pytest.mark.parametrize(
    ("data", "encoding", "text"),
    [
        (b"caf\xe9", "latin-1", "caf\u00e9"),
        (b"\xff\xfeh\0i\0", "utf-16-le", "hi"),
        (b"\xef\xbb\xbfx=1", "utf-8", "x=1"),
        (b"\xff\xfe\0\0h\0\0\0", "utf-32-le", "h"),
        (b"\xff\xfeh\0i", "utf-16-le", "h\ufffd"),
    ],
)
def test_other_encodings_are_named(data: bytes, encoding: str, text: str) -> None:
    decoded = decode(data)
    assert (decoded.encoding, decoded.text) == (encoding, text)
    assert decoded.note
    assert not looks_binary(data)


def test_a_nul_makes_a_file_binary() -> None:
    assert looks_binary(b"\x7fELF\0")
    assert not looks_binary(b"x" * 9000 + b"\0")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://ann:s3cret@host/x.git", "https://\u2026@host/x.git"),
        ("fatal: https://ghp_token@github.com/x: no", "fatal: https://\u2026@github.com/x: no"),
        ("ssh://git@host/x", "ssh://git@host/x"),
        ("git@host:x", "git@host:x"),
        ("https://host/a@b", "https://host/a@b"),
    ],
)
def test_secrets_in_addresses_are_masked(text: str, shown: str) -> None:
    assert without_secrets(text) == shown


def test_git_words_are_bounded_and_without_hints() -> None:
    said = b"Receiving objects:  10%\rReceiving objects: 100%\nhint: try this\nfatal: no \x1b[2J\n"
    assert git_words(said) == "Receiving objects: 100%\nfatal: no \u241b[2J"
    assert len(git_words(b"x\n" * 1_000_000)) < MAX_WORDS + 100
