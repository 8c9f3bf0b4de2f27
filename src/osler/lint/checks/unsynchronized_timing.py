"""The host's clock around work on a GPU, and nothing that waits for it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from osler.core.finding import Confidence
from osler.lint.facts import Facts
from osler.lint.hit import Hit, line_of
from osler.lint.objects import known_model, loader_like
from osler.lint.reading import brings_in, named
from osler.syntax.trace import Event, Inlined, Loop, Trace
from osler.syntax.values import CONSTANT, JOIN, RESULT, SEQUENCE, UNKNOWN, Value, alternatives, slice_back

RULE = "unsynchronized-timing"
CALLS = frozenset({"time", "perf_counter", "monotonic", "perf_counter_ns", "time_ns"})

_CLOCKS = (
    "time.time",
    "time.perf_counter",
    "time.monotonic",
    "time.perf_counter_ns",
    "time.time_ns",
    "timeit.default_timer",
)
_WAITS = named("synchronize item cpu numpy tolist wait print float int bool format barrier to_numpy save")
_TORCH = ("torch.matmul", "torch.mm", "torch.bmm", "torch.einsum", "torch.nn.functional.", "torch.conv")


def check(facts: Facts) -> Iterator[Hit]:
    """Each difference of two readings of the clock."""
    if "cuda" not in facts.module.text or not brings_in(facts.module, "torch"):
        return
    # What `__init__` moves, the other methods use.
    moved, sure = _moved([e for trace in facts.traces for e in trace.block.events()])
    for trace in facts.traces if moved else ():
        yield from _trace(trace, moved, sure)


def _trace(trace: Trace, moved: set[int], sure: bool) -> Iterator[Hit]:
    events = trace.events()
    readings = [e for e in events if e.name in _CLOCKS]
    if len(readings) < 2:
        return
    followed = {id(n.call) for n in trace.nodes() if isinstance(n, Inlined)}
    for start, stop in pairwise(readings):
        if start.block is not stop.block or start.site.line >= stop.site.line or start.site.file != stop.site.file:
            continue
        between = [e for e in events if start.order < e.order < stop.order]
        if any(_waits(e) for e in between) or _goes_through_a_loader(trace, start, stop):
            continue
        if _part_of_a_whole(events, readings, start, stop):
            continue
        work = next((e for e in between if _on_device(e, moved)), None)
        if work is None or any(_unseen(e, moved) and id(e) not in followed for e in between):
            continue
        yield Hit(
            stop.site,
            f"The clock is read without waiting for the GPU: the work of {line_of(work.site)} has been queued, not done.",
            "Call torch.cuda.synchronize() before each reading of the clock.",
            Confidence.DEFINITE if sure else Confidence.PROBABLE,
            evidence={"start": start.site, "work": work.site},
        )


def _part_of_a_whole(events: list[Event], readings: list[Event], start: Event, stop: Event) -> bool:
    """A longer measurement around this one waits at its end: what is read here is the time of the host, and meant so."""
    if not any(r.order < start.order for r in readings):
        return False
    ends = [r.order for r in readings if r.order > stop.order]
    return any(_waits_for_device(e) and any(e.order < end for end in ends) for e in events if e.order > stop.order)


def _moved(events: list[Event]) -> tuple[set[int], bool]:
    """What was moved to, or made on, a CUDA device; whether no condition stands before that."""
    ids: set[int] = set()
    sure = True
    for event in events:
        devices = (
            [*event.arguments[:1], event.keywords.get("device")]
            if event.name == ".to"
            else [event.keywords.get("device")]
        )
        kinds = [k for d in devices if d is not None for k in _cuda(d)]
        if event.name == ".cuda":
            kinds = [True]
        if True not in kinds:
            continue
        sure = sure and False not in kinds and not event.branches()
        if event.receiver is not None and event.name in (".to", ".cuda"):
            ids |= {id(v) for v in alternatives(event.receiver)}
        ids.add(id(event.result))
    return ids, sure


def _cuda(device: Value) -> list[bool]:
    """For each device that it may be whether that is a CUDA device."""
    out = []
    for value in slice_back(device, lambda v: v.kind in (JOIN, SEQUENCE) or v.name == "torch.device", limit=20):
        if value.kind == CONSTANT and isinstance(value.constant, str):
            out.append(value.constant.startswith("cuda"))
    return out


def _waits(event: Event) -> bool:
    return (
        event.method in _WAITS or event.name.startswith(("builtins.print", "logging.")) or "sync" in event.name.lower()
    )


def _waits_for_device(event: Event) -> bool:
    return "sync" in event.name.lower() or any(
        "sync" in v.name.lower() for v in alternatives(event.receiver or event.result)
    )


def _goes_through_a_loader(trace: Trace, start: Event, stop: Event) -> bool:
    for node in trace.nodes():
        if isinstance(node, Loop) and start.order < node.order < stop.order and node.over is not None:
            gone = slice_back(node.over, limit=20)
            if any(loader_like(v) or v.kind == UNKNOWN for v in gone):
                return True
    return False


def _on_device(event: Event, moved: set[int]) -> bool:
    """A model or an operation of torch is called on something that lies on the device."""
    if event.name == ".backward" and event.receiver is not None:
        return any(id(v) in moved for v in slice_back(event.receiver))
    if event.name == "()" and event.receiver is not None:
        if _models(event.receiver) and any(id(v) in moved for v in alternatives(event.receiver)):
            return True
        return known_model(event.receiver) and any(id(v) in moved for a in event.arguments for v in slice_back(a))
    if event.name.startswith(_TORCH) or event.name == ".matmul":
        return any(id(v) in moved for a in event.arguments for v in slice_back(a))
    return False


def _models(value: Value) -> bool:
    return any(v.kind not in (CONSTANT, RESULT) for v in alternatives(value))


def _unseen(event: Event, moved: set[int]) -> bool:
    """A function that nobody could look into is given what lies on the device: it may wait."""
    if event.name.startswith((".", "(", "builtins.", "torch.", "super.", "time.")) or event.result.name != event.name:
        return False
    return any(id(v) in moved for a in (*event.arguments, *event.keywords.values()) for v in alternatives(a))
