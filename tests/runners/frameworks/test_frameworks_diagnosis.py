"""What went wrong, and whose fault it is: codes by class and phrase, lines in the submission."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runners.frameworks.diagnosis import ContractError, NotInterpretableError, diagnose
from runners.frameworks.loading import load_entry


def load(folder: Path, source: str, entry: str = "entry") -> Any:
    path = folder / "kernel.py"
    path.write_text(source)
    return load_entry(path, entry)


def failure(folder: Path, source: str, *arguments: Any) -> dict[str, Any]:
    """Load and call; the diagnosis of what that raises."""
    try:
        entry = load(folder, source)
    except BaseException as error:
        return diagnose(error, folder, "load")
    try:
        entry(*arguments)
    except BaseException as error:
        return diagnose(error, folder, "call")
    raise AssertionError("nothing was raised")


@pytest.mark.parametrize(
    ("source", "code", "line"),
    [
        ("def entry(:\n    pass\n", "build/import", 1),
        ("x = 1\nraise ValueError('no')\n", "build/import", 2),
        ("from math import nothing_like_it\n", "build/import", 1),
        ("\nimport a_package_that_is_not_here\n", "build/environment", 2),
        ("import sys\nsys.exit(0)\n", "integrity/forged-result", 2),
        ("import sys\nsys.exit()\n", "integrity/forged-result", 2),
        ("import sys\nsys.exit('no GPU')\n", "build/import", 2),
        ("other = 1\n", "build/contract", None),
        ("entry = 3\n", "build/contract", None),
    ],
)
def test_loading(tmp_path: Path, source: str, code: str, line: int | None) -> None:
    report = failure(tmp_path, source)
    assert (report["code"], report["line"]) == (code, line)
    assert report["file"] == (None if line is None else "kernel.py")


RAISES = "def entry():\n    raise {}\n"


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        ("ValueError('bad')", "build/launch"),
        ("SystemExit(0)", "integrity/forged-result"),
        ("SystemExit(3)", "build/launch"),
        ("KeyboardInterrupt()", "build/launch"),
        ("MemoryError()", "build/out-of-memory"),
        ("RuntimeError('CUDA out of memory. Tried to allocate 2.00 GiB')", "build/out-of-memory"),
        ("RuntimeError('DefaultCPUAllocator: can\\'t allocate memory: you tried to allocate')", "build/out-of-memory"),
        ("RuntimeError('Found no NVIDIA driver on your system.')", "build/environment"),
        ("RuntimeError('0 active drivers ([]). There should only be one.')", "build/environment"),
        ("AssertionError('Torch not compiled with CUDA enabled')", "build/environment"),
        ("ImportError('x.so: undefined symbol: _ZN3c105ErrorC1E')", "build/environment"),
        ("RuntimeError('no kernel image is available for execution on the device')", "build/wrong-arch"),
        ("ValueError('type fp8e4nv not supported in this architecture')", "build/wrong-arch"),
        (
            "RuntimeError('out of resource: shared memory, Required: 294912, Hardware limit: 232448')",
            "build/resources",
        ),
        ("RuntimeError('Triton Error [CUDA]: an illegal memory access was encountered')", "build/launch"),
        ("RuntimeError('invalid configuration argument')", "build/launch"),
        ("RuntimeError('Autotuner error: No valid autotuner configs after pruning')", "build/autotune"),
        ("RuntimeError('PTXAS error: Internal Triton PTX codegen error')", "build/compile"),
        ("RuntimeError('Error building extension \\'x\\'')", "build/compile"),
    ],
)
def test_calls_by_class_and_phrase(tmp_path: Path, raised: str, code: str) -> None:
    report = failure(tmp_path, RAISES.format(raised))
    assert (report["code"], report["file"], report["line"]) == (code, "kernel.py", 2)


def test_a_signature_that_does_not_fit_is_a_broken_contract(tmp_path: Path) -> None:
    report = failure(tmp_path, "def entry(x):\n    return x\n", 1, 2)
    assert report["code"] == "build/contract"


def test_a_type_error_inside_is_not(tmp_path: Path) -> None:
    report = failure(tmp_path, "def entry(x):\n    return x + 'a'\n", 1)
    assert (report["code"], report["line"]) == ("build/launch", 2)


def test_the_cause_decides(tmp_path: Path) -> None:
    source = (
        "def entry():\n"
        "    try:\n"
        "        raise RuntimeError('CUDA driver version is insufficient for CUDA runtime version')\n"
        "    except RuntimeError as error:\n"
        "        raise ValueError('could not start') from error\n"
    )
    assert failure(tmp_path, source)["code"] == "build/environment"


def test_a_suppressed_context_does_not(tmp_path: Path) -> None:
    source = (
        "def entry():\n"
        "    try:\n"
        "        import a_package_that_is_not_here\n"
        "    except ImportError:\n"
        "        raise ValueError('bad') from None\n"
    )
    assert failure(tmp_path, source)["code"] == "build/launch"


def test_helpers_beside_the_file_are_the_submission_too(tmp_path: Path) -> None:
    (tmp_path / "helper_of_this_test.py").write_text("def f():\n\n    return 1 / 0\n")
    report = failure(tmp_path, "import helper_of_this_test\ndef entry():\n    helper_of_this_test.f()\n")
    assert (report["file"], report["line"]) == ("helper_of_this_test.py", 3)
    assert report["detail"]["trace"][-1] == "helper_of_this_test.py:3 in f"


def test_hostile_exceptions_are_bounded(tmp_path: Path) -> None:
    source = (
        "class Loud(Exception):\n"
        "    def __str__(self):\n"
        "        raise RuntimeError('no words')\n"
        "def entry(quiet):\n"
        "    if quiet:\n"
        "        raise Loud()\n"
        "    raise ValueError('x' * 10_000_000)\n"
    )
    assert failure(tmp_path, source, True)["code"] == "build/launch"
    long = failure(tmp_path, source, False)
    assert len(json.dumps(long)) < 4096


def test_what_the_interpreter_cannot_run_is_not_charged(tmp_path: Path) -> None:
    assert diagnose(NotInterpretableError("no"), tmp_path, "call")["code"] == "build/environment"
    assert diagnose(ContractError("no"), tmp_path, "load")["code"] == "build/contract"


def test_addresses_are_hidden(tmp_path: Path) -> None:
    report = failure(tmp_path, "def entry():\n    raise ValueError(f'at {id(entry):#x}')\n")
    assert "0x…" in report["summary"]


def test_triton_positions_become_lines_of_the_file(tmp_path: Path) -> None:
    import ast

    from triton.compiler.errors import CompilationError

    kernel = "def kernel(x):\n    y = x\n    tl.nothing(y)\n"
    (tmp_path / "kernel.py").write_text(f"import triton\n\n\n@triton.jit\n{kernel}")
    node = ast.parse(kernel).body[0].body[1]  # type: ignore[attr-defined]
    error = CompilationError(kernel, node, "no such function")
    report = diagnose(error, tmp_path, "call")
    assert (report["code"], report["file"], report["line"]) == ("build/compile", "kernel.py", 7)


def test_an_architecture_that_lacks_a_type_is_the_target(tmp_path: Path) -> None:
    from triton.compiler.errors import CompilationError

    error = CompilationError("def f():\n    pass\n", None, "type fp8e4nv not supported in this architecture")  # type: ignore[arg-type]
    assert diagnose(error, tmp_path, "call")["code"] == "build/wrong-arch"


def test_source_lines_outlive_the_file(tmp_path: Path) -> None:
    import inspect

    entry = load(tmp_path, "def entry():\n    return 41 + 1\n")
    (tmp_path / "kernel.py").unlink()
    assert "41 + 1" in inspect.getsource(entry)


def test_no_bytecode_is_left(tmp_path: Path) -> None:
    load(tmp_path, "def entry():\n    pass\n")
    assert list(tmp_path.iterdir()) == [tmp_path / "kernel.py"]
