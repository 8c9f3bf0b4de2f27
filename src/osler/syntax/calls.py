"""Abstract calls: of a library, of the project's functions (inlined at the place of the call), of its classes."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from osler.syntax.bindings import FILLING
from osler.syntax.frame import DEPTH, REPEATS, SHALLOW, Frame
from osler.syntax.names import Names
from osler.syntax.trace import Block, Inlined, Region
from osler.syntax.values import (
    CLASS,
    CONSTANT,
    EXTERNAL,
    FUNCTION,
    INSTANCE,
    MAPPING,
    METHOD,
    MODULE,
    RESULT,
    SEQUENCE,
    UNKNOWN,
    Definition,
    Value,
    alternatives,
    member,
)

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


class Calls(Names):
    """The part of the interpreter that goes into functions."""

    stack: list[ast.AST]
    repeats: dict[int, int]
    seen: set[int]
    complete: bool

    if TYPE_CHECKING:

        def statements(self, body: Sequence[ast.stmt], start: int = 0) -> bool: ...

    def call_written(self, node: ast.Call) -> Value:
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

    # --- functions ----------------------------------------------------------------------------------------------------

    def call_project(
        self,
        definition: Definition,
        owner: Value | None,
        arguments: Sequence[Value],
        keywords: dict[str, Value],
        event: object,
    ) -> Value | None:
        """Go through a function of the project at the place of its call; None where it is not gone into."""
        node = definition.node
        times = self.repeats.get(id(node), 0)
        if len(self.stack) >= DEPTH or node in self.stack or times >= REPEATS:
            self.complete = self.complete and node in self.stack
            return None
        if not self.project.telling(definition) and len(self.stack) >= SHALLOW:
            return None
        self.repeats[id(node)] = times + 1
        return self._inline(definition, owner, arguments, keywords, event)

    def _inline(
        self,
        definition: Definition,
        owner: Value | None,
        arguments: Sequence[Value],
        keywords: dict[str, Value],
        event: object,
    ) -> Value | None:
        node = definition.node
        assert not isinstance(node, ast.ClassDef)
        self.seen.add(id(node))
        outer_frame, outer_block = self.frame, self.block
        frame = Frame(definition.module, {}, definition.scope, definition, owner)
        self._bind(frame, node.args, owner if definition.parent is not None else None, arguments, keywords, definition)
        inlined = Inlined(
            node, self.site(node, definition.module), self.block, order=self.tick(), definition=definition
        )
        inlined.call = event  # type: ignore[assignment]
        self.block.items.append(inlined)
        self.block = Block(inlined)
        inlined.blocks.append(self.block)
        for context in definition.decorators:
            region = Region(node, inlined.site, self.block, order=self.order, context=context)
            self.block.items.append(region)
            self.block = Block(region)
            region.blocks.append(self.block)
        self.frame = frame
        self.stack.append(node)
        try:
            if isinstance(node, ast.Lambda):
                frame.returns.append(self.value(node.body))
            else:
                self.statements(node.body)
        finally:
            self.stack.pop()
            self.frame, self.block = outer_frame, outer_block
            inlined.end = self.order
        if frame.yields:
            return self.result("generator", node, tuple(frame.yields))
        if not frame.returns:
            return Value(CONSTANT, "None", constant=None)
        return frame.returns[0] if len(frame.returns) == 1 else self.join(frame.returns, node)

    def _bind(
        self,
        frame: Frame,
        args: ast.arguments,
        owner: Value | None,
        arguments: Sequence[Value],
        keywords: dict[str, Value],
        definition: Definition,
    ) -> None:
        """Parameters get their arguments, their defaults, or something unknown."""
        positional = [a.arg for a in (*args.posonlyargs, *args.args)]
        given = list(arguments)
        static = any(d.name == "builtins.staticmethod" for d in definition.decorators)
        if owner is not None and not static:
            given.insert(0, owner)
        names = frame.names
        entry = not self.stack
        for name, value in zip(positional, given):
            names[name] = value
        if args.vararg is not None:
            more = Value(SEQUENCE, "*", items=given[len(positional) :])
            names[args.vararg.arg] = Value(UNKNOWN, args.vararg.arg) if entry else more
        rest = Value(MAPPING, "**")
        for name, value in keywords.items():
            if name in positional or any(a.arg == name for a in args.kwonlyargs):
                names.setdefault(name, value)
            else:
                rest.attributes[name] = value
        if args.kwarg is not None:
            names[args.kwarg.arg] = Value(UNKNOWN, args.kwarg.arg) if entry else rest
        defaults: list[tuple[str, ast.expr | None]] = list(
            zip(positional[len(positional) - len(args.defaults) :], args.defaults)
        )
        defaults += [(a.arg, d) for a, d in zip(args.kwonlyargs, args.kw_defaults)]
        for name, default in defaults:
            if name not in names and default is not None:
                # An entry's arguments are unknown, whatever their defaults.
                names[name] = Value(UNKNOWN, name) if entry else self.value(default)
        for name in (*positional, *(a.arg for a in args.kwonlyargs)):
            if name not in names:
                names[name] = Value(UNKNOWN, name)

    def instantiate(
        self, cls: Value, arguments: tuple[Value, ...], keywords: dict[str, Value], node: ast.AST, event: object
    ) -> Value:
        """An object of a class of the project, its `__init__` gone through."""
        definition = cls.definition
        assert definition is not None
        one = Value(
            INSTANCE,
            definition.name,
            self.site(node),
            self.tick(),
            (*arguments, *keywords.values()),
            definition=definition,
            node=node,
        )
        init = member(definition, "__init__")
        if init is not None and init.definition is not None:
            self.call_project(init.definition, one, arguments, keywords, event)
        return one


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"
