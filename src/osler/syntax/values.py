"""Abstract values: what an expression of a program stands for, and from what it was made.

A value is a node of a data-flow graph. Two values are the same object of the program exactly when they are the same
node; what a later statement puts into one (`frame["x"] = y`, `self.net = net`) is noted with the moment it happened.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from osler.syntax.module import Module
    from osler.syntax.trace import Event


class Site(NamedTuple):
    """A place in a source: the file, 1-based line, 0-based column in UTF-8 bytes (as `ast` counts)."""

    file: str
    line: int
    column: int


# What a value is. Only what the interpreter itself has to tell apart; the meaning of a library's names is the rules'.
PENDING = "pending"  # a name of an imported module whose statements nobody has needed yet
IMPORTED = "imported"  # a name brought in by `import` that nobody has used yet; `name` is its dotted path
UNKNOWN = "unknown"  # nobody knows: a parameter of an entry point, an attribute never assigned
MODULE = "module"  # an imported module; `name` is its dotted path
EXTERNAL = "external"  # a name out of a library; `name` is its dotted path
FUNCTION = "function"  # a function of the project; `definition`
CLASS = "class"  # a class of the project; `definition`
METHOD = "method"  # a function of the project bound to `owner`
INSTANCE = "instance"  # made by calling a class, of the project or of a library; `name` is the class
CONSTANT = "constant"  # `constant`
SEQUENCE = "sequence"  # a tuple or list display; `items`
MAPPING = "mapping"  # a dict display with constant keys; `attributes`
RESULT = "result"  # of an operation or a call; `name` says which
JOIN = "join"  # either of its sources: after `if`, at the head of a loop
# Names that are looked up when they are used; once that is done, what they stand for is their source.
LAZY = (PENDING, IMPORTED)


@dataclass(slots=True, eq=False, repr=False)
class Value:
    """A node of the data-flow graph.

    Attributes:
        kind: one of the words above.
        name: dotted name of what it is (module, external, class of an instance) or of the operation that made it:
            `torch.softmax`, `.detach` for a method of something unknown, `+`, `[]`, `element` for a loop's variable.
        site: where it was made; None for what no expression made.
        order: when it was made, in the interpreter's order of events.
        sources: the values it was made from: receiver first, then arguments.
        event: the call that made it.
        node: the expression that made it.
        attributes: what is known of its attributes, or a mapping's items.
        items: of a sequence.
        constant: of a constant.
        definition: of a function or class: the project's definition.
        owner: of a method: the object it is bound to.
        later: what was put into it afterwards, with the moment.
    """

    kind: str
    name: str = ""
    site: Site | None = None
    order: int = 0
    sources: tuple[Value, ...] = ()
    event: Event | None = None
    node: ast.AST | None = None
    attributes: dict[str, Value] = field(default_factory=dict)
    items: list[Value] = field(default_factory=list)
    constant: object = None
    definition: Definition | None = None
    owner: Value | None = None
    later: list[tuple[int, Value]] = field(default_factory=list)

    def made_of(self, before: int | None = None) -> Iterator[Value]:
        """Its direct sources, and what was put into it before the moment `before`."""
        yield from self.sources
        yield from self.items
        for order, value in self.later:
            if before is None or order < before:
                yield value


@dataclass(slots=True, eq=False, repr=False)
class Definition:
    """A function or class of the project.

    Attributes:
        name: qualified name inside its module, `Net.forward`.
        node: its `ast` node.
        module: the module that holds it.
        scope: the enclosing scopes, innermost first, the module's last.
        decorators: their values, from the top.
        parent: of a method: the class.
        bases: of a class, the values of its bases.
        members: of a class, its methods and class attributes.
    """

    name: str
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda
    module: Module
    scope: tuple[dict[str, Value], ...] = ()
    decorators: list[Value] = field(default_factory=list)
    parent: Definition | None = None
    bases: list[Value] = field(default_factory=list)
    members: dict[str, Value] = field(default_factory=dict)


def member(definition: Definition, name: str) -> Value | None:
    """A class's member by name, its own before those of its bases in the project."""
    seen: set[int] = set()
    stack = [definition]
    while stack:
        one = stack.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        if name in one.members:
            return one.members[name]
        stack += [b.definition for b in one.bases if b.definition is not None]
    return None


def ancestry(value: Value) -> Iterator[str]:
    """Dotted names of the library classes that a class or an instance descends from."""
    seen: set[int] = set()
    if value.definition is None:
        if value.name:
            yield value.name
        return
    stack = [value.definition]
    while stack:
        one = stack.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        for base in one.bases:
            if base.definition is not None:
                stack.append(base.definition)
            elif base.name:
                yield base.name


def slice_back(
    value: Value,
    through: Callable[[Value], bool] | None = None,
    before: int | None = None,
    limit: int = 4000,
) -> Iterator[Value]:
    """The value and all it was made from, nearest first, each once.

    Args:
        value: where to begin.
        through: whether to go on behind a value; by default always.
        before: leave out what was put into a value from that moment on.
        limit: at most so many values.
    """
    seen = {id(value)}
    queue = [value]
    at = 0
    while at < len(queue) and at < limit:
        one = queue[at]
        at += 1
        yield one
        if through is not None and not through(one):
            continue
        for source in one.made_of(before):
            if id(source) not in seen:
                seen.add(id(source))
                queue.append(source)


def settled(value: Value) -> Value:
    """What a name stands for that was looked up when it was used; any other value itself."""
    return value.sources[0] if value.kind in LAZY and value.sources else value


def alternatives(value: Value, limit: int = 64) -> list[Value]:
    """What a value may be: itself, or behind joins each of its sources that is no join."""
    if value.kind != JOIN:
        return [value]
    return [v for v in slice_back(value, lambda v: v.kind == JOIN, limit=limit) if v.kind != JOIN]


def same(a: Iterable[Value], b: Iterable[Value]) -> bool:
    """Whether two groups of values share an object."""
    ids = {id(v) for v in a}
    return any(id(v) in ids for v in b)
