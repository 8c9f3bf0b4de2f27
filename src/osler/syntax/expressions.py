"""Abstract evaluation of expressions: the part of the interpreter that makes values and records calls."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from osler.syntax.module import Module
from osler.syntax.trace import Block, Branch, Event, Loop
from osler.syntax.values import (
    CLASS,
    CONSTANT,
    EXTERNAL,
    FUNCTION,
    IMPORTED,
    INSTANCE,
    JOIN,
    MAPPING,
    METHOD,
    MODULE,
    RESULT,
    SEQUENCE,
    UNKNOWN,
    Definition,
    Site,
    Value,
    alternatives,
    member,
)

if TYPE_CHECKING:
    from osler.syntax.interpreter import Frame
    from osler.syntax.project import Project

SYMBOLS: dict[type, str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.MatMult: "@",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.BitAnd: "&",
}


# Methods that give back their object: what they are called on goes on being the same model, optimizer, tensor.
SAME = frozenset({"to", "cuda", "cpu", "xpu", "eval", "train", "requires_grad_", "share_memory", "set_params", "apply"})
# The same for objects whose class is known; on a tensor these make another one.
SAME_INSTANCE = frozenset({"float", "double", "half", "bfloat16", "fit", "partial_fit", "type", "compile"})
# Calls that give back what they wrap, as far as a reader of the program is concerned.
WRAPPERS = frozenset(
    {
        "torch.compile",
        "torch.nn.DataParallel",
        "torch.nn.parallel.DataParallel",
        "torch.nn.parallel.DistributedDataParallel",
        "torch.distributed.fsdp.FullyShardedDataParallel",
        "torch.jit.script",
        "torch.nn.SyncBatchNorm.convert_sync_batchnorm",
        "builtins.iter",
        "tqdm.tqdm",
        "tqdm.auto.tqdm",
        "tqdm.notebook.tqdm",
        "tqdm.tqdm_notebook",
        "tqdm.trange",
        "rich.progress.track",
    }
)
# Methods that put their argument into their object.
FILLING = frozenset({"append", "extend", "insert", "add", "update", "setdefault", "appendleft", "put"})
BUILTINS = frozenset(dir(__builtins__) if not isinstance(__builtins__, dict) else __builtins__)


class Expressions:
    """Evaluates expressions; the statements are in `osler.syntax.interpreter`."""

    project: Project
    frame: Frame
    block: Block
    order: int
    count: int

    if TYPE_CHECKING:

        def tick(self) -> int: ...
        def join(self, values: Sequence[Value], node: ast.AST) -> Value: ...
        def call_project(
            self,
            definition: Definition,
            owner: Value | None,
            arguments: Sequence[Value],
            keywords: dict[str, Value],
            event: object,
        ) -> Value | None: ...
        def instantiate(
            self, cls: Value, arguments: tuple[Value, ...], keywords: dict[str, Value], node: ast.AST, event: object
        ) -> Value: ...

    # --- making values ------------------------------------------------------------------------------------------------

    def site(self, node: ast.AST, module: Module | None = None) -> Site:
        """Where a node stands."""
        path = (module or self.frame.module).path
        try:
            return Site(path, node.lineno, node.col_offset)  # type: ignore[attr-defined]
        except AttributeError:
            return Site(path, 1, 0)

    def result(self, name: str, node: ast.AST, sources: tuple[Value, ...] = ()) -> Value:
        """The result of an operation."""
        return Value(RESULT, name, self.site(node), self.tick(), sources, node=node)

    def event(
        self,
        name: str,
        node: ast.AST,
        receiver: Value | None,
        result: Value,
        arguments: tuple[Value, ...] = (),
        keywords: dict[str, Value] | None = None,
    ) -> Event:
        """Record that something happens."""
        from osler.syntax.interpreter import EVENTS, TooMuch

        self.count += 1
        if self.count > EVENTS:
            raise TooMuch
        event = Event(name, node, self.site(node), self.tick(), receiver, result, self.block, arguments, keywords or {})
        self.block.items.append(event)
        return event

    def element(self, over: Value, node: ast.AST) -> Value:
        """What a loop over a value has in its hand."""
        if over.kind == SEQUENCE and over.items:
            return self.join(over.items, node)
        if over.kind == RESULT and over.name == "builtins.enumerate" and over.sources:
            return Value(SEQUENCE, "", items=[self.result("count", node), self.element(over.sources[0], node)])
        if over.kind == RESULT and over.name == "builtins.zip" and over.sources:
            return Value(SEQUENCE, "", items=[self.element(s, node) for s in over.sources])
        if over.kind == RESULT and over.name == "generator":
            return self.join(over.sources, node) if over.sources else self.result("element", node, (over,))
        if over.kind == RESULT and over.name == "builtins.range":
            return self.result("count", node, over.sources)
        return self.result("element", node, (over,))

    def entered(self, context: Value, node: ast.AST) -> Value:
        """What `with … as name` gives the name."""
        if context.kind == INSTANCE and context.definition is not None:
            enter = member(context.definition, "__enter__")
            if enter is not None and enter.definition is not None:
                return self.call_project(enter.definition, context, (), {}, None) or context
        return context

    # --- names and targets --------------------------------------------------------------------------------------------

    def assign(self, target: ast.expr, value: Value) -> None:
        """Bind a target."""
        frame = self.frame
        if isinstance(target, ast.Name):
            frame.shared.get(target.id, frame.names)[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            for one, part in zip(target.elts, self.unpacked(value, target.elts, target)):
                self.assign(one, part)
        elif isinstance(target, ast.Starred):
            self.assign(target.value, value)
        elif isinstance(target, ast.Attribute):
            owner = self.value(target.value)
            self.event(f".{target.attr}=", target, owner, value, (value,))
            for holder in alternatives(owner):
                old = holder.attributes.get(target.attr)
                sure = old is None or owner.kind != JOIN
                holder.attributes[target.attr] = value if sure or old is None else self.join((old, value), target)
        elif isinstance(target, ast.Subscript):
            owner = self.value(target.value)
            index = self.value(target.slice)
            self.event("[]=", target, owner, value, (index, value))
            for holder in alternatives(owner):
                holder.later.append((self.order, value))
                if index.kind == CONSTANT and isinstance(index.constant, str):
                    holder.attributes[f"[{index.constant}]"] = value

    def unpacked(self, value: Value, targets: Sequence[ast.expr], node: ast.AST) -> list[Value]:
        """A value taken apart for so many targets."""
        star = next((i for i, t in enumerate(targets) if isinstance(t, ast.Starred)), None)
        if value.kind == SEQUENCE and star is None and len(value.items) >= len(targets):
            return value.items[: len(targets)]
        if value.kind == SEQUENCE and star is not None and len(value.items) >= len(targets) - 1:
            tail = len(targets) - star - 1
            middle = value.items[star : len(value.items) - tail]
            rest = Value(SEQUENCE, "", self.site(node), self.order, items=middle)
            return [*value.items[:star], rest, *value.items[len(value.items) - tail :]]
        if value.kind == JOIN:
            parts = [self.unpacked(v, targets, node) for v in alternatives(value) if v.kind == SEQUENCE]
            if parts and all(len(p) == len(targets) for p in parts):
                return [self.join(column, node) for column in zip(*parts)]
        return [self.result(f"[{i}]", node, (value,)) for i in range(len(targets))]

    def lookup(self, name: str, node: ast.AST) -> Value:
        """What a name stands for."""
        frame = self.frame
        shared = frame.shared.get(name)
        for names in (shared,) if shared is not None else (frame.names, *frame.scope):
            if name in names:
                return self.resolved(names[name], name, names, frame.module)
        if name in frame.module.env:
            return self.resolved(frame.module.env[name], name, frame.module.env, frame.module)
        if name in BUILTINS:
            return Value(EXTERNAL, f"builtins.{name}")
        if len(frame.module.stars) == 1:
            return Value(EXTERNAL, f"{frame.module.stars[0]}.{name}")
        value = Value(UNKNOWN, name, self.site(node), self.order)
        frame.names[name] = value
        return value

    def resolved(self, value: Value, name: str, names: dict[str, Value], importer: Module) -> Value:
        """An imported name's value, looked up in the project at its first use."""
        if value.kind != IMPORTED:
            return value
        base, _, last = value.name.rpartition(".")
        source = self.project.find(base, importer)
        found = None
        if source is not None:
            inside = self.project.names(source)
            if last in inside and inside[last] is not value:
                found = self.resolved(inside[last], last, inside, source)
        if found is None:
            module = self.project.find(value.name, importer) is not None
            found = Value(MODULE if module else EXTERNAL, value.name)
        names[name] = found
        return found

    def attribute(self, owner: Value, name: str, node: ast.AST) -> Value:
        """`owner.name`."""
        if owner.kind == JOIN:
            found = [self.attribute(v, name, node) for v in alternatives(owner)]
            return self.join(found, node) if found else self.result(f".{name}", node, (owner,))
        known = owner.attributes.get(name)
        if known is not None:
            return known
        if owner.kind in (MODULE, EXTERNAL):
            dotted = f"{owner.name}.{name}"
            if owner.kind == MODULE:
                source = self.project.find(owner.name, self.frame.module)
                names = self.project.names(source) if source is not None else {}
                if source is not None and name in names:
                    return self.resolved(names[name], name, names, source)
                if self.project.find(dotted, self.frame.module) is not None:
                    return Value(MODULE, dotted)
            return Value(EXTERNAL, dotted)
        if owner.definition is not None and owner.kind in (INSTANCE, CLASS, UNKNOWN):
            found_member = member(owner.definition, name)
            if found_member is not None:
                return self._bound(owner, found_member, node)
        if owner.kind in (UNKNOWN, INSTANCE, CLASS):
            value = Value(UNKNOWN, f"{owner.name}.{name}", self.site(node), self.order, (owner,), node=node)
        else:
            value = self.result(f".{name}", node, (owner,))
        owner.attributes[name] = value
        return value

    def _bound(self, owner: Value, found: Value, node: ast.AST) -> Value:
        definition = found.definition
        if found.kind != FUNCTION or definition is None or owner.kind == CLASS:
            return found
        names = {d.name for d in definition.decorators}
        if "builtins.staticmethod" in names:
            return found
        if "builtins.property" in names or "functools.cached_property" in names:
            return self.call_project(definition, owner, (), {}, None) or self.result(f".{found.name}", node, (owner,))
        return Value(METHOD, found.name, found.site, self.order, (owner,), definition=definition, owner=owner)

    # --- expressions --------------------------------------------------------------------------------------------------

    def value(self, node: ast.expr) -> Value:
        """The value of an expression; the calls in it are recorded on the way."""
        action = self.EXPRESSIONS.get(type(node))
        if action is not None:
            return action(self, node)
        parts = tuple(self.value(c) for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr))
        return self.result(type(node).__name__, node, parts)

    def _name(self, node: ast.Name) -> Value:
        return self.lookup(node.id, node)

    def _constant(self, node: ast.Constant) -> Value:
        return Value(CONSTANT, "", self.site(node), self.order, constant=node.value, node=node)

    def _attribute(self, node: ast.Attribute) -> Value:
        return self.attribute(self.value(node.value), node.attr, node)

    def _sequence(self, node: ast.Tuple | ast.List | ast.Set) -> Value:
        items = []
        for one in node.elts:
            value = self.value(one.value if isinstance(one, ast.Starred) else one)
            items += value.items if isinstance(one, ast.Starred) and value.kind == SEQUENCE else [value]
        return Value(SEQUENCE, type(node).__name__, self.site(node), self.tick(), items=items, node=node)

    def _mapping(self, node: ast.Dict) -> Value:
        out = Value(MAPPING, "", self.site(node), self.tick(), node=node)
        for key, expression in zip(node.keys, node.values):
            value = self.value(expression)
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                out.attributes[f"[{key.value}]"] = value
            elif key is None and value.kind == MAPPING:
                out.attributes.update(value.attributes)
            elif key is not None:
                self.value(key)
            out.later.append((self.order, value))
        return out

    def _subscript(self, node: ast.Subscript) -> Value:
        owner = self.value(node.value)
        index = self.value(node.slice)
        if index.kind == CONSTANT:
            if owner.kind == SEQUENCE and isinstance(index.constant, int):
                try:
                    return owner.items[index.constant]
                except IndexError:
                    pass
            if isinstance(index.constant, str) and f"[{index.constant}]" in owner.attributes:
                return owner.attributes[f"[{index.constant}]"]
        return self.result("[]", node, (owner, index))

    def _slice(self, node: ast.Slice) -> Value:
        parts = tuple(self.value(p) for p in (node.lower, node.upper, node.step) if p is not None)
        return Value(RESULT, "slice", self.site(node), self.order, parts, node=node)

    def _binary(self, node: ast.BinOp) -> Value:
        left, right = self.value(node.left), self.value(node.right)
        return self.result(SYMBOLS.get(type(node.op), "?"), node, (left, right))

    def _unary(self, node: ast.UnaryOp) -> Value:
        operand = self.value(node.operand)
        number = operand.constant
        if operand.kind == CONSTANT and isinstance(node.op, ast.USub) and isinstance(number, (int, float)):
            return Value(CONSTANT, "", self.site(node), self.order, constant=-number, node=node)
        return self.result("not" if isinstance(node.op, ast.Not) else "-", node, (operand,))

    def _compare(self, node: ast.Compare) -> Value:
        parts = (self.value(node.left), *(self.value(c) for c in node.comparators))
        return self.result("compare", node, parts)

    def _either(self, node: ast.BoolOp) -> Value:
        return self.join([self.value(v) for v in node.values], node)

    def _conditional(self, node: ast.IfExp) -> Value:
        test = self.value(node.test)
        if not any(isinstance(n, ast.Call) for arm in (node.body, node.orelse) for n in ast.walk(arm)):
            return self.join((self.value(node.body), self.value(node.orelse)), node)
        branch = Branch(node, self.site(node), self.block, order=self.tick(), test=test)
        self.block.items.append(branch)
        outer = self.block
        values = []
        for arm in (node.body, node.orelse):
            self.block = Block(branch)
            branch.blocks.append(self.block)
            values.append(self.value(arm))
        self.block = outer
        branch.end = self.order
        return self.join(values, node)

    def _walrus(self, node: ast.NamedExpr) -> Value:
        value = self.value(node.value)
        self.assign(node.target, value)
        return value

    def _lambda(self, node: ast.Lambda) -> Value:
        frame = self.frame
        scope = frame.scope if frame.names is frame.module.env else (frame.names, *frame.scope)
        definition = Definition("<lambda>", node, frame.module, scope)
        return Value(FUNCTION, "<lambda>", self.site(node), self.tick(), definition=definition, node=node)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Value:
        names = self.frame.names
        before = dict(names)
        outer = self.block
        over: list[Value] = []
        for generator in node.generators:
            source = self.value(generator.iter)
            over.append(source)
            loop = Loop(node, self.site(node), self.block, order=self.tick(), over=source)
            self.block.items.append(loop)
            self.block = Block(loop)
            loop.blocks.append(self.block)
            loop.target = self.element(source, node)
            self.assign(generator.target, loop.target)
            for condition in generator.ifs:
                self.value(condition)
        if isinstance(node, ast.DictComp):
            parts: tuple[Value, ...] = (self.value(node.key), self.value(node.value))
        else:
            parts = (self.value(node.elt),)
        self.block = outer
        names.clear()
        names.update(before)
        return self.result("comprehension", node, (*parts, *over))

    def _await(self, node: ast.Await) -> Value:
        return self.value(node.value)

    def _yield(self, node: ast.Yield | ast.YieldFrom) -> Value:
        value = self.value(node.value) if node.value is not None else Value(CONSTANT, "None")
        self.frame.yields.append(value)
        return self.result("yield", node)

    def _starred(self, node: ast.Starred) -> Value:
        return self.value(node.value)

    # --- calls --------------------------------------------------------------------------------------------------------

    def _call(self, node: ast.Call) -> Value:
        func = node.func
        receiver: Value | None = None
        if isinstance(func, ast.Attribute):
            if _is_super(func.value):
                return self._super(node, func.attr)
            receiver = self.value(func.value)
            callee = self.attribute(receiver, func.attr, func) if self._goes_in(receiver, func.attr) else None
        else:
            callee = self.value(func)
        arguments = []
        for one in node.args:
            value = self.value(one.value if isinstance(one, ast.Starred) else one)
            arguments += value.items if isinstance(one, ast.Starred) and value.kind == SEQUENCE else [value]
        keywords: dict[str, Value] = {}
        for keyword in node.keywords:
            value = self.value(keyword.value)
            if keyword.arg is not None:
                keywords[keyword.arg] = value
            elif value.kind == MAPPING:
                keywords |= {k[1:-1] if k.startswith("[") else k: v for k, v in value.attributes.items()}
            else:
                keywords["**"] = value
        if callee is None:
            assert receiver is not None and isinstance(func, ast.Attribute)
            return self._method(node, receiver, func.attr, tuple(arguments), keywords)
        return self.call(node, callee, tuple(arguments), keywords)

    def _goes_in(self, receiver: Value, name: str) -> bool:
        """Whether a method is looked up as an attribute: of a module, or one that the project defines or assigned."""
        for one in alternatives(receiver):
            if one.kind in (MODULE, EXTERNAL, CLASS) or name in one.attributes:
                known = one.attributes.get(name)
                # What was merely read off the object is its method; what was assigned to it is called itself.
                return known is None or known.kind not in (UNKNOWN, RESULT) or known.sources[:1] != (one,)
            if one.definition is not None and member(one.definition, name) is not None:
                return True
        return False

    def _method(
        self, node: ast.Call, receiver: Value, name: str, arguments: tuple[Value, ...], keywords: dict[str, Value]
    ) -> Value:
        """A method that the project does not define."""
        kinds = {v.kind for v in alternatives(receiver)}
        sources = (receiver, *arguments, *keywords.values())
        result = self.result(f".{name}", node, sources)
        if name in SAME or (name in SAME_INSTANCE and kinds == {INSTANCE}):
            result = receiver
        elif name == "prepare" and arguments:
            # Accelerate and Fabric: the same objects, wrapped.
            result = arguments[0] if len(arguments) == 1 else Value(SEQUENCE, "", items=list(arguments))
        event = self.event(f".{name}", node, receiver, result, arguments, keywords)
        if result.event is None and result is not receiver and result.kind == RESULT:
            result.event = event
        if name in FILLING:
            for one in alternatives(receiver):
                one.later += [(self.order, v) for v in (*arguments, *keywords.values())]
                if one.kind == SEQUENCE and name == "append":
                    one.items += arguments
        return result

    def call(self, node: ast.Call, callee: Value, arguments: tuple[Value, ...], keywords: dict[str, Value]) -> Value:
        """Call a value."""
        options = alternatives(callee)
        if len(options) > 1:
            # Something of the project is more telling than what nobody knows.
            inside = [v for v in options if v.definition is not None]
            callee = (inside or options)[0]
        sources = (*arguments, *keywords.values())
        definition = callee.definition
        if callee.kind == EXTERNAL:
            return self._external(node, callee.name, arguments, keywords)
        if callee.kind in (FUNCTION, METHOD) and definition is not None:
            result = self.result(definition.name, node, ((callee.owner,) if callee.owner else ()) + sources)
            event = self.event(definition.name, node, callee.owner, result, arguments, keywords)
            result.event = event
            return self.call_project(definition, callee.owner, arguments, keywords, event) or result
        if callee.kind == CLASS and definition is not None:
            result = self.result(definition.name, node, sources)
            event = self.event(definition.name, node, None, result, arguments, keywords)
            event.result = self.instantiate(callee, arguments, keywords, node, event)
            event.result.event = event
            return event.result
        result = self.result("()", node, (callee, *sources))
        event = self.event("()", node, callee, result, arguments, keywords)
        result.event = event
        if callee.kind == INSTANCE and definition is not None:
            forward = member(definition, "__call__") or member(definition, "forward")
            if forward is not None and forward.definition is not None:
                given = self.call_project(forward.definition, callee, arguments, keywords, event)
                if given is not None:
                    event.result = given
                    return given
        return result

    def _external(self, node: ast.Call, name: str, arguments: tuple[Value, ...], keywords: dict[str, Value]) -> Value:
        sources = (*arguments, *keywords.values())
        last = name.rpartition(".")[2]
        if name in WRAPPERS and arguments:
            self.event(name, node, None, arguments[0], arguments, keywords)
            return arguments[0]
        if name == "builtins.getattr" and len(arguments) > 1 and isinstance(arguments[1].constant, str):
            return self.attribute(arguments[0], arguments[1].constant, node)
        made = last[:1].isupper()
        result = Value(INSTANCE if made else RESULT, name, self.site(node), self.tick(), sources, node=node)
        result.event = self.event(name, node, None, result, arguments, keywords)
        if name == "functools.partial" and arguments and arguments[0].definition is not None:
            return arguments[0]
        return result

    def _super(self, node: ast.Call, name: str) -> Value:
        owner, definition = self.frame.owner, self.frame.definition
        arguments = tuple(self.value(a.value if isinstance(a, ast.Starred) else a) for a in node.args)
        keywords = {k.arg or "**": self.value(k.value) for k in node.keywords}
        parent = definition.parent if definition is not None else None
        if owner is not None and parent is not None:
            for base in parent.bases:
                method = member(base.definition, name) if base.definition is not None else None
                if method is not None and method.definition is not None:
                    given = self.call_project(method.definition, owner, arguments, keywords, None)
                    return given or self.result(f".{name}", node, (owner, *arguments))
        result = self.result(f"super.{name}", node, (*((owner,) if owner else ()), *arguments, *keywords.values()))
        self.event(f"super.{name}", node, owner, result, arguments, keywords)
        return result

    EXPRESSIONS: dict[type, Callable[..., Value]] = {  # noqa: RUF012 - the same for every instance
        ast.Name: _name,
        ast.Constant: _constant,
        ast.Attribute: _attribute,
        ast.Tuple: _sequence,
        ast.List: _sequence,
        ast.Set: _sequence,
        ast.Dict: _mapping,
        ast.Subscript: _subscript,
        ast.Slice: _slice,
        ast.BinOp: _binary,
        ast.UnaryOp: _unary,
        ast.Compare: _compare,
        ast.BoolOp: _either,
        ast.IfExp: _conditional,
        ast.NamedExpr: _walrus,
        ast.Lambda: _lambda,
        ast.ListComp: _comprehension,
        ast.SetComp: _comprehension,
        ast.GeneratorExp: _comprehension,
        ast.DictComp: _comprehension,
        ast.Await: _await,
        ast.Yield: _yield,
        ast.YieldFrom: _yield,
        ast.Starred: _starred,
        ast.Call: _call,
    }


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"
