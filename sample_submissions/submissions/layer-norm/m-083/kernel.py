import torch


def layer_norm(x, weight, bias, eps):
    n = x.shape[1]
    # Both moments from matrix-vector products: BLAS is the fastest reduction there is.
    ones = torch.ones(n, 1)
    mean = (x @ ones) / n
    second = torch.einsum("ij,ij->i", x, x).unsqueeze(1) / n
    variance = (second - mean * mean).clamp_min_(0.0)
    scale = torch.rsqrt(variance + eps)
    # y = x * (scale * w) + (b - mean * scale * w)
    y = torch.sub(x, mean).mul_(scale)
    return y.mul_(weight).add_(bias)
