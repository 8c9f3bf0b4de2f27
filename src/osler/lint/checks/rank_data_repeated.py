"""A DistributedSampler that is never told the epoch."""

from __future__ import annotations

from collections.abc import Iterator

from osler.core.finding import Confidence
from osler.lint.facts import Facts
from osler.lint.hit import Hit, line_of
from osler.syntax.trace import Event, Loop
from osler.syntax.values import INSTANCE, JOIN, Value, alternatives, slice_back

RULE = "rank-data-repeated"
CALLS = frozenset({"DistributedSampler"})

_SAMPLERS = ("torch.utils.data.DistributedSampler", "torch.utils.data.distributed.DistributedSampler")
_LOADERS = ("torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader")
# They tell the sampler themselves.
_FRAMEWORKS = ("lightning", "pytorch_lightning", "accelerate", "ignite", "fastai", "ray")


def check(facts: Facts) -> Iterator[Hit]:
    """Each loop over epochs that goes through a loader with such a sampler."""
    module = facts.module
    if "set_epoch" in module.text or any(i.partition(".")[0] in _FRAMEWORKS for i in module.imports.values()):
        return
    for trace in facts.traces:
        if any(e.method == "set_epoch" for e in trace.block.events()):
            continue
        for loop in trace.loops():
            loader, sampler = _distributed(loop.over)
            outer = _around(loop)
            if loader is None or sampler is None or outer is None or outer.order < loader.order:
                continue
            if not any(e.name in (".backward", ".step") for e in loop.events()):
                continue
            made = f" ({line_of(sampler.site)})" if sampler.site is not None else ""
            yield Hit(
                outer.site,
                f"This loop goes through a loader with a DistributedSampler{made} and never calls set_epoch: every "
                "pass deals out the same rows in the same order.",
                "Call sampler.set_epoch(epoch) at the head of each pass.",
                Confidence.DEFINITE,
                evidence={"sampler": sampler.site},
            )


def _distributed(over: Value | None) -> tuple[Value | None, Value | None]:
    """The loader and its sampler, where a loop goes through a loader that shuffles by a DistributedSampler."""
    if over is None:
        return None, None
    wraps = ("builtins.enumerate", "builtins.iter", "builtins.zip", "tqdm.tqdm")
    for loader in slice_back(over, lambda v: v.kind == JOIN or v.name in wraps, limit=40):
        if loader.kind != INSTANCE or loader.name not in _LOADERS or loader.event is None:
            continue
        given = loader.event.keywords.get("sampler") or loader.event.argument(3)
        for sampler in alternatives(given) if given is not None else ():
            if sampler.kind == INSTANCE and sampler.name in _SAMPLERS and _shuffles(sampler.event):
                return loader, sampler
    return None, None


def _shuffles(event: Event | None) -> bool:
    if event is None:
        return False
    given = event.argument(3, "shuffle")
    return "**" not in event.keywords and (given is None or given.constant is True)


def _around(loop: Loop) -> Loop | None:
    """The loop over epochs around a loop over a loader."""
    node = loop.block.parent
    while node is not None:
        if isinstance(node, Loop) and not node.comprehension:
            return node
        node = node.block.parent
    return None
