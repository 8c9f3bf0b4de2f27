"""The logarithm of a probability that rounds to 0."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from osler.core.finding import Confidence, Severity
from osler.lint.facts import Facts
from osler.lint.hit import Hit, line_of
from osler.lint.reading import Bindings, number, site_of, without_grad
from osler.syntax.module import Call, Module, Scope

RULE = "log-of-zero"
CALLS = frozenset({"log", "log2", "log10"})

_LOGS = ("torch.log", "torch.log2", "torch.log10")
_METHODS = ("?.log", "?.log2", "?.log10")
_FORMS = {
    "torch.softmax": "softmax",
    "torch.nn.functional.softmax": "softmax",
    "torch.special.softmax": "softmax",
    "torch.sigmoid": "sigmoid",
    "torch.nn.functional.sigmoid": "sigmoid",
    "torch.special.expit": "sigmoid",
}
_INSTEAD = {
    "softmax": "Use torch.log_softmax, or give the logits to F.cross_entropy.",
    "sigmoid": "Use F.logsigmoid (of the negated logits for 1 - p), or F.binary_cross_entropy_with_logits.",
}


def check(facts: Facts) -> Iterator[Hit]:
    """Each logarithm straight of a softmax or a sigmoid, or of 1 less one."""
    module = facts.module
    known: dict[Scope, tuple[Bindings, set[int]]] = {}
    for call in (*module.called(*_LOGS), *module.called(*_METHODS)):
        argument = _argument(call)
        if argument is None:
            continue
        if call.scope not in known:
            known[call.scope] = Bindings(call.scope), without_grad(module, call.scope)
        bound, quiet = known[call.scope]
        if id(call.node) in quiet:
            continue
        form, made, rest = _probability(module, argument, bound, call.scope)
        if not form:
            continue
        site = site_of(module, made)
        where = f" of {line_of(site)}" if site.line != call.node.lineno else ""
        what = f"1 less the {form}{where}" if rest else f"the {form}{where}"
        yield Hit(
            site_of(module, call.node),
            f"This is the logarithm of {what}, which rounds to exactly 0 where the model is sure: the result is -inf and its "
            "gradient NaN.",
            _INSTEAD[form],
            Confidence.PROBABLE,
            Severity.INFO,
            evidence={"of": form, "line": site},
        )


def _argument(call: Call) -> ast.expr | None:
    """What the logarithm is taken of."""
    if call.name in _LOGS:
        return call.argument(0, "input")
    if call.node.args or call.node.keywords or not isinstance(call.node.func, ast.Attribute):
        return None
    return call.node.func.value


def _probability(module: Module, node: ast.expr, bound: Bindings, scope: Scope) -> tuple[str, ast.expr, bool]:
    """Softmax or sigmoid (empty for neither), where it is computed, and whether the value is 1 less it."""
    found = bound.follow(node)
    if isinstance(found, ast.BinOp) and isinstance(found.op, ast.Sub) and number(found.left) == 1:
        form, made, rest = _probability(module, found.right, bound, scope)
        return ("" if rest else form), made, True
    if not isinstance(found, ast.Call):
        return "", node, False
    form = _FORMS.get(module.dotted(found.func, scope), "")
    if not form and isinstance(found.func, ast.Attribute) and found.func.attr in ("softmax", "sigmoid"):
        # A method of a tensor; `F.softmax` of an unknown F would have been resolved.
        form = found.func.attr if not module.dotted(found.func, scope) else ""
        if form == "softmax" and not (found.args or found.keywords):
            form = ""
    return form, found, False
