"""Fitted preprocessing: what it saw, and whether it is still the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from osler.core.settings.field import SHARE, Bounds, threshold

_LEAK = ("preprocess-leak",)
_CHANGED = ("preprocess-state-changed",)


@dataclass(frozen=True, slots=True)
class Preprocess:
    """Fitted preprocessing: what it saw, and whether it is still the same."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    leak_share: float = threshold(
        0.05,
        "share of the rows an estimator is evaluated on that a transformer's fit must have seen",
        "a judgement: rows that two sources share by nature stay below it",
        _LEAK,
        SHARE,
    )
    leak_rows: int = threshold(
        5,
        "evaluation rows that a transformer's fit must have seen",
        "a judgement: below it one row more or less decides",
        _LEAK,
        Bounds(1),
    )
    train_share: float = threshold(
        0.05,
        "share of the evaluated rows on which the estimator itself was fitted, above which it is a score on training data",
        "a judgement: a model fitted on a sample of its training rows and scored on all of them is no evaluation",
        ("preprocess-leak", "model-reused-across-folds"),
        Bounds(0, 1),
    )
    link_rows: int = threshold(
        262_144,
        "rows of one array whose values are kept to recognise them in a selection made outside scikit-learn; of more "
        "rows, those whose value falls into an equal share of all values",
        "a judgement: 2 MiB a column, and a share known to 0.2 points",
        _LEAK,
        Bounds(256),
    )
    memory_mb: float = threshold(
        64.0,
        "memory in MiB for recognising rows again; the oldest arrays are forgotten beyond it",
        "a judgement",
        _LEAK,
        Bounds(1),
    )
    guard_share: float = threshold(
        0.1,
        "share of the time since the first fit that the guard may take; beyond it, selections made by hand are not "
        "recognised any more, and the report says so",
        "a judgement: a Pipeline is far below it; many small batches selected by hand are not",
        _LEAK,
        SHARE,
    )
    guard_s: float = threshold(
        1.0,
        "seconds that the guard may take whatever the share",
        "a judgement: short scripts are watched whole",
        _LEAK,
        Bounds(0),
    )
    state_noise: float = threshold(
        1e-6,
        "change of a fitted number, relative to its spread, that counts as rounding",
        "sums in another order differ by about the number of rows times 1.1e-16; a thousand million rows stay below it",
        _CHANGED,
        Bounds(0, 1),
    )
    state_moved: float = threshold(
        0.01,
        "change of a fitted number, relative to its spread, from which it is a warning",
        "a judgement: a hundredth of a standard deviation is what 10,000 rows leave uncertain in a mean",
        _CHANGED,
        SHARE,
    )
    state_far: float = threshold(
        0.5,
        "change of a fitted number, relative to its spread, from which it is an error",
        "Cohen 1988: half a standard deviation is a medium effect, visible to the eye",
        _CHANGED,
        Bounds(0, open_low=True),
    )
