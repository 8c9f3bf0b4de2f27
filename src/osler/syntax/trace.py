"""What a program does, in order: calls, inside loops, branches, `with` blocks and inlined functions.

A trace is a tree of blocks. It is made by the interpreter and asked by the rules: which calls stand in this loop, in
which order, under which condition, within which context.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from osler.syntax.values import Definition, Site, Value


@dataclass(slots=True, eq=False, repr=False)
class Block:
    """Things in order; `parent` is the node that the block belongs to, None for the whole trace."""

    parent: Node | None = None
    items: list[Event | Node] = field(default_factory=list)

    def events(self) -> Iterator[Event]:
        """Every event in it, in order, whatever it is nested in."""
        # A stack of iterators: generators inside generators would hand each event through every level.
        stack = [iter(self.items)]
        while stack:
            for item in stack[-1]:
                if type(item) is Event:
                    yield item
                else:
                    stack += [iter(block.items) for block in reversed(item.blocks)]  # type: ignore[union-attr]
                    break
            else:
                stack.pop()

    def nodes(self) -> Iterator[Node]:
        """Every loop, branch, region and inlined function in it, outer before inner."""
        for item in self.items:
            if isinstance(item, Node):
                yield item
                for block in item.blocks:
                    yield from block.nodes()


@dataclass(slots=True, eq=False, repr=False)
class Node:
    """Something that holds blocks.

    Attributes:
        node: its `ast` node.
        site: where it begins.
        block: the block that it stands in.
        blocks: what it holds.
        order: the moment at which it was entered; `end` the one at which it was left.
    """

    node: ast.AST
    site: Site
    block: Block
    blocks: list[Block] = field(default_factory=list)
    order: int = 0
    end: int = 0

    @property
    def body(self) -> Block:
        """The first block."""
        return self.blocks[0]

    def events(self) -> Iterator[Event]:
        """Every event in it, in order."""
        for block in self.blocks:
            yield from block.events()


@dataclass(slots=True, eq=False, repr=False)
class Loop(Node):
    """`for`, `while` or a comprehension. `over` is what a `for` goes through, `target` its variable."""

    over: Value | None = None
    target: Value | None = None

    @property
    def comprehension(self) -> bool:
        """It is a comprehension or a generator expression."""
        return not isinstance(self.node, (ast.For, ast.AsyncFor, ast.While))


@dataclass(slots=True, eq=False, repr=False)
class Branch(Node):
    """`if`, a conditional expression, `match`, `try` with its handlers: one block an arm, the last may be empty."""

    test: Value | None = None


@dataclass(slots=True, eq=False, repr=False)
class Region(Node):
    """A `with` block, or a function under a decorator that is one: `context` is what stands after `with`."""

    context: Value | None = None


@dataclass(slots=True, eq=False, repr=False)
class Inlined(Node):
    """A function of the project at the place of its call. `call` is the event of the call."""

    definition: Definition | None = None
    call: Event | None = None


@dataclass(slots=True, eq=False, repr=False)
class Event:
    """A call.

    Attributes:
        name: dotted name of a library's function or class; `.method` for a method of anything; `()` for calling an
            object; the qualified name of a function or class of the project; `+=` and so on for an assignment in
            place, `=+` for `x = x + y`; `.name=` for an assignment to an attribute.
        node: the `ast.Call`, or the statement of an assignment.
        site: where it stands.
        order: when it happens.
        receiver: of a method, a called object or an assignment: the object.
        result: what it gives.
        block: the block that it stands in.
        arguments: by position, the receiver not counted; starred ones are given as they are.
        keywords: by keyword; `**` is the key of what is unpacked.
    """

    name: str
    node: ast.AST
    site: Site
    order: int
    receiver: Value | None
    result: Value
    block: Block
    arguments: tuple[Value, ...] = ()
    keywords: dict[str, Value] = field(default_factory=dict)

    @property
    def method(self) -> str:
        """Its last name: `step` of `.step`, `softmax` of `torch.softmax`."""
        return self.name.rpartition(".")[2]

    def argument(self, position: int, keyword: str = "") -> Value | None:
        """An argument by position (the receiver not counted) or keyword."""
        if keyword and keyword in self.keywords:
            return self.keywords[keyword]
        return self.arguments[position] if 0 <= position < len(self.arguments) else None

    def above(self) -> Iterator[Node]:
        """What it stands in, inner before outer."""
        node = self.block.parent
        while node is not None:
            yield node
            node = node.block.parent

    @property
    def loop(self) -> Loop | None:
        """The innermost loop that is no comprehension."""
        return next((n for n in self.above() if isinstance(n, Loop) and not n.comprehension), None)

    def loops(self) -> list[Loop]:
        """The loops around it that are no comprehensions, inner before outer."""
        return [n for n in self.above() if isinstance(n, Loop) and not n.comprehension]

    def branches(self, within: Node | None = None) -> list[Branch]:
        """The branches it stands under, inner before outer, up to the node `within`."""
        out = []
        for node in self.above():
            if node is within:
                break
            if isinstance(node, Branch):
                out.append(node)
        return out

    def regions(self) -> list[Region]:
        """The `with` blocks around it, inner before outer."""
        return [n for n in self.above() if isinstance(n, Region)]

    def functions(self) -> list[Inlined]:
        """The inlined functions around it, inner before outer."""
        return [n for n in self.above() if isinstance(n, Inlined)]


@dataclass(slots=True, eq=False, repr=False)
class Trace:
    """One way through the program.

    Attributes:
        kind: `script` (the module's body, as it runs), or `entry` (a function or method that nothing in the project was
            seen to call, with unknown arguments).
        definition: of an entry.
        owner: of a method: the object it was called on.
        block: what happens.
        complete: nothing was cut short for size or depth.
    """

    kind: str
    block: Block
    definition: Definition | None = None
    owner: Value | None = None
    complete: bool = True

    def events(self) -> list[Event]:
        """Every event, in order."""
        return list(self.block.events())

    def nodes(self) -> list[Node]:
        """Every node, outer before inner."""
        return list(self.block.nodes())

    def loops(self) -> list[Loop]:
        """Every loop that is no comprehension."""
        return [n for n in self.nodes() if isinstance(n, Loop) and not n.comprehension]
