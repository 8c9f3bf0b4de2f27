"""Reading one scope of a file without following calls: what a name is bound to, what an expression says."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from osler.syntax.module import Module, Scope
from osler.syntax.values import Site

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def named(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


def own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """Every node of a scope, those of nested functions and classes left out; in the order of the source."""
    stack: list[ast.AST] = (
        list(reversed(getattr(scope, "body", []))) if not isinstance(scope, ast.Lambda) else [scope.body]
    )
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, _SCOPES):
            stack.extend(reversed(list(ast.iter_child_nodes(node))))


class Bindings:
    """The names of a scope, each with what is assigned to it.

    Attributes:
        values: by name, the expressions assigned to it; None for a binding that is no plain assignment (a loop, `with`,
            a parameter, an unpacked tuple).
        loads: how often a name is read, nested functions included.
    """

    def __init__(self, scope: Scope) -> None:
        self.values: dict[str, list[ast.expr | None]] = {}
        self.loads: dict[str, int] = {}
        args = getattr(scope, "args", None)
        if isinstance(args, ast.arguments):
            for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg):
                if arg is not None:
                    self.values.setdefault(arg.arg, []).append(None)
        plain: set[int] = set()
        for node in own_nodes(scope):
            pairs: list[tuple[ast.expr, ast.expr]] = []
            if isinstance(node, ast.Assign):
                pairs = [(t, node.value) for t in node.targets]
            elif isinstance(node, ast.AnnAssign) and node.value is not None:
                pairs = [(node.target, node.value)]
            for target, value in pairs:
                if isinstance(target, ast.Name):
                    self.values.setdefault(target.id, []).append(value)
                    plain.add(id(target))
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and id(node) not in plain:
                self.values.setdefault(node.id, []).append(None)
        for node in ast.walk(scope):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                self.loads[node.id] = self.loads.get(node.id, 0) + 1

    def only(self, name: str) -> ast.expr | None:
        """What a name stands for, where it is assigned exactly once and plainly."""
        values = self.values.get(name, [])
        return values[0] if len(values) == 1 else None

    def follow(self, node: ast.expr | None, depth: int = 4) -> ast.expr | None:
        """An expression behind names that are assigned once."""
        while depth and isinstance(node, ast.Name):
            behind = self.only(node.id)
            if behind is None:
                return node
            node, depth = behind, depth - 1
        return node


def twins(a: ast.AST | None, b: ast.AST | None) -> bool:
    """Whether two expressions are written alike and are plain reads: names, attributes, items."""
    if a is None or b is None:
        return False
    return reads(a) and ast.dump(a) == ast.dump(b)


def reads(node: ast.AST) -> bool:
    """Names, attributes and items, tuples of them: nothing that makes another value each time."""
    if isinstance(node, (ast.Tuple, ast.List)):
        return bool(node.elts) and all(reads(e) for e in node.elts)
    if isinstance(node, ast.Subscript):
        return reads(node.value) and isinstance(node.slice, (ast.Constant, ast.Name))
    if isinstance(node, ast.Attribute):
        return reads(node.value)
    return isinstance(node, ast.Name)


def site_of(module: Module, node: ast.expr | ast.stmt) -> Site:
    """Where a node of a module begins."""
    return Site(module.path, node.lineno, node.col_offset)


def last_name(node: ast.AST | None) -> str:
    """`loader` of `self.loader` or `loader`; empty for anything else."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def target_name(parent: ast.AST) -> str:
    """The name or attribute that an assignment gives its value to; empty for another statement."""
    if isinstance(parent, ast.Assign) and len(parent.targets) == 1:
        return last_name(parent.targets[0])
    if isinstance(parent, ast.AnnAssign):
        return last_name(parent.target)
    return ""


def number(node: ast.AST | None) -> float | None:
    """The number that is written there, its sign included; None for anything else."""
    sign = 1.0
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        sign = -1.0 if isinstance(node.op, ast.USub) else 1.0
        node = node.operand
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
        return sign * float(node.value)
    return None


def is_true(node: ast.AST | None) -> bool:
    """It is `True` as written."""
    return isinstance(node, ast.Constant) and node.value is True


def is_false(node: ast.AST | None) -> bool:
    """It is `False` as written."""
    return isinstance(node, ast.Constant) and node.value is False


def brings_in(module: Module, *packages: str) -> bool:
    """Whether a file imports from one of these packages. Asked before anything that costs time."""
    return any(name.partition(".")[0] in packages for name in (*module.imports.values(), *module.stars))


def enclosing(module: Module, scope: Scope) -> Iterator[Scope]:
    """The scope and those around it."""
    around: Scope | None = scope
    while around is not None:
        yield around
        around = module.scopes.get(around)


def words(nodes: Iterable[ast.AST]) -> set[str]:
    """Every name, attribute and string in some nodes, in lower case."""
    out: set[str] = set()
    for top in nodes:
        for node in ast.walk(top):
            if isinstance(node, ast.Name):
                out.add(node.id.lower())
            elif isinstance(node, ast.Attribute):
                out.add(node.attr.lower())
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                out.add(node.value.lower())
    return out


def without_grad(module: Module, scope: Scope) -> set[int]:
    """Ids of the nodes of a scope that autograd does not record: under `no_grad`, or all, by a decorator."""
    names = ("torch.no_grad", "torch.inference_mode")
    for around in enclosing(module, scope):
        for decorator in getattr(around, "decorator_list", ()):
            called = decorator.func if isinstance(decorator, ast.Call) else decorator
            if module.dotted(called) in names:
                return {id(n) for n in ast.walk(scope)}
    out: set[int] = set()
    for node in own_nodes(scope):
        if isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                context = item.context_expr
                if isinstance(context, ast.Call) and module.dotted(context.func) in names:
                    out |= {id(n) for n in ast.walk(node)}
    return out
