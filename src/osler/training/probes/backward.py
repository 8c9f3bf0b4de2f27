"""Watches `Tensor.backward` and `torch.autograd.backward`: one patch covers both."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from osler.training.recorder import Recorder


def attach(recorder: Recorder) -> Callable[[], None]:
    """Start watching; returns what takes it off again."""
    original = torch.autograd.backward

    @functools.wraps(original)
    def backward(
        tensors: Any,
        grad_tensors: Any = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        grad_variables: Any = None,
        inputs: Any = None,
    ) -> None:
        # A backward inside a backward (reentrant checkpoints) is the outer one's business.
        if recorder.dead or recorder.replaying or recorder.in_backward or recorder.elsewhere():
            return original(tensors, grad_tensors, retain_graph, create_graph, grad_variables, inputs)
        if not isinstance(tensors, torch.Tensor):
            tensors = list(tensors)
        try:
            recorder.begin_backward(tensors, grad_tensors, bool(retain_graph) or create_graph)
        except Exception as error:
            recorder.stand_down("keeping the step", error)
        recorder.in_backward = True
        try:
            original(tensors, grad_tensors, retain_graph, create_graph, grad_variables, inputs)
        except BaseException as error:
            recorder.in_backward = False
            recorder.refused_backward(error)
            raise
        recorder.in_backward = False
        if retain_graph and recorder.governor.tape_on and not recorder.dead:
            recorder.mode.revive()  # another loss may be made from the same graph
        if recorder.in_step or not recorder.optimizers:
            recorder.guarded("checking after backward", recorder.end_backward)
        return None

    torch.autograd.backward = backward

    def undo() -> None:
        torch.autograd.backward = original

    return undo
