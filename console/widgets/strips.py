"""From a line of tones to the strip that the terminal gets."""

from __future__ import annotations

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from console.view.glyphs import ASCII
from console.view.spans import Line, Span
from console.widgets.tones import Paint


def strip_of(line: Line, width: int, paint: Paint, over: Style | None = None) -> Strip:
    """``line`` in exactly ``width`` cells. Every segment has a style: Textual's colour filters need one.

    Spaces take the style of the run before them, and equal neighbours are joined: a terminal on a slow link is sent
    one escape sequence per visible change of colour and no more.
    """
    if paint.ascii:
        line = tuple(Span(span.text.translate(ASCII), span.tone) for span in line)
    segments: list[Segment] = []
    text, style, used = "", None, 0
    for span in line:
        if not span.text:
            continue
        mine = paint.palette[span.tone]
        if over is not None:
            mine = mine + over
        used += cell_len(span.text)
        if style is None:
            text, style = span.text, mine
        elif mine == style or (span.text.isspace() and _same_ground(mine, style)):
            text += span.text
        else:
            segments.append(Segment(text, style))
            text, style = span.text, mine
    blank = paint.base if over is None else paint.base + over
    if style is None:
        return Strip([Segment(" " * width, blank)], width)
    if used < width and _same_ground(style, blank):
        text += " " * (width - used)
        used = width
    segments.append(Segment(text, style))
    strip = Strip(segments, used)
    return strip if used == width else strip.adjust_cell_length(width, blank)


def _same_ground(one: Style, two: Style) -> bool:
    return (
        one.bgcolor == two.bgcolor and not one.reverse and not two.reverse and not one.underline and not two.underline
    )
