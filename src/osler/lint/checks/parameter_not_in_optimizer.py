"""A layer that the loss goes through, that was made before the optimizer, and that no optimizer was given."""

from __future__ import annotations

from collections.abc import Iterator

from osler.core.finding import Confidence
from osler.lint.facts import Facts
from osler.lint.hit import Hit, line_of
from osler.lint.ownership import Training, inside, trainings, used
from osler.syntax.values import INSTANCE, Value, alternatives

RULE = "parameter-not-in-optimizer"
CALLS = frozenset({"parameters"})

CUTS = frozenset((".detach", ".data", ".item", ".numpy", ".tolist"))


def check(facts: Facts) -> Iterator[Hit]:
    """Each optimizer of a training in which everything that learns is known, and something is left out."""
    for one in trainings(facts):
        if not one.followed:
            continue
        owned = inside((m for o in one.owners for m in o.modules), history=one.history)
        given = _given_values(one)
        first = min(one.owners, key=lambda o: o.event.order)
        last = max(one.owners, key=lambda o: o.event.order)
        for layer in left_out(one, owned):
            if layer.order > first.event.order or id(layer) in given or layer.site is None:
                continue
            yield Hit(
                last.event.site,
                f"The loss goes through the {layer.name.rpartition('.')[2]} made in {line_of(layer.site)}, and no optimizer is "
                "given its parameters: it stays as it was initialised.",
                "Give it to the optimizer, or set requires_grad_(False) on it where it is meant to stay fixed.",
                Confidence.DEFINITE if one.complete else Confidence.PROBABLE,
                evidence={"layer": layer.site},
            )
            break


def left_out(one: Training, owned: set[int]) -> list[Value]:
    """The layers that a loss goes through and that are not among those, in the order in which they are met."""
    found: dict[int, Value] = {}
    for backward in one.backwards:
        if backward.receiver is None:
            continue
        for _, layer in used(backward.receiver, CUTS):
            if id(layer) not in owned:
                found[id(layer)] = layer
    return list(found.values())


def _given_values(one: Training) -> set[int]:
    """Layers that get their values from elsewhere, or are put to rest: a target network, a pretrained one."""
    out: set[int] = set()
    for event in one.events:
        if event.name in (".load_state_dict", ".eval", ".copy_", ".from_pretrained") and event.receiver is not None:
            out |= inside(v for v in alternatives(event.receiver) if v.kind == INSTANCE)
    return out
