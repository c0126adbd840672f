"""What a terminal may send does not end the console."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from console.widgets._textual_hacks import TolerantDecoder


def decoded(*pieces: bytes) -> str:
    decoder = TolerantDecoder()
    return "".join(decoder.decode(piece) for piece in pieces) + decoder.decode(b"", final=True)


def test_an_x10_mouse_report_is_dropped() -> None:
    assert decoded(b"a\x1b[M \xf0\x84b") == "ab"


def test_also_when_it_comes_in_pieces() -> None:
    report = b"\x1b[M \xf0\x84"
    for at in range(len(report) + 1):
        text = decoded(b"a" + report[:at], report[at:] + b"b")
        assert text.replace("\x1b[M", "").endswith("b")
        assert text.startswith("a")


def test_keys_pass_unchanged() -> None:
    assert decoded(b"\x1b[A\x1b[5~j\xc3\xa4") == "\x1b[A\x1b[5~jä"
    assert decoded(b"\x1b") == "\x1b"
    assert decoded(b"\xc3", b"\xa4") == "ä"


@given(st.lists(st.binary(max_size=12), max_size=6))
def test_no_bytes_raise(pieces: list[bytes]) -> None:
    decoded(*pieces)


@given(st.text(max_size=30).filter(lambda text: "\x1b" not in text), st.integers(0, 60))
def test_text_arrives_whole(text: str, at: int) -> None:
    data = text.encode("utf-8", "ignore")
    assert decoded(data[:at], data[at:]) == data.decode()
