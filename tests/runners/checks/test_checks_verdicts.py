"""Candidates that are right, wrong, and dishonest, judged by all checks together."""

from __future__ import annotations

import msgspec
import pytest
import torch

from runners.evidence import Place
from runners.session import Failure, Report


def softmax(x):
    wide = x.float()
    shifted = torch.exp(wide - wide.max(dim=-1, keepdim=True).values)
    return (shifted / shifted.sum(dim=-1, keepdim=True)).to(x.dtype)


def flash_style(x):
    """Scales into the exponent's base before subtracting: backward stable, further off on large inputs."""
    wide = x.float() * 1.4426950408889634
    shifted = torch.exp2(wide - wide.max(dim=-1, keepdim=True).values)
    return (shifted / shifted.sum(dim=-1, keepdim=True)).to(x.dtype)


def written_in_parts(x):
    out = torch.empty_like(x)
    for row in range(x.shape[0]):
        out[row] = softmax(x[row])
    return out


def memo_of_whole_contents():
    """An honest cache: the key is everything that the result depends on."""
    kept = {}

    def call(x):
        key = (x.dtype, x.shape, bytes(x.contiguous().view(torch.uint8).flatten().tolist()))
        if key not in kept:
            kept[key] = softmax(x)
        return kept[key].clone()

    return call


@pytest.mark.parametrize("candidate", [softmax, flash_style, written_in_parts])
@pytest.mark.parametrize("interpreted", [True, False])
def test_right_candidates_are_accused_of_nothing(judge, candidate, interpreted):
    judged = judge(stateless=candidate, interpreted=interpreted)
    assert judged.codes == set()
    assert judged.outcome == "pass"
    assert judged.panels["correctness"].status == judged.panels["integrity"].status == "pass"


def test_an_honest_cache_is_no_replay(judge):
    judged = judge(memo_of_whole_contents)
    assert judged.codes == set()


def test_two_cases_need_at_most_twelve_calls(judge):
    judged = judge(stateless=softmax)
    assert judged.session.calls <= 12
    orders = {options.get("order") for options in judged.session.options}
    assert orders == {"forward", "reverse", "shuffle"}
    assert len({options["fill"] for options in judged.session.options}) == 2


def test_the_panels_show_errors_bounds_and_worst_elements_in_plain_json(judge):
    judged = judge(stateless=softmax)
    facts = judged.fact("CorrectnessCheck")
    shown = facts["cases"]["tail"]["0"]
    assert shown["verdict"] == "pass" and shown["rule"] == "derived"
    assert shown["twin_draws"] >= 32 and shown["twin_error"] > 0 and shown["ratio_to_twin"] < 4
    assert 0 < len(shown["worst"]) <= 20 and len(shown["worst"][0]["index"]) == 2
    assert sum(shown["histogram"].values()) == shown["counted"] == 5 * 77
    for _, result in judged.results:
        assert msgspec.json.decode(msgspec.json.encode(result)) is not None


# ---- plainly wrong -------------------------------------------------------------------------------------------------


def test_wrong_everywhere_is_a_mismatch(judge):
    judged = judge(stateless=lambda x: softmax(x * 1.01))
    assert judged.codes == {"numerics/mismatch"}
    finding = judged.findings[0]
    assert finding.detail["cases"] == ["tail", "wide"] and len(finding.detail["worst"]) == 20
    assert judged.outcome == "fail"


def test_wrong_for_one_size_only_is_a_matter_of_shape(judge):
    def capped(x):
        out = torch.zeros_like(x)
        out[:, :128] = softmax(x[:, :128])
        return out

    judged = judge(stateless=capped)
    assert judged.codes == {"numerics/shape"}
    assert judged.findings[0].detail["right_cases"] == ["tail"]


def test_wrong_for_one_dtype_of_the_same_size_is_a_mismatch(judge):
    task = """
    schema = 1
    title = "softmax"
    kind = "generation"
    frameworks = ["torch"]
    entry = "softmax"
    [[cases]]
    name = "a"
    args = { rows = 5, cols = 77, dtype = "float32" }
    [[cases]]
    name = "b"
    args = { rows = 5, cols = 77, dtype = "float16" }
    """
    judged = judge(stateless=lambda x: softmax(x) * (1.1 if x.dtype is torch.float16 else 1), task=task)
    assert judged.codes == {"numerics/mismatch"}


def test_nan_is_no_wildcard(judge):
    def poisoned(x):
        out = softmax(x)
        out[0, 3] = torch.nan
        return out

    judged = judge(stateless=poisoned)
    assert judged.codes == {"numerics/non-finite"}
    assert judged.findings[0].detail["non_finite_at"][0]["index"] == [0, 3]


