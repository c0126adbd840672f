"""Dropout by Philox-4x32-10 (Salmon et al., SC 2011), as tl.rand draws it."""

import torch

LOW = 0xFFFFFFFF


def _high(a, b):
    """The upper 32 bits of a product of two unsigned 32-bit numbers, without leaving int64."""
    cross = a * (b & 0xFFFF)
    return ((cross >> 16) + a * (b >> 16)) >> 16


def rand(seed, offsets):
    c0, c1, c2, c3 = offsets & LOW, torch.zeros_like(offsets), torch.zeros_like(offsets), torch.zeros_like(offsets)
    k0, k1 = seed & LOW, (seed >> 32) & LOW
    for _ in range(10):
        b0, b2 = c0, c2
        c0 = _high(b2, 0xCD9E8D57) ^ c1 ^ k0
        c2 = _high(b0, 0xD2511F53) ^ c3 ^ k1
        c1 = (b2 * 0xCD9E8D57) & LOW
        c3 = (b0 * 0xD2511F53) & LOW
        k0, k1 = (k0 + 0x9E3779B9) & LOW, (k1 + 0xBB67AE85) & LOW
    signed = torch.where(c0 >= 1 << 31, c0 - (1 << 32), c0)
    signed = torch.where(signed < 0, -signed - 1, signed)
    return signed.float() * 4.6566127342e-10


def make_inputs(case, draw):
    seed = int(torch.randint(1, 1 << 31, (), generator=draw.generator))
    return {"x": draw.normal((case.size,), torch.float32), "p": case.p, "seed": seed}


def _keep(x, p, seed):
    return rand(seed, torch.arange(x.numel())) > torch.tensor(p, dtype=torch.float32)


def reference(x, p, seed):
    return torch.where(_keep(x, p, seed), x.double() / (1 - p), 0.0)


def masked(x, p, seed):
    return torch.where(_keep(x, p, seed), x / (1 - p), torch.zeros(()))


BASELINES = {"masked": masked}
