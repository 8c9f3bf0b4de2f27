"""One parsed source file, and what a single walk over its tree tells about it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from osler.syntax.text import Cell
from osler.syntax.values import Value

Scope = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda


class Call(NamedTuple):
    """A call as it is written.

    Attributes:
        name: dotted name of what is called, imports and aliases resolved; `?.method` for a method of an object.
        node: the call.
        parent: the node that it stands in directly.
        scope: the innermost function or class around it, or the module.
    """

    name: str
    node: ast.Call
    parent: ast.AST
    scope: Scope

    def keyword(self, name: str) -> ast.expr | None:
        """The argument given by that keyword."""
        return next((k.value for k in self.node.keywords if k.arg == name), None)

    def argument(self, position: int, keyword: str = "") -> ast.expr | None:
        """An argument by position or keyword; None also where a star may hide it."""
        found = self.keyword(keyword) if keyword else None
        if found is not None or position < 0:
            return found
        args = self.node.args[: position + 1]
        if len(args) <= position or any(isinstance(a, ast.Starred) for a in args):
            return None
        return args[position]


@dataclass(slots=True, eq=False, repr=False)
class Module:
    """A parsed file.

    Attributes:
        path: as it was given.
        text: its source.
        tree: its tree.
        name: dotted module name inside its project; empty for a script of its own.
        package: it is an `__init__.py`.
        imports: at any level of the file: the local name and the dotted name behind it.
        stars: modules out of which everything is imported.
        calls: every call, by name.
        scopes: for each function, class and the module itself the scope around it.
        names: the names that are bound in the file in another way than by import, by scope.
        methods: for each function and class the last names of the calls in it, nested functions included.
        env: the module's own names, once it has been interpreted as a script.
        exported: its names as other modules see them; a statement is gone through when a name that it binds is needed.
        pending: the statements that bind each name of `exported` that nobody has needed yet.
        cells: of a notebook, its code cells in order.
    """

    path: str
    text: str
    tree: ast.Module
    name: str = ""
    package: bool = False
    imports: dict[str, str] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    calls: dict[str, list[Call]] = field(default_factory=dict)
    scopes: dict[Scope, Scope | None] = field(default_factory=dict)
    names: dict[Scope, set[str]] = field(default_factory=dict)
    methods: dict[Scope, set[str]] = field(default_factory=dict)
    env: dict[str, Value] = field(default_factory=dict)
    exported: dict[str, Value] = field(default_factory=dict)
    pending: dict[str, list[ast.stmt]] = field(default_factory=dict)
    cells: list[Cell] = field(default_factory=list)
    _lines: list[str] = field(default_factory=list)

    def dotted(self, node: ast.AST, scope: Scope | None = None) -> str:
        """Dotted name of a name or attribute chain: `torch.nn.functional.relu` for `F.relu`; empty for anything else.

        A name that its scope binds itself is no import.
        """
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        root = self.imports.get(node.id)
        if root is None or self._bound(node.id, scope):
            if parts:
                return ""
            root = node.id
        return ".".join([root, *reversed(parts)])

    def _bound(self, name: str, scope: Scope | None) -> bool:
        inner = scope
        while scope is not None:
            # A class's names are not seen from its methods.
            if name in self.names.get(scope, ()) and (scope is inner or not isinstance(scope, ast.ClassDef)):
                return True
            scope = self.scopes.get(scope)
        return False

    def called(self, *names: str) -> Iterator[Call]:
        """The calls of these names, in the order of the names."""
        for name in names:
            yield from self.calls.get(name, ())

    def line(self, number: int) -> str:
        """A 1-based line, without its end; empty where there is none."""
        if not self._lines:
            self._lines = self.text.split("\n")
        return self._lines[number - 1].rstrip("\r") if 0 < number <= len(self._lines) else ""


# Contexts and operators hold nothing.
_EMPTY = frozenset(
    kind
    for base in (ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop)
    for kind in base.__subclasses__()
)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def survey(path: str, text: str, tree: ast.Module, name: str = "", package: bool = False) -> Module:
    """A module with its imports, names and calls: one walk, no recursion."""
    module = Module(path, text, tree, name, package)
    module.scopes[tree] = None
    module.names[tree] = set()
    raw: list[tuple[ast.Call, ast.AST, Scope]] = []
    stack: list[tuple[ast.AST, ast.AST, Scope]] = [(child, tree, tree) for child in tree.body]
    while stack:
        node, parent, scope = stack.pop()
        kind = type(node)
        if kind is ast.Call:
            raw.append((node, parent, scope))  # type: ignore[arg-type]
        elif kind is ast.Name:
            if type(node.ctx) is not ast.Load:  # type: ignore[attr-defined]
                module.names[scope].add(node.id)  # type: ignore[attr-defined]
            continue
        elif kind is ast.Constant:
            continue
        elif kind is ast.Import or kind is ast.ImportFrom:
            _imported(module, node)
            continue
        elif isinstance(node, _SCOPES):
            if kind is not ast.Lambda:
                module.names[scope].add(node.name)  # type: ignore[union-attr]
            module.scopes[node] = scope
            names = module.names[node] = set()
            outer, scope = scope, node
            if kind is not ast.ClassDef:
                args = node.args  # type: ignore[union-attr]
                for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg):
                    if arg is not None:
                        names.add(arg.arg)
            # Decorators and defaults belong to the scope outside.
            for decorator in getattr(node, "decorator_list", ()):
                stack.append((decorator, node, outer))
            body = node.body if isinstance(node.body, list) else [node.body]
            stack.extend((child, node, scope) for child in body)
            if kind is ast.ClassDef:
                stack.extend((child, node, outer) for child in (*node.bases, *node.keywords))  # type: ignore[union-attr]
            else:
                args = node.args  # type: ignore[union-attr]
                stack.extend((d, node, outer) for d in (*args.defaults, *args.kw_defaults) if d is not None)
            continue
        # What `ast.iter_child_nodes` gives, without its generators: this is the hot path of reading a file.
        for name_ in node._fields:
            below = getattr(node, name_, None)
            if type(below) is list:
                for child in below:
                    if isinstance(child, ast.AST):
                        stack.append((child, node, scope))
            elif isinstance(below, ast.AST) and type(below) not in _EMPTY:
                stack.append((below, node, scope))
    for call, parent, scope in raw:
        name_ = module.dotted(call.func, scope)
        if not name_:
            name_ = f"?.{call.func.attr}" if isinstance(call.func, ast.Attribute) else "?"
        module.calls.setdefault(name_, []).append(Call(name_, call, parent, scope))
        last = name_.rpartition(".")[2]
        around: Scope | None = scope
        while around is not None:
            module.methods.setdefault(around, set()).add(last)
            around = module.scopes[around]
    for calls in module.calls.values():
        calls.sort(key=lambda c: (c.node.lineno, c.node.col_offset))
    return module


def _imported(module: Module, node: ast.AST) -> None:
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.asname:
                module.imports[alias.asname] = alias.name
            else:
                first = alias.name.partition(".")[0]
                module.imports[first] = first
    elif isinstance(node, ast.ImportFrom):
        base = absolute(module, node)
        for alias in node.names:
            if alias.name == "*":
                module.stars.append(base)
            else:
                module.imports[alias.asname or alias.name] = f"{base}.{alias.name}" if base else alias.name


def absolute(module: Module, node: ast.ImportFrom) -> str:
    """Dotted name of the module that an `import from` names; a relative one is resolved against the file's own name."""
    if not node.level:
        return node.module or ""
    parts = module.name.split(".") if module.name else []
    drop = node.level - (1 if module.package else 0)
    base = parts[: len(parts) - drop] if drop else parts
    return ".".join([*base, *([node.module] if node.module else [])]) or "." * node.level + (node.module or "")
