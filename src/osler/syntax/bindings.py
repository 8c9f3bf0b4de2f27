"""Which statements of a module bind which of its names: what has to be gone through when another module needs one."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

# Methods that put their argument into their object.
FILLING = frozenset({"append", "extend", "insert", "add", "update", "setdefault", "appendleft", "put"})
IMPORTS = (ast.Import, ast.ImportFrom)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
# Names bound in these stay in them.
_CLOSED = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def known(test: ast.expr, main: bool) -> bool | None:
    """Whether a condition is known before the program runs.

    Args:
        test: the condition.
        main: the module is run as a script, not imported.
    """
    if isinstance(test, ast.Constant):
        return bool(test.value)
    if isinstance(test, ast.Name) and test.id == "TYPE_CHECKING":
        return False
    if isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING":
        return False
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = known(test.operand, main)
        return None if inner is None else not inner
    if isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__":
        return isinstance(test.ops[0], ast.Eq) is main
    return None


def on_import(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that an import goes through; those under a condition that is known before are told one by one."""
    for node in body:
        test = known(node.test, main=False) if isinstance(node, ast.If) else None
        if test is None:
            yield node
        else:
            yield from on_import(node.body if test else node.orelse)  # type: ignore[attr-defined]


def binders(body: Sequence[ast.stmt]) -> dict[str, list[ast.stmt]]:
    """For each name of a module the statements that bind it, or put something into it, when it is imported."""
    out: dict[str, list[ast.stmt]] = {}
    bound: set[str] = set()
    for node in on_import(body):
        for name, plainly in _bound(node):
            nodes = out.setdefault(name, [])
            if plainly:
                bound.add(name)
            if not nodes or nodes[-1] is not node:
                nodes.append(node)
    return {name: nodes for name, nodes in out.items() if name in bound}


def together(pending: Mapping[str, list[ast.stmt]], name: str) -> set[ast.stmt]:
    """The statements that bind a name, and those that bind what these bind too."""
    found: set[ast.stmt] = set()
    names: dict[ast.stmt, list[str]] = {}
    for one, nodes in pending.items():
        for node in nodes:
            names.setdefault(node, []).append(one)
    queue = [name]
    seen = {name}
    while queue:
        for node in pending[queue.pop()]:
            found.add(node)
            for other in names[node]:
                if other not in seen:
                    seen.add(other)
                    queue.append(other)
    return found


def _bound(top: ast.stmt) -> Iterator[tuple[str, bool]]:
    """The names that a statement binds, with True, and those into which it puts something, with False."""
    if isinstance(top, _SCOPES):
        yield top.name, True
        return
    stack: list[ast.AST] = [top]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load):
                yield node.id, True
        elif isinstance(node, _SCOPES):
            yield node.name, True
        elif isinstance(node, IMPORTS):
            for alias in node.names:
                if alias.name != "*":
                    yield alias.asname or alias.name.partition(".")[0], True
        elif isinstance(node, ast.ExceptHandler):
            stack.extend(node.body)
        elif not isinstance(node, _CLOSED):
            if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
                yield from _root(node.value)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in FILLING:
                yield from _root(node.func.value)
            stack.extend(ast.iter_child_nodes(node))


def _root(node: ast.expr) -> Iterator[tuple[str, bool]]:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    if isinstance(node, ast.Name):
        yield node.id, False
