"""BatchNorm trained on batches of one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from osler.core.finding import Confidence, Severity
from osler.lint.facts import Facts
from osler.lint.hit import Hit, line_of
from osler.lint.ownership import inside
from osler.lint.reading import number
from osler.syntax.module import Call
from osler.syntax.trace import Loop
from osler.syntax.values import CONSTANT, INSTANCE, JOIN, Value, alternatives, slice_back

RULE = "too-few-samples"
CALLS = frozenset({"DataLoader"})

_LOADERS = ("torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader")
_NORMS = ("torch.nn.BatchNorm1d", "torch.nn.BatchNorm2d", "torch.nn.BatchNorm3d")


def check(facts: Facts) -> Iterator[Hit]:
    """Each loop over a loader with a batch size of 1 that trains a model with BatchNorm."""
    if not any(_written_as_one(c) for c in facts.module.called(*_LOADERS)):
        return
    for trace in facts.traces:
        for loop in trace.loops():
            loader = _single(loop)
            events = list(loop.events()) if loader is not None else []
            if loader is None or not any(e.name == ".backward" for e in events):
                continue
            if any(e.name == ".eval" for e in events):
                continue
            called = [v for e in events if e.name == "()" and e.receiver is not None for v in alternatives(e.receiver)]
            norm = next((n for v in called for n in _norms(v)), None)
            if norm is None or norm.site is None or loader.site is None:
                continue
            yield Hit(
                loader.site,
                f"Batches of one (loop in {line_of(loop.site)}) go through the BatchNorm of {line_of(norm.site)}: it "
                "normalises each sample by itself, and its running statistics are those of single samples.",
                "Use larger batches, or GroupNorm or LayerNorm, which do not depend on the batch's size.",
                Confidence.DEFINITE,
                Severity.INFO,
                evidence={"norm": norm.site},
            )


def _written_as_one(call: Call) -> bool:
    size = call.argument(1, "batch_size")
    return size is None or number(size) == 1 or isinstance(size, ast.Name)


def _single(loop: Loop) -> Value | None:
    """The loader of a loop whose batches hold one sample."""
    if loop.over is None:
        return None
    wraps = ("builtins.enumerate", "builtins.iter", "builtins.zip")
    for value in slice_back(loop.over, lambda v: v.kind == JOIN or v.name in wraps, limit=20):
        if value.kind == INSTANCE and value.name in _LOADERS and value.event is not None:
            event = value.event
            size = event.argument(1, "batch_size")
            if "**" in event.keywords or "batch_sampler" in event.keywords:
                return None
            one = size is None or (size.kind == CONSTANT and size.constant == 1)
            return value if one else None
    return None


def _norms(model: Value) -> Iterator[Value]:
    """The BatchNorms in a model that was seen to be made."""
    if model.kind != INSTANCE:
        return
    ids = inside([model])
    for value in slice_back(model, lambda v: v.kind != JOIN or id(v) in ids, limit=200):
        if value.kind == INSTANCE and value.name in _NORMS and id(value) in ids:
            yield value
    for value in model.attributes.values():
        if value.kind == INSTANCE and value is not model and value.order > model.order:
            yield from _norms(value)
