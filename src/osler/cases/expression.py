"""The comparison in `[in_effect]`: was the fault really there?

A small language over the names in `evidence.json`: names, numbers, strings, `True`, `False`, comparisons, `and`, `or`,
`not`, `+ - * /`, unary minus and plus, `abs`, `min`, `max`. Nothing else is accepted, so a stranger's case file can
compute but cannot act.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from osler.core.jsonable import number

MAX_LENGTH = 500  # characters; the longest in the casebook is a fifth of it
MAX_DEPTH = 40  # nested operations; keeps the recursion below far from Python's limit

_NON_FINITE = ("NaN", "Infinity", "-Infinity")
_FUNCTIONS: dict[str, Callable[..., Any]] = {"abs": abs, "min": min, "max": max}
_ARITHMETIC: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_ORDER: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}

Value = float | int | str | bool


class ExpressionError(ValueError):
    """The expression is not of the language, or the evidence does not fit it. The message is one line."""


def parse(text: str) -> ast.expr:
    """The expression as a tree in which every node is of the language.

    Raises:
        ExpressionError: it is too long, not Python, or uses something outside the language.
    """
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"the expression has {len(text)} characters; {MAX_LENGTH} are allowed")
    if "\\" in text:  # no name or number needs one, and Python warns about odd ones
        raise ExpressionError(f"{_short(text)} holds a backslash")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ExpressionError(f"{_short(text)} is no expression") from None
    _admit(tree, 0)
    return tree


def names(text: str) -> frozenset[str]:
    """The names that the expression reads from the evidence.

    Raises:
        ExpressionError: as `parse`.
    """
    return frozenset(n.id for n in ast.walk(parse(text)) if isinstance(n, ast.Name)) - frozenset(_FUNCTIONS)


def evaluate(text: str, evidence: Mapping[str, object]) -> bool:
    """Whether the expression holds over the evidence.

    The strings "NaN", "Infinity" and "-Infinity" are the numbers they name, in the evidence and in the expression. NaN
    compares as usual (equal to nothing), except with a literal: `loss == "NaN"` asks whether `loss` is NaN.

    Args:
        text: the expression.
        evidence: name → number, string or bool; what else it holds may not be used.

    Raises:
        ExpressionError: as `parse`; or a name is missing, a value is of the wrong kind, a division is by zero, or the
            expression is no comparison.
    """
    result = _value(parse(text), evidence)
    if not isinstance(result, bool):
        raise ExpressionError(f"{_short(text)} gives {result!r}, which is neither true nor false: compare it")
    return result


def _admit(node: ast.AST, depth: int) -> None:
    """Refuse every node that is not of the language."""
    if depth > MAX_DEPTH:
        raise ExpressionError(f"the expression is nested deeper than {MAX_DEPTH} operations")
    match node:
        case ast.Constant(value=bool() | int() | float() | str()) | ast.Name():
            children: list[ast.expr] = []
        case ast.BoolOp(values=values):
            children = values
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.UAdd(), operand=operand):
            children = [operand]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            children = [left, right]
        case ast.Compare(left=left, ops=ops, comparators=others) if all(
            isinstance(op, (ast.Eq, ast.NotEq)) or type(op) in _ORDER for op in ops
        ):
            children = [left, *others]
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS and args:
            children = args
        case _:
            raise ExpressionError(
                f"{_short(ast.unparse(node))} is not allowed: only names, numbers, strings, comparisons, and, or, not, "
                "+ - * /, abs, min, max"
            )
    for child in children:
        _admit(child, depth + 1)


def _value(node: ast.expr, evidence: Mapping[str, object]) -> Value:
    match node:
        case ast.Constant(value=value):
            return _read(value, repr(value))
        case ast.Name(id=name):
            if name not in evidence:
                raise ExpressionError(
                    f"the evidence has no {name!r}; it has {', '.join(sorted(evidence)) or 'nothing'}"
                )
            return _read(evidence[name], name)
        case ast.BoolOp(op=op, values=values):
            stop = isinstance(op, ast.Or)
            for child in values:
                if _truth(child, evidence) is stop:
                    return stop
            return not stop
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _truth(operand, evidence)
        case ast.UnaryOp(op=op, operand=operand):
            amount = _number(operand, evidence)
            return -amount if isinstance(op, ast.USub) else amount
        case ast.BinOp(left=left, op=op, right=right):
            try:
                return _ARITHMETIC[type(op)](_number(left, evidence), _number(right, evidence))
            except ZeroDivisionError:
                raise ExpressionError(f"{_short(ast.unparse(node))} divides by zero") from None
            except OverflowError:
                raise ExpressionError(f"{_short(ast.unparse(node))} is too large a number") from None
        case ast.Compare(left=left, ops=ops, comparators=others):
            pairs = zip([left, *others], ops, others, strict=False)
            return all(_holds(a, op, b, evidence) for a, op, b in pairs)
        case ast.Call(func=ast.Name(id=name), args=args):
            numbers = [_number(a, evidence) for a in args]
            if name == "abs" and len(numbers) > 1:
                raise ExpressionError("abs takes one number")
            result: float = abs(numbers[0]) if name == "abs" else _FUNCTIONS[name](numbers)
            return result
    raise ExpressionError(
        f"{_short(ast.unparse(node))} is not allowed"
    )  # pragma: no cover - parse() let nothing through


def _holds(left: ast.expr, op: ast.cmpop, right: ast.expr, evidence: Mapping[str, object]) -> bool:
    a, b = _value(left, evidence), _value(right, evidence)
    if isinstance(op, (ast.Eq, ast.NotEq)):
        if _is_nan_literal(left) or _is_nan_literal(right):
            same = _is_nan(a) and _is_nan(b)
        else:
            same = a == b
        return same if isinstance(op, ast.Eq) else not same
    if isinstance(a, str) is not isinstance(b, str):
        raise ExpressionError(f"{a!r} and {b!r} have no order")
    return _ORDER[type(op)](a, b)


def _truth(node: ast.expr, evidence: Mapping[str, object]) -> bool:
    value = _value(node, evidence)
    if not isinstance(value, bool):
        raise ExpressionError(f"{_short(ast.unparse(node))} is {value!r}, neither true nor false: compare it")
    return value


def _number(node: ast.expr, evidence: Mapping[str, object]) -> float:
    value = _value(node, evidence)
    if isinstance(value, str):
        raise ExpressionError(f"{_short(ast.unparse(node))} is the string {value!r}, not a number")
    return value


def _read(value: object, what: str) -> Value:
    if isinstance(value, str) and value in _NON_FINITE:
        return number(value)
    if isinstance(value, (bool, int, float, str)):
        return value
    kind = "null" if value is None else type(value).__name__
    raise ExpressionError(f"{what} is {kind}; only numbers, strings, true and false can be compared")


def _is_nan(value: Value) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _is_nan_literal(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == "NaN"


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "…")
