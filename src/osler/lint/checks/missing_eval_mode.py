"""Evaluation of a model whose dropout or BatchNorm is still in train mode."""

from __future__ import annotations

from collections.abc import Iterator

from osler.core.finding import Confidence
from osler.lint.facts import Facts
from osler.lint.hit import Hit, line_of
from osler.lint.modes import differs, evaluates, mode_at, model_calls, switch
from osler.lint.order import BACKWARDS, steps, without_gradient
from osler.lint.turns import gone_into
from osler.syntax.trace import Event, Trace
from osler.syntax.values import Value, alternatives, same

RULE = "missing-eval-mode"
CALLS = frozenset({"step"})


def check(facts: Facts) -> Iterator[Hit]:
    """Each call of a trained model on test data, in a script that shows the model whole, without eval mode before it."""
    for trace in facts.traces:
        if trace.kind == "script":
            yield from _script(trace)


def _script(trace: Trace) -> Iterator[Hit]:
    events = trace.events()
    calls = model_calls(events)
    if not calls or not steps(events):
        return
    backs = [e for e in events if e.name in BACKWARDS]
    for call, model in calls:
        earlier = [b for b in backs if b.order < call.order and _trains(b, model, calls)]
        if not earlier or not evaluates(call) or not _apart_from_training(call):
            continue
        layer = differs(model)
        mode = mode_at(call, model, events)
        # A switch to train mode after training is one for the evaluation, on purpose.
        if not layer or (mode is not None and (switch(mode) != "train" or mode.order > earlier[-1].order)):
            continue
        if _handed_over(trace, model, earlier[-1].order, call.order):
            continue
        loop = call.loop
        alone = loop is not None and not any(e.name in BACKWARDS for e in loop.events())
        yield Hit(
            loop.site if loop is not None and alone else call.site,
            f"The model is evaluated ({line_of(call.site)}) after training without eval(), so its {layer} still works as "
            "in training.",
            "Call model.eval() before the evaluation, and model.train() before training goes on.",
            Confidence.DEFINITE if trace.complete else Confidence.POSSIBLE,
            evidence={"call": call.site, "layer": layer},
        )


def _trains(backward: Event, model: Value, calls: list[tuple[Event, Value]]) -> bool:
    """The model is called, with gradients, in the loop of a backward before it."""
    loop = backward.loop
    return loop is not None and any(
        one is model and loop.order < call.order < backward.order and not without_gradient(call) for call, one in calls
    )


def _apart_from_training(call: Event) -> bool:
    loop = call.loop
    if loop is None or not any(e.name in BACKWARDS for e in loop.events()):
        return True
    return without_gradient(call)


def _handed_over(trace: Trace, model: Value, start: int, end: int) -> bool:
    """Between training and evaluation the model is given to a function that nobody could look into."""
    inside = gone_into([trace.block])
    for event in trace.events():
        if not start < event.order < end or event.name.startswith((".", "(", "builtins.", "torch.", "super.")):
            continue
        given = [v for a in (*event.arguments, *event.keywords.values()) for v in alternatives(a)]
        if id(event) not in inside and event.result.name == event.name and same(given, [model]):
            return True
    return False