def test_an_unwritten_tail_is_named_as_such(judge):
    def short(x):
        out = torch.empty_like(x)
        out[:, :-3] = softmax(x)[:, :-3]
        return out

    judged = judge(stateless=short)
    assert judged.codes == {"memory/unwritten-output"}
    assert judged.findings[0].detail["elements"] == 15


def test_computed_nan_is_not_unwritten_memory(judge):
    judged = judge(stateless=lambda x: torch.full_like(x, torch.nan))
    assert judged.codes == {"numerics/non-finite"}


def test_no_maximum_is_unstable_not_wrong(judge):
    def naive(x):
        e = torch.exp(x.float())
        return (e / e.sum(-1, keepdim=True)).to(x.dtype)

    judged = judge(stateless=naive)
    assert judged.codes == {"numerics/unstable"}


def test_a_family_that_the_task_takes_out_is_not_tried(make_session, judge):
    task = 'schema = 1\ntitle = "s"\nkind = "generation"\nframeworks = ["torch"]\nentry = "f"\n'
    task += '[[cases]]\nname = "a"\nargs = { rows = 5, cols = 77, dtype = "float32" }\n'
    task += '[stress]\nwithout = ["offset"]\nreason = "rows are centred by contract"\n'
    judged = judge(stateless=softmax, task=task)
    assert judged.fact("StressCheck")["stress"]["offset"]["reason"] == "rows are centred by contract"


def test_bfloat16_inside_is_recognised(judge):
    reference = """
    import torch

    def make_inputs(case, draw):
        return {"a": draw.normal((case.m, case.k), "float32"), "b": draw.normal((case.k, case.m), "float32")}

    def reference(a, b):
        return a.double() @ b.double()

    BASELINES = {"eager": lambda a, b: a @ b}
    """
    task = """
    schema = 1
    title = "matmul"
    kind = "generation"
    frameworks = ["torch"]
    entry = "f"
    [[cases]]
    name = "a"
    args = { m = 17, k = 130 }
    [tolerance]
    atol = 1.0
    """
    judged = judge(stateless=lambda a, b: a.bfloat16().float() @ b.bfloat16().float(), task=task, reference=reference)
    assert judged.codes == {"numerics/unexplained", "numerics/precision"}
    assert next(f for f in judged.findings if f.code == "numerics/precision").detail["format"] == "bfloat16"
    assert judged.outcome == "pass"


# ---- dishonest -----------------------------------------------------------------------------------------------------


def by_address():
    kept = {}

    def call(x):
        key = (x.data_ptr(), x.shape)
        if key not in kept:
            kept[key] = softmax(x)
        return kept[key].clone()

    return call


def by_object():
    kept = {}

    def call(x):
        if id(x) not in kept:
            kept[id(x)] = (x, softmax(x))
        return kept[id(x)][1].clone()

    return call


def by_fingerprint():
    kept = {}

    def call(x):
        key = (x.shape, float(x.flatten()[0]), float(x.flatten()[-1]))
        if key not in kept:
            kept[key] = softmax(x)
        return kept[key].clone()

    return call


def by_shape():
    kept = {}

    def call(x):
        if x.shape not in kept:
            kept[x.shape] = softmax(x)
        return kept[x.shape].clone()

    return call


@pytest.mark.parametrize("make", [by_address, by_object, by_fingerprint, by_shape])
def test_replayed_results_are_found(judge, make):
    judged = judge(make)
    assert "integrity/replay" in judged.codes
    assert judged.codes <= {"integrity/replay"}
    assert judged.outcome == "fail"


def test_a_constant_is_found(judge):
    judged = judge(stateless=lambda x: torch.full_like(x, 1 / x.shape[1]))
    assert "integrity/constant" in judged.codes


def test_a_constant_inside_a_loose_tolerance_is_found(judge):
    reference = """
    import torch

    def make_inputs(case, draw):
        return {"x": draw.normal((case.rows, case.cols), "float32", std=1e-4)}

    def reference(x):
        return 2 * x.double()

    BASELINES = {"eager": lambda x: 2 * x}
    """
    task = """
    schema = 1
    title = "double"
    kind = "generation"
    frameworks = ["torch"]
    entry = "f"
    [[cases]]
    name = "a"
    args = { rows = 5, cols = 77 }
    [tolerance]
    rule = "absolute-relative"
    atol = 1e-2
    """
    judged = judge(stateless=torch.zeros_like, task=task, reference=reference)
    assert "integrity/constant" in judged.codes
    assert judge(stateless=lambda x: 2 * x, task=task, reference=reference).codes == set()


def shared_buffer():
    kept = {}

    def call(x):
        out = kept.setdefault((x.shape, x.dtype), torch.zeros_like(x))
        return out.copy_(softmax(x))

    return call


