"""Mean losses summed over several micro-batches without dividing by their number."""

from __future__ import annotations

from collections.abc import Iterator

from osler.core.finding import Confidence
from osler.lint.facts import Facts
from osler.lint.hit import Hit, line_of
from osler.lint.losses import given_to_backward, mean_loss, scaling, terms
from osler.lint.order import accumulation
from osler.lint.turns import Turn, turns
from osler.syntax.values import alternatives

RULE = "accumulation-not-scaled"
CALLS = frozenset({"step"})

# They divide each gradient by its own size: a constant factor changes next to nothing.
_INDIFFERENT = frozenset({"Adam", "AdamW", "NAdam", "RAdam", "Adamax", "RMSprop", "Adagrad", "Adadelta", "AdamW8bit"})


def check(facts: Facts) -> Iterator[Hit]:
    """Each accumulating loop whose loss is a mean over the micro-batch and is scaled nowhere."""
    for turn in turns(facts):
        found = accumulation(turn)
        if found is None or _gradients_changed(turn):
            continue
        for backward in turn.backwards:
            if not found.each(backward) or (backward.arguments and not backward.name.startswith("torch.")):
                continue
            parts = terms(given_to_backward(backward))
            if any(scaling(v) for v in parts) or not any(mean_loss(v.event) for v in parts):
                continue
            yield Hit(
                backward.site,
                f"The mean losses of several micro-batches are added up for one step ({line_of(turn.step.site)}) and "
                "nothing divides by their number, so the gradient is that many times larger than that of the whole batch.",
                "Divide the loss by the number of micro-batches before backward: (loss / k).backward().",
                Confidence.POSSIBLE if _indifferent(turn) else Confidence.PROBABLE,
                evidence={"step": turn.step.site},
            )
            break


def _gradients_changed(turn: Turn) -> bool:
    """Something in the loop changes `.grad`, which may be the division."""
    return any(
        e.name == ".grad="
        or (e.receiver is not None and e.receiver.name.endswith(".grad") and e.name.endswith(("=", "_")))
        for e in turn.events
        if e not in turn.clears
    )


def _indifferent(turn: Turn) -> bool:
    names = {v.name.rpartition(".")[2] for v in alternatives(turn.optimizer)}
    return not turn.clips and bool(names & _INDIFFERENT)
