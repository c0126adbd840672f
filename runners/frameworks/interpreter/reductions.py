"""Reductions and scans: known combinations by numpy, all others by combining whole slices instead of elements."""

# ruff: noqa: D102 - the methods' names and meanings are those of Triton's own classes

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime.errors import InterpreterError
from triton.runtime.interpreter import ReduceOps, ScanOps, TensorHandle

from runners.frameworks.interpreter.formats import PATTERNS, Array, decode, encode, numpy_kind

_standard = tl.standard


def _values(tensor: Any) -> Array:
    name = tensor.dtype.name
    return decode(tensor.handle.data, name) if name in PATTERNS else tensor.handle.data


def _tensor(data: Any, dtype: Any) -> Any:
    """A Triton tensor of what a reduction gave; scalars are arrays of one element, as everywhere in the interpreter."""
    array = np.asarray(data)
    if dtype.name in PATTERNS:
        array = encode(array, dtype.name)
    else:
        array = array.astype(numpy_kind(dtype), copy=False)
    if array.ndim == 0:
        return tl.core.tensor(TensorHandle(array.reshape(1), dtype.scalar), dtype)
    return tl.core.tensor(TensorHandle(array, dtype.scalar), tl.block_type(dtype, list(array.shape)))


def _slice(tensors: tuple[Any, ...], axis: int, part: Any) -> tuple[Any, ...]:
    """The same part along ``axis`` of every tensor, bit patterns untouched."""
    made = []
    for tensor in tensors:
        index: list[Any] = [slice(None)] * tensor.handle.data.ndim
        index[axis] = part
        data = tensor.handle.data[tuple(index)]
        shape = list(data.shape)
        handle = TensorHandle(data if shape else data.reshape(1), tensor.dtype.scalar)
        if tensor.handle.unwritten is not None:
            handle.unwritten = tensor.handle.unwritten[tuple(index)].reshape(handle.data.shape)
        made.append(tl.core.tensor(handle, tl.block_type(tensor.dtype, shape) if shape else tensor.dtype))
    return tuple(made)


def _combine(function: Any, left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]:
    combined = function(*left, *right)
    return combined if isinstance(combined, tuple) else (combined,)


class Reduce(ReduceOps):  # type: ignore[misc]
    """``tl.reduce``: float minima and maxima drop NaN, as the hardware's do."""

    def sum(self, tensor: Any) -> Any:
        return _tensor(np.sum(_values(tensor), axis=self.axis, keepdims=self.keep_dims), tensor.dtype)

    def _extreme(self, tensor: Any, op: Callable[..., Any]) -> Any:
        return _tensor(op.reduce(_values(tensor), axis=self.axis, keepdims=self.keep_dims), tensor.dtype)  # type: ignore[attr-defined]

    def _position(self, tensor: Any, value: Callable[..., Any], position: Callable[..., Any]) -> tuple[Any, Any]:
        values = _values(tensor)
        found = value(values, axis=self.axis, keepdims=self.keep_dims)
        index = position(values, axis=self.axis, keepdims=self.keep_dims)
        return _tensor(found, tensor.dtype), _tensor(index, tl.int32)

    def apply_impl(self, input: Any) -> Any:  # noqa: A002 - the name upstream calls it by
        first = input[0]
        function = self.combine_fn
        if function == _standard._sum_combine:
            result = self.sum(first)
        elif function == _standard._elementwise_max:
            result = self._extreme(first, np.fmax)
        elif function == _standard._elementwise_min:
            result = self._extreme(first, np.fmin)
        elif function == _standard._argmin_combine_tie_break_left and _is_range(input[1], self.axis):
            result = self._position(first, np.min, np.argmin)
        elif function == _standard._argmax_combine_tie_break_left and _is_range(input[1], self.axis):
            result = self._position(first, np.max, np.argmax)
        else:
            return self._pairwise(input)
        return self._marked(result, input)

    def _marked(self, result: Any, input: Any) -> Any:  # noqa: A002
        marks = [one.handle.unwritten for one in input if one.handle.unwritten is not None]
        if marks:
            reduced = np.maximum.reduce([np.max(one, axis=self.axis, keepdims=self.keep_dims) for one in marks])
            for tensor in result if isinstance(result, tuple) else (result,):
                tensor.handle.unwritten = np.asarray(reduced).reshape(tensor.handle.data.shape)
        return result

    def _pairwise(self, input: Any) -> Any:  # noqa: A002
        """Combine neighbours, halving the axis each time: keeps left and right apart for functions that tell."""
        tensors, axis = tuple(input), self.axis
        dimensions = tensors[0].handle.data.ndim
        if axis is None:
            tensors, axis = tuple(_flat(one) for one in tensors), 0
        axis %= tensors[0].handle.data.ndim
        try:
            while (length := tensors[0].handle.data.shape[axis]) > 1:
                even = length - length % 2
                rest = _slice(tensors, axis, slice(even, None)) if length % 2 else None
                tensors = _combine(
                    self.combine_fn, _slice(tensors, axis, slice(0, even, 2)), _slice(tensors, axis, slice(1, even, 2))
                )
                if rest is not None:
                    tensors = tuple(_join(one, last, axis) for one, last in zip(tensors, rest, strict=True))
        except (InterpreterError, ValueError, TypeError):
            # A combination that branches on a value cannot take slices.
            return self.generic_reduce(tuple(input))
        if not self.keep_dims:
            return _slice(tensors, axis, 0)
        if self.axis is None:
            return tuple(_reshaped(one, (1,) * dimensions) for one in tensors)
        return tensors


