import torch
import triton
import triton.language as tl

configs = [triton.Config({"BLOCK": 16}), triton.Config({"BLOCK": 32}), triton.Config({"BLOCK": 64})]


@triton.autotune(configs=configs, key=["n"])
@triton.jit
def copy(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


def numbers():
    return {"x": torch.arange(-20.0, 20.0)}


def grid(n):
    return lambda meta: (triton.cdiv(n, meta["BLOCK"]),)


def plain(x):
    out = torch.empty_like(x)
    copy[grid(40)](x, out, 40)
    return out


plain_arguments = numbers


def plain_expected(x):
    return x.clone()


@triton.autotune(configs=configs, key=["n"])
@triton.jit
def scale(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


@triton.autotune(configs=configs, key=["n"], restore_value=["x"])
@triton.jit
def scale_restored(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


@triton.autotune(configs=configs, key=["n"])
@triton.jit
def clip(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.maximum(tl.load(x + i, mask=i < n), 0.0), mask=i < n)


def in_place(x):
    y = x.clone()
    scale[grid(40)](y, 40)  # <tuned-in-place>
    return y


def in_place_restored(x):
    y = x.clone()
    scale_restored[grid(40)](y, 40)
    return y


def in_place_idempotent(x):
    y = x.clone()
    clip[grid(40)](y, 40)
    return y


in_place_arguments = in_place_restored_arguments = in_place_idempotent_arguments = numbers


def in_place_expected(x):
    return x * 2


in_place_restored_expected = in_place_expected


def in_place_idempotent_expected(x):
    return x.clamp_min(0)


@triton.autotune(configs=configs, key=["n"])
@triton.jit
def add_up(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out, tl.sum(tl.load(x + i, mask=i < n, other=0.0), axis=0))


@triton.autotune(configs=configs, key=["n"], reset_to_zero=["out"])
@triton.jit
def add_up_reset(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out, tl.sum(tl.load(x + i, mask=i < n, other=0.0), axis=0))


def accumulates(x):
    out = torch.zeros(1)
    add_up[grid(40)](x, out, 40)
    return out


def accumulates_reset(x):
    out = torch.zeros(1)
    add_up_reset[grid(40)](x, out, 40)
    return out


accumulates_arguments = accumulates_reset_arguments = numbers


def accumulates_expected(x):
    return x.sum().reshape(1)


accumulates_reset_expected = accumulates_expected


@triton.heuristics({"BLOCK": lambda args: triton.next_power_of_2(args["n"]), "EVEN": lambda args: args["n"] % 2 == 0})
@triton.jit
def by_heuristics(x, out, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    i = tl.arange(0, BLOCK)
    if EVEN:
        tl.store(out + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)


def heuristics(x):
    out = torch.empty_like(x)
    by_heuristics[(1,)](x, out, 40)
    return out


heuristics_arguments = numbers


def heuristics_expected(x):
    return x + 1


def clash(x):
    out = torch.empty_like(x)
    copy[grid(40)](x, out, 40, BLOCK=16)
    return out


clash_arguments = numbers


@triton.autotune(configs=configs, key=["n"], prune_configs_by={"early_config_prune": lambda configs, args, **more: []})
@triton.jit
def pruned(x, n, BLOCK: tl.constexpr):
    pass


def nothing_left(x):
    pruned[(1,)](x, 40)
    return x


nothing_left_arguments = numbers
