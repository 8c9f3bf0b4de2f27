"""Which functions are worth going into: words that lead to what rules ask about, and methods taken at their word."""

from __future__ import annotations

from osler.syntax.module import Module
from osler.syntax.values import Definition, Value

_TORCH = frozenset({"torch", "lightning", "pytorch_lightning", "accelerate", "transformers", "ignite", "deepspeed"})

# A function that calls one of these is worth a trace of its own.
TRAINS = frozenset(
    [
        "backward",
        "zero_grad",
        "step",
        "unscale_",
        "clip_grad_norm_",
        "clip_grad_value_",
        "manual_backward",
        "fit",
        "fit_transform",
        "fit_resample",
        "fit_sample",
        "fit_predict",
        "partial_fit",
        "train_test_split",
        "cross_val_score",
        "cross_validate",
        "random_split",
    ]
)
