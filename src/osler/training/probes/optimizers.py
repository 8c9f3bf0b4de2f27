"""Watches every optimizer's step, and where each was constructed."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from osler.core.frames import user_line
from osler.training.recorder import Recorder


def attach(recorder: Recorder) -> Callable[[], None]:
    """Start watching; returns what takes it off again."""

    def before(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        if recorder.dead or recorder.replaying or recorder.elsewhere():
            return
        try:
            recorder.before_step(optimizer, args, kwargs)
        except Exception as error:
            recorder.stand_down("checking the gradients", error)

    def after(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        if recorder.dead or recorder.replaying or recorder.elsewhere():
            return
        try:
            recorder.after_step(optimizer, args, kwargs)
        except Exception as error:
            recorder.stand_down("closing the step", error)

    original = torch.optim.Optimizer.__init__

    @functools.wraps(original)
    def init(self: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if not recorder.dead:
            recorder.born[id(self)] = (weakref.ref(self), user_line())
            if recorder.governor.whole and not recorder.elsewhere():
                recorder.mode.push()

    hooks = [register_optimizer_step_pre_hook(before), register_optimizer_step_post_hook(after)]
    torch.optim.Optimizer.__init__ = init  # type: ignore[method-assign]

    def undo() -> None:
        for hook in hooks:
            hook.remove()
        torch.optim.Optimizer.__init__ = original  # type: ignore[method-assign]

    return undo
