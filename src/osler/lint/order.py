"""Which events happen together and which never do: branches and their arms, one pass of a loop, steps and backwards."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from osler.lint.objects import loader_like, stepped
from osler.lint.turns import Turn
from osler.syntax.interpreter import assigned
from osler.syntax.trace import Block, Branch, Event, Inlined, Loop, Node
from osler.syntax.values import CONSTANT, INSTANCE, JOIN, RESULT, UNKNOWN, Value, slice_back

BACKWARDS = frozenset({".backward", ".manual_backward", "torch.autograd.backward"})
EPOCH = re.compile(r"(^|[^a-z])n?_?(epochs?|ep|eps)([^a-z]|$)", re.IGNORECASE)
_BATCH = re.compile(r"batch|step|iter|micro|accum", re.IGNORECASE)
_BATCHES = re.compile(r"load|batch|data|split|chunk", re.IGNORECASE)
_CONDITIONS = frozenset({"compare", "not", "+", "-"})
_NO_GRAD = ("no_grad", "inference_mode", "set_grad_enabled")


def arms(event: Event, within: Node | None = None) -> dict[int, Block]:
    """For each branch around an event, up to the node `within`, the arm that it stands in."""
    out = {}
    block = event.block
    while (node := block.parent) is not None and node is not within:
        if isinstance(node, Branch):
            out[id(node)] = block
        block = node.block
    return out


def apart(a: Event, b: Event) -> bool:
    """Whether two events stand in different arms of one branch, so that a pass holds at most one of them."""
    there = arms(b)
    return any(there.get(branch, arm) is not arm for branch, arm in arms(a).items())


def excluded(a: Event, b: Event, loop: Loop) -> bool:
    """Whether `a` stands under `if x` and `b` under `if not x`, and the loop does not change `x`: no run of it holds both."""
    there = _conditions_of(b)
    opposite = [text for text, holds in _conditions_of(a).items() if there.get(text) is (not holds)]
    names = set(assigned(loop.node)) if opposite else set()
    return any(names.isdisjoint(_names(text)) for _, text in opposite)


def _conditions_of(event: Event) -> dict[tuple[int, str], bool]:
    """The plain conditions that hold where an event stands: of which function, as written, and whether they are true."""
    out: dict[tuple[int, str], bool] = {}
    block = event.block
    while (node := block.parent) is not None:
        if isinstance(node, Branch) and isinstance(node.node, ast.If):
            function = next((id(n) for n in _above(node) if isinstance(n, Inlined)), 0)
            pending = [(node.node.test, block is node.blocks[0])]
            while pending:
                test, holds = pending.pop()
                if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
                    pending.append((test.operand, not holds))
                elif isinstance(test, ast.BoolOp):
                    # Of `a and b` both hold where it holds, of `a or b` neither where it does not.
                    if isinstance(test.op, ast.And) is holds:
                        pending += [(part, holds) for part in test.values]
                else:
                    out.setdefault((function, ast.unparse(test)), holds)
        block = node.block
    return out


def _above(node: Node) -> Iterator[Node]:
    parent = node.block.parent
    while parent is not None:
        yield parent
        parent = parent.block.parent


def _names(text: str) -> set[str]:
    return {n.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name)}


def given(a: Event, b: Event) -> bool:
    """Whether `a` happens in every pass in which `b` does, as far as branches tell."""
    there = arms(b)
    return all(there.get(branch) is arm for branch, arm in arms(a).items())


def independent(a: Event, b: Event) -> bool:
    """Whether the conditions that only `a` stands under have nothing in common with those that only `b` stands under.

    `if amp:` around one and `else:` of another `if amp:` around the other never happen together, which the arms alone
    do not tell.
    """
    around_a, around_b = a.branches(), b.branches()
    only_a = [n.test for n in around_a if n not in around_b and n.test is not None]
    only_b = [n.test for n in around_b if n not in around_a and n.test is not None]
    leaves = {id(v) for test in only_a for v in _leaves(test)}
    return not any(id(v) in leaves for test in only_b for v in _leaves(test))


def leaves(values: Iterable[Value]) -> set[int]:
    """Ids of the variables and attributes that values are computed from."""
    return {id(v) for value in values for v in _leaves(value)}


def _leaves(value: Value) -> list[Value]:
    inner = slice_back(value, lambda v: not _leaf(v), limit=60)
    return [v for v in inner if _leaf(v) and v.kind != CONSTANT]


def _leaf(value: Value) -> bool:
    return value.kind in (UNKNOWN, INSTANCE) or isinstance(value.node, (ast.Attribute, ast.Call))


def remainder(test: Value) -> Value | None:
    """The `a % b` that a condition looks at directly, as in `(i + 1) % k == 0` and `not i % k`."""
    inner = slice_back(test, lambda v: v.kind == JOIN or v.name in _CONDITIONS, limit=40)
    return next((v for v in inner if v.kind == RESULT and v.name == "%" and len(v.sources) == 2), None)


def without_gradient(event: Event) -> bool:
    """Whether it stands under `no_grad` or the like, or under a `with` that nobody knows and whose name says so."""
    return any(
        node.context is not None and node.context.name.rpartition(".")[2] in _NO_GRAD for node in event.regions()
    )


def over_batches(loop: Loop) -> bool:
    """The loop goes through a loader or something like it, and not through numbers of epochs."""
    node = loop.node
    if not isinstance(node, ast.For) or loop.over is None or EPOCH.search(ast.unparse(node.target)):
        return False
    over = loop.over
    while over.name in ("builtins.enumerate", "itertools.islice") and over.sources:
        over = over.sources[0]
    if over.name == "builtins.range":
        return len(over.sources) == 3 or bool(_BATCH.search(ast.unparse(node.target)))
    return loader_like(over) or bool(_BATCHES.search(ast.unparse(node.iter)))


def steps(events: Iterable[Event]) -> list[Event]:
    """Those that step an optimizer."""
    return [e for e in events if e.name == ".step" and stepped(e.receiver, e.arguments) is not None]


def backwards(events: Iterable[Event]) -> list[Event]:
    """Those that run backward."""
    return [e for e in events if e.name in BACKWARDS]


def root(block: Block) -> Block:
    """The block of the whole trace."""
    while block.parent is not None:
        block = block.parent.block
    return block


@dataclass(slots=True, eq=False)
class Stretch:
    """What happens around an event: one pass of the innermost loop that runs backward, or the whole trace.

    Attributes:
        loop: the loop; None for the whole trace.
        events: everything in it, in order.
    """

    loop: Loop | None
    events: list[Event]

    def before(self, event: Event) -> list[Event]:
        """What comes before an event in the same pass, nearest first; what never happens together with it left out."""
        return [e for e in reversed(self.events) if e.order < event.order and not apart(e, event)]

    def after(self, event: Event) -> list[Event]:
        """What comes after an event in the same pass, in order; what never happens together with it left out."""
        return [e for e in self.events if e.order > event.order and not apart(e, event)]


def stretch(event: Event) -> Stretch:
    """The stretch around an event."""
    for loop in event.loops():
        events = list(loop.events())
        if any(e.name in BACKWARDS for e in events):
            return Stretch(loop, events)
    return Stretch(None, list(root(event.block).events()))


@dataclass(slots=True, eq=False)
class Accumulation:
    """Several backwards to one step.

    Attributes:
        turn: the training loop.
        inner: the inner loop that runs backward, where the step comes after it.
        branch, arm: the condition on a counter that the step stands under, and its arm.
        divisor: the number of backwards to a step, where a remainder names it.
    """

    turn: Turn
    inner: Loop | None = None
    branch: Branch | None = None
    arm: Block | None = None
    divisor: Value | None = None

    def each(self, event: Event) -> bool:
        """Whether an event of the loop happens with each micro-batch."""
        if self.inner is not None:
            return self.inner in event.loops()
        return self.branch not in event.branches(self.turn.loop)


def accumulation(turn: Turn) -> Accumulation | None:
    """How a loop accumulates gradients; None where it does not, or nobody can tell.

    A step in a branch of its own is none when backward stands there too (an actor trained at every other step), when
    another optimizer steps outside it, or when every pass clears the gradients; nor is an inner loop over something else
    than batches (several losses of one batch, the steps of a sequence).
    """
    loop = turn.loop
    for backward in turn.backwards:
        inner = backward.loop
        if inner is not None and inner is not loop and turn.step.loop is loop and backward.order < turn.step.order:
            if any(inner in e.loops() for e in turn.clears) or not over_batches(inner):
                return None
            return Accumulation(turn, inner=inner)
    around = arms(turn.step, loop)
    for branch in turn.step.branches(loop):
        mod = remainder(branch.test) if branch.test is not None else None
        if mod is None:
            continue
        arm = around[id(branch)]
        inside = {id(e) for e in arm.events()}
        outside = [e for e in turn.events if id(e) not in inside]
        if any(id(b) in inside for b in turn.backwards) or not turn.backwards:
            return None
        if steps(outside) or any(id(e) not in inside for e in turn.clears):
            return None
        return Accumulation(turn, branch=branch, arm=arm, divisor=mod.sources[1])
    return None
