"""Clipping of gradients that are still multiplied by the loss scale."""

from __future__ import annotations

from collections.abc import Iterator

from osler.core.finding import Confidence
from osler.lint.facts import Facts
from osler.lint.hit import Hit, line_of
from osler.lint.order import backwards, given, independent, leaves, stretch
from osler.lint.turns import scaled
from osler.syntax.trace import Event
from osler.syntax.values import CONSTANT, INSTANCE, Value, alternatives, same, slice_back

RULE = "clip-before-unscale"
CALLS = frozenset({"clip_grad_norm_", "clip_grad_value_", "clip_grad_norm"})

_CLIPS = tuple(f"torch.nn.utils.{m}{n}" for m in ("", "clip_grad.") for n in sorted(CALLS))
# What a scaler is asked in a pass without its scale being taken out.
_HARMLESS = frozenset({".scale", ".step", ".update"})


def check(facts: Facts) -> Iterator[Hit]:
    """Each clipping whose gradients come from a scaled loss, with nothing in between that takes the scale out."""
    for clip in facts.events(*_CLIPS):
        found = _scaled_before(clip)
        if found is None:
            continue
        backward, scaler = found
        yield Hit(
            clip.site,
            f"The gradients of {line_of(backward.site)} are clipped while they are still multiplied by the loss scale, so the limit "
            "is thousands of times smaller than it says.",
            "Call scaler.unscale_(optimizer) once, between backward and this line.",
            Confidence.DEFINITE if any(v.kind == INSTANCE for v in alternatives(scaler)) else Confidence.PROBABLE,
            evidence={"backward": backward.site},
        )


def _scaled_before(clip: Event) -> tuple[Event, Value] | None:
    """The scaled backward that the clipping follows, with its scaler."""
    around = stretch(clip)
    before = around.before(clip)
    for backward in backwards(before):
        scaler = scaled(backward)
        if scaler is not None and _sure(scaler, backward, clip):
            between = [e for e in around.events if backward.order < e.order < clip.order]
            if any(_takes_out(e, scaler) for e in between) or _knows_scale(clip):
                return None
            return backward, scaler
        if given(backward, clip):
            return None
    return None


def _sure(scaler: Value, backward: Event, clip: Event) -> bool:
    if any(_switched_off(v) for v in alternatives(scaler)):
        return False
    if given(clip, backward):
        return True
    conditions = [b.test for b in clip.branches() if b not in backward.branches() and b.test is not None]
    about_scaler = {id(scaler), *leaves(alternatives(scaler)), *_switches(scaler)}
    if about_scaler & leaves(conditions):
        return False
    return independent(clip, backward)


def _switches(scaler: Value) -> set[int]:
    """Ids of what decides whether the scaler works at all: `GradScaler(enabled=args.amp)`."""
    given_ = [v.event.keywords["enabled"] for v in alternatives(scaler) if v.event and "enabled" in v.event.keywords]
    return leaves(given_) | {id(v) for v in given_}


def _switched_off(scaler: Value) -> bool:
    enabled = scaler.event.keywords.get("enabled") if scaler.event is not None else None
    return enabled is not None and enabled.kind == CONSTANT and not enabled.constant


def _takes_out(event: Event, scaler: Value) -> bool:
    mine = alternatives(scaler)
    if event.receiver is not None and same(alternatives(event.receiver), mine):
        return event.name not in _HARMLESS or event.name == ".step"
    handed = [v for a in (*event.arguments, *event.keywords.values()) for v in alternatives(a)]
    return event.method == "unscale_" or (same(handed, mine) and event.name != "builtins.print")


def _knows_scale(clip: Event) -> bool:
    limits = [*clip.arguments[1:], *clip.keywords.values()]
    return any(v.name in (".get_scale", "._scale") for limit in limits for v in slice_back(limit, limit=100))
