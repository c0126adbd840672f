"""Residual add and RMS normalisation in float64."""

import torch


def make_inputs(case, draw):
    """Activations and a residual stream that has grown somewhat wider than they are."""
    shape = (case.tokens, case.hidden)
    return {
        "x": draw.normal(shape, torch.float16),
        "residual": draw.normal(shape, torch.float16, std=2),
        "weight": draw.normal((case.hidden,), torch.float16, mean=1, std=0.1),
        "eps": 1e-5,
    }


def reference(x, residual, weight, eps):
    """The truth: the result, and the residual as it is afterwards."""
    total = x.double() + residual.double()
    scale = torch.rsqrt((total * total).mean(dim=1, keepdim=True) + eps)
    return {"0": total * scale * weight.double(), "residual": total}


def eager(x, residual, weight, eps):
    """The unfused path: add, store, normalise the stored residual in float32."""
    residual.add_(x)
    total = residual.float()
    scale = torch.rsqrt((total * total).mean(dim=1, keepdim=True) + eps)
    return (total * scale * weight.float()).half()


BASELINES = {"eager": eager}


def work(case):
    """x and residual are read, residual and the result written, once each; two bytes an element."""
    elements = case.tokens * case.hidden
    return {"flops": 6 * elements, "bytes": 8 * elements + 2 * case.hidden}
