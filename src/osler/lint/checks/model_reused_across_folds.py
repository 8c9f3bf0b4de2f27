"""One model goes on learning through the folds that should judge it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from osler.core.finding import Confidence
from osler.lint.facts import Facts
from osler.lint.hit import Hit, line_of
from osler.lint.leakage import LIBRARIES, splitter
from osler.lint.objects import known_model, known_optimizer, stepped
from osler.lint.reading import brings_in
from osler.syntax.trace import Event, Loop
from osler.syntax.values import INSTANCE, JOIN, RESULT, Value, alternatives, same, slice_back

RULE = "model-reused-across-folds"
CALLS = frozenset({"split"})

# What makes a model forget.
_ANEW = frozenset(
    ("load_state_dict", "reset_parameters", "apply", "load", "load_weights", "set_weights", "clone_model")
)
_COPIES = ("copy.deepcopy", "copy.copy", "sklearn.base.clone")
_TRAINER = re.compile(r"(transformers|trl)\.(\w+\.)*\w*Trainer")
_FORWARD_IN_TIME = ("TimeSeriesSplit",)


def check(facts: Facts) -> Iterator[Hit]:
    """Each loop over folds that trains a model which was made before it."""
    if not brings_in(facts.module, *LIBRARIES):
        return
    for trace in facts.traces:
        for loop in trace.loops():
            if loop.over is None or not _folds(loop.over):
                continue
            events = list(loop.events())
            if any(e.method in _ANEW or "reset" in e.method or "init" in e.method for e in events):
                continue
            yield from _stepped(loop, events)
            yield from _fitted(loop, events)
            yield from _handed_to_trainer(loop, events)


def _folds(over: Value) -> bool:
    """It goes through what a splitter gives."""
    for value in slice_back(
        over, lambda v: v.kind == JOIN or v.name in ("builtins.enumerate", "builtins.zip", "builtins.list")
    ):
        if value.kind == RESULT and value.name == ".split" and value.sources and splitter(value.sources[0]):
            return not any(v.name.endswith(_FORWARD_IN_TIME) for v in alternatives(value.sources[0]))
    return False


def _before(value: Value, loop: Loop) -> bool:
    """Everything that it may be was made before the loop."""
    return all(v.order < loop.order for v in alternatives(value))


def _stepped(loop: Loop, events: list[Event]) -> Iterator[Hit]:
    """A torch model whose optimizer steps."""
    backward = next((e for e in events if e.name == ".backward"), None)
    if backward is None:
        return
    for step in events:
        optimizer = stepped(step.receiver, step.arguments) if step.name == ".step" else None
        if optimizer is None:
            continue
        owned = [
            v
            for one in alternatives(optimizer)
            for s in one.sources
            for v in slice_back(s, lambda v: v.kind != INSTANCE and v.name not in _COPIES, limit=60)
            if v.name in _COPIES or (v.kind == INSTANCE and known_model(v))
        ]
        known = known_optimizer(optimizer) and bool(owned)
        if known and all(v.order < loop.order for v in owned):
            yield _hit(loop, min(owned, key=lambda v: v.order), f"stepped in {line_of(step.site)}", step)
            return


def _fitted(loop: Loop, events: list[Event]) -> Iterator[Hit]:
    """An estimator that carries on where it stopped."""
    for event in events:
        receiver = event.receiver
        if receiver is None or event.name not in (".partial_fit", ".fit") or not _before(receiver, loop):
            continue
        for one in alternatives(receiver):
            if one.kind != INSTANCE or not _carries_on(one, event):
                continue
            how = "partial_fit" if event.name == ".partial_fit" else "fit, which carries on"
            yield _hit(loop, one, f"trained by {how} in {line_of(event.site)}", event)
            break


def _handed_to_trainer(loop: Loop, events: list[Event]) -> Iterator[Hit]:
    """A model of transformers, given to a trainer of each fold."""
    for event in events:
        if not _TRAINER.fullmatch(event.name):
            continue
        model = event.argument(0, "model")
        if model is None or not all(v.kind in (INSTANCE, RESULT) and v.order < loop.order for v in alternatives(model)):
            continue
        trains = [e for e in events if e.name == ".train" and e.receiver is not None]
        train = next((e for e in trains if same(alternatives(e.receiver), [event.result])), None)  # type: ignore[arg-type]
        if train is not None:
            yield _hit(loop, model, f"trained further in {line_of(train.site)}", train)
            return


def _carries_on(model: Value, event: Event) -> bool:
    made = model.event
    if model.name.startswith(("tensorflow.keras.", "keras.", "tensorflow.python.keras.")):
        return event.name == ".fit" and model.name.endswith(("Sequential", "Model"))
    if not model.name.startswith("sklearn.") or model.name.startswith(
        ("sklearn.preprocessing", "sklearn.decomposition")
    ):
        return False
    if event.name == ".partial_fit":
        return True
    if model.name.startswith(("sklearn.linear_model.", "sklearn.svm.")):
        return False  # convex: a warm start only shortens the search
    warm = made.keywords.get("warm_start") if made is not None else None
    return warm is not None and warm.constant is True


def _hit(loop: Loop, model: Value, how: str, event: Event) -> Hit:
    made = f" in {line_of(model.site)}" if model.site is not None else ""
    return Hit(
        event.site if event.name in (".partial_fit", ".fit") else loop.site,
        f"The model made{made}, before the loop over folds, is {how} in every fold: what one fold holds out it has learned in "
        "another.",
        "Make the model and its optimizer inside the loop, or put its first state back at the head of each fold.",
        Confidence.DEFINITE,
        evidence={"made": model.site},
    )
