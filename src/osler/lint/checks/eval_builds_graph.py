"""Evaluation that records a graph nobody uses."""

from __future__ import annotations

from collections.abc import Iterator

from osler.core.finding import Confidence
from osler.lint.facts import Facts
from osler.lint.hit import Hit, line_of
from osler.lint.modes import mode_at, model_calls, switch
from osler.lint.order import BACKWARDS
from osler.syntax.trace import Event, Inlined, Region, Trace
from osler.syntax.values import CONSTANT, Value, member

RULE = "eval-builds-graph"
CALLS = frozenset({"eval"})

_WANTS_GRADIENT = frozenset({".requires_grad_", ".requires_grad=", ".retain_grad"}) | BACKWARDS
# Contexts that leave grad mode alone.
_HARMLESS = (
    "torch.amp.",
    "torch.autocast",
    "torch.autograd.graph.",
    "torch.cuda.",
    "torch.device",
    "torch.profiler.",
    "builtins.open",
    "tqdm.",
)


def check(facts: Facts) -> Iterator[Hit]:
    """Each loop that calls a known model in eval mode under grad mode, in a script that shows who calls whom."""
    for trace in facts.traces:
        if trace.kind == "script" and trace.complete:
            yield from _script(trace)


def _script(trace: Trace) -> Iterator[Hit]:
    events = trace.events()
    frozen = any(e.name in (".requires_grad_", ".requires_grad=", "torch.set_grad_enabled") and _off(e) for e in events)
    if frozen:
        return
    done = set()
    for call, model in model_calls(events):
        loop = call.loop
        if loop is None or loop.site in done or any(map(_wants_gradient, loop.events())):
            continue
        mode = mode_at(call, model, events)
        if mode is None or switch(mode) != "eval" or not all(map(_harmless, call.regions())) or _own_way(call, model):
            continue
        done.add(loop.site)
        yield Hit(
            loop.site,
            f"This loop evaluates the model ({line_of(call.site)}, in eval mode since {line_of(mode.site)}) and records "
            "a graph for gradients that nobody asks for.",
            "Put the loop under with torch.no_grad(): or torch.inference_mode().",
            Confidence.DEFINITE,
            evidence={"call": call.site, "eval": mode.site},
        )


def _wants_gradient(event: Event) -> bool:
    return event.name in _WANTS_GRADIENT or event.name.startswith(("torch.autograd.", "torch.func."))


def _off(event: Event) -> bool:
    return any(v.kind == CONSTANT and v.constant is False for v in event.arguments) or (
        event.name == "torch.set_grad_enabled" and bool(event.arguments)
    )


def _harmless(region: Region) -> bool:
    return region.context is not None and region.context.name.startswith(_HARMLESS)


def _own_way(call: Event, model: Value) -> bool:
    """The model switches grad mode itself: a decorated forward, or a region inside."""
    forward = member(model.definition, "forward") if model.definition is not None else None
    if forward is None or forward.definition is None:
        return False
    if forward.definition.decorators:
        return True
    for node in call.block.nodes():
        if isinstance(node, Inlined) and node.call is call:
            return any(isinstance(n, Region) for block in node.blocks for n in block.nodes())
    return False
