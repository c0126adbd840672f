import torch
import triton
import triton.language as tl


@triton.jit
def _add_rms_norm(
    out_ptr, x_ptr, residual_ptr, weight_ptr, hidden, eps,
    stride_xt, stride_xh, stride_rt, stride_rh, stride_w,
    BLOCK: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK).to(tl.int64)
    inside = lane < hidden
    residual_at = residual_ptr + token * stride_rt + lane * stride_rh
    x = tl.load(x_ptr + token * stride_xt + lane * stride_xh, mask=inside, other=0.0).to(tl.float32)
    total = x + tl.load(residual_at, mask=inside, other=0.0).to(tl.float32)
    tl.store(residual_at, total.to(tl.float16), mask=inside)
    scale = tl.rsqrt(tl.sum(total * total, axis=0) / hidden + eps)
    weight = tl.load(weight_ptr + lane * stride_w, mask=inside, other=0.0).to(tl.float32)
    tl.store(out_ptr + token * hidden + lane, (total * scale * weight).to(tl.float16), mask=inside)


def add_rms_norm(x, residual, weight, eps):
    tokens, hidden = x.shape
    out = torch.empty((tokens, hidden), dtype=x.dtype, device=x.device)
    block = triton.next_power_of_2(hidden)
    _add_rms_norm[(tokens,)](
        out, x, residual, weight, hidden, eps,
        x.stride(0), x.stride(1), residual.stride(0), residual.stride(1), weight.stride(0),
        BLOCK=block, num_warps=8 if block >= 2048 else 4,
    )
    return out
