"""A task's loaded ``reference.py``: inputs, the truth, how it is stored, and the low-precision twin.

The code is the exchange's own and trusted to be honest, not to be right: whatever it raises or returns amiss becomes a
:class:`ReferenceError`, which is the task's fault and never the candidate's.
"""

from __future__ import annotations

import importlib.util
import itertools
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, TypeVar

import torch
from torch import Tensor

from runners.contract import Case, Overflow, TaskSpec
from runners.draws import Draw
from runners.evidence import Place
from runners.numerics.formats import components, default_overflow, dtype_of, name_of, round_to, widen
from runners.session import OutputSpec, Value

FILE = "reference.py"

_T = TypeVar("_T")
_numbers = itertools.count()


class ReferenceError(Exception):  # noqa: A001 - the field's word; nobody here uses weak references
    """The task's ``reference.py`` cannot be used: what is wrong, and where in it."""

    def __init__(self, summary: str, where: Place | None = None) -> None:
        super().__init__(f"{where}: {summary}" if where else f"{FILE}: {summary}")
        self.summary, self.where = summary, where


@dataclass(frozen=True)
class ErrorTerms:
    """What ``error_terms`` says of one output: ``terms`` products or summands are added in ``accumulate``."""

    terms: float
    magnitude: Tensor
    """Sum of the magnitudes of what is added, float64, of the output's shape or broadcastable to it."""
    accumulate: torch.dtype


