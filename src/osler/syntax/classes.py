"""Where in a class's source something is written."""

from __future__ import annotations

import ast
import functools
import tokenize


@functools.lru_cache(maxsize=64)
def _tree(path: str) -> ast.Module | None:
    try:
        with tokenize.open(path) as source:
            return ast.parse(source.read())
    except (OSError, SyntaxError, ValueError, UnicodeDecodeError):
        return None


def _class(path: str, qualified_name: str) -> ast.ClassDef | None:
    tree = _tree(path)
    if tree is None:
        return None
    found: ast.AST = tree
    for part in qualified_name.split("."):
        if part == "<locals>":
            continue
        match = next(
            (n for n in ast.walk(found) if isinstance(n, (ast.ClassDef, ast.FunctionDef)) and n.name == part and n is not found),
            None,
        )  # fmt: skip
        if match is None:
            return None
        found = match
    return found if isinstance(found, ast.ClassDef) else None


def assignment_line(path: str, qualified_name: str, attribute: str) -> int | None:
    """1-based line at which a class first assigns `self.<attribute>`, None where that cannot be told.

    Args:
        path: source file.
        qualified_name: the class's `__qualname__`.
    """
    cls = _class(path, qualified_name)
    if cls is None:
        return None
    lines = [
        target.lineno
        for node in ast.walk(cls)
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign))
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Attribute)
        and target.attr == attribute
        and isinstance(target.value, ast.Name)
        and target.value.id == "self"
    ]
    return min(lines, default=None)


def method_line(path: str, qualified_name: str, method: str) -> int | None:
    """1-based line of `def <method>` in a class, None where it has none of its own."""
    cls = _class(path, qualified_name)
    if cls is None:
        return None
    for node in cls.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == method:
            return node.lineno
    return None
