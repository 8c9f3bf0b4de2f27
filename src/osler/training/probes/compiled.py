"""Makes what `torch.compile` returns an opaque root: the compiler must see neither modes nor hooks of osler."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from osler.training import private
from osler.training.recorder import Recorder


def attach(recorder: Recorder) -> Callable[[], None]:
    """Start watching; returns what takes it off again."""
    original = torch.compile
    undos: list[Callable[[], None]] = []

    def wrap_class(cls: Any) -> None:
        if "__call__" not in vars(cls) or hasattr(cls.__call__, "__osler__"):
            return
        call = cls.__call__

        @functools.wraps(call)
        def watched(self: Any, *args: Any, **kwargs: Any) -> Any:
            return recorder.opaque_call(functools.partial(call, self), private.uncompiled(self), args, kwargs)

        watched.__osler__ = True  # type: ignore[attr-defined]
        cls.__call__ = watched
        undos.append(lambda: setattr(cls, "__call__", call))

    @functools.wraps(original)
    def compile(model: Any = None, **options: Any) -> Any:
        if model is None:
            return lambda fn: compile(fn, **options)
        compiled: Any = original(model, **options)
        if recorder.dead or not callable(compiled):
            return compiled
        if isinstance(compiled, torch.nn.Module):
            wrap_class(type(compiled))
            return compiled
        owner = getattr(model, "__self__", None)
        behind = owner if isinstance(owner, torch.nn.Module) else model

        @functools.wraps(compiled)
        def watched(*args: Any, **kwargs: Any) -> Any:
            return recorder.opaque_call(compiled, behind, args, kwargs)

        return watched

    torch.compile = compile
    earlier = private.compiled_module_class()
    if earlier is not None:
        # Something was compiled before the watch began: its modules are recognised by their class.
        wrap_class(earlier)

    def undo() -> None:
        torch.compile = original
        for each in undos:
            each()

    return undo
