import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def mixed(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a, b = tl.load(x + i, mask=i < n, other=0.0), tl.load(y + i, mask=i < n, other=1.0)
    value = (a + b) * a - b
    value = tl.where(a > b, value, -value)
    value = tl.maximum(value, a)
    tl.store(out + i, value, mask=i < n)


def bf16_arithmetic(x, y):
    out = torch.empty_like(x)
    mixed[(1,)](x, y, out, 1000, BLOCK=1024)
    return out


def bf16_arithmetic_arguments():
    generator = torch.Generator().manual_seed(2)
    return {name: torch.randn(1000, generator=generator).bfloat16() for name in "xy"}


def bf16_arithmetic_expected(x, y):
    value = (x + y) * x - y
    return torch.maximum(torch.where(x > y, value, -value), x)


@triton.jit
def convert(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n, other=0.0).to(out.dtype.element_ty), mask=i < n)


SOURCES = (torch.float32, torch.float16, torch.bfloat16)
TARGETS = (
    torch.float16,
    torch.bfloat16,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.float32,
    torch.int32,
    torch.int8,
)


def conversions(x):
    results = []
    for source in SOURCES:
        for target in TARGETS:
            given = x.to(source)
            out = torch.empty(x.numel(), dtype=target)
            convert[(triton.cdiv(x.numel(), 1024),)](given, out, x.numel(), BLOCK=1024)
            results.append(out.view(torch.uint8))
    return results


def conversions_arguments():
    generator = torch.Generator().manual_seed(3)
    values = torch.randn(3000, generator=generator) * torch.logspace(-6, 1.9, 3000)
    return {"x": values.clamp(-127, 127)}


def conversions_expected(x):
    return [x.to(source).to(target).view(torch.uint8) for source in SOURCES for target in TARGETS]


def saturation(x):
    results = []
    for target in (torch.float8_e4m3fn, torch.float8_e5m2, torch.int32):
        out = torch.empty(8, dtype=target)
        convert[(1,)](x, out, 8, BLOCK=8)
        results.append(out.float())
    return results


def saturation_arguments():
    inf, nan = float("inf"), float("nan")
    return {"x": torch.tensor([500.0, -500.0, 1e9, -1e12, inf, -inf, nan, 3.7])}


def saturation_expected(x):
    nan, top = float("nan"), float(2**31 - 1)
    return [
        torch.tensor([448.0, -448.0, 448.0, -448.0, 448.0, -448.0, nan, 3.75]),
        torch.tensor([512.0, -512.0, 57344.0, -57344.0, 57344.0, -57344.0, nan, 3.5]),
        torch.tensor([500.0, -500.0, 1e9, -float(2**31), top, -float(2**31), 0.0, 3.0]),
    ]


@triton.jit
def multiply(a, b, out, N: tl.constexpr):
    i = tl.arange(0, N)
    place = i[:, None] * N + i[None, :]
    tl.store(out + place, tl.dot(tl.load(a + place), tl.load(b + place), out_dtype=out.dtype.element_ty))


DOTS = (torch.bfloat16, torch.float16, torch.float8_e4m3fn, torch.float8_e5m2)


def dots(x, y):
    results = []
    for kind in DOTS:
        out = torch.empty(16, 16)
        multiply[(1,)](x.to(kind), y.to(kind), out, N=16)
        results.append(out)
    whole = torch.empty(16, 16, dtype=torch.int32)
    multiply[(1,)](x.to(torch.int8), y.to(torch.int8), whole, N=16)
    return [*results, whole]


def dots_arguments():
    generator = torch.Generator().manual_seed(4)
    return {name: torch.randint(-3, 4, (16, 16), generator=generator).float() for name in "xy"}


def dots_expected(x, y):
    return [x @ y] * len(DOTS) + [(x @ y).to(torch.int32)]


