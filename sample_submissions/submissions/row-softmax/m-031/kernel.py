import torch
import triton
import triton.language as tl


@triton.jit
def _online_softmax(x_ptr, y_ptr, cols, stride_row, stride_col, TILE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_row = x_ptr + row * stride_row
    y_row = y_ptr + row * cols
    lanes = tl.arange(0, TILE)

    # Pass 1: running maximum and running denominator over the tiles of the row.
    running_max = -float("inf")
    running_sum = 0.0
    for start in range(0, cols, TILE):
        column = start + lanes
        x = tl.load(x_row + column.to(tl.int64) * stride_col, mask=column < cols, other=-float("inf")).to(tl.float32)
        tile_max = tl.max(x, axis=0)
        new_max = tl.maximum(running_max, tile_max)
        # Rescale what was summed under the old maximum; before the first tile there is nothing to rescale.
        alpha = tl.where(start == 0, 0.0, tl.exp(new_max - running_max))
        running_sum = running_sum * alpha + tl.sum(tl.exp(x - new_max), axis=0)
        running_max = new_max

    # Pass 2: normalise and write.
    for start in range(0, cols, TILE):
        column = start + lanes
        inside = column < cols
        x = tl.load(x_row + column.to(tl.int64) * stride_col, mask=inside, other=-float("inf")).to(tl.float32)
        y = tl.exp(x - running_max) / running_sum
        tl.store(y_row + column, y.to(y_ptr.dtype.element_ty), mask=inside)


def softmax(x):
    rows, cols = x.shape
    y = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    tile = triton.next_power_of_2(cols)
    _online_softmax[(rows,)](x, y, cols, x.stride(0), x.stride(1), TILE=tile)
    return y
