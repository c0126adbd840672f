"""Lines are measured in cells and never wider than they may be."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from console.view.spans import Span, clip, fit, plain, spread, width_of, wrap

TEXT = st.text(alphabet="ab √表é \u0301-_", max_size=40)


@given(TEXT, st.integers(0, 30), st.booleans())
def test_fit_is_exact(text: str, width: int, right: bool) -> None:
    assert cell_len(fit(text, width, right=right)) == width


@given(st.lists(TEXT, max_size=5), st.integers(0, 40))
def test_clip_never_widens(texts: list[str], width: int) -> None:
    line = tuple(Span(text) for text in texts)
    assert width_of(clip(line, width)) <= max(width, 0)
    if width_of(line) <= width:
        assert clip(line, width) == line


@given(TEXT, TEXT, st.integers(1, 60))
def test_spread_fills_the_row(left: str, right: str, width: int) -> None:
    assert width_of(spread((Span(left),), (Span(right),), width)) <= width


@given(st.text(alphabet="ab c表\n ", max_size=120), st.integers(4, 30))
def test_wrap_keeps_every_word(text: str, width: int) -> None:
    lines = list(wrap(text, width))
    assert all(cell_len(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


def test_wrap_keeps_indentation() -> None:
    assert list(wrap("  one two three", 12)) == ["  one two", "  three"]


def test_the_right_end_wins() -> None:
    line = spread((Span("a long left end"),), (Span("right"),), 12)
    assert plain(line) == "a lon… right"
