"""Which check names which rules: the join of `osler check …`, the catalogue and the case library."""

from __future__ import annotations

# Verb of `osler check` → the rules that it names.
CHECKS: dict[str, tuple[str, ...]] = {
    "splits": (
        "time-not-monotonic",
        "split-time-overlap",
        "split-duplicate-rows",
        "split-group-overlap",
        "eval-on-training-data",
        "target-leak",
    ),
    "labels": ("label-noise", "label-out-of-range"),
    "mapping": ("label-mapping-drift",),
    "preprocess": ("preprocess-state-changed",),
    "drift": ("feature-drift",),
    "monitor": ("feature-drift",),
    "shift": ("covariate-shift",),
    "missing": ("missing-sensitive",),
    "outliers": ("outlier",),
    "sources": ("source-misaligned",),
    "batches": ("ragged-batch",),
}

# What watches a running process → the rules that it names.
GUARDS: dict[str, tuple[str, ...]] = {"preprocessing": ("preprocess-leak", "model-reused-across-folds")}
