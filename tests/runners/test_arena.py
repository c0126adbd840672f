"""Shared memory keeps layouts exactly and shows what was written beside a tensor."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from runners.arena import Arena, over_bytes, private_copy, raw_bytes, storage_span


def arena(limit: int = 1 << 26) -> Arena:
    return Arena(limit, 7, lambda number, size, fd: None, lambda number: None)


LAYOUTS = {
    "contiguous": lambda: torch.randn(3, 5),
    "transposed": lambda: torch.randn(3, 5).T,
    "expanded": lambda: torch.randn(3, 1).expand(3, 4),
    "offset": lambda: torch.randn(21)[1:],
    "strided": lambda: torch.randn(6, 8)[::2, 1::3],
    "empty": lambda: torch.empty(0, 4),
    "scalar": lambda: torch.tensor(2.5),
    "float8": lambda: torch.randn(9).to(torch.float8_e4m3fn),
    "bool": lambda: torch.tensor([True, False]),
    "int64": lambda: torch.arange(5),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_copy_has_the_same_values_strides_and_offset(name: str):
    tensor = LAYOUTS[name]()
    copy = private_copy(tensor) if tensor.numel() else tensor.clone()
    assert copy.stride() == tensor.stride()
    assert copy.storage_offset() == tensor.storage_offset() or tensor.numel() == 0
    assert torch.equal(copy.float(), tensor.float())
    if tensor.numel():
        assert copy.untyped_storage().data_ptr() != tensor.untyped_storage().data_ptr()


@pytest.mark.parametrize("name", [name for name in LAYOUTS if name != "empty"])
def test_bytes_written_to_a_region_are_the_tensor(name: str):
    tensor = LAYOUTS[name]()
    memory = arena()
    region = memory.allocate(storage_span(tensor))
    data = memory.bytes_of(region)
    data.copy_(raw_bytes(tensor))
    there = over_bytes(data, tensor.dtype, tuple(tensor.shape), tuple(tensor.stride()), tensor.storage_offset())
    assert torch.equal(there.float(), tensor.float())
    assert memory.intact(region)


@settings(max_examples=30)
@given(st.integers(0, 9000), st.integers(1, 4096), st.booleans())
def test_a_byte_beside_a_region_breaks_its_guard(size: int, distance: int, before: bool):
    memory = arena()
    region = memory.allocate(size)
    whole = memory._segments[region.segment].tensor
    at = region.offset - distance if before else region.offset + size + distance - 1
    whole[at] ^= 0xFF
    assert not memory.intact(region)
    memory.mend(region)
    assert memory.intact(region)


def test_the_limit_is_an_error_and_freed_memory_comes_back():
    memory = arena(limit=40 << 20)
    first = memory.allocate(30 << 20)
    with pytest.raises(MemoryError):
        memory.allocate(30 << 20)
    memory.free(first)
    memory.allocate(30 << 20)
