import torch


def add_rms_norm(x, residual, weight, eps):
    residual = residual.float() + x.float()
    inverse_rms = torch.rsqrt(residual.pow(2).mean(dim=-1, keepdim=True) + eps)
    return (residual * inverse_rms * weight.float()).half()
