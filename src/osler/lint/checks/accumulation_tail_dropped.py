"""The last, incomplete accumulation of an epoch never reaches the optimizer."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from osler.core.finding import Confidence, Severity
from osler.lint.facts import Facts
from osler.lint.hit import Hit, line_of
from osler.lint.objects import stepped
from osler.lint.order import Accumulation, accumulation, remainder, root, steps
from osler.lint.turns import Turn, clears, turns
from osler.syntax.values import CONSTANT, Site, Value, alternatives, same, slice_back

RULE = "accumulation-tail-dropped"
CALLS = frozenset({"step"})


def check(facts: Facts) -> Iterator[Hit]:
    """Each loop over a known end that steps at every k-th pass only, with no step for what is left after the last."""
    for turn in turns(facts):
        found = accumulation(turn)
        if found is None or found.branch is None or not isinstance(turn.loop.node, ast.For):
            continue
        test = found.branch.test
        if test is None or _asks_for_the_end(test) or not _counts_passes(test, turn) or _steps_later(turn):
            continue
        left = _left_over(found)
        if left == 0:
            continue
        cleared = _cleared_each_epoch(turn)
        fate = "they wait for the next epoch or are lost"
        if cleared is not None:
            fate = f"the gradients are cleared in {line_of(cleared)}"
        amount = f"The last {left} micro-batches" if left else "Micro-batches after the last full group"
        yield Hit(
            turn.loop.site,
            f"{amount} of this loop never reach step ({line_of(turn.step.site)}): {fate}.",
            "Step at the last pass too: if (i + 1) % k == 0 or i + 1 == len(loader).",
            Confidence.DEFINITE if left and turn.known else Confidence.PROBABLE if cleared else Confidence.POSSIBLE,
            severity=Severity.WARNING if left else None,
            evidence={"step": turn.step.site, **({"left over": left} if left else {})},
        )


def _asks_for_the_end(test: Value) -> bool:
    """The condition looks at a length, or has more to it than the remainder."""
    if len(alternatives(test)) > 1:
        return True
    parts = list(slice_back(test, limit=60))
    return any(v.name == "builtins.len" for v in parts) or len([v for v in parts if v.name == "compare"]) > 1


def _counts_passes(test: Value, turn: Turn) -> bool:
    """The remainder is that of the loop's own counter, which begins anew with the loop."""
    mod = remainder(test)
    if mod is None:
        return False
    return any(v.name == "count" and v.site == turn.loop.site for v in slice_back(mod.sources[0], limit=60))


def _steps_later(turn: Turn) -> bool:
    """The same optimizer steps once more after the loop."""
    mine = alternatives(turn.optimizer)
    for step in steps(root(turn.loop.block).events()):
        optimizer = stepped(step.receiver, step.arguments)
        if step.order > turn.loop.end and optimizer is not None and same(alternatives(optimizer), mine):
            return True
    return False


def _left_over(found: Accumulation) -> int | None:
    """Passes after the last step, where the number of passes and of passes to a step is written down."""
    over, divisor = found.turn.loop.over, found.divisor
    if over is None or divisor is None or over.name != "builtins.range" or len(over.sources) != 1:
        return None
    passes, group = over.sources[0].constant, divisor.constant
    if not isinstance(passes, int) or not isinstance(group, int) or group <= 0 or divisor.kind != CONSTANT:
        return None
    return passes % group


def _cleared_each_epoch(turn: Turn) -> Site | None:
    """The place outside the loop and inside the one around it that clears the gradients."""
    outer = turn.step.loops()[turn.step.loops().index(turn.loop) + 1 :]
    if not outer:
        return None
    for event in outer[0].events():
        if clears(event) and not turn.loop.order < event.order <= turn.loop.end and event.loop is outer[0]:
            return event.site
    return None
