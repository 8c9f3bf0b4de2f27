"""Missing values and outliers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from osler.core.settings.field import POSITIVE, SHARE, Bounds, threshold

_MISSING = ("missing-sensitive",)
_OUTLIER = ("outlier",)


@dataclass(frozen=True, slots=True)
class Missing:
    """Missing values and outliers."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    sensitivity: float = threshold(
        0.15,
        "share of the model's total sensitivity from which a feature counts as one that the model leans on",
        "a judgement: with the two to ten features of a small table it is the upper half of them",
        _MISSING,
        SHARE,
    )
    even_share: float = threshold(
        1.5,
        "multiple of an even share (1 / number of features) from which a feature counts too",
        "a judgement: shares of a sum shrink with every column; beyond ten columns this takes over from `sensitivity`",
        _MISSING,
        POSITIVE,
    )
    fit_rows: int = threshold(
        5_000,
        "rows, drawn at random, that an imputer learns from",
        "a judgement: keeps a fit within seconds; each neighbour search and forest grows faster than the rows",
        _MISSING,
        Bounds(100),
    )
    min_rows: int = threshold(
        30,
        "rows below which missing values are filled with the median and nothing is compared",
        "a judgement: a fifth of them, six cells, says nothing about which reconstruction is better",
        _MISSING,
        Bounds(5),
    )
    mask_share: float = threshold(
        0.2,
        "share of the observed cells of a sensitive feature that is hidden to compare reconstructions",
        "a fifth, as in five-fold cross-validation (scikit-learn's default)",
        _MISSING,
        Bounds(0, 0.5, open_low=True),
    )
    mask_folds: int = threshold(
        2,
        "times that cells are hidden and reconstructed",
        "a judgement: each one costs as much as the fit itself",
        _MISSING,
        Bounds(1),
    )
    min_cells: int = threshold(
        20,
        "hidden cells below which reconstructions are not compared and the median is taken",
        "a judgement: the standard error of a mean of twenty absolute errors is about a sixth of it",
        _MISSING,
        Bounds(2),
    )
    sample_rows: int = threshold(
        20_000,
        "rows, drawn at random, whose values are looked at; missing values are counted over all rows",
        "a judgement: shares from so many rows are exact to 0.7 percentage points (95 %)",
        _MISSING + _OUTLIER,
        Bounds(100),
    )
    exposure: float = threshold(
        0.02,
        "share missing times sensitivity of the feature from which missing values are reported",
        "a judgement: a tenth of the rows without a feature that makes up a fifth of the sensitivity",
        _MISSING,
        SHARE,
    )
    level: float = threshold(
        1e-3,
        "level of significance, divided by the number of columns",
        "a judgement: one false alarm in a thousand tables",
        _MISSING + _OUTLIER,
        Bounds(0, 0.5, open_low=True),
    )
    lost: float = threshold(
        0.95,
        "share missing from which a feature that was there in training counts as lost, an error",
        "a judgement: what is left of it is hardly more than noise in the export",
        _MISSING,
        SHARE,
    )
    effect: float = threshold(
        0.02,
        "share of the loss that reconstruction must save over filling in the mean to be worth a warning",
        "a judgement: below two per cent other things matter more",
        _MISSING,
        Bounds(0, 1),
    )
    effect_z: float = threshold(
        3.0,
        "standard errors by which the loss saved must exceed 0",
        "a judgement: 1 in 700 by chance; several features and folds go into one number",
        _MISSING,
        POSITIVE,
    )
    block_rows: int = threshold(
        20,
        "missing values in a row below which a run is not told",
        "a judgement: shorter runs help nobody to find an outage",
        _MISSING,
        Bounds(2),
    )
    block_level: float = threshold(
        1e-6,
        "chance of so long a run among independent rows below which it counts as a block",
        "a judgement: the bound holds per column, and tables have many",
        _MISSING,
        Bounds(0, 0.5, open_low=True),
    )
    label_tie: float = threshold(
        0.1,
        "strength (Cramér's V, or |2 AUC - 1|) from which missingness goes with the label",
        "Cohen 1988: 0.1 is a small effect for a 2 × k table",
        _MISSING,
        SHARE,
    )
    coded_share: float = threshold(
        0.002,
        "share of the cells that a value must make up to be taken for a code for missing",
        "a judgement: rarer ones are single mistakes, which the outlier check names",
        _MISSING,
        SHARE,
    )
    coded_gap: float = threshold(
        3.0,
        "interquartile ranges between the code and the nearest other value",
        "Tukey 1977: beyond three lies what he calls far out",
        _MISSING,
        POSITIVE,
    )
    coded_values: int = threshold(
        10,
        "different other values below which a column is a scale or a flag, in which no code is looked for",
        "a judgement: ratings and flags rarely have more, and a 9 or -1 may be one of them",
        _MISSING,
        Bounds(2),
    )
    outlier_rows: int = threshold(
        200,
        "reference rows below which outliers are not looked for",
        "a judgement: half of them calibrate, so no p-value falls below 1 %; a tail has 20 values",
        _OUTLIER,
        Bounds(50),
    )
    outlier_fdr: float = threshold(
        0.05,
        "share of false ones among the rows flagged as a whole, on average",
        "the usual level; what the procedure guarantees (Bates et al. 2023)",
        _OUTLIER,
        Bounds(0, 0.5, open_low=True),
    )
    outlier_least: int = threshold(
        5,
        "rows that are odd only as a whole below which it is no more than worth knowing",
        "a judgement: chance flags few at a time",
        _OUTLIER,
        Bounds(1),
    )
    whole_missing: float = threshold(
        0.2,
        "share missing, in either table, above which a column is left out where rows are judged as a whole",
        "a judgement: only rows without missing values are judged, and each such column costs its share of them",
        _OUTLIER,
        Bounds(0, 1),
    )
    outlier_shown: int = threshold(20, "oddest rows shown", "a judgement: as many as one looks at", _OUTLIER, Bounds(1))
    reconstruction: str = threshold(
        "auto",
        "how columns are reconstructed from each other to find odd rows; `auto` takes the autoencoder where torch is installed, "
        "there are 1,000 rows to train it, and it notices at least 2 % more of cells swapped between held-out rows",
        "the comparison is made on the data itself",
        _OUTLIER,
        choices=("auto", "covariance", "autoencoder"),
    )
    range_far: float = threshold(
        2.0,
        "distance from the median, in that of the furthest reference value on the same side, from which a value can be outside",
        "a judgement: less far out lies what a larger reference would have held, as in mixtures with a rare wide part",
        _OUTLIER,
        Bounds(1),
    )
    range_width: float = threshold(
        1.0,
        "for counts and other small whole numbers: reference ranges beyond the range from which a value is outside",
        "a judgement: a count twice as large as the largest of the reference does happen, but hardly in light tails",
        _OUTLIER,
        POSITIVE,
    )
    moved_share: float = threshold(
        0.01,
        "share of the values beyond the reference's range from which a column counts as moved out of it",
        "a judgement: fewer belong to the drift check alone",
        _OUTLIER,
        SHARE,
    )
    moved_distance: float = threshold(
        0.5,
        "median distance of those values from the range, in spreads, from which it counts",
        "a judgement: closer by, extrapolation is mild",
        _OUTLIER,
        Bounds(0),
    )
    unit_far: float = threshold(
        0.4,
        "Kolmogorov-Smirnov distance from the reference from which another unit is considered for a whole column",
        "a judgement: values around 0 that are multiplied by any factor come to 0.5 at most; drift alone rarely gets there",
        _OUTLIER,
        SHARE,
    )
    unit_near: float = threshold(
        0.15,
        "distance that must be left once the unit is taken back",
        "the effect-size floor of the drift check (`drift.ks`)",
        _OUTLIER,
        SHARE,
    )
    unit_rows: int = threshold(
        3,
        "values outside below which no unit is guessed from them",
        "a judgement: two values fit some factor by chance",
        _OUTLIER,
        Bounds(1),
    )
