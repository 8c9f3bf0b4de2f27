"""An optimizer made before the layers that the loss goes through."""

from __future__ import annotations

from collections.abc import Iterator

from osler.core.finding import Confidence
from osler.lint.checks.parameter_not_in_optimizer import left_out
from osler.lint.facts import Facts
from osler.lint.hit import Hit, line_of
from osler.lint.ownership import Training, inside, trainings
from osler.syntax.values import INSTANCE, RESULT, Site, Value, alternatives

RULE = "stale-optimizer-parameters"
CALLS = frozenset({"parameters"})


def check(facts: Facts) -> Iterator[Hit]:
    """Each layer that was made after the last optimizer and that the loss goes through."""
    for one in trainings(facts):
        if not one.followed:
            continue
        owned: set[int] = set()
        for owner in one.owners:
            owned |= inside(owner.modules, owner.event.order, one.history)
        last = max(one.owners, key=lambda o: o.event.order)
        for layer in left_out(one, owned):
            if layer.order < last.event.order or layer.site is None:
                continue
            site, what = _place(one, layer, last.event.order)
            yield Hit(
                last.event.site,
                f"{what} in {line_of(site)}, after the optimizer was made here: it goes on stepping the old parameters, and "
                "the new ones never move.",
                f"Make the optimizer after {line_of(site)}.",
                Confidence.DEFINITE if one.complete else Confidence.PROBABLE,
                evidence={"replaced": site},
            )
            break


def _place(one: Training, layer: Value, after: int) -> tuple[Site, str]:
    """Where the layer comes in: the assignment to a model's attribute, or the model that is made with it."""
    for event in one.events:
        if event.order < after:
            continue
        if event.name.endswith("=") and event.name.startswith(".") and event.arguments:
            holder = event.receiver
            old = holder is not None and any(v.kind == INSTANCE and v.order < after for v in alternatives(holder))
            if old and id(layer) in inside(event.arguments):
                return event.site, f"`{event.name[1:-1]}` is replaced"
    for event in one.events:
        made = event.result
        if (
            event.order > after
            and made.kind == INSTANCE
            and made.definition is not None
            and id(layer) in inside([made])
        ):
            return event.site, "The model is made anew"
    assert layer.site is not None
    return layer.site, "The model is copied" if layer.kind == RESULT else "The layer is made"
