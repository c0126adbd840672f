"""What the author was asked, and what the task promises, as lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from console.exchange.text import visible, visible_block
from console.view.spans import Line, Span, wrap
from console.view.values import number, scalar

if TYPE_CHECKING:
    from console.exchange.model import Task
    from runners.contract import TaskSpec, Tolerance

MAX_PROSE = 78
"""Prose is wrapped no wider than this: longer lines are hard to follow."""


def lines_of(task: Task, width: int) -> list[Line]:
    """The scenario's prose, then the task's terms."""
    made: list[Line] = []
    if task.problem:
        for text in wrap(visible_block(task.problem), width):
            made.append((Span(text, "bad"),))
        made.append(())
    if task.spec is not None:
        made += [(Span(text, "title"),) for text in wrap(visible(task.spec.title), width)]
        made.append(())
    made += _prose(task.scenario, min(width, MAX_PROSE))
    if task.spec is not None:
        made.append(())
        made += _terms(task.spec, width)
    return made


def _prose(text: str, width: int) -> Iterator[Line]:
    """Markdown, lightly: headings, code and the rest; nothing is taken away from the text."""
    code = False
    paragraph: list[str] = []

    def flush() -> Iterator[Line]:
        if paragraph:
            yield from _paragraph(" ".join(paragraph), width)
            paragraph.clear()

    for raw in visible_block(text).split("\n"):
        line = raw.rstrip()
        if line.lstrip().startswith("```"):
            yield from flush()
            code = not code
            yield (Span(line, "faint"),)
        elif code or line.startswith("    "):
            yield from flush()
            for part in wrap(line, width):
                yield (Span(part, "string"),)
        elif not line:
            yield from flush()
            yield ()
        elif line.startswith("#"):
            yield from flush()
            for part in wrap(line.lstrip("# "), width):
                yield (Span(part, "strong"),)
        elif line.lstrip()[:2] in ("- ", "* ") or line.lstrip()[:2].rstrip(".").isdigit() or line.startswith("|"):
            yield from flush()
            for part in wrap(line, width):
                yield (Span(part),)
        else:
            paragraph.append(line.strip())
    yield from flush()


def _paragraph(text: str, width: int) -> Iterator[Line]:
    for part in wrap(text, width):
        spans = []
        for turn, piece in enumerate(part.split("`")):
            spans.append(Span(piece, "string" if turn % 2 else "text"))
        yield tuple(span for span in spans if span.text)


def _tolerance(one: Tolerance) -> str:
    named = (("atol", one.atol), ("rtol", one.rtol), ("ulp", one.ulp), ("cap", one.cap))
    return " ".join([one.rule, *(f"{name} {number(value)}" for name, value in named if value is not None)])


def _terms(spec: TaskSpec, width: int) -> Iterator[Line]:
    yield (Span("What the task promises", "strong"),)
    yield ()
    terms = [
        ("kind", spec.kind),
        ("entry", spec.entry),
        ("frameworks", ", ".join(spec.frameworks)),
        ("targets", ", ".join(spec.targets)),
        ("tolerance", _tolerance(spec.tolerance)),
        *((f"  output {name}", _tolerance(one)) for name, one in spec.tolerances.items()),
        ("output", " ".join(word for word in (spec.output.dtype, spec.output.overflow) if word)),
        ("in place", ", ".join(spec.inplace)),
        ("baseline", spec.timing.baseline or ""),
        ("left out", f"{', '.join(spec.stress.without)}: {spec.stress.reason}" if spec.stress.without else ""),
        ("limits", f"{number(spec.limits.wall_seconds)} s, {spec.limits.memory_mib} MiB"),
    ]
    for name, value in terms:
        if value:
            for turn, text in enumerate(wrap(visible(value), max(10, width - 14))):
                yield (Span(f"  {name if not turn else '':<11} ", "dim"), Span(text))
    yield ()
    yield (Span(f"  {len(spec.cases)} cases", "dim"),)
    for case in spec.cases:
        use = "" if len(case.use) == 2 else f"  {', '.join(case.use)} only"
        args = "  ".join(f"{visible(key)} {scalar(value)}" for key, value in case.args.items())
        head = f"  {visible(case.name):<18} "
        for turn, text in enumerate(wrap(args + use, max(10, width - len(head)))):
            yield (Span(head if not turn else " " * len(head), "text"), Span(text, "dim"))
