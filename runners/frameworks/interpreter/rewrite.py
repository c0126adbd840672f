"""The text of a kernel, rewritten so that Python runs it as Triton's compiler reads it.

Triton's own rewriting wraps assigned values only. The compiler also takes ``and``, ``or`` and ``not`` of tensors as
element-wise logic, ``assert`` as ``device_assert``, and refuses to branch on a tensor of several elements, where plain
Python would silently take every tensor for true.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

import triton.language as tl
from triton.runtime import interpreter as upstream

_PREFIX = "__kernel_"


def _block(value: Any) -> bool:
    return isinstance(value, tl.tensor) and value.type.is_block() and value.handle.data.size != 1


def _truth(value: Any) -> bool:
    if _block(value):
        raise ValueError("Boolean value of Tensor with more than one value is ambiguous")
    return bool(value)


def _not(value: Any) -> Any:
    return value.__not__() if isinstance(value, tl.tensor) else not value


def _logic(method: str, *operands: Callable[[], Any]) -> Any:
    """The compiler's rule: constants short-circuit, tensors combine element by element."""
    ends = method == "logical_or"
    tensors: list[Any] = []
    value: Any = None
    for operand in operands:
        value = operand()
        if isinstance(value, tl.tensor):
            tensors.append(value)
        elif bool(value) is ends:
            return value
    if not tensors:
        return value
    while len(tensors) > 1:
        right = tensors.pop()
        left = tensors.pop()
        tensors.append(getattr(left, method)(right))
    return tensors[0]


def _assert(condition: Any, message: Any = "") -> None:
    tl.device_assert(condition, str(message))


def _to_tensor(value: Any) -> Any:
    return upstream.interpreter_semantic.to_tensor(value, False)


_HELPERS: dict[str, Any] = {
    f"{_PREFIX}truth": _truth,
    f"{_PREFIX}not": _not,
    f"{_PREFIX}logic": _logic,
    f"{_PREFIX}assert": _assert,
    f"{_PREFIX}tensor": _to_tensor,
}


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(func=ast.Name(id=_PREFIX + name, ctx=ast.Load()), args=list(arguments), keywords=[])


def _later(value: ast.expr) -> ast.Lambda:
    empty = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.Lambda(args=empty, body=value)


class _Transformer(ast.NodeTransformer):
    def visit_Assign(self, node: ast.Assign) -> Any:
        self.generic_visit(node)
        if len(node.targets) > 1:
            raise ValueError("Multiple assignments are not supported")
        node.value = _call("tensor", node.value)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        self.generic_visit(node)
        method = "logical_and" if isinstance(node.op, ast.And) else "logical_or"
        return _call("logic", ast.Constant(method), *(_later(value) for value in node.values))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        self.generic_visit(node)
        return _call("not", node.operand) if isinstance(node.op, ast.Not) else node

    def visit_Assert(self, node: ast.Assert) -> Any:
        self.generic_visit(node)
        return ast.Expr(_call("assert", node.test, *([node.msg] if node.msg else [])))

    def _branch(self, node: Any) -> Any:
        self.generic_visit(node)
        node.test = _call("truth", node.test)
        return node

    visit_If = visit_While = visit_IfExp = _branch


def rewrite(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as the compiler would understand it; unchanged where its source cannot be had."""
    try:
        lines, first = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return function
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef):
        return function
    definition.decorator_list = []
    definition.returns = None
    changed = ast.fix_missing_locations(_Transformer().visit(tree))
    ast.increment_lineno(changed, first - 1)
    code = compile(changed, inspect.getsourcefile(function) or "<kernel>", "exec")
    namespace = function.__globals__
    namespace.update(_HELPERS)
    if function.__closure__:
        namespace = {**namespace, **inspect.getclosurevars(function).nonlocals}
    local: dict[str, Any] = {}
    exec(code, namespace, local)  # noqa: S102 - the submission's own text, which runs in this process anyway
    made: Callable[..., Any] = local[function.__name__]
    return made
