"""Watches GradScaler: a few skipped steps are its way of finding a scale, many in a row or a bad loss are a fault."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.amp import GradScaler

from osler.training import private
from osler.training.recorder import Recorder


def attach(recorder: Recorder) -> Callable[[], None]:
    """Start watching; returns what takes it off again."""
    scale, step, update = GradScaler.scale, GradScaler.step, GradScaler.update

    def off(scaler: Any) -> bool:
        return recorder.dead or recorder.replaying or not scaler.is_enabled() or recorder.elsewhere()

    @functools.wraps(scale)
    def watched_scale(self: Any, outputs: Any) -> Any:
        if not off(self):
            recorder.scaling = True
            if isinstance(outputs, torch.Tensor) and outputs.numel() == 1:
                recorder.unscaled_loss = outputs.detach()
        return scale(self, outputs)

    @functools.wraps(step)
    def watched_step(self: Any, optimizer: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> Any:
        if off(self):
            return step(self, optimizer, *args, **kwargs)
        recorder.in_scaler += 1
        try:
            return step(self, optimizer, *args, **kwargs)
        finally:
            recorder.in_scaler -= 1
            recorder.guarded("closing the step", lambda: recorder.scaler_done(optimizer))

    @functools.wraps(update)
    def watched_update(self: Any, new_scale: Any = None) -> None:
        if off(self):
            return update(self, new_scale)
        found = private.scaler_found_inf(self)
        if found is not None:
            recorder.guarded("checking the scaler", lambda: recorder.scaler_update(found))
        before = self.get_scale() if found is None else 0.0
        recorder.in_scaler += 1
        try:
            return update(self, new_scale)
        finally:
            recorder.in_scaler -= 1
            # The replay comes too late to see the scale that was used, but the tape holds the scaled loss itself.
            if found is None:
                recorder.guarded("checking the scaler", lambda: recorder.scaler_update(self.get_scale() < before))

    GradScaler.scale = watched_scale  # type: ignore[method-assign]
    GradScaler.step = watched_step  # type: ignore[method-assign]
    GradScaler.update = watched_update  # type: ignore[method-assign]

    def undo() -> None:
        GradScaler.scale = scale  # type: ignore[method-assign]
        GradScaler.step = step  # type: ignore[method-assign]
        GradScaler.update = update  # type: ignore[method-assign]

    return undo
