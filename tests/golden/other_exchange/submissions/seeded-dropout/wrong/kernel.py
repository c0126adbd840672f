import torch
import triton
import triton.language as tl


@triton.jit
def _seeded_dropout(x_ptr, output_ptr, n_elements, p, seed, BLOCK_SIZE: tl.constexpr):
    lanes = tl.arange(0, BLOCK_SIZE)
    offsets = tl.program_id(axis=0) * BLOCK_SIZE + lanes
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    # Every block draws the same mask.
    output = tl.where(tl.rand(seed, lanes) > p, x / (1 - p), 0.0)
    tl.store(output_ptr + offsets, output, mask=mask)


def seeded_dropout(x, p, seed):
    x = x.contiguous()
    output = torch.empty_like(x)
    n_elements = x.numel()
    _seeded_dropout[(triton.cdiv(n_elements, 128),)](x, output, n_elements, p, seed, BLOCK_SIZE=128)
    return output
