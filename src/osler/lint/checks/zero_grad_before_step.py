"""Gradients cleared between backward and step: the step applies zeros or nothing."""

from __future__ import annotations

from collections.abc import Iterator

from osler.core.finding import Confidence
from osler.lint.facts import Facts
from osler.lint.hit import Hit, line_of
from osler.lint.objects import optimizer_like
from osler.lint.order import apart, given
from osler.lint.turns import Turn, turns
from osler.syntax.trace import Event
from osler.syntax.values import Value, alternatives, same, slice_back

RULE = "zero-grad-before-step"
CALLS = frozenset({"step"})


def check(facts: Facts) -> Iterator[Hit]:
    """Each step whose gradients are cleared after the last backward before it."""
    for turn in turns(facts):
        before = [e for e in turn.backwards if e.order < turn.step.order]
        if not before:
            continue
        last = before[-1]
        clear = next(
            (
                e
                for e in turn.clears
                if last.order < e.order < turn.step.order and given(e, turn.step) and _own(e, turn)
            ),
            None,
        )
        if clear is None or not given(last, turn.step) or apart(last, clear) or _made_anew(turn, clear):
            continue
        yield Hit(
            clear.site,
            f"The gradients of {line_of(last.site)} are cleared here, before step in {line_of(turn.step.site)} could "
            "use them.",
            f"Clear the gradients before backward ({line_of(last.site)}) or after step.",
            Confidence.DEFINITE if turn.known else Confidence.PROBABLE,
            evidence={"backward": last.site, "step": turn.step.site},
        )


def _made_anew(turn: Turn, clear: Event) -> bool:
    """Something writes gradients between the clearing and the step."""
    return any(
        clear.order < e.order < turn.step.order
        and (e.name == ".grad=" or (e.receiver is not None and e.receiver.name.endswith(".grad")))
        and e not in turn.clears
        for e in turn.events
    )


def _own(clear: Event, turn: Turn) -> bool:
    """It clears what the stepped optimizer owns: the optimizer itself, or the model whose parameters it was given."""
    receiver = clear.receiver
    if receiver is None:
        return False
    if same(alternatives(receiver), alternatives(turn.optimizer)):
        return True
    return not optimizer_like(receiver) and same(_owned(turn.optimizer), alternatives(receiver))


def _owned(optimizer: Value) -> list[Value]:
    return [v for one in alternatives(optimizer) for source in one.sources for v in slice_back(source, limit=50)]
