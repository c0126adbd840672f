"""The checks: one a file, each behind :class:`Check`, found by looking into this package."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import Protocol

import msgspec

from runners.evidence import Finding, PanelResult
from runners.findings import PanelName
from runners.session import Session


class CheckResult(msgspec.Struct, frozen=True):
    """What a check found, and what its panel shows. Findings may belong to other panels too."""

    findings: tuple[Finding, ...]
    result: PanelResult


class Check(Protocol):
    """One kind of check. A module of this package offers one under the name ``CHECK``."""

    @property
    def panel(self) -> PanelName:
        """The panel that shows it."""
        ...

    @property
    def order(self) -> int:
        """Its turn: build 0, correctness 10 and up, integrity 20, timing 30, resources 40, scope 50."""
        ...

    def run(self, session: Session) -> CheckResult:
        """Judge. May raise ReferenceError (the task's fault) and Unavailable (the machine's)."""
        ...


@cache
def all_checks() -> tuple[Check, ...]:
    """The ``CHECK`` of every module in the package, in order; several may share a panel."""
    found: list[tuple[int, str, Check]] = []
    for info in pkgutil.iter_modules(__path__):
        check: Check | None = getattr(importlib.import_module(f"{__name__}.{info.name}"), "CHECK", None)
        if check is not None:
            found.append((check.order, info.name, check))
    return tuple(check for _, _, check in sorted(found, key=lambda entry: entry[:2]))
