"""The tape: what ran since the last optimizer step, kept by reference so that it can be run again.

An entry is either the call of a root module or a torch function called outside modules. At `backward` the entries that
the loss depends on become a segment: outputs are replaced by references to the entries that made them, so that the graph
is freed as usual and only the step's own inputs stay alive.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, NamedTuple

import torch
from torch.overrides import TorchFunctionMode

from osler.core.frames import Line, user_frame
from osler.training import private, tags

# Functions that draw random numbers: their generator state is kept with the entry.
_RANDOM = frozenset(
    [
        "dropout",
        "alpha_dropout",
        "feature_dropout",
        "feature_alpha_dropout",
        "dropout1d",
        "dropout2d",
        "dropout3d",
        "rrelu",
        "rand_like",
        "randn_like",
        "randint_like",
        "bernoulli",
        "multinomial",
        "normal",
        "gumbel_softmax",
        "scaled_dot_product_attention",
        "poisson",
        "dropout_",
        "bernoulli_",
        "rrelu_",
        "normal_",
        "uniform_",
        "exponential_",
        "multi_head_attention_forward",
    ]
)
# Attributes of a tensor that are computed from it and belong to its graph.
_DERIVED = frozenset(("T", "mT", "H", "mH", "real", "imag"))
# Outside the graph, these only choose or carry numbers made elsewhere.
_MOVES = frozenset(
    [
        "__getitem__",
        "to",
        "cuda",
        "cpu",
        "float",
        "double",
        "half",
        "long",
        "type",
        "view",
        "reshape",
        "flatten",
        "squeeze",
        "unsqueeze",
        "permute",
        "transpose",
        "expand",
        "cat",
        "stack",
        "split",
        "chunk",
        "unbind",
        "index_select",
        "gather",
        "contiguous",
        "clone",
        "T",
        "zeros_like",
        "ones_like",
        "full_like",
        "narrow",
        "select",
        "repeat",
        "expand_as",
        "view_as",
        "__get__",
        "_amp_update_scale_",
    ]
)
# Functions that are no part of a computation that could be repeated.
_PASSED_OVER = frozenset(
    [
        "backward",
        "__set__",
        "requires_grad_",
        "item",
        "detach",
        "detach_",
        "size",
        "dim",
        "__len__",
        "tolist",
        "cpu",
        "numpy",
        "retain_grad",
        "register_hook",
        "__repr__",
        "__format__",
        "is_floating_point",
        "storage",
        "untyped_storage",
        "data_ptr",
        "numel",
        "stride",
        "__iter__",
        "zero_grad",
    ]
)


_SMALL = 1 << 14  # elements; larger tensors outside the graph are kept as they are, not as the calls that made them


def _in_place(name: str) -> bool:
    return (name.endswith("_") and not name.endswith("__")) or (
        name.startswith("__i") and name not in ("__invert__", "__iter__")
    )


class Ref(NamedTuple):
    """Output `output` of entry `entry`, in place of the tensor itself."""

    entry: int
    output: int


class Autocast(NamedTuple):
    """The autocast state at a call: per device type the dtype, None where it was off."""

    cpu: torch.dtype | None
    cuda: torch.dtype | None


class Rng(NamedTuple):
    """Generator states at a call; `cuda` belongs to the current device, None where CUDA is not in use."""

    cpu: torch.Tensor
    cuda: torch.Tensor | None


def rng_now() -> Rng:
    """The generator states as they are."""
    cuda = torch.cuda.get_rng_state() if torch.cuda.is_initialized() else None
    return Rng(torch.default_generator.get_state(), cuda)


def rng_set(state: Rng) -> None:
    """Set the generators to a state taken by `rng_now`."""
    torch.default_generator.set_state(state.cpu)
    if state.cuda is not None:
        torch.cuda.set_rng_state(state.cuda)


def autocast_now() -> Autocast | None:
    """The autocast state, None where it is off."""
    cpu = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else None
    cuda = torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else None
    return Autocast(cpu, cuda) if cpu is not None or cuda is not None else None


@dataclass(slots=True, eq=False)
class Entry:
    """One call.

    Attributes:
        fn: the root module, or the torch function.
        args, kwargs: by reference; inside a segment, tensors made by earlier entries are `Ref`s.
        outputs: weak references to the tensors it returned, in order.
        line: the user's line of the call.
        rng: generator states before the call, where it may draw from them.
        versions: version counters of the tensors among the arguments before the call; inside a segment, of those that
            no earlier entry made.
        root: whether `fn` is a module.
        training: the root module's mode.
        autocast: the autocast state at the call.
    """

    fn: Any
    args: Any
    kwargs: Any
    outputs: list[weakref.ref[torch.Tensor]]
    line: Line | None
    rng: Rng | None
    versions: list[int]
    root: bool
    training: bool = True
    autocast: Autocast | None = None

    @property
    def in_place(self) -> bool:
        """Whether the call writes to its first argument."""
        return (not self.root and _in_place(str(getattr(self.fn, "__name__", "")))) or self.name == "__setitem__"

    @property
    def name(self) -> str:
        """Name of the function or class of the module."""
        return type(self.fn).__name__ if self.root else str(getattr(self.fn, "__name__", self.fn))


@dataclass(slots=True, eq=False)
class Segment:
    """Everything one backward pass depends on.

    Attributes:
        entries: in the order of the calls.
        roots: the tensors that backward started from, as `Ref`s or tensors.
        grad_tensors: what `backward` was given besides.
        losses: the roots' values, detached.
        line: the user's line of the backward call.
        names: tags of outputs, by `Ref`.
        scaled: whether the loss had gone through a GradScaler.
        complete: False when the tape had overflowed or was off for a part, so that a replay cannot be whole.
    """

    entries: list[Entry]
    roots: list[Any]
    grad_tensors: Any
    losses: list[torch.Tensor]
    line: Line | None
    names: dict[Ref, str] = field(default_factory=dict)
    scaled: bool = False
    complete: bool = True


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """The tensors inside nested tuples, lists, dicts and dataclasses, in order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors_in(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors_in(item)
    elif hasattr(value, "__dataclass_fields__"):
        for item in vars(value).values() if hasattr(value, "__dict__") else ():
            yield from tensors_in(item)


def versions_of(values: Any) -> list[int]:
    """Version counters of the tensors in `values` (0 for inference tensors, which have none)."""
    return [private.version(t) for t in tensors_in(values)]


def map_tensors(value: Any, fn: Callable[[torch.Tensor], Any]) -> Any:
    """`value` with each tensor in plain tuples, lists, dicts and named tuples replaced by `fn(tensor)`."""
    if isinstance(value, torch.Tensor):
        return fn(value)
    kind = type(value)
    if kind is tuple or kind is list or kind is torch.Size:
        return value if kind is torch.Size else kind(map_tensors(v, fn) for v in value)
    if kind is dict:
        return {k: map_tensors(v, fn) for k, v in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields") and not isinstance(value, Ref):
        return kind(*(map_tensors(v, fn) for v in value))
    return value


def map_refs(value: Any, fn: Callable[[Ref], Any]) -> Any:
    """`value` with each `Ref` replaced by `fn(ref)`."""
    if isinstance(value, Ref):
        return fn(value)
    kind = type(value)
    if kind is tuple or kind is list:
        return kind(map_refs(v, fn) for v in value)
    if kind is dict:
        return {k: map_refs(v, fn) for k, v in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return kind(*(map_refs(v, fn) for v in value))
    return value


def _raise(error: Exception) -> None:
    raise error


class Tape:
    """Entries since the last backward, and the segments closed since the last optimizer step."""

    def __init__(self, max_entries: int, max_segments: int) -> None:
        self.entries: list[Entry] = []
        self.segments: list[Segment] = []
        self.max_entries = max_entries
        self.max_segments = max_segments
        self.overflowed = False
        self.let_go = 0
        self.recorded = 0
        self.failed: Callable[[Exception], None] = _raise
        self._made: dict[int, weakref.ref[torch.Tensor]] = {}

    def clear(self) -> None:
        """Let go of the segments (after an optimizer step), and of the entries that no one holds a result of. The others
        stay: a generator's output is used again after the discriminator's step."""
        self.segments.clear()
        self.sweep()
        self._made = {key: ref for key, ref in self._made.items() if ref() is not None}
        self.overflowed = False

    def add(self, entry: Entry) -> None:
        """Keep an entry; past the cap the oldest quarter goes, and what they made counts as given."""
        self.recorded += 1
        if len(self.entries) >= self.max_entries:
            self.sweep()
            if len(self.entries) >= self.max_entries:
                del self.entries[: self.max_entries // 4]
                self.overflowed = True
        self.entries.append(entry)

    def call(self, func: Any, name: str, args: Any, kwargs: Any, frame: FrameType) -> Any:
        """Call a torch function and keep the call if it can matter. Only the function itself may raise."""
        try:
            rng = rng_now() if name in _RANDOM else None
            versions = versions_of(args)
        except Exception as error:
            self.failed(error)
            return func(*args, **kwargs)
        output = func(*args, **kwargs)
        try:
            made = self._of_interest(name, args, kwargs, output)
            if made:
                where = user_frame(frame)
                line = None if where is None else Line(where.f_code.co_filename, where.f_lineno, where.f_code.co_name)
                weak = [weakref.ref(t) for t in made]
                self._made.update((id(t), ref) for t, ref in zip(made, weak))
                self.add(Entry(func, args, kwargs, weak, line, rng, versions, False, True, autocast_now()))
        except Exception as error:
            self.failed(error)
        return output

    def _of_interest(self, name: str, args: Any, kwargs: Any, output: Any) -> list[torch.Tensor]:
        """The tensors that a call made, none where it need not be kept."""
        if name == "__setitem__":
            made = [args[0]]
        elif type(output) is torch.Tensor:
            made = [output]
        else:
            made = list(tensors_in(output))
        if not made or any(t.requires_grad for t in made):
            return made
        if next(tensors_in((args, kwargs)), None) is None:
            return []  # drawn or filled: given, as far as the step is concerned
        if name in _MOVES or not made[0].is_floating_point() or made[0].numel() > _SMALL:
            return []
        if (name == "__setitem__" or _in_place(name)) and id(args[0]) not in self._made:
            return []  # the step's own input, already changed: it is held as it is now
        return made

    def sweep(self) -> None:
        """Drop entries whose results nobody holds any more: a forward under grad mode that no backward follows must be
        freed when the user lets go of it, as without osler."""
        kept: list[Entry] = []
        while self.entries:
            entry = self.entries.pop()
            if any(ref() is not None for ref in entry.outputs):
                kept.append(entry)
            del entry
        kept.reverse()
        self.entries = kept

    def close(
        self, roots: Sequence[torch.Tensor], grad_tensors: Any, line: Line | None, *, keep: bool, scaled: bool
    ) -> Segment:
        """Turn the entries that `roots` depend on into a segment.

        Args:
            keep: the graph is retained: later backward passes may need the same entries.
        """
        makers: dict[int, Ref] = {}
        bodies: list[tuple[Any, Any]] = []
        versions: list[list[int]] = []
        names: dict[Ref, str] = {}

        def to_ref(tensor: torch.Tensor) -> Any:
            if tensor.is_leaf and tensor.requires_grad:
                return tensor  # made by a call, then declared an input of the graph by requires_grad_()
            return makers.get(id(tensor), tensor)

        for i, entry in enumerate(self.entries):
            versions.append([v for t, v in zip(tensors_in(entry.args), entry.versions) if id(t) not in makers])
            bodies.append((map_tensors(entry.args, to_ref), map_tensors(entry.kwargs, to_ref)))
            for j, weak in enumerate(entry.outputs):
                output = weak()
                if output is not None:
                    ref = makers[id(output)] = Ref(i, j)
                    name = tags.name_of(output)
                    if name is not None:
                        names[ref] = name
        start = [to_ref(r) for r in roots]
        needed: set[int] = set()
        stack = [r.entry for r in start if isinstance(r, Ref)]
        while stack:
            i = stack.pop()
            if i in needed:
                continue
            needed.add(i)
            map_refs(bodies[i], lambda ref: stack.append(ref.entry))
        order = sorted(needed)
        place = {old: new for new, old in enumerate(order)}

        def moved(ref: Ref) -> Ref:
            return Ref(place[ref.entry], ref.output)

        kept = []
        for i in order:
            e = self.entries[i]
            args, kwargs = bodies[i]
            kept.append(
                Entry(
                    e.fn,
                    map_refs(args, moved),
                    map_refs(kwargs, moved),
                    [],
                    e.line,
                    e.rng,
                    versions[i],
                    e.root,
                    e.training,
                    e.autocast,
                )
            )
        segment = Segment(
            kept,
            [map_refs(r, moved) for r in start],
            grad_tensors,
            [r.detach() for r in roots],
            line,
            {moved(ref): name for ref, name in names.items() if ref.entry in needed},
            scaled,
            complete=not self.overflowed,
        )
        self.overflowed = False
        if not keep:
            self.entries = [e for i, e in enumerate(self.entries) if i not in needed]
        self.segments.append(segment)
        if len(self.segments) > self.max_segments:
            del self.segments[0]
            self.let_go += 1
        return segment


class TapeMode(TorchFunctionMode):
    """Puts the torch functions called outside modules on the tape: all that belong to the graph, and those on small
    tensors outside it (targets, weights, statistics), where many a bad number is born."""

    def __init__(self, tape: Tape, closed: Callable[[], bool]) -> None:
        """`closed()` says that nothing is to be recorded now."""
        super().__init__()
        self._tape = tape
        self._closed = closed

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name in _PASSED_OVER or not torch.is_grad_enabled() or self._closed():
            return func(*args, **kwargs)
        if name == "__get__" and getattr(getattr(func, "__self__", None), "__name__", "") not in _DERIVED:
            return func(*args, **kwargs)
        return self._tape.call(func, name, args, kwargs, sys._getframe(1))
