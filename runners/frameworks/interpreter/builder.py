"""The builder that every Triton construct goes through, with arithmetic as hardware does it."""

# ruff: noqa: D102 - the methods' names and meanings are those of Triton's own builder

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter as upstream
from triton.runtime.interpreter import InterpreterBuilder, TensorHandle

from runners.frameworks.diagnosis import DeviceAssertionError, NotInterpretableError
from runners.frameworks.interpreter import formats, libdevice
from runners.frameworks.interpreter.formats import PATTERNS, Array, decode, encode, numpy_kind

if TYPE_CHECKING:
    from runners.frameworks.extents import Extent
    from runners.frameworks.interpreter.launch import Launch

Op = Callable[..., Any]

_ONE_BIT: dict[Any, Any] = {np.add: np.bitwise_xor, np.subtract: np.bitwise_xor, np.multiply: np.bitwise_and}
"""What one-bit integer arithmetic comes to: it wraps, where numpy's bool saturates."""

# Attributes that most handles do not have: kept on the class so that looking costs nothing.
TensorHandle.origin = None
"""The extent that a pointer derives from, where it is known."""
TensorHandle.unwritten = None
"""For each lane: does the value depend on memory that nothing wrote?"""


def _values(handle: Any) -> Array:
    name = handle.dtype.name
    return decode(handle.data, name) if name in PATTERNS else handle.data


def _with_origin(data: Array, dtype: Any, *sources: Any) -> Any:
    made = TensorHandle(data, dtype)
    origins: set[Extent] = {source.origin for source in sources}
    if len(origins) == 1:
        made.origin = origins.pop()
    return made


