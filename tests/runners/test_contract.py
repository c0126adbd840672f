"""task.toml and submission.toml: what is read, and how what is wrong is named."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.contract import TaskError, choose_framework, parse_submission, parse_task

MINIMAL = """
schema = 1
title = "Row softmax"
kind = "generation"
frameworks = ["triton", "torch"]
entry = "softmax"
[[cases]]
name = "small"
args = { rows = 3, cols = 5, dtype = "float32" }
"""


def test_the_design_document_example_is_read():
    spec = parse_task(
        (
            MINIMAL
            + """
use = ["correctness"]
[output]
dtype = "float8_e4m3fn"
overflow = "saturate"
[output.1]
dtype = "float32"
[tolerance]
rule = "derived"
atol = 0.1
[tolerance.1]
rule = "ulp"
ulp = 2
[stress]
without = ["nan"]
reason = "finite by contract"
[timing]
baseline = "eager"
[limits]
wall_seconds = 5
"""
        ).encode()
    )
    assert spec.output_rule("0").dtype == "float8_e4m3fn"
    assert spec.output_rule("1").dtype == "float32"
    assert spec.output_rule("1").overflow == "saturate"
    assert spec.tolerance_for("0").rule == "derived"
    assert spec.tolerance_for("1").ulp == 2
    assert spec.cases_for("timing") == ()
    assert spec.limits.memory_mib == 4096


@pytest.mark.parametrize(
    ("text", "key", "words"),
    [
        (MINIMAL + "[limit]\nwall_seconds = 3\n", "limit", "did you mean `limits`"),
        (MINIMAL + "[limits]\nwall_second = 3\n", "limits.wall_second", "did you mean `wall_seconds`"),
        (MINIMAL + "[tolerance]\nrtoll = 1.0\n", "tolerance.rtoll", "did you mean `rtol`"),
        (MINIMAL + "[tolerance.0]\nrule = 'near'\n", "tolerance.0.rule", "near"),
        (MINIMAL + "[tolerance]\nrule = 'ulp'\n", "tolerance", "ulp"),
        (MINIMAL.replace("schema = 1", "schema = 2"), "schema", "2"),
        (MINIMAL.replace('entry = "softmax"', ""), "entry", "missing"),
        (MINIMAL.replace('"softmax"', '"a b"'), "entry", "not a Python name"),
        (MINIMAL + '[[cases]]\nname = "small"\n', "cases", "same name"),
        (MINIMAL.split("[[cases]]")[0], "cases", ""),
        (MINIMAL + "[limits]\nwall_seconds = 0\n", "limits", "above 0"),
        ("schema = ", "", "not TOML"),
    ],
)
def test_what_is_wrong_is_named_with_file_key_and_help(text: str, key: str, words: str):
    with pytest.raises(TaskError) as caught:
        parse_task(text.encode(), "tasks/x/task.toml")
    assert caught.value.file == "tasks/x/task.toml"
    assert caught.value.key == key
    assert words in str(caught.value)


def test_bytes_that_are_no_text_are_refused_in_words():
    with pytest.raises(TaskError, match="not UTF-8 at byte 0"):
        parse_task(b"\xff\xfe")


@pytest.mark.parametrize("read", [parse_task, parse_submission])
@pytest.mark.parametrize("text", ["x = " + "9" * 6000, "x = " + "[" * 100_000, "x = [" + "{a = " * 20_000])
def test_what_is_too_much_for_the_parser_is_a_task_error(read, text):
    with pytest.raises(TaskError, match="not TOML"):
        read(text.encode())


def test_a_byte_order_mark_is_no_fault():
    assert parse_task(b"\xef\xbb\xbf" + MINIMAL.encode()).title == "Row softmax"


@given(st.binary(max_size=400))
def test_no_bytes_raise_anything_but_a_task_error(data: bytes):
    for parse in (parse_task, parse_submission):
        try:
            parse(data)
        except TaskError:
            continue


def test_a_submission_names_author_and_framework():
    assert parse_submission(b'author = "m"\nframework = "torch"').framework == "torch"
    with pytest.raises(TaskError, match="did you mean `framework`"):
        parse_submission(b'framewrk = "torch"')


def test_the_framework_follows_the_declaration_then_the_source():
    spec = parse_task(MINIMAL.encode())
    assert choose_framework(spec, "torch", "@triton.jit\ndef k(): ...") == "torch"
    assert choose_framework(spec, None, "@triton.jit\ndef k(): ...") == "triton"
    assert choose_framework(spec, None, "import torch") == "triton"
    with pytest.raises(ValueError, match="not one of the task's"):
        choose_framework(spec, "cuda", "")
