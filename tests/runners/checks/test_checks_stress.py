"""What stress charges, and what it leaves alone because the problem itself is that sensitive."""

from __future__ import annotations

from types import SimpleNamespace

import torch

from runners.checks import oracle, stress

LAYER_NORM = """
import torch

def make_inputs(case, draw):
    return {"x": draw.normal((case.rows, case.cols), "float32"), "eps": 1e-5}

def reference(x, eps):
    x = x.double()
    centred = x - x.mean(1, keepdim=True)
    return centred / torch.sqrt((centred * centred).mean(1, keepdim=True) + eps)

BASELINES = {"eager": lambda x, eps: torch.nn.functional.layer_norm(x, (x.shape[1],), eps=eps)}
"""
TASK = """
schema = 1
title = "layer norm"
kind = "generation"
frameworks = ["torch"]
entry = "f"
[[cases]]
name = "a"
args = { rows = 5, cols = 77 }
"""


def two_passes_one_by_one(x, eps):
    """Sequential sums: on equal rows the mean is a few roundings off, and 1/sqrt(eps) makes much of that."""
    mean = torch.zeros(x.shape[0], 1)
    for column in range(x.shape[1]):
        mean = mean + x[:, column : column + 1]
    centred = x - mean / x.shape[1]
    return centred * torch.rsqrt((centred * centred).mean(1, keepdim=True) + eps)


def one_pass(x, eps):
    mean = x.mean(1, keepdim=True)
    variance = ((x * x).mean(1, keepdim=True) - mean * mean).clamp(min=0)
    return (x - mean) * torch.rsqrt(variance + eps)


def epsilon_outside_the_root(x, eps):
    centred = x - x.mean(1, keepdim=True)
    return centred / (torch.sqrt((centred * centred).mean(1, keepdim=True)) + eps)


def families(judged):
    return {finding.detail["family"] for finding in judged.findings if finding.code == "numerics/unstable"}


def test_rounding_that_the_problem_magnifies_is_not_charged(judge):
    judged = judge(stateless=two_passes_one_by_one, task=TASK, reference=LAYER_NORM)
    assert judged.codes == set()
    shown = judged.fact("StressCheck")["stress"]
    assert shown["all-equal"]["verdict"] == shown["offset"]["verdict"] == "pass" and shown["case"] == "a"


def test_a_variance_in_one_pass_cancels_at_an_offset(judge):
    judged = judge(stateless=one_pass, task=TASK, reference=LAYER_NORM)
    assert judged.codes == {"numerics/unstable"} and "offset" in families(judged)


def test_a_misplaced_epsilon_shows_on_small_data(judge):
    task = TASK + "[tolerance]\natol = 1e-3\n"
    judged = judge(stateless=epsilon_outside_the_root, task=task, reference=LAYER_NORM)
    assert "numerics/unstable" in judged.codes and "numerics/mismatch" not in judged.codes
    assert "small" in families(judged)


def test_a_precision_that_the_task_accepts_is_not_unstable(judge):
    reference = """
    def make_inputs(case, draw):
        return {"a": draw.normal((case.m, case.k), "float32"), "b": draw.normal((case.k, case.m), "float32")}
    def reference(a, b):
        return a.double() @ b.double()
    BASELINES = {"eager": lambda a, b: a @ b}
    """
    task = TASK.replace("rows = 5, cols = 77", "m = 17, k = 130") + "[tolerance]\natol = 1.0\n"
    judged = judge(stateless=lambda a, b: a.bfloat16().float() @ b.bfloat16().float(), task=task, reference=reference)
    assert judged.codes == {"numerics/unexplained", "numerics/precision"}


def test_where_the_baseline_breaks_down_nothing_is_asked(judge):
    reference = """
    import torch
    def make_inputs(case, draw):
        return {"x": draw.normal((case.rows, case.cols), "float32")}
    def reference(x):
        return torch.log1p(torch.exp(x.double()))
    BASELINES = {"eager": lambda x: torch.log1p(torch.exp(x))}
    """
    judged = judge(stateless=lambda x: torch.log1p(torch.exp(x)), task=TASK, reference=reference)
    assert judged.codes == set()
    shown = judged.fact("StressCheck")["stress"]
    assert shown["offset"]["verdict"] == "not-checked" and shown["all-equal"]["verdict"] == "pass"


def test_large_outputs_take_fewer_draws_and_say_so(judge, monkeypatch):
    monkeypatch.setattr(oracle, "LARGE", 100)
    monkeypatch.setattr(oracle, "LARGE_SECONDS", 0.0)
    judged = judge(stateless=two_passes_one_by_one, task=TASK, reference=LAYER_NORM)
    assert judged.fact("CorrectnessCheck")["cases"]["a"]["0"]["twin_draws"] == oracle.LARGE_DRAWS + 1


def test_what_is_asked_at_once_takes_a_small_part_of_the_memory_limit():
    def question(elements):
        tensor = torch.empty(elements, dtype=torch.uint8)
        return SimpleNamespace(inputs={"x": tensor, "n": 3}, expected={"0": SimpleNamespace(stored=tensor)})

    small, large = question(100), question(9000)
    batches = stress._that_fit([small, small, small, large, small], limit=4000)
    assert [[len(one.inputs["x"]) for one in batch] for batch in batches] == [[100, 100], [100], [9000], [100]]
