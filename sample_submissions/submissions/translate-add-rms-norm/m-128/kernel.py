import torch
import triton
import triton.language as tl

THREADS = 256


@triton.jit
def _add_rms_norm_kernel(
    out_ptr, x_ptr, residual_ptr, weight_ptr, hidden, eps, sxt, sxh, srt, srh, sw, THREADS: tl.constexpr
):
    token = tl.program_id(0).to(tl.int64)
    thread = tl.arange(0, THREADS)
    squares = tl.zeros((THREADS,), dtype=tl.float32)
    for i in range(0, hidden, THREADS):
        index = i + thread
        mask = index < hidden
        at = residual_ptr + token * srt + index * srh
        value = tl.load(x_ptr + token * sxt + index * sxh, mask=mask, other=0.0).to(tl.float32)
        value += tl.load(at, mask=mask, other=0.0).to(tl.float32)
        tl.store(at, value.to(tl.float16), mask=mask)
        squares += value * value
    inverse_rms = tl.rsqrt(tl.sum(squares, axis=0) / hidden + eps)
    for i in range(0, hidden // THREADS):
        index = i * THREADS + thread
        value = tl.load(residual_ptr + token * srt + index * srh).to(tl.float32)
        weight = tl.load(weight_ptr + index * sw).to(tl.float32)
        tl.store(out_ptr + token * hidden + index, (value * inverse_rms * weight).to(tl.float16))


def add_rms_norm(x, residual, weight, eps):
    tokens, hidden = x.shape
    out = torch.empty((tokens, hidden), dtype=torch.float16, device=x.device)
    _add_rms_norm_kernel[(tokens,)](
        out, x, residual, weight, hidden, eps,
        x.stride(0), x.stride(1), residual.stride(0), residual.stride(1), weight.stride(0), THREADS=THREADS,
    )
    return out
