"""The failing step again, operation by operation.

A segment is run forward and backward once more from the inputs that it held, under a mode that sees each dispatched
operation. Only a replay whose loss equals the recorded one bit by bit, and in which the bad numbers come back, counts as
reproduced. Gradients are taken with `torch.autograd.grad`: nothing is accumulated, no hook of the user's on `.grad` runs.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.nn.modules import module as nn_module
from torch.utils import checkpoint

from osler.training import private, tags
from osler.training.classify import Verdict, classify
from osler.training.deep import CallCounter, DeepMode, Op, Operand
from osler.training.guards import Call, guard_for
from osler.training.isolation import undisturbed
from osler.training.origin import Origin, find
from osler.training.tape import Autocast, Entry, Ref, Segment, map_refs, rng_set, tensors_in, versions_of
from osler.training.values import bad, same


@dataclass(slots=True)
class Leaf:
    """What the step started from and already held a NaN or an infinity.

    Attributes:
        kind: `parameter`, `buffer` or `input`.
        name: name of the parameter or buffer, or of the argument that it was.
        tensor: the tensor.
        entry: the call that it went into.
    """

    kind: str
    name: str
    tensor: torch.Tensor
    entry: Entry | None = None


@dataclass(slots=True)
class Replayed:
    """What a replay found.

    Attributes:
        segment: what was replayed.
        reproduced: whether the loss came out bit for bit the same and the bad numbers came back.
        why_not: one clause, where it was not.
        backward: whether the bad numbers first appeared in the backward pass.
        origin, verdict: where it began and which rule that is; None where not found.
        leaf: the tensor that was bad before the step began, where that is the cause.
        guarded: whether the proposed guard made the fault vanish; None where it was not tried.
        bad_gradients: names of the parameters with a non-finite gradient.
        names: tags and parameter names by storage, for messages.
        operations: how many operations ran.
        seconds: how long the replay took.
    """

    segment: Segment
    reproduced: bool = False
    why_not: str | None = None
    backward: bool = False
    origin: Origin | None = None
    verdict: Verdict | None = None
    leaf: Leaf | None = None
    guarded: bool | None = None
    bad_gradients: list[str] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    operations: int = 0
    seconds: float = 0.0
    deep: DeepMode | None = None


class _Unrepeatable(RuntimeError):
    """Running the step again would change the user's tensors or start from what is no longer there."""


def roots_of(segment: Segment) -> list[torch.nn.Module]:
    """The root modules that a segment calls, each once."""
    found: dict[int, torch.nn.Module] = {}
    for entry in segment.entries:
        if entry.root:
            module = plain(entry.fn)
            found.setdefault(id(module), module)
    return list(found.values())


def plain(module: Any) -> Any:
    """The module to run again: without the wrappers of `torch.compile` and DistributedDataParallel."""
    return private.local(module) if isinstance(module, torch.nn.Module) else module


def several_ranks() -> bool:
    """Whether other processes take part in this training."""
    d = torch.distributed
    return d.is_available() and d.is_initialized() and d.get_world_size() > 1


def _refuse_collectives(segment: Segment) -> None:
    """A forward that talks to other ranks would wait for them for ever when one rank runs it alone."""
    for root in roots_of(segment):
        for module in root.modules():
            if isinstance(module, torch.nn.SyncBatchNorm) or any(
                hasattr(p, "to_local") for p in module.parameters(False)
            ):
                raise _Unrepeatable(f"{type(module).__name__} works across ranks, and one rank cannot run it alone")


def learnable(segment: Segment, more: Sequence[torch.Tensor] = ()) -> list[torch.Tensor]:
    """The leaf tensors that the segment's loss may have a gradient for: parameters, inputs that ask for one, `more`."""
    found: dict[int, torch.Tensor] = {}
    for root in roots_of(segment):
        for p in root.parameters():
            found.setdefault(id(p), p)
    for entry in segment.entries:
        for t in tensors_in((entry.args, entry.kwargs)):
            found.setdefault(id(t), t)
    for t in more:
        found.setdefault(id(t), t)
    return [t for t in found.values() if t.requires_grad and t.is_leaf]


