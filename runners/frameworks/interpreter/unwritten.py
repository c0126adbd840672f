"""Values that depend on memory nobody wrote, followed lane by lane to where they matter.

Reading unwritten memory harms nobody as long as the value is dropped: a padded tile that ``tl.where`` cuts off is
right. So a load only marks its lanes, operations hand the marks on, and a report is made where a marked value decides
a branch, a mask or an address, or leaves the call in an output (the rule of MemorySanitizer, Stepanov and Serebryany,
CGO 2015). The builder takes this class only in programs that meet such a lane.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from triton.language import uint8
from triton.runtime.interpreter import TensorHandle

from runners.frameworks.interpreter.builder import Builder
from runners.frameworks.interpreter.formats import Array

_MOVES = frozenset(
    f"create_{name}"
    for name in ("reshape", "trans", "expand_dims", "broadcast", "splat", "unsplat", "cat", "join", "split", "gather")
)
_MARKS_ITSELF = frozenset(
    f"create_{name}"
    for name in (
        *("load", "masked_load", "tensor_pointer_load", "descriptor_load", "descriptor_gather"),
        *("store", "masked_store", "tensor_pointer_store", "descriptor_store", "descriptor_scatter"),
        *("atomic_rmw", "atomic_cas", "print", "assert", "assume", "barrier"),
        *("make_range", "get_program_id", "get_num_programs"),
        *("make_block_ptr", "advance", "make_tensor_descriptor"),
    )
)


def _marks(handle: Any) -> Array:
    if handle.unwritten is None:
        return np.zeros(handle.data.shape, dtype=np.uint8)
    return handle.unwritten  # type: ignore[no-any-return]


def _handles(args: tuple[Any, ...]) -> list[Any]:
    found = []
    for one in args:
        if isinstance(one, TensorHandle):
            found.append(one)
        elif isinstance(one, list):
            found += [inner for inner in one if isinstance(inner, TensorHandle)]
    return found


def _any_of(handles: list[Any], shape: tuple[int, ...]) -> Array:
    """Element by element where shapes agree, else every lane depends on every marked one."""
    marks = np.zeros(shape, dtype=np.uint8)
    for handle in handles:
        if handle.unwritten is None:
            continue
        if handle.unwritten.shape == shape:
            marks = np.maximum(marks, handle.unwritten)
        else:
            marks = np.maximum(marks, handle.unwritten.max())
    return marks


def _select(args: tuple[Any, ...], out: Any) -> Array:
    cond, lhs, rhs = args
    return np.maximum(np.where(cond.data, _marks(lhs), _marks(rhs)), _marks(cond))


def _and(args: tuple[Any, ...], out: Any) -> Array:
    """A False on either side decides, whatever the other side holds."""
    lhs, rhs = args
    left, right = _marks(lhs), _marks(rhs)
    if lhs.dtype.name != "int1":
        return np.maximum(left, right)
    decided = ((left == 0) & ~lhs.data) | ((right == 0) & ~rhs.data)
    return np.where(decided, 0, np.maximum(left, right)).astype(np.uint8)


def _or(args: tuple[Any, ...], out: Any) -> Array:
    """A True on either side decides."""
    lhs, rhs = args
    left, right = _marks(lhs), _marks(rhs)
    if lhs.dtype.name != "int1":
        return np.maximum(left, right)
    decided = ((left == 0) & lhs.data) | ((right == 0) & rhs.data)
    return np.where(decided, 0, np.maximum(left, right)).astype(np.uint8)


def _dot(args: tuple[Any, ...], out: Any) -> Array:
    rows = _marks(args[0]).max(axis=-1, keepdims=True)
    columns = _marks(args[1]).max(axis=-2, keepdims=True)
    return np.maximum(np.maximum(rows, columns), _marks(args[2]))  # type: ignore[no-any-return]


_EXACT: dict[str, Callable[[tuple[Any, ...], Any], Array]] = {
    "create_select": _select,
    "create_and": _and,
    "create_or": _or,
    "create_dot": _dot,
}


class MarkingBuilder(Builder):
    """A builder whose operations hand on the marks of their operands."""


def _move(name: str, original: Callable[..., Any], builder: Any, args: Any, kwargs: Any, out: Any) -> None:
    """Data only moves: move the marks in the same way."""
    if name == "create_splat":
        out.unwritten = np.full(out.data.shape, _marks(args[1]).max(), dtype=np.uint8)
        return
    moved = [TensorHandle(_marks(one), uint8) if isinstance(one, TensorHandle) else one for one in args]
    if name == "create_gather":
        moved[1] = args[1]
    marks = original(builder, *moved, **kwargs)
    for made, mark in zip(out, marks, strict=True) if isinstance(out, tuple) else ((out, marks),):
        made.unwritten = mark.data


def _marking(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    exact = _EXACT.get(name)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        out = original(self, *args, **kwargs)
        handles = _handles(args)
        if all(handle.unwritten is None for handle in handles):
            return out
        if name in _MOVES:
            _move(name, original, self, args, kwargs, out)
        elif isinstance(out, TensorHandle) and not any(out is one for one in handles):
            out.unwritten = exact(args, out) if exact is not None else _any_of(handles, out.data.shape)
        return out

    return method


for _name in dir(Builder):
    if _name.startswith("create_") and _name not in _MARKS_ITSELF:
        setattr(MarkingBuilder, _name, _marking(_name, getattr(Builder, _name)))
