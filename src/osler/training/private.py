"""Every private torch API that osler leans on, each with its public fallback.

A fast path is taken where the private API is there and behaves; otherwise the fallback, which costs more time but needs
documented API only. `status()` says which is in use (`osler doctor` prints it), and the tests run each fallback by
switching its fast path off with `disable`.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

_OFF: set[str] = set()


def disable(name: str) -> None:
    """Use the fallback of `name` from now on."""
    _OFF.add(name)


def enable(name: str) -> None:
    """Use the fast path of `name` again, where there is one."""
    _OFF.discard(name)


def _fast(name: str) -> bool:
    return name not in _OFF and _AVAILABLE[name]


def _has(path: str) -> bool:
    """Whether the dotted path below torch exists."""
    obj: Any = torch
    for part in path.split("."):
        obj = getattr(obj, part, None)
        if obj is None:
            return False
    return True


_AVAILABLE: dict[str, bool] = {
    "global forward hooks": _has("nn.modules.module._global_forward_pre_hooks"),
    "function mode stack": all(
        _has(f"_C.{n}")
        for n in ("_len_torch_function_stack", "_push_on_torch_function_stack", "_pop_torch_function_stack")
    ),
    "autograd node of an operation": _has("_C._current_autograd_node") and _has("_C._autograd._get_sequence_nr"),
    "norms in one call": hasattr(torch, "_foreach_norm"),
    "scaler's found_inf": True,
    "storage identity": hasattr(torch.UntypedStorage, "_cdata"),
    "tracing state": _has("_C._get_tracing_state"),
    "functorch level": _has("_C._functorch.maybe_current_level"),
}

_FALLBACK = {
    "global forward hooks": "permanent global hooks with a depth counter",
    "function mode stack": "the mode's own __enter__ and __exit__",
    "autograd node of an operation": "no forward line for backward operations beyond the order of the graph",
    "norms in one call": "one norm per tensor, stacked",
    "scaler's found_inf": "a drop of GradScaler.get_scale()",
    "storage identity": "the address of the memory",
    "tracing state": "torch.jit.is_tracing",
    "functorch level": "transforms are not recognised; their calls are recorded and never replayed",
}


def status() -> dict[str, str]:
    """For each private API: `in use`, or the fallback in use and why."""
    out = {}
    for name, there in _AVAILABLE.items():
        if name in _OFF:
            out[name] = f"switched off; {_FALLBACK[name]}"
        else:
            out[name] = "in use" if there else f"missing in torch {torch.__version__}; {_FALLBACK[name]}"
    return out


# --- global forward hooks: a pre-hook that can be lifted while a root module runs ------------------------------------


class RootHook:
    """Calls `enter(module, args)` before, `leave(module, args, kwargs, output)` after a root module's forward.

    While a root runs no global hook is registered, so submodules keep torch's no-hook fast path, and nothing stays on
    the user's module afterwards (a hook left there would be pickled and deep-copied along with it).
    """

    def __init__(self, enter: Callable[..., bool], leave: Callable[..., None]) -> None:
        """`enter` returns whether this call is a root that `leave` must hear of."""
        self._enter = enter
        self._leave = leave
        self._handle: Any = None
        self._post: Any = None
        self._lifted = False
        self._depth = 0
        self._key = -1

    def install(self) -> None:
        """Start listening."""
        register = torch.nn.modules.module.register_module_forward_pre_hook
        if _fast("global forward hooks"):
            self._handle = register(self._pre_fast)
            self._key = self._handle.id
            self._table: dict[int, Any] = torch.nn.modules.module._global_forward_pre_hooks
        else:
            self._handle = register(self._pre_slow)
            self._post = torch.nn.modules.module.register_module_forward_hook(
                self._post_slow, with_kwargs=True, always_call=True
            )

    def remove(self) -> None:
        """Stop listening; safe to call twice."""
        if self._handle is not None:
            self._handle.remove()
        if self._post is not None:
            self._post.remove()
        self._handle = self._post = None

    def lift(self) -> bool:
        """Take the global hook away for now; returns whether it was there."""
        if self._handle is None or self._post is not None:
            return False
        return self._table.pop(self._key, None) is not None

    def restore(self) -> None:
        """Put it back."""
        if self._post is None and self._handle is not None:
            self._table[self._key] = self._pre_fast

    def _pre_fast(self, module: torch.nn.Module, args: Any) -> None:
        if not self._enter(module, args):
            return
        self._table.pop(self._key, None)
        key = self._key
        # What register_forward_hook(with_kwargs=True, always_call=True) sets, without its handle's cost.
        module._forward_hooks[key] = self._post_fast
        module._forward_hooks_with_kwargs[key] = True
        module._forward_hooks_always_called[key] = True

    def _post_fast(self, module: torch.nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        key = self._key
        module._forward_hooks.pop(key, None)
        module._forward_hooks_with_kwargs.pop(key, None)
        module._forward_hooks_always_called.pop(key, None)
        if self._handle is not None:
            self._table[key] = self._pre_fast
        self._leave(module, args, kwargs, output)

    def _pre_slow(self, module: torch.nn.Module, args: Any) -> None:
        if self._depth:
            self._depth += 1
        elif self._enter(module, args):
            self._depth = 1

    def _post_slow(self, module: torch.nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        if self._depth:
            self._depth -= 1
            if not self._depth:
                self._leave(module, args, kwargs, output)


# --- the stack of function modes -------------------------------------------------------------------------------------


class BottomMode:
    """Puts a TorchFunctionMode under all others and takes it out from wherever it is.

    `torch.device(...)` contexts are function modes too and pop whatever is on top when they end: a mode pushed inside
    such a block must lie below it. And while a mode handles a call torch keeps it off the stack and puts it back
    afterwards, so a `pop` from within (`loss.backward()` is such a call) takes effect through `on` at once and on the
    stack at the next `push` or `pop`: the mode itself must look at `on`.
    """

    def __init__(self, mode: TorchFunctionMode) -> None:
        self.mode = mode
        self.on = False
        self._left_over = False  # it may still be on the stack although it is off

    def push(self) -> None:
        """Put the mode at the bottom; no effect when it is there."""
        if self.on:
            return
        self.on = True
        if not _fast("function mode stack"):
            # A public exit pops whatever lies on top, so it is entered once and only told to look away.
            if not self._left_over:
                self.mode.__enter__()
                self._left_over = True
            return
        self._left_over = True
        c: Any = torch._C
        if not c._len_torch_function_stack():
            c._push_on_torch_function_stack(self.mode)
            return
        above = self._take_off()
        if above and above[-1] is _default_device_context():
            # torch.set_default_device keeps its context at the very bottom and counts on finding it there
            c._push_on_torch_function_stack(above.pop())
        c._push_on_torch_function_stack(self.mode)
        while above:
            c._push_on_torch_function_stack(above.pop())

    def revive(self) -> None:
        """Undo a `pop` made from within a call that the mode handles: torch is about to put it back anyway."""
        if self._left_over:
            self.on = True
        else:
            self.push()

    def pop(self) -> None:
        """Take the mode out; no effect when it is not there."""
        if not self._left_over:
            return
        was_on, self.on = self.on, False
        if not _fast("function mode stack"):
            return
        c: Any = torch._C
        count = c._len_torch_function_stack()
        if not count:
            # Popped from within a call that it handles: torch puts it back when the call returns.
            self._left_over = was_on
            return
        above = self._take_off()
        self._left_over = len(above) == count
        while above:
            c._push_on_torch_function_stack(above.pop())

    def close(self) -> None:
        """Take the mode out for good."""
        self.pop()
        if self._left_over and not _fast("function mode stack"):
            self.mode.__exit__(None, None, None)
            self._left_over = False

    def _take_off(self) -> list[Any]:
        """Empty the stack; the modes that were on it, top first, without this one."""
        c: Any = torch._C
        taken = [c._pop_torch_function_stack() for _ in range(c._len_torch_function_stack())]
        return [mode for mode in taken if mode is not self.mode]


def _default_device_context() -> Any:
    return getattr(getattr(torch, "_GLOBAL_DEVICE_CONTEXT", None), "device_context", None)


# How many function modes are active; where that cannot be told, none are hidden from.
modes_active: Callable[[], int] = getattr(torch._C, "_len_torch_function_stack", lambda: 0)


def unseen() -> Any:
    """A context in which modes of the user's do not see the torch functions that osler calls for itself."""
    return torch._C.DisableTorchFunction() if modes_active() else _NOTHING


