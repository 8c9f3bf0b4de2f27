"""A close look at one step: every torch function call from the first forward to the backward.

It tells which parameters take part, which calls cut the graph on the way to the loss, how the activations are spread, and
the order of the module calls. Its cost is that of a slow step; the governor says when.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.nn.modules import module as nn_module
from torch.overrides import TorchFunctionMode

from osler.core.frames import Line, line_of, user_frame
from osler.training.activations import Activation, Spread, activation_of, given_spread, spread_of
from osler.training.tape import tensors_in

_SILENT = frozenset(
    [
        "size",
        "dim",
        "__len__",
        "shape",
        "stride",
        "numel",
        "is_floating_point",
        "__repr__",
        "__format__",
        "requires_grad_",
        "register_hook",
        "retain_grad",
        "backward",
        "data_ptr",
        "__set__",
        "is_contiguous",
        "element_size",
        "untyped_storage",
        "storage",
    ]
)
# Their derivative is 0 wherever it exists: the graph stays whole and nothing comes through.
_FLAT = frozenset(
    [
        "round",
        "round_",
        "sign",
        "sgn",
        "floor",
        "floor_",
        "ceil",
        "ceil_",
        "trunc",
        "trunc_",
        "heaviside",
        "floor_divide",
    ]
)
ZERO_WEIGHT = "a weight of 0"
_CUTTERS = frozenset(["detach", "detach_", "numpy", "tolist", "item", "__array__", "argmax", "argmin"])


@dataclass(slots=True, eq=False)
class Cut:
    """A call whose inputs belong to the graph and whose output does not."""

    name: str
    line: Line | None
    module: str | None
    parameters: int
    no_grad: bool


@dataclass(slots=True, eq=False)
class ModuleCall:
    """One call of a module: path, class, what went in and came out, and which modules made the inputs."""

    path: str
    kind: str
    line: Line | None
    inputs: list[dict[str, object]]
    outputs: list[dict[str, object]]
    sources: list[str]


@dataclass(slots=True)
class _Mark:
    """What is known of a tensor: parameters it depends on and cuts it came through (bit sets), nearest modules."""

    parameters: int = 0
    cuts: int = 0
    modules: frozenset[str] = frozenset()


@dataclass(slots=True, eq=False)
class Trace:
    """What a close look saw.

    Attributes:
        step: the optimizer step.
        parameters: the parameters known when it began, each with its bit in the sets.
        used: bit set of the parameters that went into some call.
        cuts: calls that cut the graph.
        loss: parameters and cuts that the loss depends on; None before the backward.
        activations, spreads: per place, in order of the calls.
        calls: module calls in order, where they were asked for.
        first_lines: for each parameter's index the user's line of the call that first used it.
        opaque: compiled regions that could not be looked into.
        failed: what stopped the look, where something did: nothing of it is to be used.
        flat: calls that let no gradient through although the graph is whole (rounding, a mask of zeros).
    """

    step: int
    parameters: list[weakref.ref[torch.Tensor]] = field(default_factory=list)
    used: int = 0
    cuts: list[Cut] = field(default_factory=list)
    loss: tuple[int, int] | None = None
    activations: list[Activation] = field(default_factory=list)
    spreads: list[Spread] = field(default_factory=list)
    calls: list[ModuleCall] = field(default_factory=list)
    first_lines: dict[int, tuple[Line | None, str | None]] = field(default_factory=dict)
    opaque: list[str] = field(default_factory=list)
    failed: Exception | None = None
    flat: list[Cut] = field(default_factory=list)

    def bit_of(self, parameter: torch.Tensor) -> int | None:
        """Index of a parameter in the bit sets."""
        return next((i for i, ref in enumerate(self.parameters) if ref() is parameter), None)


class TraceMode(TorchFunctionMode):
    """Shows the calls of torch functions to the tracer at work, if there is one."""

    def __init__(self) -> None:
        super().__init__()
        self.tracer: Tracer | None = None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self.tracer is None:
            return func(*args, **kwargs)
        return self.tracer.call(func, args, kwargs)


class Tracer:
    """Fills a `Trace`."""

    def __init__(self, trace: Trace, paths: Callable[[torch.nn.Module], str], want_calls: bool) -> None:
        """`paths` names a module; `want_calls` keeps the module calls with their ranges."""
        self.trace = trace
        self._paths = paths
        self._want_calls = want_calls
        self._bits: dict[int, int] = {}
        self._marks: dict[int, tuple[weakref.ref[torch.Tensor], _Mark]] = {}
        self._stack: list[tuple[str, Line | None]] = []
        self._handles: list[Any] = []
        self._channel_dim = -1
        self._quiet = False
        self._given = 1.0

    # --- module calls

    def know(self, root: torch.nn.Module, args: Any = ()) -> None:
        """Give the root's parameters their bits, and see how far apart the samples are that it is given."""
        self._look(lambda: setattr(self, "_given", given_spread(args)))
        for p in root.parameters():
            if id(p) not in self._bits:
                self._bits[id(p)] = len(self.trace.parameters)
                self.trace.parameters.append(weakref.ref(p))

    def hook(self) -> None:
        """Follow module calls."""
        if not self._handles:
            self._handles = [
                nn_module.register_module_forward_pre_hook(self._enter),
                nn_module.register_module_forward_hook(self._leave, always_call=True),
            ]

    def unhook(self) -> None:
        """Stop following module calls."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
        self._stack.clear()

    def _enter(self, module: torch.nn.Module, args: Any) -> None:
        self._stack.append((self._paths(module), line_of(user_frame(sys._getframe(1)))))

    def _leave(self, module: torch.nn.Module, args: Any, output: Any) -> None:
        if not self._stack:
            return
        path, line = self._stack.pop()
        if not self._quiet:
            self._look(lambda: self._saw_module(module, path, line, args, output))

    def _look(self, fn: Callable[[], None]) -> None:
        """Look at tensors unseen by ourselves; what fails ends this look and nothing else."""
        self._quiet = True
        try:
            fn()
            self._quiet = False
        except Exception as error:
            self.trace.failed = error  # and stay quiet

    def _saw_module(self, module: torch.nn.Module, path: str, line: Line | None, args: Any, output: Any) -> None:
        leaf = next(module.children(), None) is None
        tensors = list(tensors_in(output))
        if leaf and tensors and torch.is_grad_enabled():
            spread = spread_of(tensors[0], path, type(module).__name__, line, self._given)
            if spread is not None:
                self.trace.spreads.append(spread)
        if self._want_calls:
            sources = sorted({m for t in tensors_in(args) for m in self._mark(t).modules})
            self.trace.calls.append(
                ModuleCall(
                    path,
                    type(module).__name__,
                    line,
                    [_facts(t) for t in tensors_in(args)],
                    [_facts(t) for t in tensors],
                    sources,
                )
            )
            if leaf:
                for t in tensors:
                    mark = self._mark(t)
                    self._set(t, _Mark(mark.parameters, mark.cuts, frozenset((path,))))

    # --- function calls

    def call(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Call a torch function and note what it does."""
        if self._quiet:
            return func(*args, **kwargs)
        output = func(*args, **kwargs)
        name = getattr(func, "__name__", "")
        if name not in _SILENT:
            self._look(lambda: self._saw(func, name, args, kwargs, output))
        return output

    def _saw(self, func: Any, name: str, args: Any, kwargs: Any, output: Any) -> None:
        if name == "__get__":
            name = str(getattr(getattr(func, "__self__", None), "__name__", ""))
            if name not in ("data", "T", "mT", "H", "real", "imag"):
                return
        inputs = list(tensors_in(args)) + list(tensors_in(kwargs))
        parameters, cuts, alive = 0, 0, False
        modules: frozenset[str] = frozenset()
        for t in inputs:
            bit = self._bits.get(id(t))
            if bit is not None and t.is_leaf:
                parameters |= 1 << bit
                if not (self.trace.used >> bit) & 1:
                    self.trace.first_lines[bit] = (self._line(), self._module())
            mark = self._mark(t)
            parameters |= mark.parameters
            cuts |= mark.cuts
            modules |= mark.modules
            alive = alive or t.requires_grad
        self.trace.used |= parameters
        made = list(tensors_in(output))
        if parameters and (made or name in _CUTTERS) and not any(t.requires_grad for t in made) and alive:
            self.trace.cuts.append(Cut(name, self._line(), self._module(), parameters, not torch.is_grad_enabled()))
            cuts |= 1 << (len(self.trace.cuts) - 1)
        for t in made:
            self._set(t, _Mark(parameters, cuts, modules))
        if alive and parameters:
            flat = self._flat(name, args, inputs)
            if flat is not None:
                self.trace.flat.append(Cut(flat, self._line(), self._module(), parameters, False))
        if name.startswith("conv"):
            self._channel_dim = 1
        elif name in ("linear", "matmul", "__matmul__", "bmm"):
            self._channel_dim = -1
        if made and torch.is_grad_enabled():
            seen = activation_of(name, made[0], self._channel_dim, self._module(), self._line)
            if seen is not None:
                self.trace.activations.append(seen)
            elif name in ("linear", "matmul", "__matmul__", "bmm", "conv1d", "conv2d", "conv3d", "addmm"):
                for earlier in reversed(self.trace.activations):
                    if earlier.hidden:
                        break
                    earlier.hidden = True

    @staticmethod
    def _flat(name: str, args: Any, inputs: list[torch.Tensor]) -> str | None:
        """What the call is named as if it lets no gradient through."""
        if name in _FLAT:
            return name
        if name not in ("mul", "mul_", "__mul__", "__rmul__"):
            return None
        if any(isinstance(a, (int, float)) and a == 0 for a in args):
            return ZERO_WEIGHT
        return "mul" if _has_zeros(inputs) else None

    def opaque(self, name: str, line: Line | None, args: Any, output: Any, parameters: list[torch.Tensor]) -> None:
        """A call that was not looked into: its output depends on all that went in and on its parameters."""
        bits, cuts, alive = 0, 0, False
        for t in parameters:
            bit = self._bits.get(id(t))
            bits |= 0 if bit is None else 1 << bit
            alive = alive or t.requires_grad
        for t in tensors_in(args):
            mark = self._mark(t)
            bits, cuts = bits | mark.parameters, cuts | mark.cuts
        self.trace.used |= bits
        made = list(tensors_in(output))
        if bits and alive and made and not any(t.requires_grad for t in made):
            self.trace.cuts.append(Cut(name, line, None, bits, not torch.is_grad_enabled()))
            cuts |= 1 << (len(self.trace.cuts) - 1)
        for t in made:
            self._set(t, _Mark(bits, cuts))

    def finish(self, losses: list[torch.Tensor]) -> None:
        """The backward begins."""
        parameters, cuts = 0, 0
        for t in losses:
            mark = self._mark(t)
            parameters, cuts = parameters | mark.parameters, cuts | mark.cuts
        self.trace.loss = (parameters, cuts)
        self._marks.clear()

    def _mark(self, tensor: torch.Tensor) -> _Mark:
        found = self._marks.get(id(tensor))
        return found[1] if found is not None and found[0]() is tensor else _Mark()

    def _set(self, tensor: torch.Tensor, mark: _Mark) -> None:
        self._marks[id(tensor)] = (weakref.ref(tensor), mark)

    def _line(self) -> Line | None:
        return line_of(user_frame(sys._getframe(1)))

    def _module(self) -> str | None:
        return self._stack[-1][0] if self._stack else None


def _has_zeros(tensors: list[torch.Tensor]) -> bool:
    return any(not t.requires_grad and t.numel() and not bool(t.any()) for t in tensors)


def _facts(tensor: torch.Tensor) -> dict[str, object]:
    out: dict[str, object] = {
        "shape": list(tensor.shape),
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "device": str(tensor.device),
        "contiguous": tensor.layout == torch.strided and tensor.is_contiguous(),
    }
    if tensor.layout == torch.strided and tensor.numel() and not tensor.is_meta and not tensor.is_complex():
        low, high = torch.aminmax(tensor.detach())
        out["min"], out["max"] = float(low), float(high)
    return out
