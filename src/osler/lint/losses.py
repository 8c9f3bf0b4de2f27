"""Losses in the source: what a library's loss expects, and the way of a value from one to the other."""

from __future__ import annotations

from collections.abc import Iterable

from osler.lint.objects import scaler_like
from osler.syntax.trace import Event
from osler.syntax.values import CONSTANT, INSTANCE, JOIN, RESULT, UNKNOWN, Value, alternatives

_FUNCTIONAL = "torch.nn.functional."
_ARITHMETIC = frozenset({"+", "-", "*", "/", "+=", "-=", "*=", "/="})
_SCALING = frozenset({"*", "/", "*=", "/="})
_SCALING_METHODS = frozenset({".mul", ".mul_", ".div", ".div_", ".true_divide", "torch.mul", "torch.div"})
# Methods of a tensor that keep its graph.
_KEEPING = frozenset(
    {".mean", ".sum", ".clone", ".view", ".reshape", ".squeeze", ".unsqueeze", ".float", ".double", ".abs", ".cpu", ".cuda"}
    | _SCALING_METHODS
)  # fmt: skip

# Losses by name whose default is the mean over the batch.
MEAN_LOSSES = frozenset(
    [
        "cross_entropy",
        "CrossEntropyLoss",
        "binary_cross_entropy",
        "BCELoss",
        "binary_cross_entropy_with_logits",
        "BCEWithLogitsLoss",
        "nll_loss",
        "NLLLoss",
        "mse_loss",
        "MSELoss",
        "l1_loss",
        "L1Loss",
        "smooth_l1_loss",
        "SmoothL1Loss",
        "huber_loss",
        "HuberLoss",
    ]
)


def torch_loss(event: Event | None) -> str:
    """Last name of the torch loss that an event calls, as a function or as an object; empty for anything else."""
    if event is None:
        return ""
    if event.name.startswith(_FUNCTIONAL):
        return event.name.removeprefix(_FUNCTIONAL)
    if event.name == "()" and event.receiver is not None:
        made = {v.name if v.kind == INSTANCE and v.definition is None else "" for v in alternatives(event.receiver)}
        if len(made) == 1:
            name = made.pop()
            return name.rpartition(".")[2] if name.startswith("torch.nn.") and name.endswith("Loss") else ""
    return ""


def mean_loss(event: Event | None) -> bool:
    """Whether an event calls a loss of torch that gives the mean over the batch."""
    if event is None or torch_loss(event) not in MEAN_LOSSES:
        return False
    makers = [event, *(v.event for v in alternatives(event.receiver) if v.event)] if event.receiver else [event]
    return not any("reduction" in e.keywords or "**" in e.keywords for e in makers)


def given_to_backward(backward: Event) -> list[Value]:
    """The tensors that a backward is called on, a scaler taken off: of `x.backward()`, `accelerator.backward(x)`."""
    start = list(backward.arguments[:1]) if backward.name != ".backward" else []
    if backward.name == ".backward" and backward.receiver is not None:
        start = [backward.receiver]
        if backward.arguments and all(v.kind in (UNKNOWN, INSTANCE) for v in alternatives(backward.receiver)):
            start = [backward.arguments[0]]  # accelerator.backward(loss), engine.backward(loss)
    out: list[Value] = []
    for value in start:
        for one in alternatives(value):
            scaled = one.name == ".scale" and len(one.sources) > 1 and scaler_like(one.sources[0])
            out += alternatives(one.sources[1]) if scaled else [one]
    return out


def terms(values: Iterable[Value], limit: int = 200) -> list[Value]:
    """The values and what they are computed from by plain arithmetic, a divisor left out, as far as the graph reaches.

    `loss` and `penalty` of `(loss + 0.1 * penalty) / k`; behind `.item()`, `.detach()` or `float()` it ends.
    """
    queue = list(values)
    seen = {id(v) for v in queue}
    out: list[Value] = []
    while queue and len(out) < limit:
        value = queue.pop(0)
        if value.kind != CONSTANT:
            out.append(value)
        for source in _behind(value):
            if id(source) not in seen:
                seen.add(id(source))
                queue.append(source)
    return out


def _behind(value: Value) -> tuple[Value, ...]:
    if value.kind == JOIN:
        return value.sources
    if value.kind != RESULT or not value.sources:
        return ()
    if value.name in ("/", "/=") or value.name in _KEEPING:
        return value.sources[:1]
    return value.sources if value.name in _ARITHMETIC else ()


def scaling(value: Value) -> bool:
    """Whether a value is the result of a multiplication or division."""
    return value.kind == RESULT and (value.name in _SCALING or value.name in _SCALING_METHODS)
