import torch
from torch.nn.functional import layer_norm


def make_inputs(case, draw):
    return {
        "x": draw.normal((case.rows, case.cols), torch.float16, mean=-2.3, std=0.5),
        "weight": draw.uniform((case.cols,), torch.float16),
        "bias": draw.uniform((case.cols,), torch.float16),
        "eps": 1e-5,
    }


def reference(x, weight, bias, eps):
    return layer_norm(x.double(), x.shape[1:], weight.double(), bias.double(), eps)


def eager(x, weight, bias, eps):
    return layer_norm(x.float(), x.shape[1:], weight.float(), bias.float(), eps).half()


BASELINES = {"eager": eager}
