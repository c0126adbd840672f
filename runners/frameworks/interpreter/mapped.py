"""Is an address readable or writable in this process? Asked only for pointers of unknown descent."""

from __future__ import annotations

import ctypes
import os
from typing import Any

import numpy as np

_PAGE = 4096


def _reachable(address: int, write: bool) -> bool:
    """Let the kernel copy a byte out of the address, and for a write back to it: it refuses instead of crashing."""
    libc = ctypes.CDLL(None, use_errno=True)
    out, into = os.pipe()
    try:
        if libc.write(into, ctypes.c_void_p(address), ctypes.c_size_t(1)) != 1:
            return False
        return not write or libc.read(out, ctypes.c_void_p(address), ctypes.c_size_t(1)) == 1
    finally:
        os.close(out)
        os.close(into)


def mapped(addresses: np.ndarray[Any, Any], size: int, write: bool) -> np.ndarray[Any, Any]:
    """For each address: may ``size`` bytes there be read (and written)?"""
    first = addresses // np.uint64(_PAGE)
    last = (addresses + np.uint64(size - 1)) // np.uint64(_PAGE)
    pages = np.unique(np.concatenate([first, last]))
    good = pages[[_reachable(int(page) * _PAGE, write) for page in pages]]
    return np.isin(first, good) & np.isin(last, good)
