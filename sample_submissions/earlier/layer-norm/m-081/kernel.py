import torch


def layer_norm(x, weight, bias, eps):
    mean = x.mean(dim=1, keepdim=True)
    mean_of_squares = (x * x).mean(dim=1, keepdim=True)
    variance = mean_of_squares - mean * mean
    return torch.addcmul(bias, (x - mean) * torch.rsqrt(variance + eps), weight)