_NOTHING = contextlib.nullcontext()


# --- autograd nodes --------------------------------------------------------------------------------------------------


def current_node() -> Any:
    """The autograd node whose backward is being executed, or None."""
    if not _fast("autograd node of an operation"):
        return None
    return torch._C._current_autograd_node()


def last_sequence_number() -> int | None:
    """The sequence number of the node that the operation under way will get, or None."""
    if not _fast("autograd node of an operation"):
        return None
    autograd: Any = torch._C._autograd
    return int(autograd._get_sequence_nr()) - 1


def node_sequence_number(node: Any) -> int | None:
    """The sequence number of a node."""
    if not _fast("autograd node of an operation"):
        return None
    return int(node._sequence_nr())


# --- norms -----------------------------------------------------------------------------------------------------------


def norms(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """L2 norms, each a scalar tensor. L2 and not the largest magnitude: on CPU that is twenty times slower."""
    if _fast("norms in one call"):
        return list(torch._foreach_norm(tensors))  # type: ignore[arg-type]
    return [torch.linalg.vector_norm(t) for t in tensors]


# --- GradScaler ------------------------------------------------------------------------------------------------------


def scaler_found_inf(scaler: Any) -> bool | None:
    """Whether the optimizers stepped since the last update met a non-finite gradient; None where that cannot be read."""
    if not _fast("scaler's found_inf"):
        return None
    states = getattr(scaler, "_per_optimizer_states", None)
    if states is None:
        return None
    return any(bool(f.item()) for state in states.values() for f in state["found_inf_per_device"].values())


# --- small things that have no public name --------------------------------------------------------------------------

DispatchMode = TorchDispatchMode


def version(tensor: torch.Tensor) -> int:
    """How often the tensor has been written to; 0 for inference tensors, which do not count."""
    return 0 if tensor.is_inference() else tensor._version


def uncompiled(module: Any) -> Any:
    """The module behind the wrapper that `torch.compile` puts around it."""
    return getattr(module, "_orig_mod", module)


def local(module: Any) -> Any:
    """The module to call when one rank alone runs a step again: without the wrappers of `torch.compile` and of
    DistributedDataParallel, whose forward broadcasts buffers."""
    module = uncompiled(module)
    if isinstance(module, torch.nn.parallel.DistributedDataParallel):
        module = uncompiled(module.module)
    return module


def compiled_module_class() -> Any:
    """The class of compiled modules, None where nothing has been compiled in this process."""
    return getattr(sys.modules.get("torch._dynamo.eval_frame"), "OptimizedModule", None)


def leaves(value: Any) -> list[Any]:
    """The leaves of nested containers, as torch's own pytrees see them."""
    return tree_leaves(value)


def schema_of(overload: Any) -> Any:
    """The schema of an operator overload: `name`, `is_mutable`."""
    return overload._schema


def overload_name(overload: Any) -> str:
    """`aten::add.Tensor`, `aten::relu.default`."""
    return f"{overload._schema.name}.{overload._overloadname}"


def loader_iterator() -> Any:
    """The base class of DataLoader's iterators, None where it has another name."""
    from torch.utils.data import dataloader

    return getattr(dataloader, "_BaseDataLoaderIter", None)


# --- storage identity -------------------------------------------------------------------------------------------------


def storage_key(tensor: torch.Tensor) -> int:
    """What two tensors share exactly when they share memory, for as long as one of them lives."""
    try:
        storage = tensor.untyped_storage()
    except (NotImplementedError, RuntimeError):  # sparse and wrapper tensors have no storage of their own
        return id(tensor)
    if _fast("storage identity"):
        return int(storage._cdata)
    # empty storages have no address; such tensors hold no values to follow either
    return storage.data_ptr() or id(tensor)


# --- functorch -------------------------------------------------------------------------------------------------------


def busy_elsewhere() -> bool:
    """Whether torch is compiling, tracing or transforming: what is called then is no step of a training."""
    return torch.compiler.is_compiling() or is_tracing() or in_transform()


def is_tracing() -> bool:
    """Whether `torch.jit.trace` is at work."""
    return torch._C._get_tracing_state() is not None if _fast("tracing state") else bool(torch.jit.is_tracing())  # type: ignore[attr-defined]


def in_transform() -> bool:
    """Whether a torch.func transform (grad, vmap …) is being traced: its tensors are wrappers that die with it."""
    if not _fast("functorch level"):
        return False
    functorch: Any = torch._C._functorch
    return functorch.maybe_current_level() is not None
