"""The close look: every dispatched operation of a replayed step, with which of its tensors are finite.

Tensors are told apart by their storage, not by the Python object: autograd hands saved tensors back as new objects.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from osler.core.frames import Line, is_user, line_of, user_frame
from osler.training import private
from osler.training.tape import Entry
from osler.training.values import Bad, bad, numeric

# Where the backward engine is entered: user frames below it run inside the backward pass, those above only asked for it.
_ENGINE = frozenset((torch.autograd.__file__, torch.autograd.graph.__file__))

# Operations that make room and compute nothing: what is in new memory says nothing.
_NO_VALUE = frozenset(
    {
        "aten::empty",
        "aten::empty_like",
        "aten::new_empty",
        "aten::empty_strided",
        "aten::new_empty_strided",
        "aten::resize_",
        "aten::isfinite",
        "aten::isnan",
        "aten::isinf",
    }
)


@dataclass(slots=True, eq=False)
class Operand:
    """A tensor that went into or came out of an operation; `maker` is None for what the step started from."""

    tensor: torch.Tensor
    maker: Op | None
    bad: Bad


@dataclass(slots=True, eq=False)
class Op:
    """One dispatched operation.

    Attributes:
        index: position in the step.
        name: schema name, e.g. `aten::log`.
        backward: whether it ran inside the backward pass.
        inputs, outputs: their floating-point tensors (inputs of in-place operations as they were before).
        scalars: numbers among the arguments.
        line: the user's line; of a backward operation only when the user's own backward code was running.
        module: path of the innermost module.
        node: name of the autograd node that it ran for.
        forward: for a backward operation, the forward operation whose derivative it computes.
        call: number of the torch function call that it ran under, None in a backward pass.
        function: the torch function that the user called; of a backward operation the one whose derivative it computes.
        own: whether it ran in the user's own backward code (a hook, `Function.backward`), not in torch's.
    """

    index: int
    name: str
    backward: bool
    inputs: list[Operand]
    outputs: list[Operand]
    scalars: list[float]
    line: Line | None
    module: str | None
    entry: Entry | None
    node: str | None = None
    forward: Op | None = None
    call: int | None = None
    function: str | None = None
    keyword: dict[str, object] = field(default_factory=dict)
    own: bool = False

    @property
    def makes_nan(self) -> bool:
        """Whether an output holds NaN."""
        return any(o.bad.nan for o in self.outputs)

    @property
    def makes_inf(self) -> bool:
        """Whether an output holds an infinity."""
        return any(o.bad.inf for o in self.outputs)

    @property
    def clean_inputs(self) -> bool:
        """Whether all inputs are finite."""
        return not any(i.bad for i in self.inputs)


class CallCounter(TorchFunctionMode):
    """Numbers the torch function calls of a replay and can put a guard in place of one of them."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.paused = False
        self.current: tuple[int, str] | None = None
        self.guard_at: tuple[str, Line | None, int] | None = None
        self.guard: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any] | None = None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if self.paused:
            return func(*args, **(kwargs or {}))
        number = self.calls
        self.calls += 1
        before = self.current
        self.current = (number, str(getattr(func, "__name__", "")))
        try:
            if self.guard is not None and self._guarded(number, self.current[1]):
                return self.guard(func, args, kwargs or {})
            return func(*args, **(kwargs or {}))
        finally:
            self.current = before

    @contextlib.contextmanager
    def pause(self) -> Iterator[None]:
        """What is inside belongs to osler and not to the step: it gets no numbers."""
        before, self.paused = self.paused, True
        try:
            yield
        finally:
            self.paused = before

    def _guarded(self, number: int, name: str) -> bool:
        """Whether this call stands at the guarded line (a mend there is run by every layer that shares the code)."""
        if self.guard_at is None or name != self.guard_at[0]:
            return False
        if self.guard_at[1] is None:
            return number == self.guard_at[2]
        return line_of(user_frame(sys._getframe(2))) == self.guard_at[1] or number == self.guard_at[2]


