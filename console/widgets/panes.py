"""Panels and rubric on screen."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding

from console.view import panels as panels_view
from console.view import rubric as rubric_view
from console.view.blocks import Block
from console.view.spans import Span
from console.widgets.bindings import bindings_for
from console.widgets.block_view import BlockView
from runners.evidence import Finding

if TYPE_CHECKING:
    from console.runs import RunState


class PanelsPane(BlockView):
    """Status, findings and numbers of a run."""

    SCOPE: ClassVar[str] = "panels"
    BINDINGS: ClassVar[list[Binding]] = bindings_for("panels")  # type: ignore[assignment]

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self.state: RunState | None = None
        self.overruled: Collection[str] = ()

    def show(self, state: RunState, overruled: Collection[str]) -> None:
        """Show the run as it is now."""
        if (state, overruled) != (self.state, self.overruled):
            self.state, self.overruled = state, overruled
            self.reload()

    def make(self, width: int, current: str) -> Sequence[Block]:
        """The blocks."""
        if self.state is None:
            return [Block("", [(Span("not read yet", "dim"),)])]
        return panels_view.blocks(self.state, width, current, self.overruled)

    def finding(self) -> Finding | None:
        """The finding under the cursor."""
        if self.state is None:
            return None
        return next(
            (one for one in self.state.findings if panels_view.finding_key(one.id) == self.current),
            None,
        )

    def action_jump(self) -> None:
        """Show the place in the diff."""
        self.screen.action_jump_to_code()  # type: ignore[attr-defined]

    def action_overrule(self) -> None:
        """Refuse the finding."""
        self.screen.action_overrule_finding()  # type: ignore[attr-defined]


class RubricPane(BlockView):
    """The form. What a key means for the draft, the screen decides."""

    SCOPE: ClassVar[str] = "rubric"
    BINDINGS: ClassVar[list[Binding]] = bindings_for("rubric")  # type: ignore[assignment]

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self.form: rubric_view.Form | None = None
        self.answered: Callable[[str, int], None] = lambda key, digit: None

    def show(self, form: rubric_view.Form) -> None:
        """Show the form as it is now."""
        self.form = form
        self.reload()

    def make(self, width: int, current: str) -> Sequence[Block]:
        """The blocks."""
        if self.form is None:
            return [Block("", [(Span("reading the rubric", "dim"),)])]
        return rubric_view.blocks(self.form, width, current)

    def action_level(self, digit: int) -> None:
        """Answer the block under the cursor."""
        self.answered(self.current, digit)

    def action_clear(self) -> None:
        """Take an answer back."""
        self.screen.action_clear_answer()  # type: ignore[attr-defined]

    def action_take_all(self) -> None:
        """Take every suggestion."""
        self.screen.action_take_suggestions()  # type: ignore[attr-defined]

    def action_note(self) -> None:
        """Write the note or the summary."""
        self.screen.action_write_note()  # type: ignore[attr-defined]
