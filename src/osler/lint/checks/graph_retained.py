"""A loss summed or collected over a loop with its graph."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from osler.core.finding import Confidence
from osler.lint.facts import Facts
from osler.lint.hit import Edit, Fix, Hit, line_of
from osler.lint.losses import given_to_backward, terms
from osler.lint.order import BACKWARDS, root, without_gradient
from osler.lint.reading import twins
from osler.syntax.interpreter import adds_to_itself
from osler.syntax.trace import Event, Loop
from osler.syntax.values import JOIN, RESULT, SEQUENCE, Value, alternatives, same, slice_back

RULE = "graph-retained"
CALLS = frozenset({"backward", "manual_backward"})

_ADDS = ("+=", "=+")
_CUT = frozenset((".detach", ".item", ".data", ".numpy", ".tolist", "builtins.float"))
_CALLS = ("()", "torch.nn.functional.")
_TENSOR = (*_CALLS, "+", "-", "*", "/")


def check(facts: Facts) -> Iterator[Hit]:
    """Each `total += loss` and `losses.append(loss)` of a tensor that backward is called on in the same loop."""
    for event in facts.events(*_ADDS, ".append", ".extend"):
        if not event.arguments or event.receiver is None or (event.name in _ADDS and without_gradient(event)):
            continue
        loop = next((n for n in event.loops() if any(e.name in BACKWARDS for e in n.events())), None)
        if loop is None or not _kept_over(event, loop) or _begun_anew(event, loop) or _partly_cut(event):
            continue
        backward = _of_the_same(event, loop)
        if backward is None or _goes_to_backward(event):
            continue
        listed = event.arguments[0].kind == SEQUENCE
        how = "added up" if event.name in _ADDS and not listed else "collected"
        yield Hit(
            event.site,
            f"The loss that backward is called on ({line_of(backward.site)}) is {how} as a tensor, so every pass keeps "
            "its graph alive.",
            "Add loss.detach() (stays on the device) or loss.item() (a number) instead.",
            Confidence.DEFINITE if event.name in _ADDS or event.receiver.kind == SEQUENCE else Confidence.PROBABLE,
            evidence={"backward": backward.site},
            fix=_fix(event, backward),
        )


def _kept_over(event: Event, loop: Loop) -> bool:
    """What it is put into lives longer than a pass of the loop."""
    receiver = event.receiver
    assert receiver is not None
    if event.name in (".append", ".extend"):
        return all(
            v.order < loop.order and (v.kind == SEQUENCE or v.name == "builtins.list") for v in alternatives(receiver)
        )
    node = event.node
    total = _total(node)
    if isinstance(total, ast.Name):
        joins = [
            v
            for v in slice_back(receiver, lambda v: v.kind == JOIN or v.name in ("+", "+="), limit=30)
            if v.kind == JOIN
        ]
        return any(v.name == total.id and v.site == loop.site for v in joins)
    set_anew = any(
        e.name == f".{node.target.attr}=" and e.order < event.order
        for e in loop.events()
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Attribute)
    )
    return isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Attribute) and not set_anew


def _begun_anew(event: Event, loop: Loop) -> bool:
    """The loop itself sets what is added up to something new now and then: that many graphs, and no more, are kept."""
    total = _total(event.node)
    if total is None:
        return False
    for statement in ast.walk(loop.node):
        if isinstance(statement, ast.Assign) and statement is not event.node:
            targets = [e for t in statement.targets for e in (t.elts if isinstance(t, ast.Tuple) else [t])]
            if any(twins(target, total) for target in targets):
                return True
    return False


def _total(node: ast.AST) -> ast.expr | None:
    """What something is added to."""
    if isinstance(node, ast.AugAssign):
        return node.target
    return node.targets[0] if isinstance(node, ast.Assign) else None


def _put(event: Event) -> list[Value]:
    """What is added or collected; of `losses += [loss]` and `losses.extend([loss])` the items."""
    given = event.arguments[0]
    return given.items if given.kind == SEQUENCE and event.name != ".append" else [given]


def _partly_cut(event: Event) -> bool:
    """On one of the ways to it the value has left its graph: `if train: loss.backward(); loss = loss.detach()`."""
    return any(v.name in _CUT for put in _put(event) for v in alternatives(put))


def _of_the_same(event: Event, loop: Loop) -> Event | None:
    """The backward of the loop that is called on what is put in, or on a sum that it is part of."""
    put = terms(v for one in _put(event) for v in alternatives(one) if not _weighted_number(v))
    tensors = [v for v in put if _tensor(v)]
    for backward in loop.events():
        if backward.name in BACKWARDS:
            starts = given_to_backward(backward)
            if same(put, starts) or same(tensors, [v for v in terms(starts) if _tensor(v)]):
                return backward
    return None


def _weighted_number(value: Value) -> bool:
    """`loss.detach() * weight`: what is shared with the loss is the weight."""
    return value.name in ("*", "/") and any(v.name in _CUT for s in value.sources for v in alternatives(s))


def _tensor(value: Value) -> bool:
    """It is computed by calling something: a model, a loss; a weight made of numbers is none."""
    if value.kind != RESULT or not value.name.startswith(_TENSOR):
        return False
    return any(v.name.startswith(_CALLS) for v in slice_back(value, limit=60))


def _goes_to_backward(event: Event) -> bool:
    """The sum or the list itself is what some backward is called on."""
    receiver = event.receiver
    assert receiver is not None
    whole = [event.result] if event.name in _ADDS else alternatives(receiver)
    for other in root(event.block).events():
        if other.name in BACKWARDS or other.name == "torch.autograd.grad":
            for start in (other.receiver, *other.arguments):
                if start is not None and same(slice_back(start, limit=1500), whole):
                    return True
    return False


def _fix(event: Event, backward: Event) -> Fix | None:
    """`.detach()` behind a plain name that is the very tensor of the backward."""
    node = event.node
    value: ast.expr | None = None
    if isinstance(node, ast.AugAssign):
        value = node.value
    elif isinstance(node, ast.Assign):
        value = adds_to_itself(node)
    elif isinstance(node, ast.Call):
        value = node.args[0]
    if not isinstance(value, (ast.Name, ast.Attribute)) or value.end_lineno is None or value.end_col_offset is None:
        return None
    if event.arguments[0].kind != RESULT or not same([event.arguments[0]], given_to_backward(backward)):
        return None
    line, column = value.end_lineno, value.end_col_offset
    # What calls an entry is not seen: it may want the graph of what it is given back.
    safe = all(f.call is not None for f in event.functions())
    return Fix((Edit(line, column, line, column, ".detach()"),), safe, "take the loss out of its graph")