@triton.jit
def reduce_rows(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    row = tl.load(x + i)
    tl.store(out, tl.sum(row, axis=0).to(tl.float32))
    tl.store(out + 1, tl.max(row, axis=0).to(tl.float32))
    tl.store(out + 2, tl.min(row, axis=0).to(tl.float32))
    tl.store(out + 3, tl.argmax(row, axis=0).to(tl.float32))
    tl.store(out + 4, tl.sum(tl.where(row > 0, 1, 0), axis=0).to(tl.float32))
    tl.store(out + 5, tl.max(tl.cumsum(row.to(tl.float32), axis=0), axis=0))


def bf16_reductions(x):
    out = torch.empty(6)
    reduce_rows[(1,)](x, out, N=64)
    return out


def bf16_reductions_arguments():
    generator = torch.Generator().manual_seed(5)
    return {"x": torch.randint(-8, 9, (64,), generator=generator).bfloat16()}


def bf16_reductions_expected(x):
    y = x.float()
    counted = (y > 0).sum()
    return torch.stack([y.sum(), y.max(), y.min(), y.argmax().float(), counted.float(), y.cumsum(0).max()])


@triton.jit
def multiply_all(a, b):
    return a * b


@triton.jit
def merge(count, mean, square, other_count, other_mean, other_square):
    total = count + other_count
    delta = other_mean - mean
    share = other_count / total
    return total, mean + delta * share, square + other_square + delta * delta * count * share


@triton.jit
def custom_reductions(x, out, ROWS: tl.constexpr, N: tl.constexpr):
    place = tl.arange(0, ROWS)[:, None] * N + tl.arange(0, N)[None, :]
    values = tl.load(x + place)
    tl.store(out + tl.arange(0, ROWS), tl.reduce(values, 1, multiply_all))
    ones = tl.full((ROWS, N), 1.0, tl.float32)
    _, mean, square = tl.reduce((ones, values, tl.zeros_like(values)), 1, merge)
    tl.store(out + ROWS + tl.arange(0, ROWS), mean)
    tl.store(out + 2 * ROWS + tl.arange(0, ROWS), square / N)
    running = tl.associative_scan(values, 1, multiply_all)
    tl.store(out + 3 * ROWS + place, running)
    tl.store(out + 3 * ROWS + ROWS * N + place, tl.cumsum(values, 1, reverse=True))
    tl.store(out + 3 * ROWS + 2 * ROWS * N + place, tl.sort(values, 1))


def combined(x):
    out = torch.empty(3 * 4 + 3 * 32)
    custom_reductions[(1,)](x, out, ROWS=4, N=8)
    return out


def combined_arguments():
    return {"x": torch.rand(4, 8, generator=torch.Generator().manual_seed(6)) + 0.5}


def combined_expected(x):
    parts = [x.prod(1), x.mean(1), x.var(1, unbiased=False), x.cumprod(1)]
    parts += [x.flip(1).cumsum(1).flip(1), x.sort(1).values]
    return torch.cat([part.reshape(-1) for part in parts])


@triton.jit
def bools(a, b, out, N: tl.constexpr):
    i = tl.arange(0, N)
    left, right = tl.load(a + i), tl.load(b + i)
    tl.store(out + i, (left + right).to(tl.int32))
    tl.store(out + N + i, (left and right).to(tl.int32))
    tl.store(out + 2 * N + i, (left or right).to(tl.int32))
    tl.store(out + 3 * N + i, (not left).to(tl.int32))
    tl.store(out + 4 * N + i, tl.sum(left, axis=0))


def logic(a, b):
    out = torch.empty(5 * 4, dtype=torch.int32)
    bools[(1,)](a, b, out, N=4)
    return out


def logic_arguments():
    return {"a": torch.tensor([True, True, True, False]), "b": torch.tensor([True, False, True, False])}


def logic_expected(a, b):
    """One-bit addition wraps on hardware; a sum is widened to 32 bits first."""
    count = a.sum().to(torch.int32).expand(4)
    return torch.cat([(a ^ b).int(), (a & b).int(), (a | b).int(), (~a).int(), count])


@triton.jit
def guarded(x, out, n, eps, flag, BLOCK: tl.constexpr, EXTRA: tl.constexpr):
    i = tl.arange(0, BLOCK)
    inside = (i < n) and (i != 3)
    value = tl.load(x + i, mask=inside, other=0.0)
    if EXTRA and n > 4 and not flag:
        value += eps.to(tl.float32)
    value = value if n > 100 else value * 2
    tl.store(out + i, value, mask=i < n)


def scalars(x):
    out = torch.empty(6)
    guarded[(1,)](x, out, 6, 0.5, False, BLOCK=8, EXTRA=True)
    return out


def scalars_arguments():
    return {"x": torch.arange(6.0)}


def scalars_expected(x):
    y = x.clone()
    y[3] = 0.0
    return (y + 0.5) * 2


@triton.jit
def branches_on_a_block(x, out, BLOCK: tl.constexpr):
    values = tl.load(x + tl.arange(0, BLOCK))
    if values > 0:  # <block-branch>
        tl.store(out + tl.arange(0, BLOCK), values)


def block_branch(x):
    out = torch.empty(8)
    branches_on_a_block[(1,)](x, out, BLOCK=8)
    return out


def ones():
    return {"x": torch.ones(8)}


block_branch_arguments = ones


@triton.jit
def asserts(x, out, limit, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    values = tl.load(x + i)
    tl.device_assert(values < limit, "too large")  # <assert>
    tl.device_print("value", values)
    tl.store(out + i, values)


def assertion_fails(x):
    out = torch.empty(8)
    asserts[(1,)](x, out, 1.0, BLOCK=8)
    return out


def assertion_holds(x):
    out = torch.empty(8)
    asserts[(1,)](x, out, 2.0, BLOCK=8)
    return out


assertion_fails_arguments = assertion_holds_arguments = ones


def assertion_holds_expected(x):
    return x.clone()


@triton.jit
def static(x, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK >= 16, "block too small")  # <static-assert>


def static_assertion(x):
    static[(1,)](x, BLOCK=8)
    return x


static_assertion_arguments = ones


@triton.jit
def not_a_power(x):
    tl.store(x + tl.arange(0, 6), 1.0)  # <arange>


def bad_range(x):
    not_a_power[(1,)](x)
    return x


bad_range_arguments = ones


@triton.jit
def assembly(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    value = tl.inline_asm_elementwise(  # <assembly>
        "mov.b32 $0, $1;", "=r,r", [tl.load(x + i)], dtype=tl.float32, is_pure=True, pack=1
    )
    tl.store(out + i, value)


def inline_assembly(x):
    out = torch.empty(8)
    assembly[(1,)](x, out, BLOCK=8)
    return out


def falls_back_from_assembly(x):
    out = torch.empty(8)
    try:
        assembly[(1,)](x, out, BLOCK=8)
    except Exception:
        return x.clone()
    return out


def falls_back_from_error(x):
    try:
        not_a_power[(1,)](x)
    except Exception:
        return x.clone()
    return x


inline_assembly_arguments = falls_back_from_assembly_arguments = falls_back_from_error_arguments = ones


@triton.jit
def special(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    values = tl.load(x + i)
    tl.store(out + i, libdevice.erf(values))
    tl.store(out + N + i, libdevice.tanh(values))
    tl.store(out + 2 * N + i, libdevice.pow(values, 3.0))
    tl.store(out + 3 * N + i, libdevice.rsqrt(values))
    tl.store(out + 4 * N + i, libdevice.log1p(values))
    tl.store(out + 5 * N + i, tl.erf(values))
    tl.store(out + 6 * N + i, libdevice.tgamma(values))


def special_functions(x):
    out = torch.empty(7 * 8)
    special[(1,)](x, out, N=8)
    return out


def special_functions_arguments():
    return {"x": torch.linspace(0.25, 2, 8)}


def special_functions_expected(x):
    parts = [torch.erf(x), torch.tanh(x), x**3, torch.rsqrt(x), torch.log1p(x), torch.erf(x), torch.lgamma(x).exp()]
    return torch.cat(parts)


@triton.jit
def sad(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, libdevice.byte_perm(tl.load(x + i), 0, 0))  # <uncovered>


def uncovered_function(x):
    out = torch.empty(8, dtype=torch.int32)
    sad[(1,)](x.int(), out, N=8)
    return out


uncovered_function_arguments = ones


@triton.jit
def add_bf16(out, x, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.atomic_add(out + i % 2, tl.load(x + i))


def bf16_atomics(x):
    out = torch.zeros(2, dtype=torch.bfloat16)
    add_bf16[(1,)](out, x, N=8)
    return out


def bf16_atomics_arguments():
    return {"x": torch.arange(8.0).bfloat16()}


def bf16_atomics_expected(x):
    return torch.stack([x[0::2].sum(), x[1::2].sum()])


@triton.jit
def tf32_dot(a, b, out, N: tl.constexpr):
    i = tl.arange(0, N)
    place = i[:, None] * N + i[None, :]
    tl.store(out + place, tl.dot(tl.load(a + place), tl.load(b + place)))


def default_dot(a, b):
    out = torch.empty(16, 16)
    tf32_dot[(1,)](a, b, out, N=16)
    return out


def default_dot_arguments():
    generator = torch.Generator().manual_seed(7)
    return {name: torch.randn(16, 16, generator=generator) for name in "ab"}


def default_dot_expected(a, b):
    return a @ b
