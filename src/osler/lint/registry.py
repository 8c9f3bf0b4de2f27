"""Every check, in the order in which they look."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from osler.lint.checks import (
    accumulation_not_scaled,
    accumulation_tail_dropped,
    clip_after_step,
    clip_before_unscale,
    clip_per_micro_batch,
    double_softmax,
    eval_builds_graph,
    eval_on_training_data,
    gradient_detached,
    graph_retained,
    half_overflow,
    layers_not_registered,
    log_of_zero,
    missing_eval_mode,
    missing_train_mode,
    missing_zero_grad,
    model_reused_across_folds,
    nondeterministic_run,
    parameter_not_in_optimizer,
    preprocess_leak,
    rank_data_repeated,
    scheduler_before_optimizer,
    scheduler_per_batch,
    split_duplicate_rows,
    split_time_overlap,
    sqrt_at_zero,
    stale_optimizer_parameters,
    state_partial_load,
    too_few_samples,
    unsafe_load,
    unscaled_step,
    unsynchronized_timing,
    worker_seed_repeated,
    zero_grad_before_step,
)
from osler.lint.facts import Facts
from osler.lint.hit import Hit


class Check(Protocol):
    """A module of `osler.lint.checks`."""

    RULE: str
    CALLS: frozenset[str]

    def check(self, facts: Facts, /) -> Iterator[Hit]:
        """What it finds in a file."""


CHECKS: tuple[Check, ...] = (
    missing_zero_grad,
    zero_grad_before_step,
    clip_before_unscale,
    clip_after_step,
    clip_per_micro_batch,
    accumulation_tail_dropped,
    accumulation_not_scaled,
    unscaled_step,
    scheduler_before_optimizer,
    scheduler_per_batch,
    missing_eval_mode,
    missing_train_mode,
    eval_builds_graph,
    graph_retained,
    double_softmax,
    preprocess_leak,
    split_duplicate_rows,
    split_time_overlap,
    eval_on_training_data,
    model_reused_across_folds,
    state_partial_load,
    unsafe_load,
    nondeterministic_run,
    worker_seed_repeated,
    rank_data_repeated,
    unsynchronized_timing,
    layers_not_registered,
    parameter_not_in_optimizer,
    stale_optimizer_parameters,
    gradient_detached,
    half_overflow,
    log_of_zero,
    sqrt_at_zero,
    too_few_samples,
)

RULES = frozenset(c.RULE for c in CHECKS)
