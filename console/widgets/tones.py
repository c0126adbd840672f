"""What each tone looks like, per theme. Colours are members of the 256-colour table, so that both depths look alike."""

from __future__ import annotations

import msgspec
from rich.style import Style
from textual.theme import Theme

from console.view.spans import Tone

Palette = dict[Tone, Style]


class _Colours(msgspec.Struct, frozen=True):
    background: str
    surface: str
    cursor: str
    cursor_blurred: str
    text: str
    dim: str
    faint: str
    strong: str
    accent: str
    good: str
    warn: str
    bad: str
    keyword: str
    string: str
    number: str
    name: str
    add_background: str
    del_background: str


_DARK = _Colours(
    background="#121212",
    surface="#262626",
    cursor="#303a4a",
    cursor_blurred="#262626",
    text="#d0d0d0",
    dim="#949494",
    faint="#585858",
    strong="#ffffff",
    accent="#87afd7",
    good="#87af87",
    warn="#d7af5f",
    bad="#ff8787",
    keyword="#af87d7",
    string="#afaf87",
    number="#d7af87",
    name="#87afd7",
    add_background="#12261a",
    del_background="#2e1a1c",
)

_LIGHT = _Colours(
    background="#ffffff",
    surface="#eeeeee",
    cursor="#d7e6f5",
    cursor_blurred="#eeeeee",
    text="#303030",
    dim="#6c6c6c",
    faint="#b2b2b2",
    strong="#000000",
    accent="#005faf",
    good="#00875f",
    warn="#875f00",
    bad="#af0000",
    keyword="#8700af",
    string="#5f5f00",
    number="#af5f00",
    name="#005faf",
    add_background="#e6f5ea",
    del_background="#fbe9e9",
)


def _theme(name: str, colours: _Colours, *, dark: bool) -> Theme:
    return Theme(
        name=name,
        primary=colours.accent,
        secondary=colours.accent,
        accent=colours.accent,
        warning=colours.warn,
        error=colours.bad,
        success=colours.good,
        foreground=colours.text,
        background=colours.background,
        surface=colours.surface,
        panel=colours.surface,
        dark=dark,
        text_alpha=1.0,
        variables={"border": colours.faint, "border-blurred": colours.faint},
    )


THEMES: tuple[Theme, ...] = (_theme("review-dark", _DARK, dark=True), _theme("review-light", _LIGHT, dark=False))
"""Themes of the console itself; every theme of Textual works too."""

THEME_NAMES: dict[str, str] = {"dark": "review-dark", "light": "review-light", "textual-ansi": "ansi-dark"}
"""What the configuration may say, and the theme that it means; other names are those of Textual."""


def _true(colours: _Colours, deep: bool) -> tuple[Style, Palette]:
    base = Style(color=colours.text, bgcolor=colours.background)
    tint = base + Style(bgcolor=colours.add_background) if deep else base
    tinu = base + Style(bgcolor=colours.del_background) if deep else base
    return base, {
        "text": base,
        "dim": base + Style(color=colours.dim),
        "faint": base + Style(color=colours.faint),
        "strong": base + Style(color=colours.strong, bold=True),
        "title": base + Style(color=colours.accent, bold=True),
        "key": base + Style(color=colours.accent, bold=True),
        "accent": base + Style(color=colours.accent),
        "good": base + Style(color=colours.good),
        "warn": base + Style(color=colours.warn),
        "bad": base + Style(color=colours.bad),
        "add": tint + Style(color=colours.good),
        "del": tinu + Style(color=colours.bad),
        "hunk": base + Style(color=colours.accent),
        "match": base + Style(reverse=True),
        "keyword": base + Style(color=colours.keyword),
        "string": base + Style(color=colours.string),
        "comment": base + Style(color=colours.dim, italic=True),
        "number": base + Style(color=colours.number),
        "name": base + Style(color=colours.name),
    }


def _ansi() -> tuple[Style, Palette]:
    base = Style(color="default", bgcolor="default")
    return base, {
        "text": base,
        "dim": base + Style(dim=True),
        "faint": base + Style(dim=True),
        "strong": base + Style(bold=True),
        "title": base + Style(color="blue", bold=True),
        "key": base + Style(color="blue", bold=True),
        "accent": base + Style(color="blue"),
        "good": base + Style(color="green"),
        "warn": base + Style(color="yellow"),
        "bad": base + Style(color="red"),
        "add": base + Style(color="green"),
        "del": base + Style(color="red"),
        "hunk": base + Style(color="cyan"),
        "match": base + Style(reverse=True),
        "keyword": base + Style(color="magenta"),
        "string": base + Style(color="green"),
        "comment": base + Style(dim=True, italic=True),
        "number": base + Style(color="yellow"),
        "name": base + Style(color="blue"),
    }


class Paint(msgspec.Struct, frozen=True):
    """Everything that turns tones into styles: one per theme and colour depth."""

    base: Style
    palette: Palette
    cursor: Style
    """Laid over the line under the cursor of the focused pane."""
    cursor_blurred: Style
    bar: Style
    """Laid over header, tabs and footer."""
    added: Style
    removed: Style
    """Laid over whole lines of a diff; without effect where colours are few."""
    ascii: bool = False
    """Glyphs beyond ASCII are replaced."""


def paint_for(theme: Theme, color_system: str | None, *, no_color: bool = False, plain: bool = False) -> Paint:
    """The styles for a theme; ``color_system`` is Rich's name of the terminal's depth; ``plain`` asks for ASCII."""
    if theme.ansi or no_color:
        base, palette = _ansi()
        line = Style(reverse=True)
        return Paint(base, palette, line, Style(underline=True), Style(reverse=not no_color), Style(), Style(), plain)
    colours = _DARK if theme.dark else _LIGHT
    deep = color_system == "truecolor"
    base, palette = _true(colours, deep)
    return Paint(
        base,
        palette,
        Style(bgcolor=colours.cursor if deep else ("#303030" if theme.dark else "#dadada")),
        Style(bgcolor=colours.cursor_blurred),
        Style(bgcolor=colours.surface),
        Style(bgcolor=colours.add_background) if deep else Style(),
        Style(bgcolor=colours.del_background) if deep else Style(),
        plain,
    )
