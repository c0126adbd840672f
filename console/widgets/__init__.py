"""Widgets of the console, drawn line by line so that size costs nothing."""

import os

# Textual reads these once, when it is imported: a moving or blinking screen is a flood over ssh.
os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")
os.environ.setdefault("TEXTUAL_SMOOTH_SCROLL", "0")
