"""Patch Triton's language once per process, instead of at every launch and every call of a device function.

Triton rebinds some 250 functions of ``triton.language`` around each launch, and again in each call of a function like
``tl.sum``: almost half of the time of a small kernel. A process that only ever interprets can leave them bound.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import triton
import triton.language as tl
from triton.language.extra import libdevice as libdevice_stubs
from triton.language.extra.cuda import gdc, utils
from triton.language.extra.cuda import libdevice as cuda_libdevice
from triton.runtime import interpreter as upstream
from triton.runtime.interpreter import InterpretedFunction

from runners.frameworks.diagnosis import NotInterpretableError
from runners.frameworks.interpreter import autotune, reductions
from runners.frameworks.interpreter.access import pointer_masks
from runners.frameworks.interpreter.builder import OPTIONS, Builder
from runners.frameworks.interpreter.formats import numpy_kind
from runners.frameworks.interpreter.launch import run_kernel
from runners.frameworks.interpreter.rewrite import rewrite

_done = False


class _Scope:
    """Takes the place of Triton's own record of what to restore: nothing is restored."""

    def set_attr(self, owner: Any, name: str, value: Any) -> None:
        setattr(owner, name, value)

    def restore(self) -> None:
        pass


def _bound(function: Callable[..., Any]) -> Callable[..., Any]:
    inner = getattr(function, "__wrapped__", function)
    semantic = upstream.interpreter_semantic

    def bound(*args: Any, **kwargs: Any) -> Any:
        kwargs["_semantic"] = semantic
        return inner(*args, **kwargs)

    bound.__name__ = getattr(function, "__name__", "builtin")
    bound.__doc__ = function.__doc__
    return bound


def _bind_builtins(owner: Any) -> None:
    for name in dir(owner):
        member = getattr(owner, name)
        if tl.core.is_builtin(member):
            setattr(owner, name, _bound(member))


def _static_assert(condition: Any, message: Any = "") -> None:
    holds = condition.value if isinstance(condition, tl.constexpr) else condition
    if not holds:
        raise triton.compiler.errors.CompileTimeAssertionFailure(None, None, str(message) or "static_assert failed")


def _nothing(*args: Any, **kwargs: Any) -> None:
    return None


def _checked_bool(tensor: Any) -> bool:
    data = tensor.handle.data
    if tensor.handle.unwritten is not None and data.size == 1:
        _report_branch(tensor.handle)
    return bool(data) if data.size == 1 else True


def _checked_index(tensor: Any) -> int:
    if tensor.handle.unwritten is not None:
        _report_branch(tensor.handle)
    return int(tensor.handle.data.squeeze())


def _report_branch(handle: Any) -> None:
    launch = upstream.interpreter_builder.launch
    if launch is not None and handle.unwritten.any():
        launch.report_unwritten(int(handle.unwritten.max()), "a branch or a loop bound depends on")


def _call_device_function(function: Any, *args: Any, **kwargs: Any) -> Any:
    return function.rewrite()(*args, **kwargs)


def _rewritten(function: Any) -> Any:
    made = function.rewritten_fn.get(function.fn)
    if made is None:
        made = function.rewritten_fn[function.fn] = rewrite(function.fn)
    return made


def _not_covered(name: str) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise NotInterpretableError(f"the interpreter cannot run libdevice.{name}")

    return refuse


def _fill_libdevice_stubs(stubs: ModuleType) -> None:
    """``tl.extra.libdevice`` holds empty functions that the compiler replaces by the target's: do the same."""
    for name, member in list(vars(stubs).items()):
        if callable(member) and not name.startswith("_") and getattr(member, "__module__", "") == stubs.__name__:
            setattr(stubs, name, getattr(cuda_libdevice, name, None) or _not_covered(name))


def patch_language() -> None:
    """Make this process interpret Triton our way, for good. Idempotent."""
    global _done
    if _done:
        return
    _done = True
    builder = upstream.interpreter_builder
    builder.__class__ = Builder
    builder.options = OPTIONS
    upstream._get_np_dtype = numpy_kind
    scope = _Scope()
    for owner in (tl, tl.core, tl.tensor, tl.math, tl.core.tensor_descriptor_base, cuda_libdevice, utils, gdc):
        _bind_builtins(owner)
    for language in (tl, tl.core):
        upstream._patch_lang_tensor(language.tensor, scope)
        upstream._patch_lang_core(language, scope)
        language.static_assert = _static_assert
        language.static_print = _nothing
        language.reduce = reductions.reduce
        language.associative_scan = reductions.associative_scan
    tl.tensor.reduce = reductions.reduce
    tl.tensor.associative_scan = reductions.associative_scan
    tl.tensor.__bool__ = _checked_bool
    tl.tensor.__index__ = _checked_index
    gdc.gdc_wait = gdc.gdc_launch_dependents = _nothing
    _fill_libdevice_stubs(libdevice_stubs)
    for handle in (upstream.BlockPointerHandle, upstream.TensorDescHandle):
        handle.materialize_pointers = pointer_masks(handle.materialize_pointers)
    InterpretedFunction.run = run_kernel
    InterpretedFunction.rewrite = _rewritten
    InterpretedFunction.__call__ = _call_device_function
    autotune.install()


@triton.jit  # type: ignore[untyped-decorator]
def _warm_kernel(x, out, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    columns = tl.arange(0, BLOCK)
    inside = columns < n
    row = tl.load(x + columns, mask=inside, other=-float("inf"))
    row = tl.exp(row - tl.max(row, axis=0))
    row = row / tl.sum(row, axis=0) + tl.cdiv(n, BLOCK) + tl.min(row, axis=0) + tl.sigmoid(row)
    where = tl.argmax(row, axis=0)
    square = tl.dot(tl.zeros((16, 16), dtype=tl.float16), tl.zeros((16, 16), dtype=tl.float16))
    row = tl.where(inside, row.to(tl.bfloat16).to(tl.float32), tl.max(square) + where)
    tl.store(out + columns, tl.maximum(row, 0.0), mask=inside)


def warm() -> None:
    """Run what most kernels use once, so that a fork finds it parsed and its tables filled."""
    import torch

    patch_language()
    x = torch.from_numpy(np.zeros(8, dtype=np.float32))
    _warm_kernel[(1,)](x, x.clone(), 8, BLOCK=8)
