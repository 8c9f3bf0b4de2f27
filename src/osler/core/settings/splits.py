"""Training and evaluation rows that must be apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from osler.core.settings.field import POSITIVE, SHARE, Bounds, threshold

_COPIES = ("split-duplicate-rows", "eval-on-training-data")
_NEAR = ("split-duplicate-rows",)
_TIME = ("time-not-monotonic", "split-time-overlap")
_LEAK = ("target-leak",)
_COUNT = Bounds(1)
_BENCH = "benchmarks/splits.py: 10M rows of 20 columns within its limits of time and memory"


@dataclass(frozen=True, slots=True)
class Splits:
    """Training and evaluation rows that must be apart."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    warning_share: float = threshold(
        0.005,
        "share of evaluation rows that are compromised, from which it is a warning; below it is information",
        "a judgement: at most half a point of accuracy can hang on them",
        ("split-duplicate-rows", "split-group-overlap", "split-time-overlap", "target-leak"),
        Bounds(0, 1),
    )
    error_share: float = threshold(
        0.05,
        "share of evaluation rows that are compromised, from which it is an error",
        "a judgement: beyond the gaps that usually separate models; 3.3 % of the test images of CIFAR-10 and 10 % of those of "
        "CIFAR-100 have near copies in training (Barz & Denzler 2020, arXiv 1902.00423)",
        ("split-duplicate-rows", "split-group-overlap", "split-time-overlap", "target-leak"),
        SHARE,
    )
    least_rows: int = threshold(
        3,
        "evaluation rows that must be compromised for a warning; fewer are information whatever their share",
        "a judgement: iris itself holds one pair of equal flowers",
        ("split-duplicate-rows", "split-group-overlap", "split-time-overlap", "target-leak"),
        _COUNT,
    )
    contained: float = threshold(
        0.9,
        "share of evaluation rows that are training rows, from which evaluation counts as done on training data",
        "a judgement: copies by accident stay far below it, a set that was used twice lies at 1",
        ("eval-on-training-data",),
        SHARE,
    )
    missing_alike: bool = threshold(
        True,
        "compare NaN and null as one and the same; with false a row with one is no copy of a row with the other",
        "pandas, polars and Arrow store a missing number in either form; to a model it is missing",
        _COPIES,
    )
    unexplained: float = threshold(
        0.5,
        "share of the equal rows that chance must leave unexplained for them to count as copies",
        "a judgement: more copies than coincidences",
        _COPIES,
        SHARE,
    )
    excess_sigmas: float = threshold(
        5.0,
        "standard errors by which equal rows across the split must exceed those within training to count as copies "
        "whatever their columns are",
        "two-sided error of 6e-7 for a normal estimate, so that a thousand checks a day stay silent for years",
        _COPIES,
        POSITIVE,
    )
    few_states: int = threshold(
        3,
        "different values, up to which many equal rows are taken for a resting state (all zeros, a sensor that is off) "
        "and not for copies",
        "a judgement",
        _COPIES,
        Bounds(0),
    )
    verify_rows: int = threshold(
        200_000,
        "equal hashes that are compared value by value; beyond that many 64 bits are believed",
        "the chance of one collision among 10M × 10M rows is 5e-6",
        _COPIES,
        _COUNT,
    )
    natural_rows: int = threshold(
        1_000,
        "equal rows whose neighbours (rows equal but for one column) are counted to tell coincidence from copies",
        "standard error of a share of 1.6 % at most",
        _COPIES,
        _COUNT,
    )
    natural_columns: int = threshold(
        32,
        "columns that are left out in turn while neighbours are counted: those in which agreement by chance is likeliest",
        "a judgement: columns of many values hardly ever agree by chance",
        _COPIES,
        _COUNT,
    )
    natural_couples: int = threshold(
        6,
        "of these columns, how many are left out two at a time to allow for correlation",
        "a judgement: fifteen couples, among the columns that say most",
        _COPIES,
        Bounds(2, 32),
    )
    near: bool = threshold(True, "look for near copies as well", "part of the check", _NEAR)
    noise: float = threshold(
        1e-3,
        "noise, in spreads of a column, at which near copies are to be found",
        "what rounding and conversion of units leave; recall is measured in benchmarks/splits.py",
        _NEAR,
        POSITIVE,
    )
    near_distance: float = threshold(
        0.03,
        "root mean square difference in spreads of the columns, up to which rows can be near copies",
        "three times the largest noise in benchmarks/splits.py",
        _NEAR,
        POSITIVE,
    )
    bands: int = threshold(
        8,
        "bands of columns in which near rows are looked for",
        "recall at noise 1e-3 above 99.9 % in benchmarks/splits.py",
        _NEAR,
        Bounds(1, 64),
    )
    candidates: float = threshold(
        1.0,
        "unrelated rows per evaluation row that a band may bring up for comparison",
        _BENCH,
        _NEAR,
        POSITIVE,
    )
    bucket_cap: int = threshold(
        64,
        "evaluation rows in one cell, beyond which the cell is passed over",
        "a judgement: a cell that holds so many says nothing about any of them",
        _NEAR,
        _COUNT,
    )
    few_values: int = threshold(
        50,
        "different values in the sample, up to which a column of numbers must be equal and is not compared by distance",
        "a judgement: scores, counts and codes have fewer",
        _NEAR,
        _COUNT,
    )
    near_cells: int = threshold(
        400_000_000,
        "numbers of the evaluation side that are held in memory for the search (4 bytes each); rows beyond are left out",
        "1.6 GB; " + _BENCH,
        _NEAR,
        _COUNT,
    )
    sample_rows: int = threshold(
        20_000,
        "rows sampled from each side to learn what is usual",
        "sees coincidences of one pair in 2e8",
        _COPIES,
        Bounds(100),
    )
    surprise: float = threshold(
        1e-3,
        "rows expected by chance as close as a pair is, up to which the pair counts as a near copy",
        "a fifth of `warning_share`, so that chance alone never makes a warning",
        _NEAR,
        SHARE,
    )
    neighbours: int = threshold(
        64,
        "nearest rows of the sample from which the number expected closer by is extrapolated",
        "relative standard error of the local dimension 18 %",
        _NEAR,
        Bounds(8),
    )
    judged_rows: int = threshold(
        500,
        "near pairs whose distance is judged; from more of them a sample is taken",
        "standard error of a share of 2.2 % at most",
        _NEAR,
        _COUNT,
    )
    text_jaccard: float = threshold(
        0.8,
        "shared part of the shingles of two texts (Jaccard) from which they are near copies",
        "the usual threshold of deduplication of training text (Lee et al. 2022, arXiv 2107.06499)",
        _NEAR,
        SHARE,
    )
    text_shingle: int = threshold(
        5,
        "bytes in a shingle of a text, after case and white space are made equal",
        "Leskovec, Rajaraman & Ullman, Mining of Massive Datasets, 3.2.2: 5 for short documents",
        _NEAR,
        Bounds(1, 32),
    )
    text_bands: int = threshold(
        25,
        "bands of MinHash values; b bands of r values find a pair of Jaccard similarity s with 1 − (1 − s^r)^b",
        "with 5 rows: 99.995 % at a similarity of 0.8",
        _NEAR,
        Bounds(1, 256),
    )
    text_rows: int = threshold(
        5, "MinHash values in a band", "with 25 bands: 99.995 % at a similarity of 0.8", _NEAR, Bounds(1, 32)
    )
    text_shortest: int = threshold(
        25,
        "shingles that a text must have to be compared; shorter ones coincide by nature",
        "a judgement: about a sentence",
        _NEAR,
        _COUNT,
    )
    text_template: float = threshold(
        0.6,
        "shared part of the shingles from which texts are counted as alike, to tell forms from copies",
        "a judgement: unrelated texts of one language share far less",
        _NEAR,
        SHARE,
    )
    text_alike: int = threshold(
        8,
        "different training texts that share `text_template` of their shingles with an evaluation text, beyond which all of "
        "them are taken for one form",
        "a judgement: copies come in few, forms and boilerplate in masses",
        _NEAR,
        _COUNT,
    )
    image_bits: int = threshold(
        6,
        "bits of 63 in which the perceptual hashes of two images may differ for them to be compared",
        "a judgement: about a tenth of the bits; what they bring up is compared by correlation",
        _NEAR,
        Bounds(0, 15),
    )
    image_correlation: float = threshold(
        0.98,
        "correlation of two images, 32 × 32 and grey, from which they are near copies",
        "a judgement: JPEG at quality 50, resizing and brightening stay above it (tests/data/splits/test_images.py)",
        _NEAR,
        SHARE,
    )
    image_sample: int = threshold(
        4_000,
        "training images against which the closeness of a pair is judged",
        "as `sample_rows`, for vectors of 1,024 numbers",
        _NEAR,
        Bounds(100),
    )
    image_flat: float = threshold(
        2.0,
        "standard deviation of grey values (of 255) up to which an image counts as blank and is left out",
        "a judgement: noise of a sensor and of compression",
        _NEAR,
        Bounds(0),
    )
    back_share: float = threshold(
        0.1,
        "share of steps back in time, from which the rows are in no order of time and are not faulty for it",
        "a judgement: a clock that was set back does it rarely, a table without an order on every second row",
        _TIME,
        SHARE,
    )
    regular_share: float = threshold(
        0.8,
        "share of steps of one and the same length, from which a series is regular, so that repeats are faults",
        "a judgement",
        _TIME,
        SHARE,
    )
    shuffled: float = threshold(
        0.9,
        "share of evaluation rows between training's first and last time, from which a split with equal spread of time "
        "counts as shuffled",
        "a judgement: a split by time gives 0",
        ("split-time-overlap",),
        SHARE,
    )
    leak_rows: int = threshold(
        10_000, "training rows, sampled, that models are fitted to", "a few seconds on one core", _LEAK, Bounds(100)
    )
    leak_features: int = threshold(
        200,
        "features that are tried alone; of more, those with the strongest rank correlation",
        "run time",
        _LEAK,
        _COUNT,
    )
    leak_skill: float = threshold(
        0.95,
        "skill of one feature alone (0 chance, 1 no error) from which it is suspected",
        "iris, wine, breast cancer and digits of scikit-learn stay below or have other features that do as well "
        "(tests/data/splits/test_leak.py)",
        _LEAK,
        SHARE,
    )
    leak_margin: float = threshold(
        0.1,
        "what the other features together must lack against the suspected one",
        "a judgement: where they do as well, the label is simply easy",
        _LEAK,
        SHARE,
    )
    leak_certain: float = threshold(
        0.999,
        "skill of one feature alone from which a suspicion of a classification becomes a warning",
        "a judgement: measured quantities seldom separate classes to one in a thousand",
        _LEAK,
        SHARE,
    )
    positions: int = threshold(
        20, "row numbers that a finding lists", "a judgement: enough to look at", _COPIES, _COUNT
    )
