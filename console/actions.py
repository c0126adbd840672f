"""Every action of the console, once: key bindings, footer, help, palette and the key table come from here.

An action belongs to a scope. A scope is a place on screen that has a handler ``action_<name>`` for each of its
actions; what a key does follows from the chain of scopes around the focus, and within one chain no key has two
meanings. Keys are those that every terminal sends through ssh and tmux: letters, digits, F-keys, ctrl with a letter.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

Scope = Literal[
    "app", "lines", "queue", "submission", "review", "scenario", "diff", "panels", "rubric", "preview", "help", "form"
]

CHAINS: dict[str, tuple[Scope, ...]] = {
    "Queue": ("queue", "submission", "lines", "app"),
    "Review": ("scenario", "diff", "panels", "rubric", "review", "submission", "lines", "app"),
    "Preview": ("preview", "lines", "app"),
    "Help": ("help", "lines", "app"),
    "Text": ("form", "app"),
}
"""Per screen, every scope whose keys can be live on it. All panes of a review stand in one chain on purpose: a key
keeps its meaning when the focus moves from pane to pane."""


class Action(msgspec.Struct, frozen=True):
    """Something a key does."""

    scope: Scope
    name: str
    keys: tuple[str, ...]
    label: str
    """Two words at most, for the footer."""
    help: str
    """One sentence, for help, palette and docs."""
    group: str
    footer: bool = False

    @property
    def id(self) -> str:
        """Stable name: ``scope.name``."""
        return f"{self.scope}.{self.name}"

    @property
    def handler(self) -> str:
        """The method of the scope's owner that does it."""
        return f"action_{self.name}"


def _a(scope: Scope, name: str, keys: str, label: str, text: str, group: str, *, footer: bool = False) -> Action:
    return Action(scope, name, tuple(keys.split()), label, text, group, footer)


