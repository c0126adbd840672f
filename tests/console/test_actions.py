"""One registry: no key has two meanings on a screen, and every action can be done."""

from __future__ import annotations

from console.actions import ACTIONS, BY_ID, CHAINS, clashes, in_scope, key_table, keys_of
from console.screens.palette import PaletteScreen
from console.screens.preview import PreviewScreen
from console.screens.prompts import Ask
from console.screens.queue import QueueScreen
from console.screens.review import ReviewScreen
from console.screens.shell import ConsoleApp
from console.screens.write import Write
from console.widgets.diff_pane import DiffPane
from console.widgets.line_view import LineView
from console.widgets.panes import PanelsPane, RubricPane

OWNERS: dict[str, tuple[type, ...]] = {
    "app": (ConsoleApp,),
    "lines": (LineView,),
    "queue": (QueueScreen,),
    "submission": (QueueScreen, ReviewScreen),
    "review": (ReviewScreen,),
    "diff": (DiffPane,),
    "panels": (PanelsPane,),
    "rubric": (RubricPane,),
    "preview": (PreviewScreen,),
    "help": (PaletteScreen,),
    "form": (Ask, Write),
}

UNIVERSAL = {
    *"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
    *(f"f{number}" for number in range(2, 10)),
    *(f"ctrl+{letter}" for letter in "abdefgklnopqrstuwxyz"),
    *("enter", "escape", "tab", "shift+tab", "space", "backspace", "up", "down", "left", "right", "pageup", "pagedown"),
    *("home", "end", "slash", "question_mark", "exclamation_mark", "minus", "greater_than_sign", "less_than_sign"),
    *("left_square_bracket", "right_square_bracket", "left_curly_bracket", "right_curly_bracket"),
}
"""Keys that every terminal sends through ssh and tmux."""


def test_no_key_has_two_meanings_on_a_screen() -> None:
    assert clashes() == ()


def test_every_action_has_a_handler() -> None:
    for action in ACTIONS:
        for owner in OWNERS[action.scope]:
            assert callable(getattr(owner, action.handler, None)), f"{action.id}: {owner.__name__}"


def test_every_handler_has_a_key() -> None:
    for owner in {owner for owners in OWNERS.values() for owner in owners}:
        scopes = [scope for scope, owners in OWNERS.items() if any(issubclass(owner, one) for one in owners)]
        bound = {binding.action.split("(")[0] for one in owner.__mro__ for binding in one.__dict__.get("BINDINGS", ())}
        for scope in scopes:
            assert {action.name for action in in_scope(scope)} <= bound, (owner, scope)


def test_every_scope_is_on_a_screen() -> None:
    shown = {scope for chain in CHAINS.values() for scope in chain}
    assert {action.scope for action in ACTIONS} <= shown


def test_ids_are_unique_and_keys_universal() -> None:
    assert len(BY_ID) == len(ACTIONS)
    for action in ACTIONS:
        assert action.keys
        assert set(action.keys) <= UNIVERSAL, action.id
        assert len(action.label) <= 14
        assert action.help.endswith((".", "finding:"))


def test_the_key_table_names_every_action() -> None:
    table = key_table()
    for action in ACTIONS:
        assert action.help in table
        assert keys_of(action).split(" ")[0] in table
