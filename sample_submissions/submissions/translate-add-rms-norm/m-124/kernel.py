import torch


def add_rms_norm(x, residual, weight, eps):
    residual += x
    total = residual.float()
    mean_square = total.square().mean(dim=1, keepdim=True)
    return (total * torch.rsqrt(mean_square + eps) * weight.float()).to(x.dtype)
