"""A scheduler's step before the first step of its optimizer: the first value of the schedule is skipped."""

from __future__ import annotations

from collections.abc import Iterator

from osler.core.finding import Confidence
from osler.lint.facts import Facts
from osler.lint.hit import Hit, line_of
from osler.lint.objects import SCHEDULERS, made_by, stepped
from osler.lint.order import given, root, steps
from osler.lint.turns import schedules
from osler.syntax.trace import Event
from osler.syntax.values import Value, alternatives, same

RULE = "scheduler-before-optimizer"
CALLS = frozenset({"step"})


def check(facts: Facts) -> Iterator[Hit]:
    """Each scheduler's step without arguments that comes earlier in a loop than the first step of the optimizer."""
    for event in facts.events(".step"):
        if not schedules(event) or event.arguments or event.keywords or event.receiver is None:
            continue
        optimizer = _scheduled(event.receiver)
        stepping = [s for s in steps(root(event.block).events()) if _belongs(s, optimizer)]
        if not stepping or stepping[0].order < event.order:
            continue
        first = next((s for s in stepping if set(event.loops()) & set(s.loops()) and given(event, s)), None)
        if first is None:
            continue
        yield Hit(
            event.site,
            f"The scheduler steps here before the optimizer's first step ({line_of(first.site)}), so the first learning rate of "
            "the schedule is never used.",
            f"Call the scheduler's step after the optimizer's ({line_of(first.site)}).",
            Confidence.DEFINITE if made_by(event.receiver, SCHEDULERS) else Confidence.PROBABLE,
            evidence={"step": first.site},
        )


def _scheduled(scheduler: Value) -> list[Value]:
    """What the scheduler was made from; empty where nobody saw it made."""
    if not made_by(scheduler, SCHEDULERS):
        return []
    return [v for one in alternatives(scheduler) for source in one.sources for v in alternatives(source)]


def _belongs(step: Event, optimizer: list[Value]) -> bool:
    own = stepped(step.receiver, step.arguments)
    return own is not None and (not optimizer or same(alternatives(own), optimizer))