class Reference:
    """The trusted oracle of one task. Every method raises ReferenceError for what the task does wrong."""

    def __init__(self, module: ModuleType, spec: TaskSpec, file: Path) -> None:
        self._spec, self._file = spec, file
        self._make_inputs = self._function(module, "make_inputs")
        self._reference = self._function(module, "reference")
        self._work = getattr(module, "work", None)
        self._error_terms = getattr(module, "error_terms", None)
        baselines = getattr(module, "BASELINES", {})
        if not isinstance(baselines, dict) or not all(
            isinstance(name, str) and callable(call) for name, call in baselines.items()
        ):
            raise ReferenceError("BASELINES must be a dict of names and functions")
        self.baselines: Mapping[str, Callable[..., Any]] = dict(baselines)
        named = spec.timing.baseline
        if named is not None and named not in self.baselines:
            known = ", ".join(self.baselines) or "none"
            raise ReferenceError(f"[timing] names the baseline {named!r}; BASELINES has: {known}")
        self.twin_name: str | None = named or next(iter(self.baselines), None)
        self.imprecise: set[str] = set()
        """Outputs whose truth came in less than float64: known only after a call."""

    @classmethod
    def load(cls, task_dir: Path, spec: TaskSpec) -> Reference:
        """Execute ``task_dir/reference.py``."""
        file = task_dir / FILE
        if not file.is_file():
            raise ReferenceError("the file is missing")
        name = f"_task_reference_{next(_numbers)}"
        found = importlib.util.spec_from_file_location(name, file)
        assert found is not None and found.loader is not None
        module = importlib.util.module_from_spec(found)
        # Dataclasses and pickle look a class's module up by name.
        sys.modules[name] = module
        try:
            found.loader.exec_module(module)
        except (Exception, SystemExit) as error:
            del sys.modules[name]
            raise _blamed(error, file) from error
        return cls(module, spec, file)

    @property
    def has_error_terms(self) -> bool:
        """Whether the task states a sharper bound than the twin's error."""
        return self._error_terms is not None

    def make_inputs(self, case: Case, seed: int) -> dict[str, Value]:
        """The inputs of ``case`` for ``seed``, in the order of the candidate's arguments."""
        # For tasks that draw without a generator. torch.manual_seed would queue work for every absent device.
        before = torch.default_generator.get_state()
        torch.default_generator.manual_seed(seed)
        try:
            made = self._call(self._make_inputs, _namespace(case), Draw(seed))
        finally:
            torch.default_generator.set_state(before)
        return self._checked_inputs(made)

    def truth(self, inputs: Mapping[str, Value]) -> dict[str, Tensor]:
        """The outputs in float64 (complex128, or integers as they are), named as outputs are.

        An argument listed under ``inplace`` is an output too. Its truth is what the reference returns under its name,
        else what the reference has left in its private copy of the argument.
        """
        copies = private(inputs)
        result = self._call(self._reference, **copies)
        outputs = self._named(result, "reference")
        left = {name: copies[name] for name in self._spec.inplace if name not in outputs}
        for name, value in outputs.items():
            if _is_number(value) and value.dtype not in (torch.float64, torch.complex128):
                self.imprecise.add(name)
        outputs.update(left)
        if not outputs:
            raise ReferenceError("reference returns nothing, and the task lists nothing under `inplace`")
        return {name: widen(value) if _is_number(value) else value.clone() for name, value in outputs.items()}

    def overflow(self, name: str, dtype: torch.dtype) -> Overflow:
        """How a too large value of output ``name`` is stored: the task's word, else what torch does for the dtype."""
        return self._spec.output_rule(name).overflow or default_overflow(dtype)

    def stored(self, truth: Mapping[str, Tensor], inputs: Mapping[str, Value]) -> dict[str, Tensor]:
        """``truth`` in the output dtypes, with the overflow convention applied."""
        return {name: self.store(name, value, self._output_dtype(name, value, inputs)) for name, value in truth.items()}

    def store(self, name: str, value: Tensor, dtype: torch.dtype) -> Tensor:
        """One output in ``dtype``: integers must fit exactly, floats are rounded once."""
        if dtype.is_complex:
            real = dtype.to_real()
            return torch.view_as_complex(round_to(components(widen(value)), real, self.overflow(name, real)))
        if value.is_complex():
            raise ReferenceError(f"output {name} is complex and cannot be stored as {name_of(dtype)}")
        if dtype.is_floating_point:
            return round_to(widen(value), dtype, self.overflow(name, dtype))
        if value.dtype == dtype:
            return value
        if value.dtype.is_floating_point:
            value = value.round()
        whole = value.to(dtype)
        if not torch.equal(whole.to(value.dtype), value):
            raise ReferenceError(f"output {name} does not fit into {name_of(dtype)}")
        return whole

    def expect(self, stored: Mapping[str, Tensor]) -> dict[str, OutputSpec]:
        """Shapes and dtypes that the candidate's outputs must have."""
        return {name: OutputSpec(tuple(value.shape), value.dtype) for name, value in stored.items()}

    def twin(self, inputs: Mapping[str, Value]) -> dict[str, Tensor]:
        """The low-precision twin's outputs, named like the truth's; in whatever dtypes the baseline gives."""
        if self.twin_name is None:
            raise ReferenceError("there is no baseline to serve as the twin")
        copies = private(inputs)
        result = self._call(self.baselines[self.twin_name], *copies.values())
        outputs = {} if result is None else self._named(result, f"the baseline {self.twin_name!r}")
        outputs.update({name: copies[name] for name in self._spec.inplace})
        return {name: value.detach() for name, value in outputs.items()}

    def error_terms(self, case: Case, inputs: Mapping[str, Value]) -> dict[str, ErrorTerms] | None:
        """The task's own rounding terms by output, a flat answer being that of ``"0"``; None where it states none."""
        if self._error_terms is None:
            return None
        answer = self._call(self._error_terms, _namespace(case), **private(inputs))
        if answer is None:
            return None
        if not isinstance(answer, dict):
            raise ReferenceError("error_terms must return a dict")
        tables = {"0": answer} if "terms" in answer else answer
        return {str(name): self._terms(table) for name, table in tables.items()}

    def work(self, case: Case) -> dict[str, float] | None:
        """The least floating-point operations and bytes that the operation needs; None where the task does not say."""
        if self._work is None:
            return None
        answer = self._call(self._work, _namespace(case))
        if not isinstance(answer, dict) or not all(
            isinstance(value, int | float) and value >= 0 for value in answer.values()
        ):
            raise ReferenceError("work must return a dict of numbers, such as flops and bytes")
        return {str(key): float(value) for key, value in answer.items()}

    # ---- what the task's code is held to ------------------------------------------------------------------------

    def _function(self, module: ModuleType, name: str) -> Callable[..., Any]:
        found = getattr(module, name, None)
        if not callable(found):
            raise ReferenceError(f"it must define a function {name}")
        return found  # type: ignore[no-any-return]

    def _call(self, function: Callable[..., _T], *args: Any, **kwargs: Any) -> _T:
        try:
            return function(*args, **kwargs)
        except (Exception, SystemExit) as error:
            raise _blamed(error, self._file) from error

    def _checked_inputs(self, made: Any) -> dict[str, Value]:
        if not isinstance(made, dict) or not made:
            raise ReferenceError(f"make_inputs must return a dict of tensors and scalars, not {type(made).__name__}")
        for name, value in made.items():
            if not isinstance(name, str) or not name.isidentifier():
                raise ReferenceError(f"make_inputs: {name!r} is no argument name")
            if isinstance(value, Tensor):
                if value.device.type != "cpu" or value.layout is not torch.strided:
                    raise ReferenceError(f"make_inputs: {name} must be a dense tensor on the CPU")
            elif value is not None and not isinstance(value, int | float | str):
                raise ReferenceError(f"make_inputs: {name} is a {type(value).__name__}, not a tensor or a scalar")
        for name in self._spec.inplace:
            if not isinstance(made.get(name), Tensor):
                raise ReferenceError(f"`inplace` names {name!r}, which make_inputs does not return as a tensor")
        return {name: value.detach() if isinstance(value, Tensor) else value for name, value in made.items()}

    def _named(self, result: Any, who: str) -> dict[str, Tensor]:
        if result is None:
            return {}
        if isinstance(result, Mapping):
            items = {str(name): value for name, value in result.items()}
        elif isinstance(result, tuple | list):
            items = {str(index): value for index, value in enumerate(result)}
        else:
            items = {"0": result}
        outputs = {}
        for name, value in items.items():
            if isinstance(value, bool | int | float | complex):
                value = torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else None)
            if not isinstance(value, Tensor) or value.device.type != "cpu" or value.layout is not torch.strided:
                raise ReferenceError(f"{who} returns {type(value).__name__} for output {name}, not a dense CPU tensor")
            outputs[name] = value.detach()
        return outputs

    def _output_dtype(self, name: str, truth: Tensor, inputs: Mapping[str, Value]) -> torch.dtype:
        if name in self._spec.inplace and isinstance(inputs.get(name), Tensor):
            return inputs[name].dtype  # type: ignore[no-any-return]
        own = self._spec.outputs.get(name)
        try:
            if own is not None and own.dtype is not None:
                return dtype_of(own.dtype)
            if not _is_number(truth):
                return truth.dtype
            if self._spec.output.dtype is not None:
                return dtype_of(self._spec.output.dtype)
        except ValueError as error:
            raise ReferenceError(f"[output] of the task: {error}") from None
        for value in inputs.values():
            if isinstance(value, Tensor) and (value.is_complex() if truth.is_complex() else value.is_floating_point()):
                return value.dtype
        return truth.dtype

    def _terms(self, table: Any) -> ErrorTerms:
        try:
            magnitude = torch.as_tensor(table["magnitude"]).detach().to(torch.float64)
            return ErrorTerms(float(table["terms"]), magnitude, dtype_of(table["accumulate"]))
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise ReferenceError(
                f"error_terms must give terms, magnitude and accumulate: {type(error).__name__}: {error}"
            ) from None


def private(inputs: Mapping[str, Value]) -> dict[str, Value]:
    """Copies that the callee may change."""
    return {name: value.clone() if isinstance(value, Tensor) else value for name, value in inputs.items()}


def _is_number(value: Tensor) -> bool:
    """Whether the tensor holds real or complex numbers that rounding touches, not integers."""
    return value.is_floating_point() or value.is_complex()


def _namespace(case: Case) -> SimpleNamespace:
    return SimpleNamespace(**case.args)


def _blamed(error: BaseException, file: Path) -> ReferenceError:
    """The error as the task's fault, at the innermost line of its file."""
    line = error.lineno if isinstance(error, SyntaxError) and error.filename == str(file) else None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(file):
            line = trace.tb_lineno
        trace = trace.tb_next
    words = " ".join(str(error).split())[:400]
    return ReferenceError(
        f"{type(error).__name__}: {words}" if words else type(error).__name__, Place(FILE, line) if line else None
    )
