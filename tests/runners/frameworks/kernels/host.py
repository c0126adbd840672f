"""Host code as written for a GPU."""

import torch
import triton
import triton.language as tl
from triton.runtime import driver

DEVICE = triton.runtime.driver.active.get_active_torch_device()


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


def numbers():
    return {"x": torch.arange(100.0)}


def one_more(x):
    return x + 1


def checks_devices(x):
    assert x.is_cuda and x.device == DEVICE and x.device.type == "cuda"
    y = torch.ones(100, device="cuda")
    out = torch.empty(100, device=x.device)
    assert y.device == out.device == x.to("cuda").device
    with torch.cuda.device(x.device):
        add[(4,)](x, y, out, 100, BLOCK=32)
    torch.cuda.synchronize()
    return out


checks_devices_arguments, checks_devices_expected = numbers, one_more


def many_ways(x):
    y = torch.zeros(100, device=0) + torch.tensor(1.0, device="cuda:0")
    y = y.cuda().to(device="cuda", dtype=torch.float32).to(0)
    layer = torch.nn.Linear(2, 2, device="cuda").cuda().to("cuda")
    assert layer.weight.is_cuda
    generator = torch.Generator(device="cuda")
    generator.manual_seed(0)
    assert torch.rand(2, generator=generator, device="cuda").is_cuda
    with torch.device("cuda"):
        y = y + torch.zeros(100)
    stream = torch.cuda.Stream()
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    out = y.new_empty(100, device="cuda")
    with torch.cuda.stream(stream):
        add[(4,)](x, y, out, 100, BLOCK=32)
    end.record()
    end.synchronize()
    assert start.elapsed_time(end) >= 0
    assert torch.cuda.is_available() and torch.cuda.get_device_capability()[0] >= 8
    assert torch.cuda.get_device_properties(0).multi_processor_count > 0
    return out


many_ways_arguments, many_ways_expected = numbers, one_more


def asks_the_driver(x):
    target = driver.active.get_current_target()
    properties = driver.active.utils.get_device_properties(DEVICE.index)
    assert target.backend == "cuda" and properties["multiprocessor_count"] > 0
    out = torch.empty_like(x)
    y = torch.ones_like(x)
    kernel = add.warmup(x, y, out, 100, BLOCK=32, grid=(1,))
    kernel._init_handles()
    assert properties["max_num_regs"] // (kernel.n_regs * 32) > 0 and kernel.metadata.shared >= 0
    kernel[(4, 1, 1)](x, y, out, 100)
    assert triton.testing.do_bench(lambda: out.add_(0)) >= 0
    return out


asks_the_driver_arguments, asks_the_driver_expected = numbers, one_more


class AddOne(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        out = torch.empty_like(x)
        add[(4,)](x, torch.ones(100, device="cuda"), out, 100, BLOCK=32)
        ctx.device = x.device
        return out

    @staticmethod
    def backward(ctx, grad):
        out = torch.empty(100, device=ctx.device)
        add[(4,)](grad, torch.zeros(100, device="cuda"), out, 100, BLOCK=32)
        return out


def backward(x):
    leaf = x.detach().clone().requires_grad_()
    (AddOne.apply(leaf) * 3).sum().backward()
    return leaf.grad


backward_arguments = numbers


def backward_expected(x):
    return torch.full((100,), 3.0)