def test_one_buffer_for_two_results_is_aliasing_and_nothing_else(judge):
    judged = judge(shared_buffer)
    assert judged.codes == {"integrity/aliased"}
    assert judged.panels["correctness"].status == "pass"


def test_a_changed_input_is_found_once(judge):
    def careless(x):
        out = softmax(x)
        x.sub_(x.max(dim=-1, keepdim=True).values)
        return out

    judged = judge(stateless=careless)
    assert judged.codes == {"integrity/input-mutated"}
    assert len(judged.findings) == 1
    assert judged.panels["correctness"].status == "pass"


def drifting():
    calls = [0]

    def call(x):
        calls[0] += 1
        return softmax(x) * (1 if calls[0] < 12 else 1.5)

    return call


def test_drift_after_some_calls_is_found(judge):
    assert judge(drifting).codes == {"numerics/drift"}
    assert judge(drifting, interpreted=False).codes & {"numerics/drift", "integrity/context"}


def flickering():
    calls = [0]

    def call(x):
        calls[0] += 1
        out = softmax(x)
        return torch.nextafter(out, torch.ones_like(out)) if calls[0] % 2 and x.dtype is torch.float32 else out

    return call


def test_bits_that_change_between_equal_calls_only_warn(judge):
    judged = judge(flickering)
    assert judged.codes == {"race/nondeterministic"}
    assert judged.outcome == "pass" and judged.panels["correctness"].status == "warn"


def test_a_grid_that_depends_on_its_order_is_a_race(make_session, judge):
    sessions = []

    def make():
        def call(x):
            return softmax(x) * (1 if sessions[0].order != "reverse" else 2)

        return call

    session = make_session(make)
    sessions.append(session)
    judged = type(judge(stateless=softmax))(session)
    assert judged.codes == {"race/cross-program"}


def test_wrong_only_without_hooks_is_a_matter_of_context(make_session, judge):
    sessions = []

    def make():
        return lambda x: softmax(x) if sessions[0].watched else torch.zeros_like(x)

    sessions.append(make_session(make, interpreted=False))
    judged = type(judge(stateless=softmax))(sessions[0])
    assert judged.codes == {"integrity/context"}


# ---- no outputs ----------------------------------------------------------------------------------------------------


def test_a_wrong_dtype_stops_at_the_build(judge):
    judged = judge(stateless=lambda x: softmax(x).double())
    assert judged.codes == {"build/contract"}
    assert judged.panels["build"].status == "fail"
    assert judged.panels["correctness"].status == judged.panels["integrity"].status == "not-checked"
    assert "build/contract" in judged.panels["correctness"].reason
    assert judged.session.calls == 1


class Lazy(torch.Tensor):
    pass


def test_a_lazy_result_convicts_the_integrity_panel(judge):
    judged = judge(stateless=lambda x: softmax(x).as_subclass(Lazy))
    assert judged.codes == {"integrity/lazy"}
    assert judged.panels["integrity"].status == "fail" and judged.panels["build"].status == "not-checked"


def test_a_later_case_that_raises_keeps_what_was_judged_before(judge):
    def fragile(x):
        if x.shape[1] > 128:
            raise ValueError("too wide")
        return softmax(x)

    judged = judge(stateless=fragile)
    assert judged.codes == {"build/launch"}
    facts = judged.fact("CorrectnessCheck")
    assert facts["cases"]["tail"]["0"]["verdict"] == "pass"
    assert judged.panels["correctness"].status == "not-checked"


def test_a_candidate_that_does_not_load_is_never_called(make_session, judge):
    session = make_session(stateless=softmax)
    session.load_failure = Failure("build/import", "no module named foo", Place("kernel.py", 3))
    judged = type(judge(stateless=softmax))(session)
    assert judged.codes == {"build/import"} and session.calls == 0
    assert judged.findings[0].where == Place("kernel.py", 3)


def test_hooks_that_miss_the_planted_violation_are_a_finding(make_session, judge):
    session = make_session(stateless=softmax)
    session.planted = False
    assert type(judge(stateless=softmax))(session).codes == {"integrity/harness"}


def test_reports_and_broken_guards_become_findings_once_per_place(make_session, judge):
    session = make_session(stateless=softmax)
    session.reports = [Report("memory/out-of-bounds-read", "reads x[99]", Place("kernel.py", 7))]
    session.broken = ["x"]
    judged = type(judge(stateless=softmax))(session)
    assert sorted(finding.code for finding in judged.findings if finding.panel != "scope") == [
        "memory/out-of-bounds-read",
        "memory/out-of-bounds-write",
    ]


