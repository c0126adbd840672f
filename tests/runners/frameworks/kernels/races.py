import torch
import triton
import triton.language as tl


@triton.jit
def shift_left(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    following = tl.load(x + i + 1, mask=i + 1 < n, other=0.0)
    tl.store(x + i, following, mask=i < n)  # <shift>


def shift(x):
    shift_left[(4,)](x, 256, BLOCK=64)
    return x


def shift_arguments():
    return {"x": torch.arange(256.0)}


def shift_expected(x):
    return torch.cat([x[1:], torch.zeros(1)])


@triton.jit
def sum_plain(x, out, BLOCK: tl.constexpr):
    part = tl.sum(tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)), axis=0)
    tl.store(out, tl.load(out) + part)  # <lost-update>


def lost_update(x):
    out = torch.zeros(1)
    sum_plain[(4,)](x, out, BLOCK=64)
    return out


def lost_update_arguments():
    return {"x": torch.ones(256)}


def lost_update_expected(x):
    return x.sum().reshape(1)


@triton.jit
def sum_atomic(x, out, BLOCK: tl.constexpr):
    tl.atomic_add(out, tl.sum(tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)), axis=0))


def atomics(x):
    out = torch.zeros(1)
    sum_atomic[(4,)](x, out, BLOCK=64)
    return out


atomics_arguments, atomics_expected = lost_update_arguments, lost_update_expected


@triton.jit
def split_k(a, b, c, K, N: tl.constexpr, BLOCK: tl.constexpr, SPLIT: tl.constexpr):
    i = tl.arange(0, N)
    acc = tl.zeros((N, N), dtype=tl.float32)
    for start in range(tl.program_id(0) * BLOCK, K, SPLIT * BLOCK):
        k = start + tl.arange(0, BLOCK)
        left = tl.load(a + i[:, None] * K + k[None, :], mask=(k < K)[None, :], other=0.0)
        right = tl.load(b + k[:, None] * N + i[None, :], mask=(k < K)[:, None], other=0.0)
        acc += tl.dot(left, right, input_precision="ieee")
    tl.atomic_add(c + i[:, None] * N + i[None, :], acc, sem="relaxed")


def split_matmul(a, b):
    c = torch.zeros(16, 16)
    split_k[(3,)](a, b, c, 80, N=16, BLOCK=16, SPLIT=3)
    return c


def split_matmul_arguments():
    generator = torch.Generator().manual_seed(0)
    return {"a": torch.randn(16, 80, generator=generator), "b": torch.randn(80, 16, generator=generator)}


def split_matmul_expected(a, b):
    return a @ b


@triton.jit
def add_locked(x, total, lock, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    part = tl.load(x + tl.program_id(0) * BLOCK + i)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(total + i, tl.load(total + i) + part)  # <locked-store>
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def add_half_locked(x, total, lock, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    part = tl.load(x + tl.program_id(0) * BLOCK + i)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.atomic_xchg(lock, 0)
    tl.store(total + i, tl.load(total + i) + part)  # <after-unlock>


def locked(x):
    total = torch.zeros(64)
    add_locked[(4,)](x, total, torch.zeros(1, dtype=torch.int32), BLOCK=64)
    return total


locked_arguments = lost_update_arguments


def locked_expected(x):
    return x.view(4, 64).sum(0)


def half_locked(x):
    total = torch.zeros(64)
    add_half_locked[(4,)](x, total, torch.zeros(1, dtype=torch.int32), BLOCK=64)
    return total


half_locked_arguments, half_locked_expected = lost_update_arguments, locked_expected


@triton.jit
def last_sums(x, parts, counter, out, BLOCK: tl.constexpr, PROGRAMS: tl.constexpr, SEM: tl.constexpr):
    program = tl.program_id(0)
    tl.store(parts + program, tl.sum(tl.load(x + program * BLOCK + tl.arange(0, BLOCK)), axis=0))
    arrived = tl.atomic_add(counter, 1, sem=SEM)
    if arrived == PROGRAMS - 1:
        everything = tl.load(parts + tl.arange(0, PROGRAMS))  # <last-reads>
        tl.store(out, tl.sum(everything, axis=0))


def last_arriver(x):
    out = torch.empty(1)
    parts, counter = torch.empty(4), torch.zeros(1, dtype=torch.int32)
    last_sums[(4,)](x, parts, counter, out, BLOCK=64, PROGRAMS=4, SEM="acq_rel")
    return out


last_arriver_arguments, last_arriver_expected = lost_update_arguments, lost_update_expected


def relaxed_arriver(x):
    out = torch.empty(1)
    parts, counter = torch.empty(4), torch.zeros(1, dtype=torch.int32)
    last_sums[(4,)](x, parts, counter, out, BLOCK=64, PROGRAMS=4, SEM="relaxed")
    return out


relaxed_arriver_arguments, relaxed_arriver_expected = lost_update_arguments, lost_update_expected


@triton.jit
def row_total(x, totals, out, COLUMNS: tl.constexpr):
    row, column = tl.program_id(0), tl.program_id(1)
    total = tl.sum(tl.load(x + row * COLUMNS + tl.arange(0, COLUMNS)), axis=0)
    tl.store(totals + row, total)
    tl.store(out + row * COLUMNS + column, tl.load(x + row * COLUMNS + column) / total)


def same_value(x):
    """Every program of a row stores the same total: harmless."""
    totals, out = torch.empty(4), torch.empty_like(x)
    row_total[(4, 8)](x, totals, out, COLUMNS=8)
    return out


def same_value_arguments():
    return {"x": torch.arange(1.0, 33.0).reshape(4, 8)}


def same_value_expected(x):
    return x / x.sum(1, keepdim=True)


@triton.jit
def first_clears(out, x, BLOCK: tl.constexpr):
    if tl.program_id(0) == 0:
        tl.store(out, 0.0)  # <clears>
    tl.atomic_add(out, tl.sum(tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)), axis=0))  # <updates>


