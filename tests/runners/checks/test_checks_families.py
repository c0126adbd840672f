"""Families of inputs and contents changed in place."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from runners.checks import all_checks
from runners.checks.families import FAMILIES, data_names, families_for, layout_copy, mix, turn
from runners.findings import PANELS


def inputs(dtype=torch.float32):
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(6, 40, generator=generator).to(dtype)
    return {"x": x, "weight": torch.ones(40), "index": torch.arange(6), "eps": 1e-5}


def test_checks_come_in_the_order_of_their_panels():
    checks = all_checks()
    panels = [check.panel for check in checks]
    assert panels == sorted(panels, key=PANELS.index) and {"build", "correctness", "integrity"} <= set(panels)
    assert [check.order for check in checks] == sorted(check.order for check in checks)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn])
@pytest.mark.parametrize("family", FAMILIES)
def test_families_turn_the_data_alone_and_stay_finite(dtype, family):
    plain = inputs(dtype)
    turned = turn(family, plain, 5)
    assert data_names(plain) == ("x",)
    assert turned["x"].dtype is dtype and turned["x"].double().isfinite().all()
    assert not torch.equal(turned["x"].double(), plain["x"].double())
    for name in ("weight", "index", "eps"):
        assert turned[name] is plain[name]
    again = turn(family, plain, 5)
    assert torch.equal(turned["x"].double(), again["x"].double())


def test_masks_stay_where_they_are():
    plain = inputs()
    plain["x"][0] = -torch.inf
    for family in FAMILIES:
        turned = turn(family, plain, 5)["x"]
        assert torch.equal(turned.isinf(), plain["x"].isinf())


def test_data_of_one_sign_keeps_its_range():
    assert families_for({"p": torch.rand(5, 5)}) == ("all-equal",)
    assert families_for({"i": torch.arange(5)}) == ()
    assert "small" in families_for(inputs()) and "small" not in families_for({"x": torch.randn(9, 9)})


def test_layouts_survive_turning_mixing_and_copying():
    base = torch.randn(50, 40)
    view = base[3:, 1:].t()
    for made in (
        turn("offset", {"x": view}, 1)["x"],
        mix({"x": view}, {"x": view + 1}, 4, 1)[0]["x"],
        layout_copy(view),
    ):
        assert made.stride() == view.stride() and made.storage_offset() == view.storage_offset()
        assert made.data_ptr() != view.data_ptr()


@given(st.integers(1, 20), st.integers(0, 2**31), st.sampled_from([torch.float32, torch.float16, torch.float8_e5m2]))
def test_mixing_takes_a_few_elements_of_the_donor(spots, seed, dtype):
    one, donor = torch.zeros(12, 20).to(dtype), torch.ones(12, 20).to(dtype)
    mixed, counts = mix({"x": one, "n": torch.arange(3)}, {"x": donor, "n": torch.arange(3)}, spots, seed)
    assert int(mixed["x"].double().sum()) == counts["x"] == min(spots, 30)
    assert list(counts) == ["x"] and float(one.double().sum()) == 0


def test_integers_are_mixed_only_where_nothing_else_is():
    mixed, counts = mix({"n": torch.zeros(80, dtype=torch.int64)}, {"n": torch.ones(80, dtype=torch.int64)}, 4, 1)
    assert counts == {"n": 4} and int(mixed["n"].sum()) == 4


def test_expanded_inputs_are_left_alone():
    expanded = torch.randn(1, 40).expand(6, 40)
    assert data_names({"x": expanded}) == ()
    assert mix({"x": expanded}, {"x": expanded}, 4, 1) == ({"x": expanded}, {})
