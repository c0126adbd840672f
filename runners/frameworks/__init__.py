"""What a framework adds to a candidate's process: hooks for checked runs, behind one Protocol.

A framework is the module ``<framework>_hooks`` in this package with a function ``make_hooks() -> FrameworkHooks`` and,
where there is something to import or prepare before the zygote forks, ``preload(interpreted)``. Adding one touches no
other file. What hooks report can convict a candidate but never acquit it: they run in its process.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any, Protocol

from runners.contract import Device, Framework
from runners.frameworks.reports import Reports

__all__ = ["FrameworkHooks", "Reports", "UnknownFrameworkError", "hooks_for", "preload"]


class UnknownFrameworkError(LookupError):
    """A framework that this version cannot run."""


class FrameworkHooks(Protocol):
    """What the candidate's process asks of a framework."""

    name: str

    def install(self, device: Device, interpreted: bool) -> None:
        """Prepare this process for foreign code. Called once, after the fork and before anything foreign."""
        ...

    def place(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """The arguments where the code runs: themselves on a CPU, copies on a device. Call it before any window."""
        ...

    def collect(self, result: Any, placed: Mapping[str, Any], arguments: Mapping[str, Any]) -> Any:
        """What a call with ``placed`` gave, on the CPU; in-place changes are brought back to ``arguments``."""
        ...

    def watch(
        self, arguments: Mapping[str, Any], options: Mapping[str, Any], heartbeat: Callable[[], None]
    ) -> AbstractContextManager[Reports]:
        """Switch the hooks on for one call; the yielded list fills with reports.

        Call ``reports.returned(result)`` before leaving, so that what was returned can be looked at too. ``options``:
        ``fill`` (int, seed of the pattern in fresh memory), ``order`` (``forward`` | ``reverse`` | ``shuffle``),
        ``order_seed`` (int), ``config`` (int, index of the autotune configuration), ``tf32`` (bool).
        """
        ...

    def planted(self) -> bool | None:
        """Run a known violation under :meth:`watch`: was it reported? None where there is nothing to plant."""
        ...


def _module(framework: Framework) -> ModuleType:
    name = f"{__name__}.{framework}_hooks"
    if not framework.isidentifier() or importlib.util.find_spec(name) is None:
        raise UnknownFrameworkError(f"{framework}: no module {name}")
    return importlib.import_module(name)


def hooks_for(framework: Framework) -> FrameworkHooks:
    """The hooks of a framework. Raises UnknownFrameworkError where this version has none."""
    hooks: FrameworkHooks = _module(framework).make_hooks()
    return hooks


def preload(framework: Framework, interpreted: bool) -> None:
    """Import and warm what every fork will need. Raises UnknownFrameworkError; ImportError where it is not there."""
    prepare: Callable[[bool], None] | None = getattr(_module(framework), "preload", None)
    if prepare is not None:
        prepare(interpreted)
