"""Clipping inside the accumulation instead of once over the sum."""

from __future__ import annotations

from collections.abc import Iterator

from osler.core.finding import Confidence
from osler.lint.facts import Facts
from osler.lint.hit import Hit, line_of
from osler.lint.order import accumulation
from osler.lint.turns import turns

RULE = "clip-per-micro-batch"
CALLS = frozenset({"clip_grad_norm_", "clip_grad_value_", "clip_grad_norm"})


def check(facts: Facts) -> Iterator[Hit]:
    """Each clipping that happens with every micro-batch of a loop that steps only after several."""
    for turn in turns(facts):
        found = accumulation(turn)
        if found is None:
            continue
        for clip in turn.clips:
            if not found.each(clip):
                continue
            step = turn.step.site
            yield Hit(
                clip.site,
                "The partly accumulated gradients are clipped with every micro-batch, although step ("
                f"{line_of(step)}) comes only after several: early micro-batches are shrunk again and again, late ones are not.",
                f"Clip once, directly before step ({line_of(step)}).",
                Confidence.DEFINITE if turn.known else Confidence.PROBABLE,
                evidence={"step": step, "backward": turn.backwards[0].site},
            )
