"""Clipping that no step uses: after the step, or before backward has made the gradients."""

from __future__ import annotations

import re
from collections.abc import Iterator

from osler.core.finding import Confidence
from osler.lint.facts import Facts
from osler.lint.hit import Hit, line_of
from osler.lint.objects import known_optimizer, stepped
from osler.lint.order import BACKWARDS, Stretch, given, steps, stretch
from osler.lint.turns import CLIPS, clears
from osler.syntax.trace import Event

RULE = "clip-after-step"
CALLS = frozenset({"clip_grad_norm_", "clip_grad_value_", "clip_grad_norm"})

# Calls by whose name gradients may appear or be applied out of sight.
_UNSEEN = re.compile(r"backward|closure|train_step|training_step|optimi[sz]e", re.IGNORECASE)


def check(facts: Facts) -> Iterator[Hit]:
    """Each clipping behind a step, or before the only backward, with cleared gradients on the other side."""
    for clip in facts.events(*CLIPS):
        around = stretch(clip)
        stepping = {id(e) for e in steps(around.events)}
        before = [e for e in around.before(clip) if e.name in BACKWARDS or id(e) in stepping]
        after = [e for e in around.after(clip) if e.name in BACKWARDS or id(e) in stepping]
        if not stepping or any(_UNSEEN.search(e.method) for e in around.events if e.name not in BACKWARDS):
            continue
        if before and id(before[0]) in stepping:
            yield from _late(clip, before, after, stepping, around)
        elif not before and after and after[0].name in BACKWARDS:
            yield from _early(clip, after, stepping, around)


def _late(clip: Event, before: list[Event], after: list[Event], stepping: set[int], around: Stretch) -> Iterator[Hit]:
    step = before[0]
    backward = next((e for e in before if e.name in BACKWARDS), None)
    following = after[0] if after else next((e for e in _from_the_top(around, stepping)), None)
    if backward is None or not given(step, clip) or (following is not None and id(following) in stepping):
        return
    yield Hit(
        clip.site,
        f"The gradients are clipped after step ({line_of(step.site)}) has applied them unclipped.",
        f"Clip between backward ({line_of(backward.site)}) and step ({line_of(step.site)}).",
        _confidence(step),
        evidence={"backward": backward.site, "step": step.site},
    )


def _early(clip: Event, after: list[Event], stepping: set[int], around: Stretch) -> Iterator[Hit]:
    backward = after[0]
    step = next((e for e in after if id(e) in stepping), None)
    if step is None:
        return
    cleared = [e for e in around.events if clears(e)]
    if around.loop is None:
        # What another call of the function has left in the gradients is not known unless they are cleared here.
        sure = any(e.order < clip.order and given(e, clip) for e in cleared)
    else:
        last = _from_the_top(around, stepping)[-1]
        sure = bool(cleared) and id(last) in stepping and given(last, clip)
    if not sure:
        return
    yield Hit(
        clip.site,
        f"The gradients are clipped before backward ({line_of(backward.site)}) makes them, so step ("
        f"{line_of(step.site)}) applies them unclipped.",
        f"Clip between backward ({line_of(backward.site)}) and step ({line_of(step.site)}).",
        _confidence(step),
        evidence={"backward": backward.site, "step": step.site},
    )


def _from_the_top(around: Stretch, stepping: set[int]) -> list[Event]:
    """The backwards and steps of a whole pass, which the next pass repeats; of a trace without a loop none do."""
    if around.loop is None:
        return []
    return [e for e in around.events if e.name in BACKWARDS or id(e) in stepping]


def _confidence(step: Event) -> Confidence:
    optimizer = stepped(step.receiver, step.arguments)
    known = optimizer is not None and known_optimizer(optimizer)
    return Confidence.DEFINITE if known else Confidence.PROBABLE