def replay(
    segment: Segment, names: Mapping[int, str], more: Sequence[torch.Tensor] = (), recorder: Any = None
) -> Replayed:
    """Run a segment again and look for the origin of its bad numbers.

    Args:
        segment: as closed at `backward`.
        names: parameter names by `id`.
        more: leaf tensors besides the roots' parameters, e.g. those of the optimizer.
        recorder: something with `attach(deep)` that wants to see the operations (the bundle writer).
    """
    began = time.perf_counter()
    result = Replayed(segment)
    mutated = [e.name for e in segment.entries if e.versions and e.versions != _versions_now(e)]
    try:
        _look(segment, names, more, result, recorder)
    except _Unrepeatable as error:
        result.why_not = str(error)
    except Exception as error:
        result.why_not = (
            f"running it again raised {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        )
    if mutated and not result.reproduced:
        result.why_not = f"an input of {mutated[0]} was changed in place after the call"
    if result.verdict is not None and result.reproduced:
        try:
            result.guarded = _with_guard(segment, more, result)
        except Exception:
            # A guard that does not fit this call proves nothing either way.
            result.guarded = None
    result.seconds = time.perf_counter() - began
    return result


def _versions_now(entry: Entry) -> list[int]:
    return versions_of(entry.args)


def _look(
    segment: Segment, names: Mapping[int, str], more: Sequence[torch.Tensor], result: Replayed, recorder: Any
) -> None:
    roots = roots_of(segment)
    for entry in segment.entries:
        if any(t.grad_fn is not None for t in tensors_in((entry.args, entry.kwargs))):
            raise _Unrepeatable(f"an input of {entry.name} was computed before the recording began")
    if several_ranks():
        _refuse_collectives(segment)
    if any(isinstance(r, torch.Tensor) and r.grad_fn is not None for r in segment.roots):
        raise _Unrepeatable("the operations that made the loss were not recorded")
    counter = CallCounter()
    deep = DeepMode(stop_at=run_again.__code__, counter=counter)
    result.deep = deep
    if recorder is not None:
        recorder.attach(deep)
    wanted = learnable(segment, more)

    def note_tag(tensor: torch.Tensor, name: str) -> None:
        with counter.pause():
            result.names[private.storage_key(tensor)] = name

    stop = tags.listen(note_tag)
    try:
        with undisturbed(roots), _module_paths(roots, deep), torch.compiler.set_stance("force_eager"):
            loss, grads = run_again(segment, wanted, counter, deep, result.names)
    finally:
        stop()
    result.operations = len(deep.ops)
    equal = len(loss) == len(segment.losses) and all(same(a, b) for a, b in zip(loss, segment.losses))
    targets: list[Op] = []
    if any(bad(v) for v in loss):
        targets = [m for v in loss if bad(v) and (m := deep.maker_of(v)) is not None]
        if not targets:
            targets = [op for op in deep.ops if op.makes_nan or op.makes_inf][-1:]
    else:
        result.backward = True
        for tensor, grad in zip(wanted, grads):
            if grad is not None and _bad(grad):
                result.bad_gradients.append(names.get(id(tensor), "an input"))
                maker = deep.maker_of(grad) if grad.layout == torch.strided else None
                if maker is not None:
                    targets.append(maker)
        if result.bad_gradients and not targets:
            # A sparse gradient hands its values on under another storage.
            targets = [op for op in deep.ops if op.backward and (op.makes_nan or op.makes_inf)][-1:]
    if not targets:
        leaf = _bad_leaf_anywhere(segment, names)
        if leaf is None:
            result.why_not = "the loss came out different"
            if equal and several_ranks():
                result.why_not = (
                    "this rank's own loss and gradients are finite, so the bad numbers came from another rank"
                )
            elif equal:
                result.why_not = "no number went bad when it was run again"
            return
        result.leaf = leaf
    result.origin = find(targets)
    if not equal:
        result.why_not = "the loss came out different when it was run again"
    result.reproduced = equal and (result.origin is not None or result.leaf is not None)
    if result.origin is not None:
        if result.origin.leaf is not None:
            result.leaf = _name_leaf(result.origin, segment, names)
        result.backward = result.origin.op.backward
        if result.leaf is None:
            result.verdict = classify(result.origin)


def run_again(
    segment: Segment,
    wanted: Sequence[torch.Tensor],
    counter: CallCounter,
    deep: DeepMode | None,
    tag_names: dict[int, str] | None = None,
    *,
    full_precision: bool = False,
    swap: tuple[torch.Tensor, torch.Tensor] | None = None,
) -> tuple[list[torch.Tensor], tuple[torch.Tensor | None, ...]]:
    """Forward and backward of a segment.

    Args:
        wanted: leaf tensors to take gradients for.
        deep: the mode that watches, None to run unwatched.
        full_precision: leave autocast off.
        swap: an input and the tensor to use in its place.

    Returns:
        The loss tensors and, where these are finite, the gradients (None for tensors that take no part).
    """
    outputs: list[list[torch.Tensor]] = []

    def value(ref: Ref) -> torch.Tensor:
        return outputs[ref.entry][ref.output]

    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.enable_grad())
        stack.enter_context(torch.autograd.set_detect_anomaly(False))
        stack.enter_context(_without_reentrant_checkpoints())
        stack.enter_context(counter)
        if deep is not None:
            stack.enter_context(deep)
        for i, entry in enumerate(segment.entries):
            if deep is not None:
                deep.entry = entry
            if entry.rng is not None:
                rng_set(entry.rng)
            with _autocast(None if full_precision else entry.autocast):
                args, kwargs = map_refs(entry.args, value), map_refs(entry.kwargs, value)
                if swap is not None:
                    args, kwargs = _swapped(args, *swap), _swapped(kwargs, *swap)
                if entry.in_place and entry.args and isinstance(entry.args[0], torch.Tensor):
                    raise _Unrepeatable(f"{entry.name} changed an input of the step in place")
                made = plain(entry.fn)(*args, **kwargs)
            outputs.append([args[0]] if entry.name == "__setitem__" else list(tensors_in(made)))
            with counter.pause():
                for ref, name in segment.names.items():
                    if ref.entry == i and tag_names is not None and ref.output < len(outputs[i]):
                        tag_names[private.storage_key(outputs[i][ref.output])] = name
        loss = [value(r) if isinstance(r, Ref) else r for r in segment.roots]
        grads: tuple[torch.Tensor | None, ...] = ()
        with counter.pause():
            if wanted and not any(bad(v) for v in loss):
                given = segment.grad_tensors
                given = [given] if isinstance(given, torch.Tensor) else given
                if deep is not None:
                    deep.entry, deep.in_backward = None, True
                grads = torch.autograd.grad(loss, list(wanted), given, allow_unused=True)
        if deep is not None:
            deep.entry, deep.in_backward = None, False
    return loss, grads


