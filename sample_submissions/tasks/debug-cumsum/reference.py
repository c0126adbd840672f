"""Running sums along rows, in float64."""

import torch


def make_inputs(case, draw):
    """Positive and negative values, so that sums neither grow without bound nor vanish."""
    return {"x": draw.normal((case.rows, case.cols), torch.float32, mean=0.1)}


def reference(x):
    """The truth, in float64."""
    return torch.cumsum(x.double(), dim=1)


def eager(x):
    """The library's scan."""
    return torch.cumsum(x, dim=1)


BASELINES = {"eager": eager}


def work(case):
    """One addition, one read and one write per element."""
    elements = case.rows * case.cols
    return {"flops": elements, "bytes": 8 * elements}


def error_terms(case, x):
    """Element j adds j + 1 terms in float32; the library's CPU scan accumulates in float64 and is no yardstick."""
    return {
        "terms": case.cols,
        "magnitude": torch.cumsum(x.double().abs(), dim=1),
        "accumulate": torch.float32,
    }
