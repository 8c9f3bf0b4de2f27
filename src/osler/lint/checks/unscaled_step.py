"""A step on gradients that are still multiplied by the loss scale; a scaler that is never updated."""

from __future__ import annotations

from collections.abc import Iterator

from osler.core.finding import Confidence
from osler.lint.facts import Facts
from osler.lint.hit import Hit, line_of
from osler.lint.objects import known_optimizer, scaler_like
from osler.lint.order import Stretch, backwards, given, root, steps, stretch
from osler.lint.turns import Turn, scaled, turns
from osler.syntax.trace import Event
from osler.syntax.values import INSTANCE, Value, alternatives, same

RULE = "unscaled-step"
CALLS = frozenset({"step"})


def check(facts: Facts) -> Iterator[Hit]:
    """Each plain step after a scaled backward, and each loop in which a scaler steps and is not updated."""
    for step in steps(facts.events(".step")):
        if step.receiver is not None and not scaler_like(step.receiver):
            yield from _plain(step)
    cut = {id(t.block) for t in facts.traces if not t.complete}
    for turn in turns(facts):
        if id(root(turn.loop.block)) not in cut:
            yield from _without_update(turn)


def _plain(step: Event) -> Iterator[Hit]:
    around = stretch(step)
    backward, scaler = _scaled_before(step, around)
    if backward is None or scaler is None or step.receiver is None or not given(step, backward) or _off(scaler):
        return
    between = [e for e in around.events if backward.order < e.order < step.order]
    if any(_has_to_do_with(e, scaler) for e in between):
        return
    yield Hit(
        step.site,
        f"The optimizer steps on the gradients of {line_of(backward.site)} as they are, still multiplied by the loss scale.",
        "Call scaler.step(optimizer) and then scaler.update() instead.",
        _confidence(scaler, known_optimizer(step.receiver)),
        evidence={"backward": backward.site},
    )


def _scaled_before(step: Event, around: Stretch) -> tuple[Event | None, Value | None]:
    """The nearest scaled backward before a step, unless a plain one always comes in between."""
    for backward in backwards(around.before(step)):
        scaler = scaled(backward)
        if scaler is not None:
            return backward, scaler
        if given(backward, step):
            break
    return None, None


def _without_update(turn: Turn) -> Iterator[Hit]:
    scaler = turn.step.receiver
    if scaler is None or not scaler_like(scaler) or not any(scaled(b) for b in turn.backwards):
        return
    loops = turn.step.loops()
    events = list(loops[-1].events())
    if any(e.method == "update" and e.receiver is not None and _may_be(e.receiver, scaler) for e in events):
        return
    if any(same(alternatives(scaler), [v for a in _given(e) for v in alternatives(a)]) for e in events):
        return
    yield Hit(
        turn.loop.site,
        f"This loop steps through the scaler ({line_of(turn.step.site)}) and never calls its update(), so the loss "
        "scale is never adjusted and the next step is refused.",
        f"Call scaler.update() once in each pass, after {line_of(turn.step.site)}.",
        _confidence(scaler, turn.known),
        evidence={"step": turn.step.site},
    )


def _may_be(receiver: Value, scaler: Value) -> bool:
    return scaler_like(receiver) or same(alternatives(receiver), alternatives(scaler))


def _given(event: Event) -> list[Value]:
    return [*event.arguments, *event.keywords.values()]


def _has_to_do_with(event: Event, scaler: Value) -> bool:
    """The scaler, or something that may hold it, is called: it may take its scale out or step itself."""
    if event.receiver is not None and scaler_like(event.receiver):
        return True
    return same(alternatives(scaler), [v for a in _given(event) for v in alternatives(a)])


def _off(scaler: Value) -> bool:
    events = [v.event for v in alternatives(scaler) if v.event is not None]
    return any("enabled" in e.keywords and e.keywords["enabled"].constant is False for e in events)


def _confidence(scaler: Value, optimizer: bool) -> Confidence:
    known = any(v.kind == INSTANCE for v in alternatives(scaler))
    return Confidence.DEFINITE if known and optimizer else Confidence.PROBABLE
