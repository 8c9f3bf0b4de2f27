"""The way from the loss back to layers that an optimizer owns is cut."""

from __future__ import annotations

from collections.abc import Iterator

from osler.core.finding import Confidence
from osler.lint.facts import Facts
from osler.lint.hit import Hit, line_of
from osler.lint.ownership import Training, cutting, inside, trainings, used, without_grad
from osler.syntax.trace import Inlined
from osler.syntax.values import INSTANCE, Site, Value, slice_back

RULE = "gradient-detached"
CALLS = frozenset({"backward"})

CUTS = frozenset(
    (
        ".detach",
        ".data",
        ".item",
        ".numpy",
        ".tolist",
        ".argmax",
        "torch.argmax",
        "torch.tensor",
        "torch.as_tensor",
        "torch.from_numpy",
        "builtins.float",
        "compare",
    )
)
_TEACHES = frozenset(
    (".load_state_dict", ".copy_", ".data=", ".lerp_", ".mul_", ".add_", ".eval", ".from_pretrained", "copy.deepcopy")
)
_WORDS = {"compare": "a comparison", "builtins.float": "float()"}


def check(facts: Facts) -> Iterator[Hit]:
    """Each cut behind which layers lie that an optimizer owns and that no loss reaches in another way."""
    for one in trainings(facts):
        if not one.followed:
            continue
        owned = inside((m for o in one.owners for m in o.modules), history=one.history)
        reached = {id(layer) for b in one.backwards if b.receiver for _, layer in used(b.receiver, CUTS)}
        for backward in one.backwards:
            if backward.receiver is None:
                continue
            behind = [v for _, v in used(backward.receiver) if id(v) in owned and id(v) not in reached]
            if not behind or (reached and not _all_of_a_model(one, behind, reached) and _taught_otherwise(one)):
                continue
            place = _cut(backward.receiver, behind[0])
            if place is None:
                continue
            site, what = place
            layer = f"the layer of {line_of(behind[0].site)}" if behind[0].site is not None else "a layer behind it"
            known = "nothing that the optimizer owns" if not reached else layer
            gets = "gets a gradient" if not reached else "gets no gradient"
            yield Hit(
                site,
                f"{what} cuts the way from the loss (backward in {line_of(backward.site)}) to the parameters: {known} {gets}.",
                "Compute this with differentiable operations on the tensor itself; keep `.detach()`, `.item()` and numpy for "
                "what is logged.",
                Confidence.DEFINITE if one.complete and not reached else Confidence.PROBABLE,
                evidence={"backward": backward.site},
            )


def _all_of_a_model(one: Training, behind: list[Value], reached: set[int]) -> bool:
    """A module of its own, given to an optimizer, of which no layer is reached: no part of one that learns otherwise."""
    for owner in one.owners:
        for module in owner.modules:
            ids = inside([module])
            if id(behind[0]) in ids and not ids & reached:
                return True
    return False


def _taught_otherwise(one: Training) -> bool:
    """Something in the training sets weights by hand: a teacher that follows its pupil, a part that was loaded."""
    return any(e.name in _TEACHES for e in one.events)


def _cut(loss: Value, layer: Value) -> tuple[Site, str] | None:
    """The cut nearest to the layer."""
    cuts = [
        v
        for v in slice_back(loss, lambda v: v.kind != INSTANCE)
        if v.site is not None and cutting(v, CUTS) and any(one is layer for _, one in used(v))
    ]
    if not cuts:
        return None
    first = min(cuts, key=lambda v: v.order)
    assert first.site is not None
    if first.name in CUTS or first.name.startswith("numpy."):
        return first.site, f"`{_WORDS.get(first.name, first.name)}`"
    return _under_no_grad(first) or first.site, "no_grad"


def _under_no_grad(value: Value) -> Site | None:
    """The statement inside `with no_grad` that leads to a value: the call, where the value is made in a function."""
    event = value.event
    region = without_grad(event) if event is not None else None
    if event is None or region is None:
        return None
    site = event.site
    for node in event.above():
        if node is region:
            break
        if isinstance(node, Inlined) and node.call is not None:
            site = node.call.site
    return site
