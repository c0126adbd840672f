"""Submissions in torch alone."""

import torch


def numbers():
    return {"x": torch.arange(12.0).reshape(3, 4)}


def clean(x):
    out = torch.empty_like(x)
    torch.mul(x, 2, out=out)
    return out


def unwritten(x):
    out = torch.empty_like(x)
    out[:2] = x[:2]
    return out


def beyond(x):
    """Writes behind its own allocation, as a faulty extension does."""
    import ctypes

    out = torch.empty(3, 4)  # <allocated>
    out.copy_(x)
    ctypes.memset(out.data_ptr() + out.nbytes, 0x5A, 8)
    return out


def on_cuda(x):
    return x.to("cuda") + torch.ones(3, 4, device="cuda")


clean_arguments = unwritten_arguments = beyond_arguments = on_cuda_arguments = numbers


def clean_expected(x):
    return x * 2


def on_cuda_expected(x):
    return x + 1
