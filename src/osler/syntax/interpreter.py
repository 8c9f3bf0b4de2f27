"""Abstract interpretation: a module's statements in order, functions of the project inlined, giving a trace.

It knows Python and a few names whose meaning decides what an object is (wrappers that give back what they wrap,
methods that return their object). What a library's calls mean is for the rules to say.

Loops are gone through once, with a join at their head for what they assign; both arms of a branch are taken and
joined. Functions are inlined at each call down to a depth, recursion and what exceeds a number of events are cut
(`osler.syntax.frame`), and the trace then says that it is not complete.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from osler.syntax import bindings
from osler.syntax.expressions import SYMBOLS, Expressions
from osler.syntax.frame import Frame, TooMuch
from osler.syntax.module import Module, absolute
from osler.syntax.trace import Block, Branch, Loop, Region, Trace
from osler.syntax.values import (
    CLASS,
    FUNCTION,
    IMPORTED,
    JOIN,
    MODULE,
    PENDING,
    Definition,
    Value,
    settled,
)

if TYPE_CHECKING:
    from osler.syntax.project import Project


class Interpreter(Expressions):
    """Goes through one module, or one function of it.

    Attributes:
        seen: ids of the nodes of functions that some trace has gone through.
    """

    def __init__(self, project: Project) -> None:
        self.project = project
        self.order = 0
        self.count = 0
        self.block = Block()
        self.frame: Frame
        self.stack: list[ast.AST] = []
        self.repeats: dict[int, int] = {}
        self.seen: set[int] = set()
        self.complete = True

    # --- traces -------------------------------------------------------------------------------------------------------

    def script(self, module: Module) -> Trace:
        """The module's body as it runs; its names stay in `module.env`."""
        module.env.clear()
        return self._trace("script", lambda: self._module_body(module))

    def outline(self, module: Module) -> None:
        """Fill `module.exported` as far as the bare statements tell: imports; all else waits until it is needed."""
        module.pending = pending = bindings.binders(module.tree.body)
        module.exported.update((name, Value(PENDING, name)) for name in pending)
        self.frame = Frame(module, module.exported, (module.exported,))
        for node in bindings.on_import(module.tree.body):
            if isinstance(node, bindings.IMPORTS):
                self.ACTIONS[type(node)](self, node)
        for name in [n for n, nodes in pending.items() if all(isinstance(s, bindings.IMPORTS) for s in nodes)]:
            del pending[name]
        module.exported.update((name, Value(PENDING, name)) for name in pending)

    def fill(self, module: Module, body: Sequence[ast.stmt]) -> None:
        """Go through statements of an imported module; what they call is not kept."""

        def run() -> None:
            self.frame = Frame(module, module.exported, (module.exported,))
            self.statements(body)

        self._trace("script", run)

    def entry(self, definition: Definition, owner: Value | None = None) -> Trace:
        """A function with unknown arguments; `owner` is the object of a method."""

        def run() -> None:
            self.frame = Frame(definition.module, {}, definition.scope, definition, owner)
            self._inline(definition, owner, (), {}, None)

        trace = self._trace("entry", run)
        trace.definition, trace.owner = definition, owner
        return trace

    def _trace(self, kind: str, run: Callable[[], None]) -> Trace:
        block = self.block = Block()
        self.count, self.stack, self.repeats, self.complete = 0, [], {}, True
        try:
            run()
        except (TooMuch, RecursionError):
            self.complete = False
        return Trace(kind, block, complete=self.complete)

    def _module_body(self, module: Module) -> None:
        self.frame = Frame(module, module.env, (module.env,))
        self.statements(module.tree.body)

    # --- statements ---------------------------------------------------------------------------------------------------

    def statements(self, body: Sequence[ast.stmt], start: int = 0) -> bool:
        """Go through statements; whether they leave the block (return, raise, continue, break)."""
        for i in range(start, len(body)):
            node = body[i]
            if type(node) is ast.If:
                left = self._if(node, body, i + 1)
                if left is not None:
                    return left
                continue
            action = self.ACTIONS.get(type(node))
            if action is not None and action(self, node):
                return True
        return False

    def _if(self, node: ast.If, body: Sequence[ast.stmt], rest: int) -> bool | None:
        """None: go on with the next statement; else the whole rest has been gone through, and whether it leaves."""
        known = bindings.known(node.test, main=self.frame.top is self.frame.module.env)
        test = self.value(node.test)
        if known is not None:
            return True if self.statements(node.body if known else node.orelse) else None
        branch = Branch(node, self.site(node), self.block, order=self.tick(), test=test)
        self.block.items.append(branch)
        names = self.frame.names
        before = dict(names)
        left_body = self._arm(branch, node.body)
        after_body = dict(names)
        _replace(names, before)
        # What follows an early `continue` or `return` happens under the opposite condition.
        early = left_body and _leaves_quietly(node.body)
        left_else = self._arm(branch, node.orelse, (body, rest) if early else None)
        branch.end = self.order
        if not left_body and left_else:
            _replace(names, after_body)
        elif not left_body:
            self._merge(after_body, node)
        if early:
            return left_else
        return True if left_body and left_else else None

    def _arm(
        self, branch: Branch, body: Sequence[ast.stmt], rest: tuple[Sequence[ast.stmt], int] | None = None
    ) -> bool:
        outer = self.block
        self.block = Block(branch)
        branch.blocks.append(self.block)
        try:
            left = self.statements(body)
            if not left and rest is not None:
                left = self.statements(*rest)
        finally:
            self.block = outer
        return left

    def _merge(self, others: dict[str, Value], node: ast.AST) -> None:
        """Join what another arm has left of the names into the present ones."""
        names = self.frame.names
        for name, value in others.items():
            present = names.get(name)
            if present is None:
                names[name] = value
            elif settled(present) is settled(value):
                names[name] = settled(value)
            else:
                names[name] = self.join((present, value), node)

    def _for(self, node: ast.For | ast.AsyncFor) -> bool:
        over = self.value(node.iter)
        loop = Loop(node, self.site(node), self.block, order=self.tick(), over=over)
        self._loop(loop, node, node.body, lambda: self._element(loop, node.target, over, node))
        return self.statements(node.orelse)

    def _element(self, loop: Loop, target: ast.expr, over: Value, node: ast.AST) -> None:
        element = self.element(over, node)
        loop.target = element
        self.assign(target, element)

    def _while(self, node: ast.While) -> bool:
        loop = Loop(node, self.site(node), self.block, order=self.tick())
        self._loop(loop, node, node.body, lambda: self.value(node.test) and None)
        forever = isinstance(node.test, ast.Constant) and bool(node.test.value) and not _breaks(node.body)
        return True if forever else self.statements(node.orelse)

    def _loop(self, loop: Loop, node: ast.AST, body: Sequence[ast.stmt], head: Callable[[], object]) -> None:
        self.block.items.append(loop)
        outer, self.block = self.block, Block(loop)
        loop.blocks.append(self.block)
        heads: dict[str, Value] = {}
        for name in assigned(node):
            value = self.frame.names.get(name)
            if value is not None:
                heads[name] = self.frame.names[name] = Value(JOIN, name, self.site(node), self.order, (value,))
        try:
            head()
            self.statements(body)
        finally:
            self.block = outer
            loop.end = self.order
        for name, joined in heads.items():
            after = self.frame.names.get(name)
            if after is joined or after is None:
                self.frame.names[name] = joined.sources[0] if len(joined.sources) == 1 else joined
            else:
                joined.sources = (*joined.sources, after)
                self.frame.names[name] = joined

    def _with(self, node: ast.With | ast.AsyncWith) -> bool:
        outer = self.block
        for item in node.items:
            context = self.value(item.context_expr)
            if item.optional_vars is not None:
                self.assign(item.optional_vars, self.entered(context, item.context_expr))
            region = Region(node, self.site(item.context_expr), self.block, order=self.tick(), context=context)
            self.block.items.append(region)
            self.block = Block(region)
            region.blocks.append(self.block)
        try:
            return self.statements(node.body)
        finally:
            self.block = outer

    def _try(self, node: ast.AST) -> bool:
        left = self.statements(node.body)  # type: ignore[attr-defined]
        if node.handlers:  # type: ignore[attr-defined]
            branch = Branch(node, self.site(node), self.block, order=self.tick())
            self.block.items.append(branch)
            after = dict(self.frame.names)
            for handler in node.handlers:  # type: ignore[attr-defined]
                if handler.name:
                    self.frame.names[handler.name] = self.result("exception", handler)
                self._arm(branch, handler.body)
                _replace(self.frame.names, after)
            branch.end = self.order
        if not left:
            left = self.statements(node.orelse)  # type: ignore[attr-defined]
        return self.statements(node.finalbody) or left  # type: ignore[attr-defined]

    def _match(self, node: ast.Match) -> bool:
        subject = self.value(node.subject)
        branch = Branch(node, self.site(node), self.block, order=self.tick(), test=subject)
        self.block.items.append(branch)
        before = dict(self.frame.names)
        ends: list[dict[str, Value]] = []
        for case in node.cases:
            for pattern in ast.walk(case.pattern):
                bound = getattr(pattern, "name", None) or getattr(pattern, "rest", None)
                if isinstance(bound, str):
                    self.frame.names[bound] = self.result("element", case.pattern, (subject,))
            if not self._arm(branch, case.body):
                ends.append(dict(self.frame.names))
            _replace(self.frame.names, before)
        branch.end = self.order
        for names in ends:
            self._merge(names, node)
        return False

    def _assign(self, node: ast.Assign) -> bool:
        value = self.value(node.value)
        added = adds_to_itself(node)
        if added is not None and len(value.sources) == 2:
            self.event("=+", node, value.sources[0], value, value.sources[1:])
        for target in node.targets:
            self.assign(target, value)
        return False

    def _annotated(self, node: ast.AnnAssign) -> bool:
        if node.value is not None:
            self.assign(node.target, self.value(node.value))
        return False

    def _in_place(self, node: ast.AugAssign) -> bool:
        left = self.value(node.target)
        right = self.value(node.value)
        name = f"{SYMBOLS.get(type(node.op), '?')}="
        result = self.result(name, node, (left, right))
        self.event(name, node, left, result, (right,))
        self.assign(node.target, result)
        return False

    def _expression(self, node: ast.Expr) -> bool:
        self.value(node.value)
        return False

    def _return(self, node: ast.Return) -> bool:
        if node.value is not None:
            self.frame.returns.append(self.value(node.value))
        return True

    def _raise(self, node: ast.Raise) -> bool:
        if node.exc is not None:
            self.value(node.exc)
        return True

    def _leave(self, node: ast.AST) -> bool:
        return True

    def _delete(self, node: ast.Delete) -> bool:
        for target in node.targets:
            if isinstance(target, ast.Name):
                self.frame.names.pop(target.id, None)
        return False

    def _assert(self, node: ast.Assert) -> bool:
        self.value(node.test)
        return False

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        frame = self.frame
        parent = frame.definition if frame.definition and isinstance(frame.definition.node, ast.ClassDef) else None
        name = f"{parent.name}.{node.name}" if parent is not None else node.name
        scope = frame.scope if parent is not None or frame.names is frame.top else (frame.names, *frame.scope)
        decorators = [self.value(d) for d in node.decorator_list]
        definition = Definition(name, node, frame.module, scope, decorators, parent)
        frame.names[node.name] = Value(FUNCTION, name, self.site(node), self.tick(), definition=definition, node=node)
        return False

    def _class(self, node: ast.ClassDef) -> bool:
        outer = self.frame
        bases = [self.value(b) for b in node.bases]
        scope = outer.scope if outer.names is outer.top else (outer.names, *outer.scope)
        decorators = [self.value(d) for d in node.decorator_list]
        definition = Definition(node.name, node, outer.module, scope, decorators, bases=bases)
        self.frame = Frame(outer.module, {}, scope, definition)
        try:
            self.statements(node.body)
            definition.members = self.frame.names
        finally:
            self.frame = outer
        outer.names[node.name] = Value(CLASS, node.name, self.site(node), self.tick(), definition=definition, node=node)
        return False

    def _import(self, node: ast.Import) -> bool:
        for alias in node.names:
            name = alias.name if alias.asname else alias.name.partition(".")[0]
            self.frame.names[alias.asname or name] = Value(MODULE, name)
        return False

    def _import_from(self, node: ast.ImportFrom) -> bool:
        base = absolute(self.frame.module, node)
        for alias in node.names:
            if alias.name == "*":
                source = self.project.find(base, self.frame.module)
                if source is not None:
                    own = f"{self.frame.module.name}."  # what the other has from here stays as it is
                    self.frame.names.update(
                        (name, Value(IMPORTED, f"{base}.{name}"))
                        for name, value in self.project.names(source).items()
                        if not name.startswith("_") and not (value.kind == IMPORTED and value.name == own + name)
                    )
                continue
            # Looked up when it is used: most of what a file imports leads nowhere that matters.
            name = f"{base}.{alias.name}" if base else alias.name
            self.frame.names[alias.asname or alias.name] = Value(IMPORTED, name)
        return False

    def _global(self, node: ast.Global | ast.Nonlocal) -> bool:
        frame = self.frame
        for name in node.names:
            if isinstance(node, ast.Global):
                frame.shared[name] = frame.top
            else:
                frame.shared[name] = next((s for s in frame.scope if name in s), frame.top)
        return False

    ACTIONS: dict[type, Callable[..., bool]] = {  # noqa: RUF012 - the same for every instance
        ast.For: _for,
        ast.AsyncFor: _for,
        ast.While: _while,
        ast.With: _with,
        ast.AsyncWith: _with,
        ast.Try: _try,
        ast.Match: _match,
        ast.Assign: _assign,
        ast.AnnAssign: _annotated,
        ast.AugAssign: _in_place,
        ast.Expr: _expression,
        ast.Return: _return,
        ast.Raise: _raise,
        ast.Continue: _leave,
        ast.Break: _leave,
        ast.Delete: _delete,
        ast.Assert: _assert,
        ast.FunctionDef: _function,
        ast.AsyncFunctionDef: _function,
        ast.ClassDef: _class,
        ast.Import: _import,
        ast.ImportFrom: _import_from,
        ast.Global: _global,
        ast.Nonlocal: _global,
    }
    if hasattr(ast, "TryStar"):
        ACTIONS[ast.TryStar] = _try


