import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, output_ptr, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.store(output_ptr + offsets, tl.load(x_ptr + offsets) + tl.load(y_ptr + offsets))


def add(x, y):
    x, y = x.contiguous(), y.contiguous()
    output = torch.empty_like(x)
    add_kernel[(triton.cdiv(output.numel(), 256),)](x, y, output, BLOCK_SIZE=256)
    return output