class DeepMode(private.DispatchMode):
    """Keeps an `Op` for each dispatched operation."""

    def __init__(self, stop_at: CodeType, counter: CallCounter) -> None:
        """`stop_at` is the code of the function that drives the replay: frames above it are not the step's own."""
        super().__init__()
        self.ops: list[Op] = []
        self.modules: list[str] = []
        self.entry: Entry | None = None
        self.in_backward = False
        self.listeners: list[Callable[[Any, Any, Any, Any, Op], None]] = []
        self._before: list[Callable[[Any, Any, Any], None]] = []
        self._stop_at = stop_at
        self._counter = counter
        self._makers: dict[int, Op] = {}
        self._alive: list[Any] = []
        self._finite: dict[tuple[Any, ...], Bad] = {}
        self._by_storage: dict[int, list[tuple[Any, ...]]] = {}
        self._by_sequence: dict[int, Op] = {}
        self._last_sequence: int | None = None

    def before_each(self, fn: Callable[[Any, Any, Any], None]) -> None:
        """Call `fn(func, args, kwargs)` ahead of each operation (the bundle writer listens here)."""
        self._before.append(fn)

    def maker_of(self, tensor: torch.Tensor) -> Op | None:
        """The operation that last wrote to the tensor's memory."""
        return self._makers.get(private.storage_key(tensor))

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        for listener in self._before:
            listener(func, args, kwargs)
        schema = private.schema_of(func)
        name = schema.name
        leaves = private.leaves((args, kwargs))
        tensors = [t for t in leaves if isinstance(t, torch.Tensor) and numeric(t)]
        node = private.current_node()
        sequence = private.last_sequence_number() if node is None else None
        inputs = [Operand(t.detach(), self.maker_of(t), self._bad(t)) for t in tensors]
        mutates = schema.is_mutable
        if mutates:
            for operand in inputs:
                operand.tensor = operand.tensor.clone()
        output = func(*args, **kwargs)
        made = [t for t in private.leaves(output) if isinstance(t, torch.Tensor)]
        known = {private.storage_key(t) for t in tensors}
        if mutates:
            for t in tensors:
                self._forget(t)
        elif made and all(private.storage_key(t) in known for t in made):
            self._link(sequence, None)
            return output  # a view: same memory, same maker
        line, inside = self._line(sys._getframe(1))
        backward = node is not None or self.in_backward
        op = Op(
            len(self.ops),
            name,
            backward,
            inputs,
            [],
            [float(a) for a in leaves if isinstance(a, (int, float)) and not isinstance(a, bool)][:8],
            line,
            self.modules[-1] if self.modules else None,
            self.entry,
        )
        op.own = backward and inside
        if self._counter.current is not None and not backward:
            op.call, op.function = self._counter.current
        for key in ("correction", "unbiased", "p", "dim", "keepdim"):
            if key in kwargs:
                op.keyword[key] = kwargs[key]
        if node is not None:
            op.node = node.name()
            number = private.node_sequence_number(node)
            op.forward = self._by_sequence.get(number) if number is not None else None
            if op.forward is not None and not op.own:
                op.function = op.forward.function
        for t in made:
            self._alive.append(t.detach())
            if numeric(t):
                if name not in _NO_VALUE:
                    op.outputs.append(Operand(t.detach(), op, self._bad(t)))
                self._makers[private.storage_key(t)] = op
        self.ops.append(op)
        self._link(sequence, op)
        for after in self.listeners:
            after(func, args, kwargs, output, op)
        return output

    def _link(self, sequence: int | None, op: Op | None) -> None:
        if sequence is None or sequence == self._last_sequence:
            return
        self._last_sequence = sequence
        if op is not None:
            self._by_sequence.setdefault(sequence, op)

    def _bad(self, tensor: torch.Tensor) -> Bad:
        storage = private.storage_key(tensor)
        key = (storage, tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype)
        known = self._finite.get(key)
        if known is None:
            known = self._finite[key] = bad(tensor)
            self._by_storage.setdefault(storage, []).append(key)
            self._alive.append(tensor.detach())
        return known

    def _forget(self, tensor: torch.Tensor) -> None:
        for key in self._by_storage.pop(private.storage_key(tensor), ()):
            self._finite.pop(key, None)

    def _line(self, frame: FrameType | None) -> tuple[Line | None, bool]:
        """The innermost user line of the step, and whether no entry into the backward engine lies below it."""
        inside = True
        while frame is not None and frame.f_code is not self._stop_at:
            if is_user(frame.f_code.co_filename):
                return line_of(frame), inside
            inside = inside and frame.f_code.co_filename not in _ENGINE
            frame = frame.f_back
        return None, False
