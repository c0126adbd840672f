"""Running executes the exchange's own code: asked where the grader has not allowed it yet."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from console.exchange.text import visible, visible_block
from console.screens.prompts import Confirm

if TYPE_CHECKING:
    from console.exchange.model import Task
    from console.screens.shell import ConsoleApp

MAX_SHOWN = 20_000


class Consent:
    """Asks for what is missing, one question after the other, and then says which tasks may run."""

    def __init__(self, app: ConsoleApp) -> None:
        self._app = app

    def ask(self, tasks: Mapping[str, Task], then: Callable[[Collection[str]], None]) -> None:
        """``then`` gets the names of the tasks whose code may run. Looks at git in a thread."""
        exchange = self._app.exchange

        def look() -> tuple[bool, list[Task]]:
            needed = exchange.needs_trust
            return needed, [] if needed else [task for task in tasks.values() if exchange.reference_changed(task)]

        def looked(found: tuple[bool, list[Task]]) -> None:
            needed, changed = found
            if needed:
                self._trust(tasks, then)
            else:
                self._confirm(changed, set(tasks), then)

        self._app.work(look, then=looked, group="consent")

    def _trust(self, tasks: Mapping[str, Task], then: Callable[[Collection[str]], None]) -> None:
        exchange = self._app.exchange

        def answered(yes: bool | None) -> None:
            if yes:
                exchange.trust()
                self.ask(tasks, then)

        question = f"Runs execute the reference.py of {visible(exchange.name)}. Allow its code, from now on?"
        self._app.push_screen(Confirm(question, "allow", "any other key: run nothing"), answered)

    def _confirm(self, changed: list[Task], allowed: set[str], then: Callable[[Collection[str]], None]) -> None:
        if not changed:
            if allowed:
                then(allowed)
            return
        task, exchange = changed[0], self._app.exchange

        def read() -> str:
            return next((file.text for file in exchange.files(task.tree) if file.path == "reference.py"), "")

        def show(text: str) -> None:
            shown = visible_block(text[:MAX_SHOWN]) if text else "It is gone."
            question = f"tasks/{visible(task.name)}/reference.py has changed since you allowed it. Run it?"
            self._app.push_screen(Confirm(question, "run it", detail=shown), answered)

        def answered(yes: bool | None) -> None:
            if yes:
                exchange.confirm_reference(task)
            self._confirm(changed[1:], allowed if yes else allowed - {task.name}, then)

        self._app.work(read, then=show, group="consent")