def _swapped(value: Any, old: torch.Tensor, new: torch.Tensor) -> Any:
    if isinstance(value, torch.Tensor):
        return new if value is old else value
    if type(value) in (tuple, list):
        return type(value)(_swapped(v, old, new) for v in value)
    if type(value) is dict:
        return {k: _swapped(v, old, new) for k, v in value.items()}
    return value


class _Straight:
    """In place of the autograd function behind reentrant checkpoints, which refuses `torch.autograd.grad` and adds to
    `.grad`: the function is called as it is. The recomputation would give the same numbers, at a later time."""

    @staticmethod
    def apply(function: Callable[..., Any], preserve_rng_state: bool, *args: Any) -> Any:
        with torch.set_grad_enabled(any(t.requires_grad for t in tensors_in(args))):
            return function(*args)


@contextlib.contextmanager
def _without_reentrant_checkpoints() -> Iterator[None]:
    original = checkpoint.CheckpointFunction
    checkpoint.CheckpointFunction = _Straight  # type: ignore[assignment,misc]
    try:
        yield
    finally:
        checkpoint.CheckpointFunction = original  # type: ignore[misc]


@contextlib.contextmanager
def _autocast(state: Autocast | None) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        if state is not None and state.cpu is not None:
            stack.enter_context(torch.autocast("cpu", dtype=state.cpu))
        if state is not None and state.cuda is not None:
            stack.enter_context(torch.autocast("cuda", dtype=state.cuda))
        yield


@contextlib.contextmanager
def _module_paths(roots: Sequence[torch.nn.Module], deep: DeepMode) -> Iterator[None]:
    paths = {id(m): name for root in roots for name, m in root.named_modules()}

    def enter(module: torch.nn.Module, args: Any) -> None:
        deep.modules.append(paths.get(id(module), "") or type(module).__name__)

    def leave(module: torch.nn.Module, args: Any, output: Any) -> None:
        if deep.modules:
            deep.modules.pop()

    before = nn_module.register_module_forward_pre_hook(enter)
    after = nn_module.register_module_forward_hook(leave, always_call=True)
    try:
        yield
    finally:
        before.remove()
        after.remove()


