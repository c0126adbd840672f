"""Runs scenarios in forks of a process that has Triton's interpreter loaded, as a zygote does.

Requests and answers are lines of JSON. A scenario NAME of a kernel file is its entry ``NAME``, called with what
``NAME_arguments()`` gives; where there is ``NAME_expected(**arguments)``, the answer says whether the results agree.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any


def tensors(value: Any) -> list[Any]:
    import torch

    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, (tuple, list)) else []


def agree(got: Any, expected: Any) -> bool:
    import torch

    pairs = list(zip(tensors(got), tensors(expected), strict=True))
    return all(
        torch.equal(one, other)
        if not one.is_floating_point() or one.itemsize < 4
        else torch.allclose(one, other, rtol=1e-5, atol=1e-5, equal_nan=True)
        for one, other in pairs
    )


def run(request: dict[str, Any]) -> dict[str, Any]:
    from runners.frameworks import hooks_for
    from runners.frameworks.loading import diagnose, load_entry

    hooks = hooks_for(request["framework"])
    hooks.install("cpu", request["framework"] == "triton")
    file, name = Path(request["file"]), request["name"]
    beats = 0

    def beat() -> None:
        nonlocal beats
        beats += 1

    answer: dict[str, Any] = {"failure": None, "close": None, "reports": []}
    try:
        entry = load_entry(file, name)
    except BaseException as error:
        return {**answer, "failure": diagnose(error, file.parent, "load")}
    module = sys.modules[file.stem]
    for options in request["calls"]:
        arguments = getattr(module, f"{name}_arguments")()
        expect = getattr(module, f"{name}_expected", None)
        expected = None if expect is None else expect(**arguments)
        with hooks.watch(arguments, options, beat) as reports:
            try:
                result = entry(*arguments.values())
                reports.returned(result)
            except BaseException as error:
                answer["failure"] = diagnose(error, file.parent, "call")
                answer["reports"] += reports
                return answer
        answer["reports"] += reports
        if expected is not None:
            answer["close"] = agree(result, expected) and answer["close"] is not False
    if request["planted"]:
        answer["planted"] = hooks.planted()
    return {**answer, "beats": beats}


def main() -> None:
    import torch

    from runners.frameworks import preload

    torch.set_num_threads(1)
    preload("triton", True)
    for line in sys.stdin:
        out, into = os.pipe()
        child = os.fork()
        if child == 0:
            with os.fdopen(into, "w") as pipe, open(os.devnull, "w") as nowhere:
                os.dup2(nowhere.fileno(), 1)
                json.dump(run(json.loads(line)), pipe)
            os._exit(0)
        os.close(into)
        with os.fdopen(out) as pipe:
            text = pipe.read()
        _, status = os.waitpid(child, 0)
        print(text or json.dumps({"died": status}), flush=True)


if __name__ == "__main__":
    main()
