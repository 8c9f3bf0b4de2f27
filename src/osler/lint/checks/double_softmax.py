"""Probabilities given to a loss that expects logits, or to one that expects their logarithm."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from osler.core.finding import Confidence
from osler.lint.facts import Facts
from osler.lint.hit import Hit, line_of
from osler.lint.losses import torch_loss
from osler.syntax.values import INSTANCE, JOIN, RESULT, Value, alternatives

RULE = "double-softmax"
CALLS = frozenset(
    {
        "cross_entropy",
        "CrossEntropyLoss",
        "binary_cross_entropy_with_logits",
        "BCEWithLogitsLoss",
        "multilabel_soft_margin_loss",
        "MultiLabelSoftMarginLoss",
        "nll_loss",
        "NLLLoss",
        "binary_cross_entropy",
        "BCELoss",
    }
)

_LOGITS = frozenset(CALLS - {"nll_loss", "NLLLoss", "binary_cross_entropy", "BCELoss"})
_LOGARITHMS = frozenset({"nll_loss", "NLLLoss"})
_PROBABILITIES = frozenset({"binary_cross_entropy", "BCELoss"})

_SOFTMAX = frozenset({"torch.softmax", "torch.nn.functional.softmax", "torch.special.softmax", ".softmax"})
_SIGMOID = frozenset({"torch.sigmoid", "torch.nn.functional.sigmoid", "torch.special.expit", ".sigmoid"})
_SOFTMAX_LAYERS = frozenset({"torch.nn.Softmax", "torch.nn.Softmax2d"})
_LINEAR_LAYERS = frozenset({"torch.nn.Linear", "torch.nn.LazyLinear", "torch.nn.Bilinear"})
# What changes the shape or the device of a tensor and not its numbers.
_METHODS = (
    "view reshape squeeze unsqueeze transpose permute contiguous flatten float double to cuda cpu clone t narrow expand"
)
_FUNCTIONS = "squeeze unsqueeze flatten reshape transpose permute"
_SHAPE = frozenset({"[]", ".T", *(f".{m}" for m in _METHODS.split()), *(f"torch.{f}" for f in _FUNCTIONS.split())})


def check(facts: Facts) -> Iterator[Hit]:
    """Each loss whose input comes straight out of the wrong thing."""
    for event in facts.events("()", *(f"torch.nn.functional.{n}" for n in sorted(CALLS))):
        loss = torch_loss(event)
        given = event.argument(0, "input") if loss in CALLS else None
        if given is None:
            continue
        made = _makers(given)
        kinds = {kind for _, kind in made}
        site = (made[0][0].site if made else None) or event.site
        evidence: dict[str, object] = {"loss": loss, "line": site}
        if loss in _LOGITS and kinds and kinds <= {"softmax", "sigmoid"}:
            word = kinds.pop()
            yield Hit(
                event.site,
                f"{loss} expects logits and applies its own {'sigmoid' if 'inary' in loss or 'BCE' in loss else 'softmax'}, "
                f"but gets the result of {word} ({line_of(site)}): the loss cannot come near 0 and its gradients are small.",
                f"Give it the logits: leave {word} out, and apply it only where probabilities are read.",
                Confidence.DEFINITE,
                evidence=evidence,
            )
        elif loss in _LOGARITHMS and kinds and kinds <= {"softmax", "sigmoid"}:
            word = kinds.pop()
            yield Hit(
                event.site,
                f"{loss} expects log-probabilities and gets the result of {word} ({line_of(site)}): the loss has no logarithm.",
                "Use log_softmax in its place, or give the logits to cross_entropy.",
                Confidence.DEFINITE,
                evidence=evidence,
            )
        elif loss in _PROBABILITIES and kinds == {"linear"}:
            yield Hit(
                event.site,
                f"{loss} expects probabilities and gets the output of a linear layer ({line_of(site)}), which can be any number.",
                "Use binary_cross_entropy_with_logits, which takes the layer's output as it is.",
                Confidence.DEFINITE,
                evidence=evidence,
            )


def _makers(value: Value, depth: int = 40) -> list[tuple[Value, str]]:
    """What made a value, changes of shape passed over, each with its kind; one of no kind is in it with an empty word."""
    out: list[tuple[Value, str]] = []
    for one in alternatives(value):
        kind = _kind(one)
        if not kind and depth and one.kind == RESULT and one.name in _SHAPE and one.sources:
            out += _makers(one.sources[0], depth - 1)
        else:
            out.append((one, kind))
    return out


def _kind(value: Value) -> str:
    if value.kind != RESULT:
        return ""
    if value.name in _SOFTMAX:
        return "softmax"
    if value.name in _SIGMOID:
        return "sigmoid"
    if value.name != "()" or not value.sources:
        return ""
    layers = {_layer_kind(v) for v in alternatives(value.sources[0])}
    return layers.pop() if len(layers) == 1 else ""


def _layer_kind(layer: Value, depth: int = 8) -> str:
    """What a layer gives; of `nn.Sequential` its last one decides."""
    if layer.kind == JOIN or layer.kind != INSTANCE or layer.definition is not None:
        return ""
    if layer.name in _SOFTMAX_LAYERS:
        return "softmax"
    if layer.name == "torch.nn.Sigmoid":
        return "sigmoid"
    if layer.name in _LINEAR_LAYERS:
        return "linear"
    if layer.name == "torch.nn.Sequential" and layer.sources and depth and not _starred(layer):
        return _layer_kind(layer.sources[-1], depth - 1)
    return ""


def _starred(layer: Value) -> bool:
    """Its layers come out of a list, to which some may be added under a condition."""
    return isinstance(layer.node, ast.Call) and any(isinstance(a, ast.Starred) for a in layer.node.args)
