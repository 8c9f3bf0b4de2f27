"""Gradients of earlier steps still in `.grad`: backward and step in a loop that never clears them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from osler.core.finding import Confidence
from osler.lint.facts import Facts
from osler.lint.hit import Hit, line_of
from osler.lint.order import root
from osler.lint.turns import Turn, turns
from osler.syntax.trace import Event
from osler.syntax.values import alternatives, same

RULE = "missing-zero-grad"
CALLS = frozenset({"step"})

_CLEARS = re.compile(r"(zero|clear|reset).*grad", re.IGNORECASE)
_CLEARING = re.compile(r"zero|clear.*grad|reset.*grad", re.IGNORECASE)


def check(facts: Facts) -> Iterator[Hit]:
    """Each loop that steps an optimizer after a backward and clears no gradient anywhere in it."""
    cut = {id(t.block) for t in facts.traces if not t.complete}
    for turn in turns(facts):
        if not turn.backwards or turn.clears or _made_in(turn):
            continue
        backward, step = turn.backwards[0].site, turn.step.site
        outside = next((e for e in facts.events(".zero_grad") if e.order < turn.loop.order), None)
        once = f"; the one in {line_of(outside.site)} runs before the loop" if outside is not None else ""
        yield Hit(
            turn.loop.site,
            f"This loop runs backward ({line_of(backward)}) and step ({line_of(step)}) and never clears the gradients, so each "
            f"step adds up all before it{once}.",
            f"Call optimizer.zero_grad() in each pass, before {line_of(backward)}.",
            Confidence.POSSIBLE if id(root(turn.loop.block)) in cut else _confidence(turn),
            evidence={"backward": backward, "step": step},
        )


def _made_in(turn: Turn) -> bool:
    """An optimizer made anew in each pass has nothing to clear."""
    return any(turn.loop.order < v.order <= turn.loop.end for v in alternatives(turn.optimizer))


def _may_clear(event: Event, turn: Turn) -> bool:
    """A function whose name says that it clears, or a method of something unknown that is given the optimizer."""
    called = [v.name for v in alternatives(event.receiver)] if event.name == "()" and event.receiver is not None else []
    if any(_CLEARS.search(name) for name in (event.method, *called)):
        return True
    if not event.name.startswith(".") or event.method in ("step", "unscale_"):
        return False
    given = [v for a in (*event.arguments, *event.keywords.values()) for v in alternatives(a)]
    return bool(_CLEARING.search(event.name)) or same(given, alternatives(turn.optimizer))


def _confidence(turn: Turn) -> Confidence:
    if turn.handed_over() or any(_may_clear(e, turn) for e in turn.events):
        return Confidence.POSSIBLE
    return Confidence.DEFINITE if turn.known else Confidence.PROBABLE
