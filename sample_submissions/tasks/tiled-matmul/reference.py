"""Matrix product in float64 of the float16 inputs."""

import torch


def make_inputs(case, draw):
    """Zero mean, unit variance: a lower precision inside shows in every element."""
    return {
        "a": draw.normal((case.m, case.k), torch.float16),
        "b": draw.normal((case.k, case.n), torch.float16),
    }


def reference(a, b):
    """The truth, in float64."""
    return a.double() @ b.double()


def eager(a, b):
    """Upcast, then the library's float32 product."""
    return a.float() @ b.float()


BASELINES = {"eager": eager}


def work(case):
    """Every input element is read once and every output element written once."""
    return {
        "flops": 2 * case.m * case.n * case.k,
        "bytes": 2 * (case.m * case.k + case.k * case.n) + 4 * case.m * case.n,
    }


def error_terms(case, a, b):
    """K products are added in float32; their magnitudes sum to |a| @ |b|."""
    return {"terms": case.k, "magnitude": a.double().abs() @ b.double().abs(), "accumulate": torch.float32}
