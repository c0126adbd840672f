"""What CUDA's libdevice offers, by numpy and torch: the functions that have an obvious equivalent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from runners.frameworks.interpreter.formats import Array

Function = Callable[..., Any]


def _by_torch(function: Callable[..., torch.Tensor]) -> Function:
    def apply(*arrays: Array) -> Array:
        tensors = [torch.from_numpy(np.ascontiguousarray(array)) for array in arrays]
        return function(*tensors).numpy().reshape(np.broadcast_shapes(*(array.shape for array in arrays)))

    return apply


def _gamma(x: torch.Tensor) -> torch.Tensor:
    odd = (x < 0) & (torch.floor(x) % 2 != 0)
    return torch.exp(torch.lgamma(x)) * torch.where(odd, -1, 1)


erf = _by_torch(torch.erf)

_SAME_IN_NUMPY = (
    *("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p"),
    *("sqrt", "cbrt", "floor", "ceil", "trunc", "rint", "hypot", "ldexp", "copysign", "nextafter", "fmod", "signbit"),
)

_FUNCTIONS: dict[str, Function] = {
    **{name: getattr(np, name) for name in _SAME_IN_NUMPY},
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "atan2": np.arctan2,
    "pow": np.power,
    "powi": np.power,
    "exp10": lambda x: np.power(x.dtype.type(10), x),
    "fabs": np.abs,
    "abs": np.abs,
    "llabs": np.abs,
    "fmin": np.fmin,
    "fmax": np.fmax,
    "min": np.minimum,
    "max": np.maximum,
    "nearbyint": np.rint,
    "round": lambda x: np.trunc(x + np.copysign(x.dtype.type(0.5), x)),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "fdim": lambda x, y: np.fmax(x - y, x.dtype.type(0)),
    "fma": lambda x, y, z: x.astype(np.float64) * y.astype(np.float64) + z,
    "saturate": lambda x: np.clip(np.nan_to_num(x, nan=0.0), 0, 1),
    "remainder": lambda x, y: x - y * np.rint(x / y),
    "erf": erf,
    "erfc": _by_torch(torch.erfc),
    "erfinv": _by_torch(torch.erfinv),
    "lgamma": _by_torch(torch.lgamma),
    "tgamma": _by_torch(_gamma),
    "normcdf": _by_torch(torch.special.ndtr),
    "normcdfinv": _by_torch(torch.special.ndtri),
    "j0": _by_torch(torch.special.bessel_j0),
    "j1": _by_torch(torch.special.bessel_j1),
    "y0": _by_torch(torch.special.bessel_y0),
    "y1": _by_torch(torch.special.bessel_y1),
    "cyl_bessel_i0": _by_torch(torch.i0),
    "cyl_bessel_i1": _by_torch(torch.special.i1),
    "isnan": np.isnan,
    "isinf": np.isinf,
    "finite": np.isfinite,
    "isfinited": np.isfinite,
    "add_rn": np.add,
    "sub_rn": np.subtract,
    "mul_rn": np.multiply,
    "div_rn": np.divide,
    "rcp_rn": lambda x: 1 / x,
    "sqrt_rn": np.sqrt,
    "fast_exp": np.exp,
    "fast_log": np.log,
    "fast_log2": np.log2,
    "fast_log10": np.log10,
    "fast_sin": np.sin,
    "fast_cos": np.cos,
    "fast_tan": np.tan,
    "fast_pow": np.power,
    "fast_fdivide": np.divide,
    "fast_exp10": lambda x: np.power(x.dtype.type(10), x),
    "fast_tanh": np.tanh,
}


def function_for(symbol: str) -> Function | None:
    """The equivalent of ``__nv_<name>`` (with an ``f`` at its end for float32); None where there is none."""
    name = symbol.removeprefix("__nv_")
    for candidate in (name, name.removesuffix("f"), name.replace("f_rn", "_rn"), name.replace("d_rn", "_rn")):
        found = _FUNCTIONS.get(candidate)
        if found is not None:
            return found
    return None
