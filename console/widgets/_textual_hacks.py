"""Repairs of Textual's private parts, all in this file.

Input: Textual decodes what the terminal sends as strict UTF-8 and ends the app on the first byte that is not. A mouse
report in the old X10 form, as sent after a tmux client attaches again, has such bytes, and so has a paste of Latin-1.

Hangup: reading from a terminal that has gone returns nothing, for ever, and writing to it raises. Neither may spin or
block: what is left to do then is to end.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from typing import Any

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
