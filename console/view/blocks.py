"""Blocks: things that a cursor stands on, each several lines high. The one under the cursor may show more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from console.view.spans import Line


class Block(NamedTuple):
    """Lines that belong together. ``key`` names what they show; an empty key is passed over by the cursor."""

    key: str
    lines: Sequence[Line]
