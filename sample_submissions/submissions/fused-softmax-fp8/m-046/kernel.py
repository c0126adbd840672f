import torch
import triton
import triton.language as tl


@triton.jit
def _fused(s_ptr, p_ptr, lse_ptr, cols, stride_r, stride_c, scale, p_scale, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offs = tl.arange(0, BLOCK)
    mask = offs < cols
    s = tl.load(s_ptr + row * stride_r + offs.to(tl.int64) * stride_c, mask=mask, other=-float("inf")).to(tl.float32)
    s = s * scale
    m = tl.max(s, axis=0)
    m_safe = tl.where(m == -float("inf"), 0.0, m)
    e = tl.exp(s - m_safe)
    z = tl.sum(e, axis=0)
    z_safe = tl.where(z == 0.0, 1.0, z)
    p8 = (e * (p_scale / z_safe)).to(tl.float8e4nv)
    tl.store(p_ptr + row * cols + offs, p8, mask=mask)
    tl.store(lse_ptr + row, m_safe + tl.log(z))


def softmax_fp8(scores, scale, p_scale):
    rows, cols = scores.shape
    p8 = torch.empty((rows, cols), dtype=torch.float8_e4m3fn, device=scores.device)
    lse = torch.empty((rows,), dtype=torch.float32, device=scores.device)
    _fused[(rows,)](
        scores, p8, lse, cols, scores.stride(0), scores.stride(1), scale, p_scale, BLOCK=triton.next_power_of_2(cols)
    )
    return p8, lse
