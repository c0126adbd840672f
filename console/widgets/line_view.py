"""A list of lines of any length: only what is visible is ever made."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import ClassVar, cast

from rich.style import Style
from textual.binding import Binding
from textual.cache import LRUCache
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from console.view.spans import Line, Span
from console.widgets.bindings import bindings_for
from console.widgets.host import Host
from console.widgets.strips import strip_of


class LineView(ScrollView, can_focus=True):
    """A cursor over virtual lines. Subclasses say how many there are and what each one shows.

    The leftmost cell is the cursor's, so that it is seen without colour.
    """

    SCOPE: ClassVar[str] = "lines"
    BINDINGS: ClassVar[list[Binding]] = bindings_for("lines")  # type: ignore[assignment]
    DEFAULT_CSS = """
    LineView { width: 1fr; height: 1fr; overflow: hidden hidden; scrollbar-size: 0 0; background: $background; }
    """

    cursor: reactive[int] = reactive(0, repaint=False, init=False)

    class Moved(Message):
        """The cursor is on another line."""

        def __init__(self, view: LineView) -> None:
            super().__init__()
            self.view = view

        @property
        def control(self) -> LineView:
            """The list whose cursor moved."""
            return self.view

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._cache: LRUCache[tuple[int, int], Strip] = LRUCache(512)

    def count(self) -> int:
        """How many lines there are."""
        return 0

    def line(self, y: int, width: int) -> Line:
        """What line ``y`` shows in ``width`` cells, the cursor's cell not among them."""
        raise NotImplementedError

    def stops(self) -> Sequence[int] | None:
        """The lines on which the cursor may rest, sorted; None for every line."""
        return None

    def tint(self, y: int) -> Style | None:
        """A style laid over the whole of line ``y``."""
        return None

    @property
    def host(self) -> Host:
        """The app, by its own type."""
        return cast(Host, self.app)

    @property
    def page(self) -> int:
        """Visible lines."""
        return max(1, self.size.height)

    def reload(self, *, keep: bool = True) -> None:
        """Everything may have changed: draw again. The cursor stays where it was, if it can."""
        self._cache.clear()
        self.virtual_size = Size(self.size.width, self.count())
        self.set_reactive(LineView.cursor, self._nearest(self.cursor if keep else 0))
        self._follow()
        self.refresh()

    def redraw_line(self, y: int) -> None:
        """Line ``y`` has changed."""
        for key in [key for key in self._cache.keys() if key[0] == y]:  # noqa: SIM118 - an LRUCache does not iterate
            self._cache.discard(key)
        self._refresh_row(y)

    def _refresh_row(self, y: int) -> None:
        row = y - int(self.scroll_offset.y)
        if 0 <= row < self.size.height:
            self.refresh(Region(0, row, self.size.width, 1))

    def validate_cursor(self, value: int) -> int:
        """Keep the cursor on a line that exists and may be stopped at."""
        return self._nearest(value)

    def watch_cursor(self, old: int, new: int) -> None:
        """Repaint the two lines that changed, and scroll if the cursor left the window."""
        if old == new:
            return
        self._refresh_row(old)
        self._refresh_row(new)
        self._follow()
        self.post_message(self.Moved(self))

    def on_resize(self) -> None:
        """A new width makes new lines."""
        self.reload()

    def on_focus(self) -> None:
        """The cursor looks different with the focus."""
        self._refresh_row(self.cursor)

    def on_blur(self) -> None:
        """The cursor looks different without the focus."""
        self._refresh_row(self.cursor)

    def notify_style_update(self) -> None:
        """A new theme makes new strips."""
        super().notify_style_update()
        self._cache.clear()

    def render_line(self, y: int) -> Strip:
        """One row of the window."""
        width = self.size.width
        paint = self.host.paint
        index = y + int(self.scroll_offset.y)
        if index >= self.count():
            return strip_of((), width, paint)
        if index == self.cursor:
            over = paint.cursor if self.has_focus else paint.cursor_blurred
            mark = Span("▌" if self.has_focus else "▏", "accent")
            return strip_of((mark, *self.line(index, width - 1)), width, paint, over)
        key = (index, width)
        strip = self._cache.get(key)
        if strip is None:
            strip = strip_of((Span(" "), *self.line(index, width - 1)), width, paint, self.tint(index))
            self._cache[key] = strip
        return strip

    def _nearest(self, value: int) -> int:
        total = self.count()
        value = min(max(0, value), max(0, total - 1))
        stops = self.stops()
        if stops is None or not stops:
            return value
        at = bisect_left(stops, value)
        if at < len(stops) and stops[at] == value:
            return value
        return stops[max(0, at - 1)]

    def _follow(self) -> None:
        if not self.size.height:
            return
        top, page = int(self.scroll_offset.y), self.page
        first, last = self.extent(self.cursor)
        last = min(last, first + page - 1)
        if first < top:
            self._scroll_to_line(first if first > 1 else 0)
        elif last >= top + page:
            self._scroll_to_line(last - page + 1)
        elif top > max(0, self.count() - page):
            self._scroll_to_line(max(0, self.count() - page))

    def extent(self, y: int) -> tuple[int, int]:
        """First and last line that belong together with ``y`` and should be seen with it."""
        return y, y

    def _scroll_to_line(self, y: int) -> None:
        self.scroll_to(y=max(0, y), animate=False, force=True)

    def step(self, by: int) -> None:
        """Move by stops."""
        stops = self.stops()
        if stops is None:
            self.cursor += by
        elif stops:
            at = bisect_right(stops, self.cursor) - 1
            at = min(max(0, at + by), len(stops) - 1)
            if stops[at] == self.cursor:
                # No further stop: show what lies beyond the last one.
                self._scroll_to_line(int(self.scroll_offset.y) + by)
            self.cursor = stops[at]

    def leap(self, by: int) -> None:
        """Move by lines, window and cursor together."""
        top = int(self.scroll_offset.y) + by
        self._scroll_to_line(min(max(0, top), max(0, self.count() - self.page)))
        self.cursor = self.cursor + by

    def action_down(self) -> None:
        """One stop down."""
        self.step(1)

    def action_up(self) -> None:
        """One stop up."""
        self.step(-1)

    def action_page_down(self) -> None:
        """One page down, one line kept."""
        self.leap(max(1, self.page - 1))

    def action_page_up(self) -> None:
        """One page up, one line kept."""
        self.leap(-max(1, self.page - 1))

    def action_half_down(self) -> None:
        """Half a page down."""
        self.leap(max(1, self.page // 2))

    def action_half_up(self) -> None:
        """Half a page up."""
        self.leap(-max(1, self.page // 2))

    def action_top(self) -> None:
        """To the first line."""
        self.cursor = 0
        self._scroll_to_line(0)

    def action_bottom(self) -> None:
        """To the last line."""
        self.cursor = max(0, self.count() - 1)
        self._scroll_to_line(max(0, self.count() - self.page))
