import torch
import triton
import triton.language as tl


@triton.jit
def accumulate(x, out, ROWS: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    for row in range(ROWS):
        tl.store(out + i, tl.load(out + i) + tl.load(x + row * N + i))  # <accumulates>


def rows():
    return {"x": torch.arange(32.0).reshape(4, 8)}


def total(x):
    return x.sum(0)


def into_empty(x):
    out = torch.empty(8)
    accumulate[(1,)](x, out, ROWS=4, N=8)
    return out


def into_empty_then_cast(x):
    out = torch.empty(8)
    accumulate[(1,)](x, out, ROWS=4, N=8)
    return out.to(torch.float16)


def into_zeroed(x):
    out = torch.empty(8)
    out.zero_()
    accumulate[(1,)](x, out, ROWS=4, N=8)
    return out


def into_filled_view(x):
    whole = torch.empty(2, 8)
    whole[1].fill_(0.0)
    accumulate[(1,)](x, whole[1], ROWS=4, N=8)
    return whole[1].clone()


def through_numpy(x):
    out = torch.empty(8)
    out.numpy()[:] = 0.0
    accumulate[(1,)](x, out, ROWS=4, N=8)
    return out


into_empty_arguments = into_zeroed_arguments = into_filled_view_arguments = through_numpy_arguments = rows
into_empty_then_cast_arguments = rows
into_zeroed_expected = into_filled_view_expected = through_numpy_expected = total


@triton.jit
def atomic_accumulate(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.atomic_add(out + i, tl.load(x + tl.program_id(0) * N + i))  # <atomic-accumulates>


def atomics_into_empty(x):
    out = torch.empty(8)
    atomic_accumulate[(4,)](x, out, N=8)
    return out


def atomics_into_new(x):
    out = x.new_zeros(8)
    atomic_accumulate[(4,)](x, out, N=8)
    return out


atomics_into_empty_arguments = atomics_into_new_arguments = rows
atomics_into_new_expected = total


@triton.jit
def row_maximum(x, out, N, other: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    if other:
        values = tl.load(x + row * N + i, mask=i < N, other=-float("inf"))
    else:
        values = tl.load(x + row * N + i, mask=i < N)  # <no-other>
    tl.store(out + row, tl.max(values, axis=0))


def without_other(x):
    out = torch.empty(4)
    row_maximum[(4,)](x, out, 5, other=False, BLOCK=8)
    return out


def with_other(x):
    out = torch.empty(4)
    row_maximum[(4,)](x, out, 5, other=True, BLOCK=8)
    return out


def negatives():
    return {"x": -torch.arange(1.0, 21.0).reshape(4, 5)}


without_other_arguments = with_other_arguments = negatives


def with_other_expected(x):
    return x.amax(1)


@triton.jit
def padded_softmax(x, out, N, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    values = tl.load(x + tl.program_id(0) * BLOCK + i)
    values = tl.where(i < N, values, -float("inf"))
    exponentials = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + tl.program_id(0) * N + i, exponentials / tl.sum(exponentials, axis=0), mask=i < N)


def padding_cut_off(x):
    """Reads the unwritten padding of its buffer and drops it: right."""
    padded = torch.empty(4, 8)
    padded[:, :5] = x
    out = torch.empty(4, 5)
    padded_softmax[(4,)](padded, out, 5, BLOCK=8)
    return out


padding_cut_off_arguments = negatives


def padding_cut_off_expected(x):
    return torch.softmax(x, 1)


@triton.jit
def double_all(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i) * 2)


def padding_computed(x):
    """Computes on the padding too and returns only what counts."""
    padded, doubled = torch.empty(32), torch.empty(32)
    padded[:20] = x.reshape(-1)
    double_all[(1,)](padded, doubled, BLOCK=32)
    return doubled[:20].reshape(4, 5)


padding_computed_arguments = negatives


def padding_computed_expected(x):
    return x * 2


@triton.jit
def masked_rows(a, b, out, M, K, N: tl.constexpr):
    i, k = tl.arange(0, 16), tl.arange(0, 16)
    left = tl.load(a + i[:, None] * K + k[None, :], mask=(i < M)[:, None] & (k < K)[None, :])
    left = tl.where((k < K)[None, :], left, 0.0)
    right = tl.load(b + k[:, None] * N + tl.arange(0, N)[None, :], mask=(k < K)[:, None], other=0.0)
    product = tl.dot(left, right, input_precision="ieee")
    tl.store(out + i[:, None] * N + tl.arange(0, N)[None, :], product, mask=(i < M)[:, None])


def undefined_rows_dropped(a, b):
    """Rows beyond M are undefined in the product, too, and are not stored."""
    out = torch.empty(5, 16)
    masked_rows[(1,)](a, b, out, 5, 9, N=16)
    return out


def undefined_rows_dropped_arguments():
    generator = torch.Generator().manual_seed(1)
    return {"a": torch.randn(5, 9, generator=generator), "b": torch.randn(9, 16, generator=generator)}


def undefined_rows_dropped_expected(a, b):
    return a @ b


@triton.jit
def branch_on(flag, out):
    if tl.load(flag) > 0:  # <branch>
        tl.store(out, 1.0)
    else:
        tl.store(out, 2.0)


def branches(x):
    out = torch.empty(1)
    branch_on[(1,)](torch.empty(1), out)
    return out


branches_arguments = rows


@triton.jit
def gather(x, places, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + (tl.load(places + i) & 7)))  # <gather>


def addresses(x):
    out = torch.empty(8)
    gather[(1,)](x, torch.empty(8, dtype=torch.int32), out, N=8)
    return out


addresses_arguments = rows


def workspace_kept(x):
    """A buffer that the module keeps: written in one call, read in the next."""
    global kept
    if kept is None:
        kept = torch.empty(8)
        kept.copy_(x[0])
        return kept.clone()
    out = torch.empty(8)
    double_all[(1,)](kept, out, BLOCK=8)
    return out / 2


kept = None
workspace_kept_arguments = rows


def workspace_kept_expected(x):
    return x[0].clone()


def grows(x):
    """``out=`` of an empty tensor, and a resize beyond what was allocated."""
    out = torch.empty(0)
    torch.add(x, 1, out=out)
    other = torch.empty(4)
    other.fill_(2.0)
    other.resize_(40)
    other[4:] = 1.0
    return out, other


grows_arguments = rows


def grows_expected(x):
    return x + 1, torch.cat([torch.full((4,), 2.0), torch.ones(36)])
