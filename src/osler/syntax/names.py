"""Abstract values by name: what a name or an attribute stands for, what an assignment binds, what is recorded."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from osler.syntax.frame import EVENTS, Frame, TooMuch
from osler.syntax.module import Module
from osler.syntax.trace import Block, Event
from osler.syntax.values import (
    CLASS,
    CONSTANT,
    EXTERNAL,
    FUNCTION,
    INSTANCE,
    JOIN,
    LAZY,
    METHOD,
    MODULE,
    PENDING,
    RESULT,
    SEQUENCE,
    UNKNOWN,
    Definition,
    Site,
    Value,
    alternatives,
    member,
    settled,
)

if TYPE_CHECKING:
    from osler.syntax.project import Project

BUILTINS = frozenset(dir(__builtins__) if not isinstance(__builtins__, dict) else __builtins__)


class Names:
    """The lowest part of the interpreter."""

    project: Project
    frame: Frame
    block: Block
    order: int
    count: int

    if TYPE_CHECKING:

        def value(self, node: ast.expr) -> Value: ...
        def call_project(
            self,
            definition: Definition,
            owner: Value | None,
            arguments: Sequence[Value],
            keywords: dict[str, Value],
            event: object,
        ) -> Value | None: ...

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

    def tick(self) -> int:
        """The next moment."""
        self.order += 1
        return self.order

    def join(self, values: Iterable[Value], node: ast.AST) -> Value:
        """Either of the values; the value itself where they are one."""
        distinct = list({id(v): v for v in map(settled, values)}.values())
        if len(distinct) == 1:
            return distinct[0]
        return Value(JOIN, "", self.site(node), self.order, tuple(distinct), node=node)

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
        if name in BUILTINS:
            return Value(EXTERNAL, f"builtins.{name}")
        if len(frame.module.stars) == 1:
            return Value(EXTERNAL, f"{frame.module.stars[0]}.{name}")
        value = Value(UNKNOWN, name, self.site(node), self.order)
        frame.names[name] = value
        return value

    def resolved(self, value: Value, name: str, names: dict[str, Value], importer: Module) -> Value:
        """The value of a name that is looked up at its first use: an imported one, or an imported module's own."""
        if value.kind not in LAZY:
            return value
        if not value.sources:
            # What two modules import from each other ends here.
            value.sources = (Value(UNKNOWN if value.kind == PENDING else EXTERNAL, value.name),)
            # Kept in the value as well: an arm of a branch that is left puts the names back.
            value.sources = (
                self.project.needed(importer, name) if value.kind == PENDING else self._imported(value, importer),
            )
        names[name] = value.sources[0]
        return value.sources[0]

    def _imported(self, value: Value, importer: Module) -> Value:
        base, _, last = value.name.rpartition(".")
        source = self.project.find(base, importer)
        if source is not None:
            inside = self.project.names(source)
            if last in inside and inside[last] is not value:
                return self.resolved(inside[last], last, inside, source)
        return Value(MODULE if self.project.holds(value.name, importer) else EXTERNAL, value.name)

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
                if self.project.holds(dotted, self.frame.module):
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