class Builder(InterpreterBuilder):  # type: ignore[misc]
    """Replaces the class of Triton's only builder object, so it has no constructor of its own."""

    launch: Launch | None = None
    tf32 = False

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("create_", "get_")):
            raise NotInterpretableError(f"the interpreter cannot run {name.removeprefix('create_')}")
        raise AttributeError(name)

    def get_bf16(self, value: float) -> Any:
        """A constant, which Triton's own builder cannot make of this type."""
        return TensorHandle(encode(np.array([value], dtype=np.float32), "bf16"), tl.bfloat16)

    # arithmetic

    def binary_op(self, lhs: Any, rhs: Any, op: Op) -> Any:
        dtype = lhs.dtype
        name = dtype.name
        if name in PATTERNS:
            output = op(decode(lhs.data, name), _values(rhs))
            if output.dtype == bool:
                return TensorHandle(output, tl.int1)
            return TensorHandle(encode(output, name), dtype)
        if name == "int1":
            op = _ONE_BIT.get(op, op)
        output = op(lhs.data, rhs.data)
        if output.dtype == bool:
            return TensorHandle(output, tl.int1)
        if output.itemsize * 8 > dtype.primitive_bitwidth:
            output = output.astype(numpy_kind(dtype))
        return TensorHandle(output, dtype)

    def unary_op(self, arg: Any, op: Op) -> Any:
        name = arg.dtype.name
        if name in PATTERNS:
            return TensorHandle(encode(op(decode(arg.data, name)), name), arg.dtype)
        return TensorHandle(op(arg.data), arg.dtype)

    def create_select(self, cond: Any, lhs: Any, rhs: Any) -> Any:
        return _with_origin(np.where(cond.data, lhs.data, rhs.data), rhs.dtype, lhs, rhs)

    def create_clampf(self, arg: Any, lo: Any, hi: Any, propagate_nans: Any) -> Any:
        every = propagate_nans == tl.core.PropagateNan.ALL
        low, high = (np.maximum, np.minimum) if every else (np.fmax, np.fmin)
        name = arg.dtype.name
        output = high(low(_values(arg), _values(lo)), _values(hi))
        return TensorHandle(encode(output, name) if name in PATTERNS else output, arg.dtype)

    def create_minnumf(self, lhs: Any, rhs: Any) -> Any:
        return self.binary_op(lhs, rhs, np.fmin)

    def create_maxnumf(self, lhs: Any, rhs: Any) -> Any:
        return self.binary_op(lhs, rhs, np.fmax)

    def create_fma(self, x: Any, y: Any, z: Any) -> Any:
        name = z.dtype.name
        wide = _values(x).astype(np.float64) * _values(y).astype(np.float64) + _values(z).astype(np.float64)
        if name in PATTERNS:
            return TensorHandle(encode(wide, name), z.dtype)
        return TensorHandle(wide.astype(numpy_kind(z.dtype)), z.dtype)

    def create_erf(self, arg: Any) -> Any:
        return self.unary_op(arg, libdevice.erf)

    def create_rsqrt(self, arg: Any) -> Any:
        return self.unary_op(arg, lambda x: (1 / np.sqrt(x)).astype(x.dtype))

    def create_ashr(self, lhs: Any, rhs: Any) -> Any:
        signed = upstream._get_signednumpy_kind(lhs.data.dtype)
        shifted = np.right_shift(lhs.data.astype(signed), rhs.data.astype(signed))
        return TensorHandle(shifted.astype(lhs.data.dtype), lhs.dtype)

    # conversions

    def cast_impl(self, src: Any, dst_type: Any) -> Any:
        return self._convert(src, dst_type.scalar, False)

    def create_fp_to_fp(self, src: Any, dst_type: Any, rounding_mode: Any) -> Any:
        toward_zero = rounding_mode is not None and rounding_mode == upstream._ir.ROUNDING_MODE.RTZ
        if "fp8e4b15" in (src.dtype.scalar.name, dst_type.scalar.name):
            return super().create_fp_to_fp(src, dst_type, rounding_mode)
        return self._convert(src, dst_type.scalar, toward_zero)

    def _convert(self, src: Any, dst: Any, toward_zero: bool) -> Any:
        source, target = src.dtype.scalar.name, dst.name
        if source == target:
            return src
        values = decode(src.data, source) if source in PATTERNS else src.data
        if target in PATTERNS:
            return TensorHandle(encode(values, target, toward_zero), dst)
        kind = numpy_kind(dst)
        if values.dtype.kind == "f" and kind.kind in "iu":
            return TensorHandle(formats.to_integer(values, kind), dst)
        if toward_zero and target == "fp16":
            return TensorHandle(formats.half_toward_zero(values), dst)
        return TensorHandle(values.astype(kind), dst)

    # matrices

    def create_dot(self, a: Any, b: Any, d: Any, input_precision: Any, max_num_imprecise_acc: Any) -> Any:
        left, right = _values(a), _values(b)
        kind = d.data.dtype
        if kind.kind in "iu":
            # Exact: products of 8-bit integers add up far below 2**53.
            product = np.matmul(left.astype(np.float64), right.astype(np.float64)).astype(np.int64)
            return TensorHandle(product.astype(kind) + d.data, d.dtype)
        if self.tf32 and left.dtype == np.float32 and a.dtype.name == "fp32" and "TF32" in str(input_precision):
            left, right = formats.to_tf32(left), formats.to_tf32(right)
        wide = np.float64 if kind == np.float64 else np.float32
        product = np.matmul(left.astype(wide, copy=False), right.astype(wide, copy=False))
        if d.dtype.name in PATTERNS:
            return TensorHandle(encode(product + _values(d), d.dtype.name), d.dtype)
        return TensorHandle((product + d.data).astype(kind, copy=False), d.dtype)

    # pointers: keep what they derive from

    def create_addptr(self, ptr: Any, offset: Any) -> Any:
        width = max(1, ptr.get_element_ty().primitive_bitwidth // 8)
        made = TensorHandle(ptr.data + np.uint64(width) * offset.data.astype(np.uint64), ptr.dtype)
        made.origin = ptr.origin
        return made

    def create_bitcast(self, src: Any, dst_type: Any) -> Any:
        return _with_origin(src.data.view(numpy_kind(dst_type)), dst_type.scalar, src)

    def create_int_to_ptr(self, src: Any, dst_type: Any) -> Any:
        made = self.create_bitcast(src, dst_type)
        if made.origin is None and made.data.size == 1 and self.launch is not None:
            made.origin = self.launch.extent_at(int(made.data.reshape(-1)[0]))
        return made

    create_ptr_to_int = create_bitcast

    def create_splat(self, ret_ty: Any, arg: Any) -> Any:
        made = super().create_splat(ret_ty, arg)
        made.origin = arg.origin
        return made

    def create_unsplat(self, arg: Any) -> Any:
        return _with_origin(arg.data.reshape(-1)[:1], arg.dtype.scalar, arg)

    def create_broadcast(self, arg: Any, shape: Any) -> Any:
        return _with_origin(np.broadcast_to(arg.data, shape), arg.dtype.scalar, arg)

    def create_expand_dims(self, arg: Any, axis: int) -> Any:
        return _with_origin(np.expand_dims(arg.data, axis), arg.dtype.scalar, arg)

    def create_reshape(self, arg: Any, shape: Any, allow_reorder: bool) -> Any:
        return _with_origin(arg.data.reshape(shape), arg.dtype.scalar, arg)

    def create_trans(self, arg: Any, perm: Any) -> Any:
        return _with_origin(np.transpose(arg.data, perm), arg.dtype.scalar, arg)

    def create_cat(self, lhs: Any, rhs: Any) -> Any:
        return _with_origin(np.concatenate([lhs.data, rhs.data]), lhs.dtype.scalar, lhs, rhs)

    def create_join(self, lhs: Any, rhs: Any) -> Any:
        return _with_origin(np.stack([lhs.data, rhs.data], axis=-1), lhs.dtype.scalar, lhs, rhs)

    def create_split(self, val: Any) -> Any:
        return tuple(_with_origin(val.data[..., half], val.dtype.scalar, val) for half in (0, 1))

    # what a program says

    def create_assert(self, condition: Any, message: str) -> None:
        if not bool(np.all(condition.data)):
            raise DeviceAssertionError(f"device_assert failed: {message}" if message else "device_assert failed")

    def create_assume(self, condition: Any) -> None:
        """A hint to the compiler; a false one is not an error here."""

    def create_print(self, prefix: str, hex: bool, values: Any, isSigned: Any) -> None:  # noqa: A002
        """Printing from a kernel says nothing about it."""

    # memory: see access.py

    def create_load(self, ptr: Any, _0: Any, _1: Any, is_volatile: bool) -> Any:
        return self._load(ptr, None, None, is_volatile)

    def create_store(self, ptr: Any, val: Any, _0: Any, _1: Any) -> None:
        self._store(ptr, val, None)

    def create_masked_load(
        self, ptrs: Any, mask: Any, other: Any, cache_modifier: Any, eviction_policy: Any, is_volatile: bool
    ) -> Any:
        return self._load(ptrs, mask, other, is_volatile)

    def create_masked_store(self, ptrs: Any, value: Any, mask: Any, cache_modifier: Any, eviction_policy: Any) -> None:
        self._store(ptrs, value, mask)

    def _load(self, ptrs: Any, mask: Any, other: Any, volatile: bool) -> Any:
        assert self.launch is not None, "a load outside of a launch"
        return self.launch.access.load(ptrs, mask, other, volatile)

    def _store(self, ptrs: Any, value: Any, mask: Any) -> None:
        assert self.launch is not None, "a store outside of a launch"
        self.launch.access.store(ptrs, value, mask)

    def create_atomic_rmw(self, rmwOp: Any, ptr: Any, val: Any, mask: Any, sem: Any, scope: Any) -> Any:
        assert self.launch is not None, "an atomic outside of a launch"
        return self.launch.access.atomic_rmw(rmwOp, ptr, val, mask, sem)

    def create_atomic_cas(self, ptr: Any, cmp: Any, val: Any, sem: Any, scope: Any) -> Any:
        assert self.launch is not None, "an atomic outside of a launch"
        return self.launch.access.atomic_cas(ptr, cmp, val, sem)

    # what cannot be run

    def create_inline_asm(self, *args: Any) -> Any:
        raise NotInterpretableError("the interpreter cannot run inline assembly (tl.inline_asm_elementwise)")

    def create_extern_elementwise(
        self,
        libName: str,
        libPath: str,
        symbol: str,
        argList: Any,
        retType: Any,
        isPure: bool,
    ) -> Any:
        function = libdevice.function_for(symbol)
        if function is None:
            raise NotInterpretableError(f"the interpreter cannot run the external function {symbol}")
        output = np.asarray(function(*(_values(argument) for argument in argList)))
        kind = numpy_kind(retType)
        return TensorHandle(output.astype(kind, copy=False), retType.scalar)


OPTIONS = dataclasses.replace(upstream.InterpreterOptions(), debug=True, sanitize_overflow=False)
"""Asserts in kernels hold; integer overflow wraps as on hardware, and what it leads to is seen by the memory checks."""
