"""Which modules an optimizer was given, and which ones a loss goes through."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from osler.lint.facts import Facts
from osler.lint.objects import known_model, known_optimizer, stepped
from osler.lint.reading import named
from osler.syntax.trace import Event, Region, Trace
from osler.syntax.values import CONSTANT, INSTANCE, JOIN, MAPPING, RESULT, SEQUENCE, Value, alternatives, slice_back

# Layers of torch.nn that have parameters.
LAYERS = named(
    "Linear Bilinear LazyLinear Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d Embedding EmbeddingBag LSTM "
    "GRU RNN LSTMCell GRUCell RNNCell LayerNorm GroupNorm BatchNorm1d BatchNorm2d BatchNorm3d RMSNorm MultiheadAttention "
    "TransformerEncoderLayer TransformerDecoderLayer TransformerEncoder TransformerDecoder Transformer"
)
_COPIES = ("copy.deepcopy", "copy.copy")
_PARAMETERS = (".parameters", ".named_parameters")
# What changes who learns in ways that a reader cannot follow.
_UNFOLLOWED = frozenset((".add_param_group", ".param_groups=", ".grad=", ".freeze", "torch.autograd.grad"))
_IN_PLACE = frozenset(("-=", "+=", ".sub_", ".add_", ".copy_", ".mul_", ".lerp_", ".data=", "torch._foreach_add_"))
_FREEZES = frozenset((".requires_grad=", ".requires_grad_"))


@dataclass(slots=True, eq=False)
class Owner:
    """An optimizer and what it was given.

    Attributes:
        event: the call that made it.
        value: it.
        modules: those whose parameters it was given.
        whole: nothing else was given to it: each of its parameters is one of those.
    """

    event: Event
    value: Value
    modules: list[Value] = field(default_factory=list)
    whole: bool = True


def owners(trace: Trace) -> list[Owner]:
    """The optimizers that are made in a trace out of modules that are made in it."""
    out = []
    for event in trace.events():
        if event.result.kind != INSTANCE or event.result.event is not event or not known_optimizer(event.result):
            continue
        given = event.argument(0, "params")
        owner = Owner(event, event.result)
        if given is None:
            owner.whole = False
        else:
            _given(given, owner)
        out.append(owner)
    return out


def _given(value: Value, owner: Owner) -> None:
    """Take apart what an optimizer is given: parameters of modules, lists and groups of them."""
    for one in alternatives(value):
        if one.kind == RESULT and one.name in _PARAMETERS and one.sources:
            for module in alternatives(one.sources[0]):
                if is_module(module):
                    owner.modules.append(module)
                else:
                    owner.whole = False
        elif one.kind == SEQUENCE and one.items:
            for item in one.items:
                _given(item, owner)
        elif one.kind == MAPPING and "[params]" in one.attributes:
            _given(one.attributes["[params]"], owner)
        elif one.kind == RESULT and one.name in ("builtins.list", "builtins.tuple", "+", "itertools.chain"):
            for source in one.sources:
                _given(source, owner)
        else:
            owner.whole = False


def is_module(value: Value) -> bool:
    """It was seen to be made: of a class of the project or of torch.nn, or a copy of one."""
    if value.kind == INSTANCE:
        return known_model(value)
    return value.kind == RESULT and value.name in _COPIES and bool(value.sources) and known_model(value.sources[0])


def _copied_layer(value: Value) -> bool:
    """A copy of a layer or of a model of the project; a copied loss has nothing to learn."""
    if value.kind != RESULT or not is_module(value):
        return False
    return any(is_layer(v) or v.definition is not None for v in alternatives(value.sources[0]))


def inside(
    modules: Iterable[Value], before: int | None = None, history: dict[int, list[tuple[int, Value]]] | None = None
) -> set[int]:
    """Ids of the modules and of all that is in them: attributes, what was passed to their constructors, list items.

    Args:
        modules: where to begin.
        before: leave out what was made or assigned from that moment on.
        history: what was assigned to attributes of an object, with the moment: also what is no longer there.
    """
    seen: set[int] = set()
    todo = list(modules)
    while todo:
        one = todo.pop()
        if id(one) in seen or (before is not None and one.order > before):
            continue
        seen.add(id(one))
        if one.kind in (INSTANCE, SEQUENCE, MAPPING, JOIN) or one.name == "comprehension":
            assigned = (history or {}).get(id(one), [])
            late = {id(v) for order, v in assigned if before is not None and order > before}
            todo += [v for v in (*one.attributes.values(), *(v for _, v in assigned)) if id(v) not in late]
            todo += one.made_of(before)
    return seen


def used(value: Value, cuts: frozenset[str] = frozenset()) -> Iterator[tuple[Event, Value]]:
    """The calls of layers that a value was computed by, each with the layer.

    Args:
        value: a loss.
        cuts: names of operations behind which not to look; with any given, calls under `no_grad` are left out as well.
    """
    for one in slice_back(value, lambda v: not cutting(v, cuts) and v.kind != INSTANCE):
        event = one.event
        if one.kind != RESULT or one.name != "()" or event is None or event.receiver is None or cutting(one, cuts):
            continue
        for layer in alternatives(event.receiver):
            if is_layer(layer) or _copied_layer(layer):
                yield event, layer


def cutting(value: Value, cuts: frozenset[str]) -> bool:
    """Whether autograd stops at a value."""
    if not cuts:
        return False
    if value.kind != RESULT:
        return False
    if value.name in cuts or (value.name.startswith("numpy.") and value.event is not None):
        return True
    event = value.event
    return event is not None and without_grad(event) is not None


def without_grad(event: Event) -> Region | None:
    """The `no_grad` that an event stands in."""
    for region in event.regions():
        name = region.context.name if region.context is not None else ""
        if name in ("torch.enable_grad", "torch.set_grad_enabled"):
            return None
        if name in ("torch.no_grad", "torch.inference_mode"):
            return region
    return None


def is_optimizer_call(name: str) -> bool:
    """Whether a call of that name may make an optimizer; asked of a file before it is gone through."""
    return name.startswith("torch.optim.") or name.rpartition(".")[2].startswith(
        ("Adam", "SGD", "Lion", "Lamb", "LAMB")
    )


def is_layer(value: Value) -> bool:
    """It is a layer of torch.nn with parameters, or a chain of such, that was seen to be made."""
    if value.kind != INSTANCE or value.definition is not None or not value.name.startswith("torch.nn."):
        return False
    last = value.name.rpartition(".")[2]
    if last in ("Sequential", "ModuleList"):
        parts = slice_back(value, lambda v: v.kind in (INSTANCE, SEQUENCE), limit=60)
        return any(v.kind == INSTANCE and v.name.rpartition(".")[2] in LAYERS for v in parts)
    return last in LAYERS


@dataclass(eq=False)
class Training:
    """Traces that share their objects: a script, a function, the methods of one object.

    Attributes:
        events: all of them, in order.
        owners: the optimizers made there.
        backwards: the events of `.backward` on something.
        complete: nothing was cut short.
    """

    events: list[Event]
    owners: list[Owner]
    backwards: list[Event]
    complete: bool

    @cached_property
    def history(self) -> dict[int, list[tuple[int, Value]]]:
        """What was assigned to attributes of each object, with the moment, by the object's id."""
        out: dict[int, list[tuple[int, Value]]] = {}
        for event in self.events:
            if event.name.startswith(".") and event.name.endswith("=") and event.receiver is not None:
                for holder in alternatives(event.receiver):
                    out.setdefault(id(holder), []).extend((event.order, v) for v in event.arguments)
        return out

    @property
    def followed(self) -> bool:
        """Every optimizer's parameters are known, none is added to later, none is told not to learn."""
        if not self.owners or not all(o.whole for o in self.owners):
            return False
        if any(e.name in _UNFOLLOWED or _freezes(e) or _by_hand(e) for e in self.events):
            return False
        steps = [o for e in self.events if e.name == ".step" and (o := stepped(e.receiver, e.arguments)) is not None]
        ours = {id(o.value) for o in self.owners}
        return bool(steps) and all(any(id(v) in ours for v in alternatives(s)) for s in steps)


