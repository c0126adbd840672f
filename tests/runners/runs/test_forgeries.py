"""Candidates that change the harness in their own process, or work where nobody looks, gain nothing by it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from runners.evidence import Evidence, encode

Judge = Callable[..., Evidence]

PREFIX = "import os, time\nimport torch\n"
TASK = """
schema = 1
title = "Scale by two"
kind = "generation"
frameworks = ["torch"]
entry = "scale"
[[cases]]
name = "one"
args = { n = SIZE, dtype = "float32" }
[tolerance]
rule = "exact"
[limits]
wall_seconds = 4
memory_mib = MEMORY
"""
HUNGRY = """
import torch

def make_inputs(case, draw):
    return {"x": draw.normal((case.n,), case.dtype)}

def reference(x):
    return torch.ones(1 << 28).double() * x[0]

BASELINES = {"eager": lambda x: x * 2}
"""


def codes(evidence: Evidence) -> set[str]:
    return {finding.code for finding in evidence.findings}


def task(size: int, memory_mib: int) -> str:
    return TASK.replace("SIZE", str(size)).replace("MEMORY", str(memory_mib))


FORGED = "import runners.candidate as harness\nfrom runners.protocol import Details, WireReport\n"


@pytest.mark.parametrize(
    "code", ["scope/degenerate", "timing/noisy", "answer/slo", "race/nondeterministic", "none/such"]
)
def test_a_failure_that_would_excuse_the_candidate_is_forged(judged: Judge, code: str):
    evidence = judged(
        PREFIX
        + FORGED
        + f"harness.Details = lambda *a, **k: Details(WireReport({code!r}, 'not my fault'))\n"
        + "def scale(x):\n    return x * 3\n"
    )
    assert "integrity/forged-result" in codes(evidence)
    assert evidence.outcome == "fail"


def test_a_reply_nested_without_end_is_no_fault_of_the_judge(judged: Judge):
    evidence = judged(
        PREFIX
        + FORGED
        + "encode, plain = harness._encode, WireReport('integrity/hint', 'x', detail={'deep': 0})\n"
        + "def nested(message):\n"
        + "    if not isinstance(message, Details): return encode(message)\n"
        + "    whole = encode(Details(None, ((plain,),)))\n"
        + "    return whole.replace(b'deep\\x00', b'deep' + b'\\x91' * 100_000 + b'\\xc0')\n"
        + "harness._encode = nested\n"
        + "def scale(x):\n    return x * 2\n"
    )
    assert "integrity/forged-result" in codes(evidence)


def test_details_of_a_report_are_bounded(judged: Judge):
    evidence = judged(
        PREFIX
        + FORGED
        + "big = {'deep': [[[['x']]]], 'long': 'y' * 10**6, **{str(n): n for n in range(10**4)}}\n"
        + "report = WireReport('integrity/hint', 'z' * 10**6, detail=big)\n"
        + "harness.Details = lambda *a, **k: Details(None, ((report,),))\n"
        + "def scale(x):\n    return x * 2\n"
    )
    assert len(encode(evidence)) < 1 << 16


def test_who_stops_reading_holds_up_nobody(judged: Judge):
    """Left asleep between two requests while the judge has much to say, as when many slots are placed."""
    evidence = judged(
        PREFIX
        + FORGED
        + "from runners.protocol import Describe\n"
        + "answer = harness.Candidate._answer\n"
        + "def last(self, message):\n"
        + "    reply = answer(self, message)\n"
        + "    if isinstance(message, Describe) and not self._prepared.checked:\n"
        + "        self._channel.send(harness._encode(reply))\n"
        + "        time.sleep(1000)\n"
        + "    return reply\n"
        + "harness.Candidate._answer = last\n"
        + "def scale(x):\n    return x * 2\n",
        panels=("timing",),
    )
    assert "build/hang" in codes(evidence)


def test_who_closes_its_channel_between_requests_does_not_end_the_judge(judged: Judge):
    """The judge hears of it only when it sends: a signal would then end it, and the candidate would get away."""
    evidence = judged(
        PREFIX
        + FORGED
        + "from runners.protocol import Describe\n"
        + "answer = harness.Candidate._answer\n"
        + "def last(self, message):\n"
        + "    reply = answer(self, message)\n"
        + "    if isinstance(message, Describe):\n"
        + "        self._channel.send(harness._encode(reply))\n"
        + "        self._channel.close()\n"
        + "        time.sleep(1000)\n"
        + "    return reply\n"
        + "harness.Candidate._answer = last\n"
        + "def scale(x):\n    return x * 3\n",
    )
    assert evidence.outcome == "fail"
    assert "judge" not in str(evidence.panels)


COMPILES = "# torch.compile: brings in the profile in which processes may be started\n"
AHEAD = """
from runners.protocol import Done
prepare, go = harness.Candidate._prepare, harness.Candidate._go
def work(self):
    for call in self._batch:
        for _ in range(4): torch.sin(call.arguments["x"])
        for _, place in call.regions: place.copy_(call.arguments["x"] * 2)
def ahead(self, message):
    prepare(self, message)
    if not message.checked: {do}
def later(self):
    if self._prepared.checked: return go(self)
    self._details = Details()
    return Done()
harness.Candidate._prepare, harness.Candidate._go = ahead, later
def scale(x):
    return x * 2
"""


@pytest.mark.parametrize(
    "do",
    [
        "work(self)",
        "(os.fork() == 0 and (work(self), os._exit(0))) or os.wait()",
    ],
    ids=["itself", "a child"],
)
def test_work_done_before_the_window_opens_is_counted(judged: Judge, do: str):
    evidence = judged(
        COMPILES + PREFIX + FORGED + AHEAD.format(do=do), task=task(50_000, 512), panels=("build", "timing")
    )
    assert "integrity/background-thread" in codes(evidence), evidence.panels["timing"].facts


def test_the_judge_may_hold_more_than_a_candidate(judged: Judge):
    """Inputs of a twentieth of the limit, with copies and truths in float64, are a task like any other."""
    evidence = judged(
        PREFIX + "def scale(x):\n    return x * 2\n",
        task=task(4_000_000, 320),
        panels=("build",),
    )
    assert evidence.panels["build"].status == "pass", evidence.panels


def test_a_reference_without_measure_is_named(judged: Judge):
    evidence = judged(
        PREFIX + "def scale(x):\n    return x * 2\n",
        reference=HUNGRY,
        task=task(10, 256),
    )
    assert evidence.outcome == "not-determined"
    assert not evidence.findings