def _with_guard(segment: Segment, more: Sequence[torch.Tensor], result: Replayed) -> bool | None:
    verdict = result.verdict
    assert verdict is not None
    counter = CallCounter()
    guard: Call | None = guard_for(verdict.rule, verdict.op.function)
    full_precision = verdict.rule == "half-overflow" and any(e.autocast for e in segment.entries)
    if full_precision:
        guard = None
    elif guard is None or verdict.op.call is None:
        return None
    if guard is not None and verdict.op.call is not None:
        counter.guard, counter.guard_at = guard, (verdict.op.function or "", verdict.op.line, verdict.op.call)
    return _vanishes(segment, more, counter, full_precision=full_precision, loss_only=not result.backward)


def vanishes_without(segment: Segment, more: Sequence[torch.Tensor], leaf: Leaf) -> bool | None:
    """Whether the step is finite once the bad elements of an input are replaced by 0; None where that fails to run."""
    clean = torch.nan_to_num(leaf.tensor.detach(), nan=0.0, posinf=0.0, neginf=0.0)
    try:
        return _vanishes(
            segment,
            more,
            CallCounter(),
            swap=(leaf.tensor, clean.requires_grad_(leaf.tensor.requires_grad)),
            loss_only=True,
        )
    except Exception:
        return None


def _vanishes(
    segment: Segment,
    more: Sequence[torch.Tensor],
    counter: CallCounter,
    *,
    full_precision: bool = False,
    swap: tuple[torch.Tensor, torch.Tensor] | None = None,
    loss_only: bool = False,
) -> bool:
    """Whether loss and gradients are finite. `loss_only`: of a scaled loss only itself counts, because its gradients may
    overflow at this scale and GradScaler is there to lower it."""
    wanted = [t for t in learnable(segment, more) if swap is None or t is not swap[0]]
    with undisturbed(roots_of(segment)), torch.compiler.set_stance("force_eager"):
        loss, grads = run_again(segment, wanted, counter, None, full_precision=full_precision, swap=swap)
    if loss_only and segment.scaled:
        return not any(bad(v) for v in loss)
    return not any(bad(v) for v in loss) and not any(g is not None and _bad(g) for g in grads)


def _bad(grad: torch.Tensor) -> bool:
    return bool(bad(grad.coalesce().values() if grad.layout == torch.sparse_coo else grad))


def _bad_leaf_anywhere(segment: Segment, names: Mapping[int, str]) -> Leaf | None:
    for entry in segment.entries:
        for t in tensors_in((entry.args, entry.kwargs)):
            if bad(t).nan:
                return _leaf(t, entry, names)
    return None


def _name_leaf(origin: Origin, segment: Segment, names: Mapping[int, str]) -> Leaf:
    operand: Operand | None = origin.leaf
    assert operand is not None
    storage = private.storage_key(operand.tensor)
    for root in roots_of(segment):
        for kind, tensors in (("parameter", root.named_parameters()), ("buffer", root.named_buffers())):
            for name, t in tensors:
                if t.layout == torch.strided and private.storage_key(t) == storage:
                    return Leaf(kind, name, t, origin.op.entry)
    for entry in segment.entries:
        for t in tensors_in((entry.args, entry.kwargs)):
            if t.layout == torch.strided and private.storage_key(t) == storage:
                return _leaf(t, entry, names)
    return Leaf("input", "a tensor", operand.tensor, origin.op.entry)


def _leaf(tensor: torch.Tensor, entry: Entry, names: Mapping[int, str]) -> Leaf:
    if id(tensor) in names:
        return Leaf("parameter", names[id(tensor)], tensor, entry)
    return Leaf("input", tags.name_of(tensor) or _argument(tensor, entry), tensor, entry)


def _argument(tensor: torch.Tensor, entry: Entry) -> str:
    for key, value in entry.kwargs.items():
        if any(t is tensor for t in tensors_in(value)):
            return f"argument {key} of {entry.name}"
    for i, value in enumerate(entry.args):
        if any(t is tensor for t in tensors_in(value)):
            return f"argument {i} of {entry.name}"
    return f"an input of {entry.name}"