def _by_hand(event: Event) -> bool:
    """A parameter is updated without an optimizer: `p -= rate * p.grad`, `p.data.copy_(…)`."""
    if event.name not in _IN_PLACE or event.receiver is None:
        return False
    return any(v.name in _PARAMETERS for v in slice_back(event.receiver, lambda v: v.kind != INSTANCE, limit=60))


def _freezes(event: Event) -> bool:
    """Whether it may tell parameters not to learn; `True` never does."""
    if event.name not in _FREEZES:
        return False
    given = event.argument(0, "requires_grad")
    return not (given is None or (given.kind == CONSTANT and given.constant is True))


def trainings(facts: Facts) -> Iterator[Training]:
    """Each group of traces in which an optimizer is made and something runs backward."""
    if not any(is_optimizer_call(name) for name in facts.module.calls):
        return
    groups: dict[int, list[Trace]] = {}
    for trace in facts.traces:
        groups.setdefault(id(trace.owner) if trace.owner is not None else id(trace), []).append(trace)
    for traces in groups.values():
        events = sorted((e for t in traces for e in t.block.events()), key=lambda e: e.order)
        backwards = [e for e in events if e.name == ".backward" and e.receiver is not None]
        if not backwards:
            continue
        made = [o for t in traces for o in owners(t)]
        if made:
            yield Training(events, made, backwards, all(t.complete for t in traces))
