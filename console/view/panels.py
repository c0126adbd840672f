"""What the panels measured, as blocks: a row per panel, below it its findings with place and numbers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from console.exchange.text import visible
from console.view.blocks import Block
from console.view.glyphs import NO_RUN, PANEL_MARKS, SEVERITY_MARKS
from console.view.spans import Line, Span, Tone, fit, spread, wrap
from console.view.values import lines_of, number, scalar
from runners.evidence import Finding
from runners.findings import FINDINGS, PANELS, SEVERITY_RANK, PanelName

if TYPE_CHECKING:
    from console.runs import PanelView, RunState


def panel_key(name: str) -> str:
    """The key of a panel's block."""
    return f"panel:{name}"


def finding_key(finding_id: str) -> str:
    """The key of a finding's block; it is also how a review cites it."""
    return f"finding:{finding_id}"


def blocks(state: RunState, width: int, current: str, overruled: Collection[str] = ()) -> list[Block]:
    """The run's headline, then each panel with its findings."""
    made = [Block("", _headline(state, width))]
    for name in PANELS:
        panel = state.panels.get(name)
        key = panel_key(name)
        made.append(Block(key, list(_panel(name, panel, width, unfolded=key == current))))
        for finding in _ordered(state.findings, name):
            key = finding_key(finding.id)
            made.append(
                Block(key, list(_finding(finding, width, unfolded=key == current, overruled=finding.code in overruled)))
            )
    if state.evidence is not None:
        made.append(Block("environment", list(_environment(state, width, unfolded=current == "environment"))))
    return made


def _ordered(findings: Sequence[Finding], panel: PanelName) -> list[Finding]:
    mine = [finding for finding in findings if finding.panel == panel]
    return sorted(mine, key=lambda finding: -SEVERITY_RANK[finding.severity])


def headline(state: RunState) -> Line:
    """One line on the run as a whole."""
    if state.phase in ("queued", "running"):
        text = visible(state.message) if state.message else ""
        spans = [Span(f"» {state.phase}", "accent")]
        return (*spans, Span(f"  {text}", "dim")) if text else tuple(spans)
    if state.phase in ("failed", "cancelled"):
        return (Span(f"E {state.phase}", "warn"), Span(f"  {visible(state.message)}", "text"))
    if state.evidence is None:
        return (Span(f"{NO_RUN.glyph} not run", "dim"), Span("   r runs the panels", "dim"))
    outcome = state.evidence.outcome
    tone: Tone = {"pass": "good", "fail": "bad", "not-determined": "warn"}[outcome]  # type: ignore[assignment]
    glyph = {"pass": "✓", "fail": "✗", "not-determined": "-"}[outcome]
    spans = [Span(f"{glyph} run: {outcome}", tone)]
    if state.stale:
        spans.append(Span("  ↻ stale: task, runner or machine changed since", "warn"))
    return tuple(spans)


def _headline(state: RunState, width: int) -> list[Line]:
    seeds = ""
    if state.evidence is not None and state.evidence.seeds:
        seeds = "seeds " + " ".join(f"{seed:x}"[:8] for seed in state.evidence.seeds)
    return [spread(headline(state), (Span(seeds, "faint"),) if seeds else (), width), ()]


def _panel(name: PanelName, panel: PanelView | None, width: int, *, unfolded: bool) -> Iterator[Line]:
    mark = NO_RUN if panel is None else PANEL_MARKS[panel.status]
    head = (Span(f"{name:<12} ", "strong"), Span(f"{mark.glyph} {mark.word:<12}", mark.tone))
    told: Line = ()
    right: Line = ()
    if panel is not None:
        if panel.status == "running":
            count = f"{panel.done}/{panel.total} " if panel.total else ""
            told = (Span(f"{count}{visible(panel.text)}", "dim"),)
        elif panel.result is not None:
            reason = panel.result.reason
            facts = panel.result.facts
            summary = facts.get("summary") if isinstance(facts.get("summary"), str) else None
            told = (Span(visible(reason or summary or ""), "dim"),)
            if panel.result.seconds and panel.result.seconds >= 0.005:
                right = (Span(f"{number(round(panel.result.seconds, 2))} s", "faint"),)
    yield spread((*head, *told), right, width)
    if unfolded and panel is not None and panel.result is not None:
        if panel.result.reason:
            for text in wrap(visible(panel.result.reason), max(10, width - 4)):
                yield (Span(f"    {text}", "dim"),)
        yield from lines_of(panel.result.facts, width)


def _finding(finding: Finding, width: int, *, unfolded: bool, overruled: bool) -> Iterator[Line]:
    mark = SEVERITY_MARKS[finding.severity]
    tone: Tone = "faint" if overruled else mark.tone
    place = (Span(visible(str(finding.where)), "accent"),) if finding.where else ()
    code = Span(f"{visible(finding.id)}  ", tone)
    left: Line = (Span("  "), Span(f"{mark.glyph} ", tone), code, Span(visible(finding.summary), "text"))
    if overruled:
        left = (Span("  "), Span("⊘ overruled ", "dim"), Span(f"{visible(finding.id)}  ", "faint"))
    yield spread(left, place, width)
    if not unfolded:
        return
    for text in wrap(visible(finding.summary), max(10, width - 4)):
        yield (Span(f"    {text}", "text"),)
    yield from lines_of(finding.detail, width)


def _environment(state: RunState, width: int, *, unfolded: bool) -> Iterator[Line]:
    assert state.evidence is not None
    known = {key: value for key, value in state.evidence.environment.items() if value not in (None, "", {}, [])}
    order = [key for key in ("python", "torch", "triton", "device", "cpu", "sandbox") if key in known]
    text = "  ".join(f"{key} {scalar(known[key])}" for key in order)
    yield ()
    yield (Span(f"{'environment':<12} ", "strong"), Span(fit(text, max(0, width - 13)), "dim"))
    if unfolded:
        yield from lines_of(known, width)


def explain(finding: Finding) -> str:
    """What a finding's code means wherever it appears, and this one in full."""
    kind = FINDINGS.get(finding.code)
    parts = [kind.meaning if kind else "not in the table of findings", f"severity {finding.severity}"]
    parts += ["", visible(finding.summary)]
    if finding.where:
        parts.append(f"at {visible(str(finding.where))}")
    for line in lines_of(finding.detail, 100, 0):
        parts.append("".join(span.text for span in line))
    return "\n".join(parts)
