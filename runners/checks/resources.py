"""Registers, shared memory, occupancy: nothing takes these figures yet, and the panel says so."""

from __future__ import annotations

from runners.checks import CheckResult
from runners.evidence import PanelResult
from runners.findings import PanelName
from runners.session import Session


class ResourcesCheck:
    """Says that nothing was measured."""

    panel: PanelName = "resources"
    order = 40

    def run(self, session: Session) -> CheckResult:
        """Judge nothing."""
        return CheckResult(
            (), PanelResult(status="not-checked", reason="no resource figures are taken in this version")
        )


CHECK = ResourcesCheck()