def cleared_by_first(x):
    out = torch.zeros(1)
    first_clears[(4,)](out, x, BLOCK=64)
    return out


cleared_by_first_arguments, cleared_by_first_expected = lost_update_arguments, lost_update_expected


@triton.jit
def largest_by_swap(x, out):
    mine = tl.load(x + tl.program_id(0))
    old = tl.load(out)
    while old < mine:
        seen = tl.atomic_cas(out, old, mine)
        if seen == old:
            old = mine
        else:
            old = seen


def swap_loop(x):
    out = torch.zeros(1, dtype=torch.int32)
    largest_by_swap[(8,)](x, out)
    return out


def swap_loop_arguments():
    return {"x": torch.tensor([3, 1, 4, 1, 5, 9, 2, 6], dtype=torch.int32)}


def swap_loop_expected(x):
    return x.max().reshape(1)


@triton.jit
def persistent(x, out, tiles, BLOCK: tl.constexpr, PROGRAMS: tl.constexpr):
    for tile in range(tl.program_id(0), tiles, PROGRAMS):
        i = tile * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i) + 1)


def two_launches(x):
    """The second launch reads, in other programs, what the first wrote, and writes what the first read."""
    middle, out = torch.empty_like(x), torch.empty_like(x)
    persistent[(3,)](x, middle, 16, BLOCK=16, PROGRAMS=3)
    persistent[(5,)](middle, out, 16, BLOCK=16, PROGRAMS=5)
    persistent[(2,)](out, middle, 16, BLOCK=16, PROGRAMS=2)
    return middle


two_launches_arguments = shift_arguments


def two_launches_expected(x):
    return x + 3


@triton.jit
def scatter(values, places, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + tl.load(places + i), tl.load(values + i))  # <scatter>


def lanes_collide(values, places):
    out = torch.zeros(4)
    scatter[(1,)](values, places, out, BLOCK=8)
    return out


def lanes_collide_arguments():
    return {"values": torch.arange(8.0), "places": torch.tensor([0, 1, 2, 3, 0, 1, 2, 3], dtype=torch.int32)}


def lanes_agree(values, places):
    out = torch.zeros(4)
    scatter[(2,)](values, places, out, BLOCK=8)
    return out


def lanes_agree_arguments():
    return {"values": torch.ones(8), "places": torch.tensor([0, 1, 2, 3, 0, 1, 2, 3], dtype=torch.int32)}


@triton.jit
def bytes_of_words(out, BLOCK: tl.constexpr):
    as_bytes = out.to(tl.pointer_type(tl.uint8))
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(as_bytes + i, i.to(tl.uint8))


def neighbouring_bytes(x):
    """Two programs write different bytes of one 32-bit word."""
    out = torch.zeros(2, dtype=torch.int32)
    bytes_of_words[(4,)](out, BLOCK=2)
    return out


def neighbouring_bytes_arguments():
    return {"x": torch.zeros(1)}


def neighbouring_bytes_expected(x):
    return torch.arange(8, dtype=torch.uint8).view(torch.int32)


@triton.jit
def wait_for_all(counter, out, n):
    program = tl.program_id(0)
    tl.atomic_add(counter, 1)
    seen = tl.atomic_add(counter, 0)
    while seen < n:
        seen = tl.atomic_add(counter, 0)  # <spin>
    tl.store(out + program, seen)


def spin(x):
    out = torch.empty(2, dtype=torch.int32)
    wait_for_all[(2,)](torch.zeros(1, dtype=torch.int32), out, 2)
    return out


spin_arguments = neighbouring_bytes_arguments


@triton.jit
def after_the_one_before(flags, out):
    program = tl.program_id(0)
    before = 0
    if program > 0:
        while tl.atomic_add(flags + program - 1, 0) == 0:
            pass
        before = tl.load(out + program - 1)
    tl.store(out + program, before + program)
    tl.atomic_xchg(flags + program, 1)


def look_back(x):
    """Each program waits for the one before: fine in the order that devices start programs in."""
    out = torch.empty(6, dtype=torch.int32)
    after_the_one_before[(6,)](torch.zeros(6, dtype=torch.int32), out)
    return out


look_back_arguments = neighbouring_bytes_arguments


def look_back_expected(x):
    return torch.arange(6, dtype=torch.int32).cumsum(0).to(torch.int32)
