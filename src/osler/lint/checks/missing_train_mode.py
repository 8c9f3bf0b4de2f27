"""Training that goes on in eval mode after the first evaluation."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from osler.core.finding import Confidence
from osler.lint.facts import Facts
from osler.lint.hit import Hit, line_of
from osler.lint.modes import differs, switch
from osler.lint.objects import known_model, model_like
from osler.lint.order import arms, excluded
from osler.lint.turns import Turn, turns
from osler.syntax.trace import Branch, Event, Inlined, Loop
from osler.syntax.values import INSTANCE, UNKNOWN, Value, alternatives, same, slice_back

RULE = "missing-train-mode"
CALLS = frozenset({"eval"})

# Models that take part in a loss and are not trained by it.
_FIXED = re.compile(r"ema|teacher|target|ref|frozen|percept|vgg|feature|pretrained|old|mean", re.IGNORECASE)


def check(facts: Facts) -> Iterator[Hit]:
    """Each loop that trains a model, puts it into eval mode and never back."""
    done = set()
    for turn in turns(facts):
        if not turn.backwards:
            continue
        for loop in turn.step.loops():
            events = turn.events if loop is turn.loop else list(loop.events())
            modes = [(e, switch(e)) for e in events if switch(e)]
            if not modes:
                continue
            for event, mode in modes:
                if mode == "eval" and event.receiver is not None and loop.site not in done:
                    found = _never_back(event, turn, loop, [e for e, m in modes if m != "eval"])
                    if found is not None:
                        done.add(loop.site)
                        yield found
            break


def _never_back(event: Event, turn: Turn, loop: Loop, back: list[Event]) -> Hit | None:
    assert event.receiver is not None
    options = alternatives(event.receiver)
    if len(options) != 1 or not model_like(options[0]):
        return None
    model = options[0]
    if any(not _other(e, model) for e in back) or _ends(event) or loop.order < model.order <= loop.end:
        return None
    if not _trained(model, turn) or excluded(event, turn.step, loop) or _at_one_pass(event, loop):
        return None
    known = model.kind == INSTANCE and known_model(model)
    layer = differs(model) if known else ""
    if known and not layer:
        return None
    what = f", its {layer} included," if layer else ""
    return Hit(
        loop.site,
        f"The model{what} is put into eval mode in {line_of(event.site)} and never back into train mode in this loop, "
        "so all training after the first pass is done in eval mode.",
        f"Call model.train() at the head of each pass, before the training that ends in {line_of(turn.step.site)}.",
        _confidence(event, turn, layer),
        evidence={"eval": event.site, "step": turn.step.site},
    )


def _at_one_pass(event: Event, loop: Loop) -> bool:
    """It stands under `if i == last`: at one pass of the loop, after which whoever begins it anew may call train()."""
    if not isinstance(loop.node, (ast.For, ast.AsyncFor)):
        return False
    counted = {n.id for n in ast.walk(loop.node.target) if isinstance(n, ast.Name)}
    for branch in event.branches(loop):
        for node in ast.walk(branch.node.test) if isinstance(branch.node, ast.If) else ():
            if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Eq, ast.NotEq)):
                sides = (node.left, node.comparators[0])
                if any(isinstance(side, ast.Name) and side.id in counted for side in sides):
                    return True
    return False


def _confidence(event: Event, turn: Turn, layer: str) -> Confidence:
    after = event.order > turn.step.order
    aside = any(isinstance(n, (Branch, Inlined)) for n in event.above() if n.order > turn.step.loops()[-1].order)
    if not after and not aside:
        return Confidence.POSSIBLE  # straight before backward: a model that is frozen on purpose
    return Confidence.DEFINITE if layer else Confidence.PROBABLE


def _other(event: Event, model: Value) -> bool:
    """A switch of something that is certainly another model."""
    options = alternatives(event.receiver) if event.receiver is not None else []
    return bool(options) and all(v.kind == model.kind and v is not model for v in options)


def _ends(event: Event) -> bool:
    """It stands in an arm that leaves the loop."""
    held = {id(arm) for arm in arms(event).values()}
    for branch in event.branches():
        if isinstance(branch.node, ast.If):
            for arm, body in zip(branch.blocks, (branch.node.body, branch.node.orelse)):
                if id(arm) in held and body and isinstance(body[-1], (ast.Break, ast.Return, ast.Raise)):
                    return True
    return False


def _trained(model: Value, turn: Turn) -> bool:
    """The model gives what backward is called on, and the stepped optimizer may own it."""
    if turn.known:
        owned = [v for o in alternatives(turn.optimizer) for s in o.sources for v in slice_back(s, limit=200)]
        if not same(owned, [model, *model.attributes.values()]):
            return False
    elif _FIXED.search(model.name):
        return False
    parts = [model, *(v for v in model.attributes.values() if v.kind in (INSTANCE, UNKNOWN))]
    for backward in turn.backwards:
        for start in (backward.receiver, *backward.arguments):
            if start is not None and same(slice_back(start, limit=1500), parts):
                return True
    return False