def _replace(names: dict[str, Value], by: dict[str, Value]) -> None:
    """In place: closures and a module's `env` hold on to the dictionary."""
    names.clear()
    names.update(by)


def assigned(node: ast.AST) -> list[str]:
    """The names that a loop assigns, its nested functions not counted."""
    names: dict[str, None] = {}
    stack = list(ast.iter_child_nodes(node))
    while stack:
        one = stack.pop()
        if isinstance(one, ast.Name):
            if isinstance(one.ctx, ast.Store):
                names[one.id] = None
        elif isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        else:
            stack.extend(ast.iter_child_nodes(one))
    return list(names)


def adds_to_itself(node: ast.Assign) -> ast.expr | None:
    """What `x = x + y` adds; None for any other assignment."""
    sum_ = node.value
    if len(node.targets) != 1 or not isinstance(sum_, ast.BinOp) or not isinstance(sum_.op, ast.Add):
        return None
    target, left = node.targets[0], sum_.left
    if isinstance(target, ast.Name) and isinstance(left, ast.Name) and target.id == left.id:
        return sum_.right
    return None


def _leaves_quietly(body: Sequence[ast.stmt]) -> bool:
    """Whether a block ends with continue, break or return; a raise is no condition on what follows."""
    return bool(body) and isinstance(body[-1], (ast.Continue, ast.Break, ast.Return))


def _breaks(body: Sequence[ast.stmt]) -> bool:
    """Whether a loop's body may break out of it."""
    stack: list[ast.AST] = list(body)
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.Break, ast.Return)):
            return True
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.For, ast.While)):
            stack.extend(ast.iter_child_nodes(node))
        elif isinstance(node, (ast.For, ast.While)):
            stack.extend(n for n in ast.walk(node) if isinstance(n, ast.Return))
    return False