def _is_range(index: Any, axis: int | None) -> bool:
    """Are these the positions along the axis, as ``tl.argmax`` passes them?"""
    data = index.handle.data
    if axis is None:
        return bool(np.array_equal(data.reshape(-1), np.arange(data.size)))
    shape = [1] * data.ndim
    shape[axis] = -1
    return bool((data == np.arange(data.shape[axis]).reshape(shape)).all())


def _flat(tensor: Any) -> Any:
    return _reshaped(tensor, (tensor.handle.data.size,))


def _reshaped(tensor: Any, shape: tuple[int, ...]) -> Any:
    handle = TensorHandle(tensor.handle.data.reshape(shape), tensor.dtype.scalar)
    if tensor.handle.unwritten is not None:
        handle.unwritten = tensor.handle.unwritten.reshape(shape)
    return tl.core.tensor(handle, tl.block_type(tensor.dtype, list(shape)))


def _join(left: Any, right: Any, axis: int) -> Any:
    data = np.concatenate([left.handle.data, right.handle.data], axis=axis)
    handle = TensorHandle(data, left.dtype.scalar)
    parts = [left.handle, right.handle]
    if any(one.unwritten is not None for one in parts):
        handle.unwritten = np.concatenate(
            [np.zeros(one.data.shape, np.uint8) if one.unwritten is None else one.unwritten for one in parts], axis=axis
        )
    return tl.core.tensor(handle, tl.block_type(left.dtype, list(data.shape)))


class Scan(ScanOps):  # type: ignore[misc]
    """``tl.associative_scan``."""

    def apply_impl(self, input: Any) -> Any:  # noqa: A002
        tensors = tuple(input)
        axis = self.axis % tensors[0].handle.data.ndim
        if self.reverse:
            tensors = _slice(tensors, axis, slice(None, None, -1))
        if self.combine_fn in (_standard._sum_combine, _standard._prod_combine):
            running = np.cumsum if self.combine_fn == _standard._sum_combine else np.cumprod
            first = tensors[0]
            made = _tensor(running(_values(first), axis=axis), first.dtype)
            if first.handle.unwritten is not None:
                made.handle.unwritten = np.maximum.accumulate(first.handle.unwritten, axis=axis)
            result = (made,)
        else:
            result = self._one_by_one(tensors, axis)
        return _slice(result, axis, slice(None, None, -1)) if self.reverse else result

    def _one_by_one(self, tensors: tuple[Any, ...], axis: int) -> tuple[Any, ...]:
        result = done = _slice(tensors, axis, slice(0, 1))
        for place in range(1, tensors[0].handle.data.shape[axis]):
            done = _combine(self.combine_fn, done, _slice(tensors, axis, slice(place, place + 1)))
            result = tuple(_join(one, last, axis) for one, last in zip(result, done, strict=True))
        return result


def _axis(axis: Any) -> int | None:
    value = axis.value if isinstance(axis, tl.constexpr) else axis
    return None if value is None else int(value)


def _flag(value: Any) -> bool:
    return bool(value.value if isinstance(value, tl.constexpr) else value)


def reduce(input: Any, axis: Any, combine_fn: Any, keep_dims: Any = False, **kwargs: Any) -> Any:  # noqa: A002
    """In place of ``tl.reduce``."""
    return Reduce(_axis(axis), combine_fn, _flag(keep_dims)).apply(input)


def associative_scan(input: Any, axis: Any, combine_fn: Any, reverse: Any = False, **kwargs: Any) -> Any:  # noqa: A002
    """In place of ``tl.associative_scan``."""
    return Scan(_axis(axis), combine_fn, _flag(reverse)).apply(input)
