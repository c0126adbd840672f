"""What widgets need of the app that they stand in."""

from __future__ import annotations

from typing import Protocol

from console.view.spans import Tone
from console.widgets.tones import Paint


class Host(Protocol):
    """The console, as widgets know it."""

    @property
    def paint(self) -> Paint:
        """Styles of the theme that is on."""
        ...

    def say(self, text: str, tone: Tone = "text") -> None:
        """Put a message into the message line."""
        ...
