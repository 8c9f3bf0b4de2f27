"""A constant beyond the range of float16 put into a tensor that is one."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator

from osler.core.finding import Confidence
from osler.lint.facts import Facts
from osler.lint.hit import Hit, line_of
from osler.lint.ownership import inside, is_layer
from osler.lint.reading import number
from osler.syntax.module import Call
from osler.syntax.trace import Event
from osler.syntax.values import CONSTANT, INSTANCE, RESULT, Value, alternatives, slice_back

RULE = "half-overflow"
CALLS = frozenset({"masked_fill", "masked_fill_", "where"})

_WRITTEN = ("?.masked_fill", "?.masked_fill_", "torch.where", "torch.masked_fill")
LARGEST = 65504.0  # of float16
_HALF = ("torch.float16", "torch.half")
_PRODUCTS = frozenset(
    ("@", "torch.matmul", "torch.bmm", "torch.einsum", "torch.mm", ".matmul", ".bmm", "torch.baddbmm")
)
# What gives float32, whatever it is given; under autocast also the second group.
_WIDENS = frozenset((".float", ".double", ".to", ".type", ".bfloat16"))
_WIDENS_AUTOCAST = frozenset(
    (".softmax", "torch.softmax", "torch.nn.functional.softmax", ".sum", ".exp", ".log", ".norm")
)


def check(facts: Facts) -> Iterator[Hit]:
    """Each fill of a half-precision tensor with a number that it cannot hold."""
    if not any(_too_large(a) for c in facts.module.called(*_WRITTEN) for a in (*c.node.args, *_values(c))):
        return
    halved = _halved(facts)
    for event in facts.events(".masked_fill", ".masked_fill_", "torch.where", "torch.masked_fill"):
        given = _filled(event)
        if given is None:
            continue
        tensor, value, number = given
        if not LARGEST < abs(number) < math.inf:
            continue
        why = _half(event, tensor, halved)
        if why is None:
            continue
        what = "becomes Inf" if event.name == "torch.where" else "raises an error there"
        yield Hit(
            value.site or event.site,
            f"{number:g} is beyond the range of float16 (65,504), and {why}: {what}.",
            "Take the largest number of the tensor's own type: torch.finfo(scores.dtype).min.",
            Confidence.DEFINITE if not why.startswith("autocast") else Confidence.PROBABLE,
            evidence={"value": number},
        )


def _values(call: Call) -> list[ast.expr]:
    return [k.value for k in call.node.keywords]


def _too_large(node: ast.expr) -> bool:
    """A number beyond the range, or a name that may stand for one."""
    written = number(node)
    return isinstance(node, ast.Name) if written is None else LARGEST < abs(written) < math.inf


def _filled(event: Event) -> tuple[Value, Value, float] | None:
    """The tensor, the constant and its number."""
    candidates: list[tuple[Value | None, Value | None]]
    if event.name == "torch.where":
        candidates = [(event.argument(1), event.argument(2)), (event.argument(2), event.argument(1))]
    elif event.name == "torch.masked_fill":
        candidates = [(event.argument(0), event.argument(2, "value"))]
    else:
        candidates = [(event.receiver, event.argument(1, "value"))]
    for tensor, value in candidates:
        for one in alternatives(value) if value is not None else ():
            if tensor is not None and one.kind == CONSTANT and isinstance(one.constant, (int, float)):
                return tensor, one, float(one.constant)
    return None


def _halved(facts: Facts) -> set[int]:
    """Modules that are turned to half precision, and what is in them."""
    out: set[int] = set()
    for event in facts.events(".half", ".to"):
        if event.receiver is None:
            continue
        dtypes = [*event.arguments, *event.keywords.values()]
        if event.name == ".half" or any(v.name in _HALF for v in dtypes):
            out |= inside(v for v in alternatives(event.receiver) if v.kind == INSTANCE)
    return out


def _half(event: Event, tensor: Value, halved: set[int]) -> str | None:
    """Why the tensor is one of float16; None where that is not evident."""
    autocast = _autocast(event)
    stop = _WIDENS | (_WIDENS_AUTOCAST if autocast else frozenset())
    for value in slice_back(tensor, lambda v: v.kind == RESULT and v.name not in stop and v.name != "()", limit=200):
        if value.kind != RESULT or value.name in stop:
            continue
        made = value.event
        line = line_of(value.site or event.site)
        if value.name == ".half" or (made is not None and _dtype(made.keywords.get("dtype"))):
            return f"the tensor is made one of float16 in {line}"
        if value.name == "()" and made is not None and made.receiver is not None:
            layers = [v for v in alternatives(made.receiver) if is_layer(v)]
            if any(id(v) in halved for v in layers):
                return f"the layer of {line} is in half precision"
            if autocast and layers:
                return f"autocast gives float16 in {line}"
        if autocast and value.name in _PRODUCTS:
            return f"autocast gives float16 in {line}"
    return None


def _dtype(value: Value | None) -> bool:
    return value is not None and any(v.name in _HALF for v in alternatives(value))


def _autocast(event: Event) -> bool:
    """It stands under autocast to float16."""
    for region in event.regions():
        context = region.context
        made = context.event if context is not None else None
        if context is None or made is None or not context.name.endswith("autocast"):
            continue
        enabled = made.keywords.get("enabled")
        if enabled is not None and enabled.constant is False:
            return False
        dtype = made.argument(1, "dtype")
        if dtype is not None:
            return all(v.name in _HALF for v in alternatives(dtype))
        device = made.argument(0, "device_type")
        if context.name == "torch.cuda.amp.autocast":
            return True
        return device is not None and device.constant == "cuda"
    return False