ACTIONS: tuple[Action, ...] = (
    _a("queue", "open", "enter", "open", "Open the submission under the cursor.", "Review", footer=True),
    _a("submission", "run", "r", "run", "Run the panels of this submission in the background.", "Runs", footer=True),
    _a("queue", "run_visible", "R", "run all", "Run every submission that the filter shows.", "Runs", footer=True),
    _a("submission", "run_fresh", "f", "run anew", "Run again even where evidence is stored.", "Runs"),
    _a("submission", "cancel", "x", "cancel", "Cancel the run of this submission.", "Runs"),
    _a("queue", "cancel_all", "ctrl+x", "cancel all", "Cancel every queued and running run.", "Runs"),
    _a("queue", "filter", "slash", "filter", "Filter: words, and task: author: state: finding:", "Find", footer=True),
    _a("queue", "sort", "s", "sort", "Sort by worst finding, state, task, author or time.", "Find", footer=True),
    _a("queue", "unfilter", "escape", "show all", "Clear the filter.", "Find"),
    _a("queue", "problems", "exclamation_mark", "problems", "What could not be read in the exchange.", "Exchange"),
    _a("queue", "push", "P", "push", "Push commits that were made and refused earlier.", "Exchange"),
    _a("queue", "fetch", "ctrl+r", "fetch", "Fetch from the remote now.", "Exchange"),
    _a("submission", "wants_review", "w", "wants review", "Mark: a person must look at this.", "Triage", footer=True),
    _a("submission", "reject", "D", "reject", "Mark: rejected, with a reason.", "Triage", footer=True),
    _a("submission", "environment", "E", "environment", "Mark: the machine is at fault, not the work.", "Triage"),
    _a("submission", "explain", "i", "explain", "What the finding under the cursor means.", "Evidence", footer=True),
    _a("review", "next_pane", "tab", "next pane", "Go to the next pane.", "Panes", footer=True),
    _a("review", "previous_pane", "shift+tab", "previous pane", "Go to the previous pane.", "Panes"),
    _a("review", "show_scenario", "f2", "scenario", "Go to the scenario: what was asked.", "Panes"),
    _a("review", "show_diff", "f3", "diff", "Go to the diff.", "Panes"),
    _a("review", "show_panels", "f4", "panels", "Go to the panels: what was measured.", "Panes"),
    _a("review", "show_rubric", "f5", "rubric", "Go to the rubric: your judgement.", "Panes"),
    _a("review", "attach", "a", "attach", "Cite this line or finding in the current criterion.", "Review", footer=True),
    _a("review", "preview", "p", "preview", "See the exact review and commit, then commit.", "Review", footer=True),
    _a("review", "next_submission", "greater_than_sign", "next", "Open the next submission of the queue.", "Review"),
    _a("review", "previous_submission", "less_than_sign", "previous", "Open the previous submission.", "Review"),
    _a("review", "undo", "z", "undo", "Undo the last change to the draft.", "Review"),
    _a("diff", "next_hunk", "right_square_bracket", "next hunk", "Go to the next hunk.", "Diff", footer=True),
    _a("diff", "previous_hunk", "left_square_bracket", "previous hunk", "Go to the previous hunk.", "Diff"),
    _a("diff", "next_file", "right_curly_bracket", "next file", "Go to the next file.", "Diff"),
    _a("diff", "previous_file", "left_curly_bracket", "previous file", "Go to the previous file.", "Diff"),
    _a("diff", "base", "d", "base", "Compare with starter, previous or last reviewed.", "Diff", footer=True),
    _a("diff", "whole", "v", "whole file", "Show whole files, or only what changed.", "Diff"),
    _a("diff", "search", "slash", "search", "Search in the diff.", "Diff", footer=True),
    _a("diff", "next_match", "n", "next match", "Go to the next match.", "Diff"),
    _a("diff", "previous_match", "N", "previous match", "Go to the previous match.", "Diff"),
    _a("diff", "left", "left h", "left", "Scroll the code to the left.", "Diff"),
    _a("diff", "right", "right l", "right", "Scroll the code to the right.", "Diff"),
    _a("panels", "jump", "enter", "to code", "Show the finding's line in the diff.", "Evidence", footer=True),
    _a("panels", "overrule", "o", "overrule", "Overrule this finding, with a reason.", "Evidence", footer=True),
    _a(
        "rubric", "level", "0 1 2 3 4 5 6 7 8 9", "level", "Set the level, outcome or mechanism.", "Rubric", footer=True
    ),
    _a("rubric", "clear", "minus", "clear", "Clear the level, or the last thing cited.", "Rubric"),
    _a(
        "rubric", "take_all", "t", "take all", "Take every suggestion that you have not decided.", "Rubric", footer=True
    ),
    _a("rubric", "note", "c enter", "note", "Write the note, or the summary, here.", "Rubric", footer=True),
    _a("review", "edit", "e", "editor", "Write the note, or the summary, in $EDITOR.", "Rubric", footer=True),
    _a("preview", "commit", "c ctrl+s", "commit", "Commit this review and push it.", "Commit", footer=True),
    _a("preview", "retry", "r", "retry", "Push again what is committed but was refused.", "Commit", footer=True),
    _a("preview", "attended", "T", "in terminal", "Commit with the terminal lent to git, for a passphrase.", "Commit"),
    _a("preview", "mend", "a", "cite it", "Attach what the problem under the cursor asks for.", "Commit"),
    _a("preview", "jump", "enter", "to problem", "Go to the place of the problem.", "Commit", footer=True),
    _a("help", "run", "enter", "do it", "Do the action under the cursor.", "Help", footer=True),
    _a("form", "submit", "ctrl+s", "done", "Keep what is written.", "Text", footer=True),
    _a("form", "cancel", "escape", "back", "Leave without a change.", "Text", footer=True),
    _a("lines", "down", "j down", "down", "One line down.", "Move"),
    _a("lines", "up", "k up", "up", "One line up.", "Move"),
    _a("lines", "page_down", "space pagedown ctrl+f", "page down", "One page down.", "Move"),
    _a("lines", "page_up", "backspace pageup ctrl+b", "page up", "One page up.", "Move"),
    _a("lines", "half_down", "ctrl+d", "half down", "Half a page down.", "Move"),
    _a("lines", "half_up", "ctrl+u", "half up", "Half a page up.", "Move"),
    _a("lines", "top", "g home", "top", "To the first line.", "Move"),
    _a("lines", "bottom", "G end", "bottom", "To the last line.", "Move"),
    _a("app", "help", "question_mark", "keys", "Every key, searchable.", "Console", footer=True),
    _a("app", "palette", "ctrl+p", "palette", "Find an action by name and do it.", "Console"),
    _a("app", "back", "q", "back", "Go back; drafts are kept.", "Console", footer=True),
    _a("app", "leave", "Q ctrl+q", "quit", "Quit; asks when runs are active.", "Console"),
    _a("app", "redraw", "ctrl+l", "redraw", "Paint the screen anew.", "Console"),
)

