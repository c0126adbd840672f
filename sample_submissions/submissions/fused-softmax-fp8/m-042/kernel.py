import torch
import triton
import triton.language as tl


@triton.jit
def _softmax_fp8(s_ptr, p_ptr, lse_ptr, cols, stride_r, stride_c, scale, p_scale, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offs = tl.arange(0, BLOCK)
    mask = offs < cols
    s = tl.load(s_ptr + row * stride_r + offs * stride_c, mask=mask, other=-float("inf")).to(tl.float32) * scale
    # Keep the row in its final format from here on: a quarter of the registers.
    s8 = tl.clamp(s, -448.0, 448.0).to(tl.float8e4nv)
    s = tl.where(mask, s8.to(tl.float32), -float("inf"))
    m = tl.max(s, axis=0)
    e = tl.where(mask, tl.exp(s - m), 0.0)
    total = tl.sum(e, axis=0)
    p = e / total * p_scale
    tl.store(p_ptr + row * cols + offs, tl.minimum(p, 448.0).to(tl.float8e4nv), mask=mask)
    tl.store(lse_ptr + row, m + tl.log(total))


def softmax_fp8(scores, scale, p_scale):
    rows, cols = scores.shape
    p8 = torch.empty((rows, cols), dtype=torch.float8_e4m3fn, device=scores.device)
    lse = torch.empty((rows,), dtype=torch.float32, device=scores.device)
    _softmax_fp8[(rows,)](
        scores, p8, lse, cols, scores.stride(0), scores.stride(1), scale, p_scale, BLOCK=triton.next_power_of_2(cols)
    )
    return p8, lse
