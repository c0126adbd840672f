"""Textual bindings made from the registry of actions."""

from __future__ import annotations

from textual.binding import Binding

from console.actions import in_scope, key_word


def bindings_for(scope: str) -> list[Binding]:
    """Bindings of a scope; the owner of the scope has a method ``action_<name>`` for each."""
    made = []
    for action in in_scope(scope):
        for number, key in enumerate(action.keys):
            call = f"{action.name}({key})" if key.isdigit() else action.name
            made.append(
                Binding(
                    key,
                    call,
                    action.label,
                    show=False,
                    key_display=key_word(key),
                    id=f"{action.id}.{number}",
                )
            )
    return made
