"""Strips are as wide as asked, styled throughout, and as short in bytes as can be."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from textual.theme import BUILTIN_THEMES

from console.view.spans import Span
from console.widgets.diff_pane import highlight, shifted
from console.widgets.strips import strip_of
from console.widgets.tones import THEMES, Paint, paint_for

PAINTS: list[Paint] = [
    *(paint_for(theme, depth) for theme in THEMES for depth in ("truecolor", "256", None)),
    paint_for(BUILTIN_THEMES["ansi-dark"], "standard"),
    paint_for(THEMES[0], None, no_color=True, plain=True),
]
SPANS = st.lists(
    st.builds(Span, st.text("ab 表✓", max_size=9), st.sampled_from(["text", "bad", "dim", "match", "add"])), max_size=6
)


@given(SPANS, st.integers(1, 60), st.sampled_from(PAINTS), st.booleans())
def test_exact_and_styled(spans: list[Span], width: int, paint: Paint, over: bool) -> None:
    strip = strip_of(tuple(spans), width, paint, paint.cursor if over else None)
    assert strip.cell_length == width
    assert all(segment.style is not None for segment in strip)


def test_blanks_cost_no_escape_sequence() -> None:
    paint = PAINTS[0]
    line = (Span("a", "bad"), Span("   ", "text"), Span("b", "bad"))
    assert len(list(strip_of(line, 20, paint))) == 1


def test_ascii_has_no_other_glyph() -> None:
    strip = strip_of((Span("✓ pass ✗ …", "good"),), 12, PAINTS[-1])
    assert strip.text == "v pass x ~  "


@given(SPANS, st.sampled_from(["a", "ab", "b "]))
def test_highlighting_keeps_the_text(spans: list[Span], needle: str) -> None:
    line = tuple(spans)
    text = "".join(span.text for span in line)
    marked = highlight(line, needle)
    assert "".join(span.text for span in marked) == text
    if needle in text:
        assert needle in "".join(span.text for span in marked if span.tone == "match") or needle[0] in text


def test_shifting_says_so() -> None:
    assert "".join(span.text for span in shifted((Span("abcdef"),), 2)) == "‹def"
