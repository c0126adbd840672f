"""Import a candidate's file as a module of its own and look up its entry."""

from __future__ import annotations

import importlib.util
import linecache
import sys
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

from runners.frameworks import device_mapping, sites
from runners.frameworks.diagnosis import ContractError, diagnose

__all__ = ["ContractError", "diagnose", "load_entry"]

MAX_SOURCE_BYTES = 4 * 1024 * 1024


class _KeepsSource(SourceFileLoader):
    """Writes no bytecode and remembers the text: tracebacks and ``inspect.getsource`` outlive the sandbox's closing."""

    def get_code(self, fullname: str) -> Any:
        source = self.get_data(self.path)
        if len(source) > MAX_SOURCE_BYTES:
            raise ContractError(f"{Path(self.path).name} is larger than {MAX_SOURCE_BYTES} bytes")
        text = importlib.util.decode_source(source)
        linecache.cache[self.path] = (len(source), None, text.splitlines(keepends=True), self.path)
        device_mapping.map_if_mentioned(text)
        return self.source_to_code(source, self.path)


def load_entry(path: Path, entry: str) -> Callable[..., Any]:
    """Import ``path`` under its own name and return what it calls ``entry``.

    Its folder comes first on ``sys.path``, so that files beside it can be imported. Raises ContractError where
    ``entry`` is missing or cannot be called, and whatever the file itself raises.
    """
    sites.set_folder(path.parent)
    name = path.stem
    folder = str(path.parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    loader = _KeepsSource(name, str(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    if spec is None or not path.is_file():
        raise ContractError(f"{path.name} is missing")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    found = getattr(module, entry, None)
    if found is None:
        raise ContractError(f"{path.name} defines no `{entry}`")
    if not callable(found):
        raise ContractError(f"`{entry}` in {path.name} is a {type(found).__name__}, not something to call")
    return found  # type: ignore[no-any-return]
