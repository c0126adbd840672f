import torch
import triton
import triton.language as tl


@triton.jit
def _seeded_dropout(x_ptr, output_ptr, n_elements, p, seed, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    random = tl.rand(seed, offsets)
    output = tl.where(random > p, x / (1 - p), 0.0)
    tl.store(output_ptr + offsets, output, mask=mask)


def seeded_dropout(x, p, seed):
    x = x.contiguous()
    output = torch.empty_like(x)
    n_elements = x.numel()
    _seeded_dropout[(triton.cdiv(n_elements, 256),)](x, output, n_elements, p, seed, BLOCK_SIZE=256)
    return output
