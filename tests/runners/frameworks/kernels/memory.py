import torch
import triton
import triton.language as tl


@triton.jit
def scale_unmasked(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i)  # <unmasked-load>
    tl.store(out + i, value * 2, mask=i < n)


@triton.jit
def scale_unmasked_store(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n, other=0.0)
    tl.store(out + i, value * 2)  # <unmasked-store>


@triton.jit
def scale_masked(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n)
    tl.store(out + i, value * 2, mask=i < n)


def vector():
    return {"x": torch.arange(100.0)}


def double(x):
    return x * 2


def unmasked_load(x):
    out = torch.empty_like(x)
    scale_unmasked[(2,)](x, out, 100, BLOCK=64)
    return out


unmasked_load_arguments, unmasked_load_expected = vector, double


def unmasked_store(x):
    out = torch.empty_like(x)
    scale_unmasked_store[(2,)](x, out, 100, BLOCK=64)
    return out


unmasked_store_arguments, unmasked_store_expected = vector, double


def masked_tail(x):
    out = torch.empty_like(x)
    scale_masked[(2,)](x, out, 100, BLOCK=64)
    return out


masked_tail_arguments, masked_tail_expected = vector, double


def into_neighbour(x):
    """The two halves lie side by side in one buffer that host code owns: leaving one is not out of bounds."""
    both = torch.zeros(256)
    scale_unmasked_store[(2,)](x, both[:100], 100, BLOCK=64)
    return both[:100].clone()


into_neighbour_arguments, into_neighbour_expected = vector, double


@triton.jit
def moved_back(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x - n + i, mask=i < n, other=0.0), mask=i < n)


def moved_pointer(x):
    out = torch.empty(50)
    moved_back[(1,)](x[50:], out, 50, BLOCK=64)
    return out


moved_pointer_arguments = vector


def moved_pointer_expected(x):
    return x[:50].clone()


def moved_too_far(x):
    out = torch.empty(60)
    moved_back[(1,)](x[50:], out, 60, BLOCK=64)
    return out


moved_too_far_arguments = vector


def expanded_arguments():
    return {"x": torch.full((1,), 3.0).expand(100)}


def expanded(x):
    """Ignores the strides of what it was given."""
    out = torch.empty(100)
    scale_masked[(2,)](x, out, 100, BLOCK=64)
    return out


@triton.jit
def halves(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) / 2, mask=i < n)


def overlapping_arguments():
    storage = torch.arange(40.0)
    return {"x": storage.as_strided((5, 16), (6, 1))}


def overlapping(x):
    """Rows that share elements: an input may overlap itself."""
    rows = x.contiguous()
    out = torch.empty_like(rows)
    halves[(2,)](rows, out, 80, BLOCK=64)
    return out


def overlapping_expected(x):
    return x / 2


@triton.jit
def block_pointer_copy(x, out, rows, columns, check: tl.constexpr):
    source = tl.make_block_ptr(x, (rows, columns), (columns, 1), (0, 0), (8, 16), (1, 0))
    target = tl.make_block_ptr(out, (rows, columns), (columns, 1), (0, 0), (8, 16), (1, 0))
    if check:
        value = tl.load(source, boundary_check=(0, 1), padding_option="zero")
        tl.store(target, value, boundary_check=(0, 1))
    else:
        value = tl.load(source, boundary_check=(0, 1), padding_option="zero")
        tl.store(target, value, boundary_check=(1,))  # <block-store>


def matrix():
    return {"x": torch.arange(60.0).reshape(5, 12)}


def same(x):
    return x.clone()


def block_pointer(x):
    out = torch.empty_like(x)
    block_pointer_copy[(1,)](x, out, 5, 12, check=True)
    return out


block_pointer_arguments, block_pointer_expected = matrix, same


def block_pointer_unchecked(x):
    out = torch.empty_like(x)
    block_pointer_copy[(1,)](x, out, 5, 12, check=False)
    return out


block_pointer_unchecked_arguments, block_pointer_unchecked_expected = matrix, same


@triton.jit
def descriptor_copy(x, out, rows, claimed, columns: tl.constexpr):
    source = tl.make_tensor_descriptor(x, (rows, columns), (columns, 1), (4, columns))
    target = tl.make_tensor_descriptor(out, (claimed, columns), (columns, 1), (4, columns))
    start = tl.program_id(0) * 4
    target.store([start, 0], source.load([start, 0]) + 1)  # <descriptor-store>


def tile():
    return {"x": torch.arange(96.0).reshape(6, 16)}


def plus_one(x):
    return x + 1


def descriptor(x):
    out = torch.empty_like(x)
    descriptor_copy[(2,)](x, out, 6, 6, columns=16)
    return out


descriptor_arguments, descriptor_expected = tile, plus_one


def descriptor_too_large(x):
    out = torch.empty_like(x)
    descriptor_copy[(2,)](x, out, 6, 8, columns=16)
    return out


descriptor_too_large_arguments, descriptor_too_large_expected = tile, plus_one


@triton.jit
def through_table(table, out, which, BLOCK: tl.constexpr):
    base = tl.load(table + which).to(tl.pointer_type(tl.float32))
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(base + i))  # <table-load>


def pointer_table(x):
    """Pointers that the kernel reads from memory, to a lent and to a fresh tensor."""
    other = x + 1
    table = torch.tensor([x.data_ptr(), other.data_ptr()], dtype=torch.int64)
    out = torch.empty(64)
    through_table[(1,)](table, out, 1, BLOCK=64)
    return out


def pointer_table_arguments():
    return {"x": torch.arange(64.0)}


def pointer_table_expected(x):
    return x + 1


def table_overrun(x):
    table = torch.tensor([x.data_ptr()], dtype=torch.int64)
    out = torch.empty(64)
    through_table[(1,)](table, out, 0, BLOCK=64)
    return out


def table_overrun_arguments():
    return {"x": torch.arange(60.0)}


def wild_pointer(x):
    table = torch.tensor([16], dtype=torch.int64)
    out = torch.zeros(64)
    through_table[(1,)](table, out, 0, BLOCK=64)
    return out


wild_pointer_arguments = vector


@triton.jit
def count_into(x, counts, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.atomic_add(counts + tl.load(x + i), 1)  # <atomic>


def atomic_outside(x):
    counts = torch.zeros(4, dtype=torch.int32)
    count_into[(1,)](x, counts, BLOCK=8)
    return counts


def atomic_outside_arguments():
    return {"x": torch.tensor([0, 1, 2, 3, 4, 5, 0, 0], dtype=torch.int32)}


def atomic_outside_expected(x):
    return torch.tensor([3, 1, 1, 1], dtype=torch.int32)


@triton.jit
def wrapped(x, out, row, stride, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + row * stride + i))  # <wrapped-offset>


def int32_wrap(x):
    """An offset beyond 2**31 in 32-bit arithmetic points before the tensor."""
    out = torch.empty(16)
    wrapped[(1,)](x, out, 70_000, 40_000, BLOCK=16)
    return out


int32_wrap_arguments = vector


@triton.jit
def add_one(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)


def twice_in_place(x):
    add_one[(4,)](x, 100, BLOCK=32)
    add_one[(4,)](x, 100, BLOCK=32)
    return x


twice_in_place_arguments = vector


def twice_in_place_expected(x):
    return x + 2


def empty_grid(x):
    out = torch.zeros(3)
    add_one[(0,)](out, 0, BLOCK=32)
    return out


def empty_grid_arguments():
    return {"x": torch.zeros(0)}
