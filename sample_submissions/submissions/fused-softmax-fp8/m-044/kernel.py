import torch
import triton
import triton.language as tl


@triton.jit
def _softmax_fp8(s_ptr, p_ptr, lse_ptr, cols, stride_r, stride_c, scale, p_scale, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    inside = column < cols
    s = tl.load(
        s_ptr + row * stride_r + column.to(tl.int64) * stride_c,
        mask=inside,
        other=-float("inf"),
    ).to(tl.float32)
    s = s * scale
    largest = tl.max(s, axis=0)
    # A row without any finite score has no maximum to subtract: its exponentials are all 0 with 0 in its place.
    shift = tl.where(largest == -float("inf"), 0.0, largest)
    numerator = tl.exp(s - shift)
    total = tl.sum(numerator, axis=0)
    p = numerator / tl.where(total == 0.0, 1.0, total) * p_scale
    # The conversion saturates on sm_90, but NaN must survive the clamp that makes this explicit.
    p = tl.minimum(p, 448.0, propagate_nan=tl.PropagateNan.ALL)
    tl.store(p_ptr + row * cols + column, p.to(tl.float8e4nv), mask=inside)
    tl.store(lse_ptr + row, shift + tl.log(total))


def softmax_fp8(scores, scale, p_scale):
    rows, cols = scores.shape
    p8 = torch.empty((rows, cols), dtype=torch.float8_e4m3fn, device=scores.device)
    lse = torch.empty((rows,), dtype=torch.float32, device=scores.device)
    _softmax_fp8[(rows,)](
        scores, p8, lse, cols, scores.stride(0), scores.stride(1), scale, p_scale, BLOCK=triton.next_power_of_2(cols)
    )
    return p8, lse