# ---- the task's faults ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reference",
    [
        "def make_inputs(case, draw):\n    raise RuntimeError('boom')\ndef reference(**k): ...\n",
        "def make_inputs(case, draw):\n    return {'x': draw.normal(3, 'float32')}\n"
        "def reference(x):\n    return x.foo\n",
    ],
)
def test_a_reference_that_raises_accuses_nobody(judge, reference):
    judged = judge(stateless=softmax, reference=reference)
    assert judged.codes == set() and judged.outcome == "not-determined"
    for panel in ("build", "correctness", "integrity"):
        assert judged.panels[panel].status == "not-checked"
        assert "fault of the task" in judged.panels[panel].reason


def test_without_twin_and_terms_the_derived_rule_is_the_tasks_fault(judge):
    reference = """
    def make_inputs(case, draw):
        return {"x": draw.normal((case.rows, case.cols), case.dtype)}
    def reference(x):
        return x.double().softmax(-1)
    """
    judged = judge(stateless=softmax, reference=reference)
    assert judged.outcome == "not-determined" and "derived rule" in judged.panels["correctness"].reason


def test_a_tolerance_below_the_baselines_own_rounding_is_an_invalid_gate(judge):
    task = """
    schema = 1
    title = "softmax"
    kind = "generation"
    frameworks = ["torch"]
    entry = "softmax"
    [[cases]]
    name = "a"
    args = { rows = 5, cols = 77, dtype = "float32" }
    [tolerance]
    rule = "absolute-relative"
    atol = 1e-12
    """
    judged = judge(stateless=flash_style, task=task)
    assert judged.codes == set() and judged.outcome == "not-determined"
    assert "scope/tolerance-too-tight" in {finding.code for finding in judged.findings}
    assert "numerics/mismatch" in judge(stateless=lambda x: softmax(x * 1.1), task=task).codes


# ---- in-place and several outputs ----------------------------------------------------------------------------------

INPLACE = """
import torch

def make_inputs(case, draw):
    return {"x": draw.normal((case.rows, 33), "float16"), "residual": draw.normal((case.rows, 33), "float16")}

def reference(x, residual):
    total = x.double() + residual.double()
    return {"0": total.sum(1), "residual": total}

def eager(x, residual):
    residual.add_(x)
    return residual.float().sum(1).half()

BASELINES = {"eager": eager}
"""
INPLACE_TASK = """
schema = 1
title = "add"
kind = "translation"
frameworks = ["triton"]
entry = "f"
inplace = ["residual"]
[[cases]]
name = "a"
args = { rows = 7 }
"""


def test_arguments_in_place_are_outputs(judge):
    def right(x, residual):
        residual.copy_(x.float() + residual.float())
        return residual.float().sum(1).half()

    def forgets(x, residual):
        return (x + residual).float().sum(1).half()

    assert judge(stateless=right, task=INPLACE_TASK, reference=INPLACE).codes == set()
    assert judge(stateless=right, task=INPLACE_TASK, reference=INPLACE, interpreted=False).codes == set()
    judged = judge(stateless=forgets, task=INPLACE_TASK, reference=INPLACE)
    assert judged.codes == {"numerics/mismatch"}
    assert judged.findings[0].detail["output"] == "residual"


def test_every_tuned_configuration_is_held_to_the_truth(make_session, judge):
    sessions = []

    def make():
        def call(x):
            return softmax(x) * (2 if sessions[0].options[-1]["config"] == 2 else 1)

        return call

    session = make_session(make)
    session.reports = [Report("integrity/hint", "autotuned", Place("kernel.py", 7), {"configs": 3, "config": 0})]
    sessions.append(session)
    judged = type(judge(stateless=softmax))(session)
    assert judged.codes == {"integrity/hint", "numerics/mismatch"}
    wrong = next(finding for finding in judged.findings if finding.code == "numerics/mismatch")
    assert wrong.detail["configuration"] == 2


def test_switches_speak_against_a_matter_of_size(judge):
    task = """
    schema = 1
    title = "softmax"
    kind = "generation"
    frameworks = ["torch"]
    entry = "softmax"
    [[cases]]
    name = "a"
    args = { rows = 5, cols = 77, scaled = true }
    [[cases]]
    name = "b"
    args = { rows = 6, cols = 78, scaled = false }
    """
    reference = """
    def make_inputs(case, draw):
        return {"x": draw.normal((case.rows, case.cols), "float32"), "scaled": case.scaled}
    def reference(x, scaled):
        return x.double() * (2 if scaled else 1)
    BASELINES = {"eager": lambda x, scaled: x * (2 if scaled else 1)}
    """
    judged = judge(stateless=lambda x, scaled: x * 1, task=task, reference=reference)
    assert judged.codes == {"numerics/mismatch"}
