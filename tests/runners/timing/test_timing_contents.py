from typing import Any

import numpy as np
import pytest
import torch

from runners.timing.contents import POOL, PoolContents, same_layout


def inputs(seed: int) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator)

    return {
        "x": normal(16, 16),
        "transposed": normal(6, 5).t(),
        "offset": normal(40)[3:30:2],
        "half": normal(32).to(torch.float16),
        "brain": normal(32).to(torch.bfloat16),
        "eight": normal(32).to(torch.float8_e4m3fn),
        "double": normal(8).double(),
        "scalar": normal(),
        "expanded": normal(4, 1).expand(4, 4),
        "index": torch.randperm(12, generator=generator),
        "mask": normal(12) > 0,
        "empty": torch.empty(0, 3),
        "eps": 1e-5,
        "mode": "plain",
    }


def pool(count: int = 3) -> PoolContents:
    return PoolContents([inputs(seed) for seed in range(count)])


def test_every_call_is_unlike_every_other_and_keeps_the_layout() -> None:
    contents = pool()
    drawn = contents.draw(100, np.random.default_rng(0))
    assert all(same_layout(contents.first, one) for one in drawn)
    assert len({one["x"].numpy().tobytes() for one in drawn}) == 100


def test_changed_elements_come_from_the_same_place_of_another_draw() -> None:
    draws = [inputs(seed) for seed in range(3)]
    for made in PoolContents(draws).draw(20, np.random.default_rng(1)):
        for name in ("x", "transposed", "offset", "half", "brain", "double", "scalar"):
            sources = torch.stack([(made[name] == draw[name]) for draw in draws])
            assert sources.any(0).all(), name
            assert sources.sum() >= made[name].numel()


def test_integers_masks_and_expanded_tensors_stay_whole() -> None:
    draws = [inputs(seed) for seed in range(3)]
    for made in PoolContents(draws).draw(20, np.random.default_rng(2)):
        for name in ("index", "mask", "expanded"):
            assert any(torch.equal(made[name], draw[name]) for draw in draws)
        assert sorted(made["index"].tolist()) == list(range(12))


def test_the_pool_itself_is_never_changed() -> None:
    draws = [inputs(seed) for seed in range(2)]
    before = [inputs(seed) for seed in range(2)]
    PoolContents(draws).draw(50, np.random.default_rng(3))
    for kept, original in zip(draws, before, strict=True):
        for name, value in original.items():
            if isinstance(value, torch.Tensor) and value.dtype != torch.float8_e4m3fn:
                assert torch.equal(kept[name], value), name


def test_one_draw_alone_still_makes_calls_unlike() -> None:
    drawn = PoolContents([inputs(0)]).draw(30, np.random.default_rng(4))
    assert len({one["x"].numpy().tobytes() for one in drawn}) >= 28
    for one in drawn:
        assert sorted(one["x"].flatten().tolist()) != [] and same_layout(inputs(0), one)


@pytest.mark.parametrize("change", [{"eps": 2e-5}, {"x": torch.zeros(16, 17)}, {"x": torch.zeros(16, 16).t()}])
def test_draws_of_another_layout_are_left_out(change: dict[str, Any]) -> None:
    contents = PoolContents([inputs(0), {**inputs(1), **change}])
    assert contents.facts["draws"] == 1


def test_draws_stop_when_they_take_long_but_not_before_two() -> None:
    now = [0.0]

    def slow(seed: int) -> dict[str, Any]:
        now[0] += 30.0
        return inputs(seed)

    assert PoolContents.of_case(slow, range(POOL), lambda: now[0]).facts["draws"] == 2
    assert PoolContents.of_case(inputs, range(POOL), lambda: now[0]).facts["draws"] == POOL


def test_the_same_seed_draws_the_same() -> None:
    one = pool().draw(3, np.random.default_rng(5))
    two = pool().draw(3, np.random.default_rng(5))
    assert all(torch.equal(a["x"], b["x"]) for a, b in zip(one, two, strict=True))
