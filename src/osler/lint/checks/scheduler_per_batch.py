"""A schedule meant in epochs that is stepped with every batch; one meant in steps that is stepped with every micro-batch."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from osler.core.finding import Confidence
from osler.core.settings.lint import Lint
from osler.lint.facts import Facts
from osler.lint.hit import Hit, line_of
from osler.lint.objects import SCHEDULERS
from osler.lint.order import EPOCH, accumulation, arms, over_batches
from osler.lint.turns import Turn, schedules, turns
from osler.syntax.trace import Event, Loop
from osler.syntax.values import CONSTANT, INSTANCE, SEQUENCE, Value, alternatives, slice_back

RULE = "scheduler-per-batch"
CALLS = frozenset({"step"})

# By class: position and keyword of the argument that says how long, and of the factor, where there is one.
_LENGTHS = {
    "StepLR": (1, "step_size"),
    "MultiStepLR": (1, "milestones"),
    "CosineAnnealingLR": (1, "T_max"),
    "ExponentialLR": (1, "gamma"),
    "ReduceLROnPlateau": (3, "patience"),
}


def check(facts: Facts) -> Iterator[Hit]:
    """Each scheduler's step in a batch loop that is of the wrong kind for it."""
    for turn in turns(facts):
        found = accumulation(turn)
        for event in turn.events:
            if not schedules(event) or event.receiver is None:
                continue
            if found is not None and found.each(event) and not event.branches(turn.loop) and not event.arguments:
                sure = _in_steps(event.receiver, found.divisor)
                if sure is not None:
                    yield _outside(event, turn, sure)
                    continue
            sure = _in_epochs(event, turn, facts.settings)
            if sure is not None:
                yield _each_batch(event, turn, sure)


def _each_batch(event: Event, turn: Turn, sure: Confidence) -> Hit:
    assert event.receiver is not None
    name = _class(event.receiver)
    return Hit(
        event.site,
        f"{name} counts in epochs, as it is made here, and is stepped with every batch of the loop in "
        f"{line_of(turn.loop.site)}: the learning rate is gone after the first epochs' first batches."
        if name != "ReduceLROnPlateau"
        else f"{name} waits for its patience in calls and is called with every batch of the loop in "
        f"{line_of(turn.loop.site)}: the noise of a few batches lowers the learning rate.",
        "Step it once an epoch, after the loop over the batches.",
        sure,
        evidence={"loop": turn.loop.site, "scheduler": name},
    )


def _outside(event: Event, turn: Turn, sure: Confidence) -> Hit:
    return Hit(
        event.site,
        "The scheduler steps with every micro-batch, although the optimizer ("
        f"{line_of(turn.step.site)}) steps only after several: the schedule runs out that many times too early.",
        f"Step the scheduler where the optimizer steps, after {line_of(turn.step.site)}.",
        sure,
        evidence={"step": turn.step.site},
    )


def _class(scheduler: Value) -> str:
    return next((v.name.rpartition(".")[2] for v in alternatives(scheduler) if v.kind == INSTANCE), "")


def _maker(scheduler: Value) -> Event | None:
    """The call that made a scheduler of torch, where it is the only one it can be."""
    options = [v for v in alternatives(scheduler) if v.kind != CONSTANT]
    if len(options) != 1 or options[0].kind != INSTANCE or not options[0].name.startswith(SCHEDULERS):
        return None
    return options[0].event


# --- counted in epochs ------------------------------------------------------------------------------------------------


def _in_epochs(event: Event, turn: Turn, settings: Lint) -> Confidence | None:
    maker = _maker(event.receiver) if event.receiver is not None else None
    if maker is None or maker.method not in _LENGTHS or event.loop is not turn.loop:
        return None
    around = turn.step.loops()
    outer = around[around.index(turn.loop) + 1 :]
    if not outer or not over_batches(turn.loop) or not isinstance(outer[0].node, (ast.For, ast.While)):
        return None
    beside = arms(turn.step, turn.loop)
    if any(beside.get(branch) is not arm for branch, arm in arms(event, turn.loop).items()):
        return None
    position, keyword = _LENGTHS[maker.method]
    length = maker.argument(position, keyword)
    if maker.method == "ReduceLROnPlateau":
        patience = length.constant if length is not None else 10
        return Confidence.PROBABLE if isinstance(patience, int) and patience < settings.scheduler_patience else None
    if length is None:
        return None
    if maker.method != "ExponentialLR":
        stop = _stop(outer[0])
        if _named_after_epochs(maker, position, keyword) or (stop is not None and stop is length):
            return Confidence.DEFINITE
        longest = _longest(length)
        if stop is not None and longest and isinstance(stop.constant, int) and longest <= stop.constant:
            return Confidence.PROBABLE
    left = _left(maker, length, settings.scheduler_calls)
    return Confidence.PROBABLE if left is not None and left < settings.scheduler_left else None


def _stop(loop: Loop) -> Value | None:
    over = loop.over
    if over is None or over.name != "builtins.range" or not over.sources:
        return None
    return over.sources[0] if len(over.sources) == 1 else over.sources[1]


def _named_after_epochs(maker: Event, position: int, keyword: str) -> bool:
    call = maker.node
    if not isinstance(call, ast.Call):
        return False
    node = next((k.value for k in call.keywords if k.arg == keyword), None)
    if node is None and position < len(call.args):
        node = call.args[position]
    if node is None or any(isinstance(n, (ast.Call, ast.Mult)) for n in ast.walk(node)):
        return False
    return bool(EPOCH.search(ast.unparse(node)))


def _longest(length: Value) -> int | None:
    numbers = [v.constant for v in (length.items if length.kind == SEQUENCE else [length])]
    whole = [n for n in numbers if isinstance(n, int) and not isinstance(n, bool)]
    return max(whole) if whole and len(whole) == len(numbers) else None


def _left(maker: Event, length: Value, calls: int) -> float | None:
    """The share of the learning rate that is left after so many calls; None where it cannot be told."""
    if maker.method == "ExponentialLR":
        return _power(length.constant, calls)
    factor = maker.argument(2, "gamma")
    gamma = 0.1 if factor is None else factor.constant
    if maker.method == "StepLR" and isinstance(length.constant, int) and length.constant > 0:
        return _power(gamma, calls // length.constant)
    if maker.method == "MultiStepLR" and length.kind == SEQUENCE and length.items:
        early = [v.constant for v in length.items if isinstance(v.constant, int) and v.constant <= calls]
        return _power(gamma, len(early)) if len(early) == len(length.items) else None
    return None


def _power(factor: object, times: int) -> float | None:
    return float(factor) ** times if isinstance(factor, (int, float)) and 0 < factor < 1 else None


# --- counted in steps -------------------------------------------------------------------------------------------------


def _in_steps(scheduler: Value, divisor: Value | None) -> Confidence | None:
    """How sure it is that a scheduler counts steps of the optimizer and not micro-batches."""
    options = [v for v in alternatives(scheduler) if v.kind != CONSTANT]
    made = [v.event for v in options if v.event is not None]
    if not made:
        return Confidence.PROBABLE
    arguments = [a for e in made for a in (*e.arguments[1:], *e.keywords.values())]
    parts = [v for a in arguments for v in slice_back(a, limit=100)]
    if divisor is not None and divisor.kind != CONSTANT and any(v is divisor for v in parts):
        return Confidence.DEFINITE
    return Confidence.PROBABLE if any(v.name in ("//", "/") for v in parts) else None
