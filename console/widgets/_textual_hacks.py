"""Repairs of Textual's private parts, all in this file.

Input: Textual decodes what the terminal sends as strict UTF-8 and ends the app on the first byte that is not. A mouse
report in the old X10 form, as sent after a tmux client attaches again, has such bytes, and so has a paste of Latin-1.

Hangup: reading from a terminal that has gone returns nothing, for ever, and writing to it raises. Neither may spin or
block: what is left to do then is to end.

Order: Textual sends a key to the widget in focus, whose queue sends it on upwards until the app looks for a binding,
by the focus of then. Over a slow line keys come in bursts, and a key that moves the focus or opens a screen makes those
behind it go astray. Here each key is done with before the next one is looked at.

No colour: Textual answers NO_COLOR with shades of grey, unless its theme is one of the terminal's own colours.

First theme: one that is set in the usual way makes Textual parse every stylesheet twice before the first paint.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from textual.app import App
    from textual.events import Key
    from textual.message_pump import MessagePump

PATIENCE_S = 0.2
"""How long a key waits for the one before it; nothing that a key does should take as long."""

_X10_MOUSE = re.compile(rb"\x1b\[M[\x00-\xff]{3}")
_X10_OPEN = re.compile(rb"\x1b\[M[\x00-\xff]{0,2}\Z")


class TolerantDecoder:
    """An incremental UTF-8 decoder that drops X10 mouse reports and bytes that are not UTF-8."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="ignore")
        self._held = b""

    def decode(self, data: bytes, final: bool = False) -> str:
        """Text of ``data``; an X10 report that is not complete yet is held back."""
        data = _X10_MOUSE.sub(b"", self._held + data)
        self._held = b""
        opened = None if final else _X10_OPEN.search(data)
        if opened is not None:
            data, self._held = data[: opened.start()], opened.group()
        return self._decoder.decode(data, final)


def tolerate_input() -> None:
    """Make Textual's Linux driver use :class:`TolerantDecoder`."""
    try:
        from textual.drivers import linux_driver
    except ImportError:
        return  # another platform, another driver

    def factory(_encoding: str) -> Callable[[], Any]:
        return TolerantDecoder

    linux_driver.getincrementaldecoder = factory  # type: ignore[attr-defined,assignment]


def survive_hangup(on_gone: Callable[[], object]) -> None:
    """Let Textual's writer thread end quietly when the terminal has gone, and say so once."""
    from textual.drivers._writer_thread import WriterThread

    def run(self: WriterThread) -> None:
        gone = False
        while (text := self._queue.get()) is not None:
            if gone:
                continue  # keep taking: the queue is bounded and a full one blocks the app
            try:
                self._file.write(text)
                if self._queue.qsize() == 0:
                    self._file.flush()
            except (OSError, ValueError):
                gone = True
                on_gone()
        if not gone:
            try:
                self._file.flush()
            except (OSError, ValueError):
                on_gone()

    WriterThread.run = run  # type: ignore[method-assign]


async def _drained(node: MessagePump) -> None:
    """Until ``node`` has handled what stands in its queue now."""
    done = asyncio.Event()
    if node.is_running and node.call_later(done.set):
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(done.wait(), PATIENCE_S)


async def ready(app: App[Any]) -> None:
    """Until the screen on top can take keys."""
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(app.screen._mounted_event.wait(), PATIENCE_S)


async def in_order(app: App[Any], event: Key) -> bool:
    """Do what a key is bound to, now; True when there was something. Keys that write are left to the widget."""
    await ready(app)
    focused = app.screen.focused
    # What a key changes is painted at once, and once: a second paint would come a sixtieth of a second later.
    with app.batch_update():
        if focused is not None and focused.check_consume_key(event.key, event.character):
            focused._forward_event(event)
            done = True
        else:
            done = await app._check_bindings(event.key)
        node: MessagePump | None = focused
        while done and node is not None and node is not app:
            await _drained(node)
            node = node._parent
    app.screen.check_idle()
    return done


def without_colour(app: App[Any]) -> None:
    """No colour at all where NO_COLOR asks for it; attributes stay."""
    from textual.filter import Monochrome, NoColor

    app._filters[:] = [one for one in app._filters if not isinstance(one, Monochrome)] + [NoColor()]


def begin_with_theme(app: App[Any], name: str) -> None:
    """The theme to start with, before anything is styled."""
    app.set_reactive(type(app).theme, name)
    app._refresh_truecolor_filter(app.ansi_theme)
    app.stylesheet.set_variables(app.get_css_variables())
