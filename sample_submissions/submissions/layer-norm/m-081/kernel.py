import torch


def layer_norm(x, weight, bias, eps):
    y = torch.sub(x, x.mean(dim=1, keepdim=True))
    # The norm of the centred row, in one sweep and without a tensor of squares: var = norm² / cols.
    norm = torch.linalg.vector_norm(y, dim=1, keepdim=True)
    variance = norm.square_().div_(x.shape[1])
    # From here on in place, on a tensor of our own.
    y.mul_(torch.rsqrt(variance.add_(eps)))
    return torch.addcmul(bias, y, weight, out=y)
