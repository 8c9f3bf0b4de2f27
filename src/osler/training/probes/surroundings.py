"""Small things that explain a finding: which batch it was, whether weights were loaded, a clip that refused its input."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch.utils.data import DataLoader

from osler.training import private
from osler.training.recorder import Recorder


def attach(recorder: Recorder) -> Callable[[], None]:
    """Start watching; returns what takes it off again."""
    undos: list[Callable[[], None]] = []

    def undo() -> None:
        while undos:
            undos.pop()()

    try:
        for each in (_batches, _loads, _clips, _functions):
            undos.append(each(recorder))
    except Exception:
        undo()
        raise
    return undo


def _batches(recorder: Recorder) -> Callable[[], None]:
    start = DataLoader.__iter__
    base: Any = private.loader_iterator()

    @functools.wraps(start)
    def watched_start(self: Any) -> Any:
        if torch.is_grad_enabled() and not recorder.dead:
            recorder.epoch = 0 if recorder.epoch is None else recorder.epoch + 1
            recorder.batch = None
        return start(self)

    DataLoader.__iter__ = watched_start  # type: ignore[method-assign]
    following = getattr(base, "__next__", None)
    if following is not None:

        @functools.wraps(following)
        def watched_next(self: Any) -> Any:
            batch = following(self)
            if torch.is_grad_enabled():
                recorder.batch = 0 if recorder.batch is None else recorder.batch + 1
            return batch

        base.__next__ = watched_next

    def undo() -> None:
        DataLoader.__iter__ = start  # type: ignore[method-assign]
        if following is not None:
            base.__next__ = following

    return undo


def _loads(recorder: Recorder) -> Callable[[], None]:
    original = torch.nn.Module.load_state_dict

    @functools.wraps(original)
    def watched(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        if not recorder.dead:
            recorder.loaded_at[id(self)] = recorder.step
        return result

    torch.nn.Module.load_state_dict = watched  # type: ignore[method-assign]

    def undo() -> None:
        torch.nn.Module.load_state_dict = original  # type: ignore[method-assign]

    return undo


def _clips(recorder: Recorder) -> Callable[[], None]:
    module: Any = torch.nn.utils.clip_grad
    original = module.clip_grad_norm_

    @functools.wraps(original)
    def watched(*args: Any, **kwargs: Any) -> Any:
        try:
            return original(*args, **kwargs)
        except RuntimeError as error:
            # error_if_nonfinite=True: the script is about to die of it, and no step will follow
            if "non-finite" in str(error) and not recorder.dead:
                recorder.guarded("replaying the step", lambda: recorder.trip("clip refused", None))
            raise

    exported: Any = torch.nn.utils
    module.clip_grad_norm_ = exported.clip_grad_norm_ = watched

    def undo() -> None:
        module.clip_grad_norm_ = exported.clip_grad_norm_ = original

    return undo


def _functions(recorder: Recorder) -> Callable[[], None]:
    """Calls of the user's own autograd functions: function modes do not see them."""
    function: Any = torch.autograd.Function
    # a classmethod of Python's up to torch 2.13, one of C's from 2.14 on: both bind the same way
    original = vars(function)["apply"]

    def watched(cls: Any, *args: Any, **kwargs: Any) -> Any:
        plain = original.__get__(None, cls)
        if not recorder.mode.on or recorder.closed() or not torch.is_grad_enabled() or recorder.elsewhere():
            return plain(*args, **kwargs)

        def apply(*a: Any, **k: Any) -> Any:
            return plain(*a, **k)

        apply.__name__ = f"{cls.__name__}.apply"
        return recorder.tape.call(apply, apply.__name__, args, kwargs, sys._getframe(1))

    watched.__name__ = watched.__qualname__ = "apply"
    watched.__doc__ = original.__doc__
    function.apply = classmethod(watched)

    def undo() -> None:
        function.apply = original

    return undo
