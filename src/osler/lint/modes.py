"""Models in train and eval mode: which have layers that differ, who switches, which calls evaluate."""

from __future__ import annotations

import ast
import re

from osler.lint.objects import known_model
from osler.lint.order import apart, given
from osler.syntax.trace import Event, Inlined
from osler.syntax.values import CONSTANT, INSTANCE, JOIN, MAPPING, RESULT, SEQUENCE, UNKNOWN, Value, alternatives, same

# Layers that work differently in train mode, with the argument that may switch them off.
_DROPOUT = frozenset({"Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout"})
_NORM = frozenset({"BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm"} | {f"LazyBatchNorm{d}d" for d in (1, 2, 3)})  # fmt: skip
_RECURRENT = frozenset({"LSTM", "GRU", "RNN"})  # they drop between layers, by an argument
_TRANSFORMER = frozenset({"Transformer", "TransformerEncoderLayer", "TransformerDecoderLayer"})
_VISION = re.compile(
    r"torchvision\.models\.\w*?(resnet|resnext|densenet|mobilenet|efficientnet|googlenet|inception|vgg\d+_bn|alexnet|regnet)"
)

_TEST = re.compile(
    r"tests?|testing|val(id(ate|ation)?)?|eval(uate|uation)?|dev|holdout|infer(ence)?|predict(ion)?", re.IGNORECASE
)
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")


def differs(model: Value, limit: int = 400) -> str:
    """Name of a layer below a known model that works differently in train mode; empty where none was seen."""
    seen = {id(model)}
    queue = [model]
    while queue and limit:
        limit -= 1
        value = queue.pop()
        name = _layer(value)
        if name:
            return name
        for inner in _below(value):
            if id(inner) not in seen:
                seen.add(id(inner))
                queue.append(inner)
    return ""


def _layer(value: Value) -> str:
    if value.definition is not None or value.event is None or value.kind not in (INSTANCE, RESULT):
        return ""
    last = value.name.rpartition(".")[2]
    if value.name.startswith("torchvision.models."):
        return last if _VISION.match(value.name) else ""
    if not value.name.startswith("torch.nn."):
        return ""
    if last in _NORM:
        kept = value.event.keywords.get("track_running_stats")
        return "" if kept is not None and kept.constant is False else last
    if last in _DROPOUT:
        share = value.event.argument(0, "p")
        return "" if share is not None and share.kind == CONSTANT and not share.constant else last
    if last in _RECURRENT:
        share, layers = value.event.keywords.get("dropout"), value.event.argument(2, "num_layers")
        several = layers is not None and isinstance(layers.constant, int) and layers.constant > 1
        return last if several and share is not None and share.kind == CONSTANT and share.constant else ""
    if last == "MultiheadAttention":
        share = value.event.argument(2, "dropout")
        return last if share is not None and share.kind == CONSTANT and share.constant else ""
    if last in _TRANSFORMER:
        share = value.event.keywords.get("dropout")
        return last if share is None or share.kind != CONSTANT or share.constant else ""
    return ""


def _below(value: Value) -> list[Value]:
    if value.kind in (JOIN, SEQUENCE, MAPPING) or value.name == "comprehension":
        return [*value.made_of(), *value.attributes.values()]
    if value.kind != INSTANCE or not known_model(value):
        return []
    if value.definition is not None:
        return [v for v in value.attributes.values() if v.kind != UNKNOWN]
    return list(value.made_of())


def covers(receiver: Value | None, model: Value) -> bool:
    """Whether a call on the receiver reaches the model: the receiver is the model, or has it as an attribute or item."""
    if receiver is None:
        return False
    options = alternatives(receiver)
    if same(options, [model]):
        return True
    return any(
        same(alternatives(v), [model]) for one in options for v in (*one.attributes.values(), *one.items, *one.sources)
    )


def switch(event: Event) -> str:
    """`eval`, `train`, or `either` for an event that sets a mode; empty for any other."""
    if event.name in (".eval", "super.eval"):
        return "eval"
    if event.name not in (".train", "super.train"):
        return ""
    mode = event.argument(0, "mode")
    if mode is None:
        return "train"
    return "either" if mode.kind != CONSTANT else "train" if mode.constant else "eval"


def mode_at(event: Event, model: Value, events: list[Event]) -> Event | None:
    """What set the model's mode last before an event; None where nothing did.

    Where only one way through the program sets eval mode, that counts.
    """
    latest = None
    for earlier in reversed(events):
        if earlier.order >= event.order:
            continue
        mode = switch(earlier)
        if not mode or not covers(earlier.receiver, model) or apart(earlier, event):
            continue
        if mode != "train":
            return earlier
        latest = latest or earlier
        if given(earlier, event):
            return latest
    return latest


def evaluates(call: Event) -> bool:
    """Whether a model's call is meant as evaluation, by the names around it: of the data, of the loop, of the function."""
    texts = [ast.unparse(a) for a in (*call.node.args, *(k.value for k in call.node.keywords))] if isinstance(call.node, ast.Call) else []  # fmt: skip
    loop = call.loop
    if loop is not None and isinstance(loop.node, (ast.For, ast.AsyncFor)):
        texts += [ast.unparse(loop.node.iter)]
    for node in call.above():
        if isinstance(node, Inlined) and node.definition is not None and "forward" not in node.definition.name:
            texts.append(node.definition.name.rpartition(".")[2])
    return any(_TEST.fullmatch(word) for text in texts for word in _WORD.findall(text))


def model_calls(events: list[Event]) -> list[tuple[Event, Value]]:
    """Calls of known models, also by `model.forward(x)`, each with the model."""
    out = []
    for event in events:
        named = event.method == "forward" and not event.name.startswith("super.")
        if (event.name != "()" and not named) or event.receiver is None:
            continue
        options = alternatives(event.receiver)
        if len(options) == 1 and options[0].kind == INSTANCE and known_model(options[0]):
            out.append((event, options[0]))
    return out
