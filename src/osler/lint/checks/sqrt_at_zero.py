"""The square root of a sum of squares, with nothing that holds it away from 0."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from osler.core.finding import Confidence, Severity
from osler.lint.facts import Facts
from osler.lint.hit import Hit
from osler.lint.reading import Bindings, number, site_of, without_grad
from osler.syntax.module import Call, Module, Scope

RULE = "sqrt-at-zero"
CALLS = frozenset({"sqrt"})

_SUMS = ("torch.sum", "torch.mean")
_LOSSES = ("torch.nn.functional.mse_loss",)


def check(facts: Facts) -> Iterator[Hit]:
    """Each root of squared differences, in a file that runs backward or defines a module."""
    module = facts.module
    if not ("?.backward" in module.calls or "torch.nn.Module" in module.imports.values() or "Module" in module.text):
        return
    known: dict[Scope, tuple[Bindings, set[int]]] = {}
    for call in (*module.called("torch.sqrt"), *module.called("?.sqrt")):
        argument = _argument(call)
        if argument is None:
            continue
        if call.scope not in known:
            known[call.scope] = Bindings(call.scope), without_grad(module, call.scope)
        bound, quiet = known[call.scope]
        if id(call.node) in quiet or not _squares(module, argument, bound, call.scope):
            continue
        yield Hit(
            site_of(module, call.node),
            "This root of squared differences is differentiated at 0 where the two sides are equal: its slope there is "
            "infinite, and the gradient NaN.",
            "Add a small number under the root, or use torch.linalg.vector_norm, whose slope at 0 is 0.",
            Confidence.PROBABLE,
            Severity.INFO,
        )


def _argument(call: Call) -> ast.expr | None:
    if call.name == "torch.sqrt":
        return call.argument(0, "input")
    if call.node.args or call.node.keywords or not isinstance(call.node.func, ast.Attribute):
        return None
    return call.node.func.value


def _squares(module: Module, node: ast.expr, bound: Bindings, scope: Scope) -> bool:
    """A sum or mean of squared differences, or the mean squared error."""
    found = bound.follow(node)
    if not isinstance(found, ast.Call):
        return False
    name = module.dotted(found.func, scope)
    if name in _LOSSES:
        return not any(k.arg == "reduction" for k in found.keywords)
    if isinstance(found.func, ast.Name):
        made = bound.follow(found.func)
        if isinstance(made, ast.Call):
            return module.dotted(made.func, scope) == "torch.nn.MSELoss" and not made.keywords
    inner: ast.expr | None = None
    if name in _SUMS:
        inner = found.args[0] if found.args else None
    elif isinstance(found.func, ast.Attribute) and found.func.attr in ("sum", "mean"):
        inner = found.func.value
    return inner is not None and _squared_difference(module, bound.follow(inner), bound, scope)


def _squared_difference(module: Module, node: ast.expr | None, bound: Bindings, scope: Scope) -> bool:
    base: ast.expr | None = None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and number(node.right) == 2:
        base = node.left
    elif isinstance(node, ast.Call):
        name = module.dotted(node.func, scope)
        if name in ("torch.square", "torch.pow"):
            square = name == "torch.square" or (len(node.args) > 1 and number(node.args[1]) == 2)
            base = node.args[0] if node.args and square else None
        elif isinstance(node.func, ast.Attribute):
            power = node.func.attr == "pow" and bool(node.args) and number(node.args[0]) == 2
            base = node.func.value if power or node.func.attr == "square" else None
    base = bound.follow(base)
    return isinstance(base, ast.BinOp) and isinstance(base.op, ast.Sub)