BY_ID: dict[str, Action] = {action.id: action for action in ACTIONS}

_KEY_WORDS = {
    "slash": "/",
    "question_mark": "?",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "left_curly_bracket": "{",
    "right_curly_bracket": "}",
    "greater_than_sign": ">",
    "less_than_sign": "<",
    "exclamation_mark": "!",
    "minus": "-",
    "escape": "esc",
    "pagedown": "PgDn",
    "pageup": "PgUp",
    "down": "↓",
    "up": "↑",
    "left": "←",
    "right": "→",
    "shift+tab": "S-tab",
}


def key_word(key: str) -> str:
    """A key as people write it."""
    if key in _KEY_WORDS:
        return _KEY_WORDS[key]
    if key.startswith("ctrl+"):
        return "^" + key[5:]
    if key.startswith("f") and key[1:].isdigit():
        return key.upper()
    return key


def keys_of(action: Action) -> str:
    """All keys of an action, as people write them."""
    words = [key_word(key) for key in action.keys]
    if len(words) > 4 and words == [str(digit) for digit in range(len(words))]:
        return f"{words[0]}–{words[-1]}"
    return " ".join(words)


def in_scope(scope: str) -> Iterator[Action]:
    """The actions of one scope, in the order of the table."""
    return (action for action in ACTIONS if action.scope == scope)


def footer_of(scopes: tuple[str, ...]) -> tuple[Action, ...]:
    """What the footer offers for a chain of scopes, innermost first."""
    return tuple(action for scope in scopes for action in in_scope(scope) if action.footer)


def clashes() -> tuple[tuple[str, str, str, str], ...]:
    """Keys with two meanings on one screen: screen, key and the two actions. Empty when all is well."""
    found = []
    for screen, chain in CHAINS.items():
        owner: dict[str, Action] = {}
        for scope in chain:
            for action in in_scope(scope):
                for key in action.keys:
                    other = owner.setdefault(key, action)
                    if other is not action and not _same_verb(other, action):
                        found.append((screen, key, other.id, action.id))
    return tuple(found)


def _same_verb(one: Action, two: Action) -> bool:
    """Enter goes on from where the cursor is, in every pane: that is one meaning."""
    panes = {"scenario", "diff", "panels", "rubric"}
    return one.scope in panes and two.scope in panes and set(one.keys) & set(two.keys) == {"enter"}


def key_table() -> str:
    """The keys as a Markdown document, for the docs."""
    titles: dict[str, tuple[Scope, ...]] = {
        "Everywhere": ("app",),
        "In every list": ("lines",),
        "Queue": ("queue",),
        "Queue and review": ("submission",),
        "Review, any pane": ("review",),
        "Review: diff": ("diff",),
        "Review: panels": ("panels",),
        "Review: rubric": ("rubric",),
        "Preview": ("preview",),
        "Help and palette": ("help",),
        "Writing": ("form",),
    }
    parts = ["# Keys", "", "Generated from `console/actions.py`."]
    for title, scopes in titles.items():
        parts += ["", f"## {title}", "", "| key | does |", "| --- | --- |"]
        for scope in scopes:
            for action in in_scope(scope):
                keys = " ".join(f"`{word}`" for word in keys_of(action).split(" ")).replace("|", "\\|")
                parts.append(f"| {keys} | {action.help} |")
    return "\n".join(parts) + "\n"
