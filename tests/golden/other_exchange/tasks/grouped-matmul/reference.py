import torch
from torch.nn.functional import leaky_relu


def make_inputs(case, draw):
    return {"a": draw.normal((case.m, case.k), torch.float16), "b": draw.normal((case.k, case.n), torch.float16)}


def reference(a, b):
    return leaky_relu(a.double() @ b.double(), 0.01)


BASELINES = {"eager": lambda a, b: leaky_relu(a.float() @ b.float(), 0.01).half()}


def error_terms(case, a, b):
    return {"terms": case.k, "magnitude": a.double().abs() @ b.double().abs(), "accumulate": torch.float32}
