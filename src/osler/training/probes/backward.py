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
        roots = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
        recorder.guarded(
            "keeping the step", lambda: recorder.begin_backward(roots, grad_tensors, bool(retain_graph), create_graph)
        )
        recorder.in_backward += 1
        failure: BaseException | None = None
        try:
            return original(
                roots if not isinstance(tensors, torch.Tensor) else tensors,
                grad_tensors,
                retain_graph,
                create_graph,
                grad_variables,
                inputs,
            )
        except BaseException as error:
            failure = error
            raise
        finally:
            recorder.in_backward -= 1
            if not recorder.dead:
                recorder.guarded("checking after backward", lambda: recorder.end_backward(roots, failure))

    torch.autograd.backward = backward

    def undo() -> None:
        torch.autograd.backward = original

    return undo
