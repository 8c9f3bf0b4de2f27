"""Label noise, encoding and class lists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from osler.core.settings.field import POSITIVE, SHARE, Bounds, threshold

_NOISE = ("label-noise",)
_MEASURED = "`benchmarks/labels.py`, tables *noise*, *instance* and *clean*"


@dataclass(frozen=True, slots=True)
class Labels:
    """Label noise, encoding and class lists."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    noise_floor: float = threshold(
        0.02,
        "share of contradicted labels among confident predictions that is still taken for the model's own error; the "
        "lower end of its 95 % interval must lie above it",
        f"0.10–0.11 at 10 % noise by class, 0–0.025 for good models on right labels ({_MEASURED}); between them, a judgement",
        _NOISE,
        SHARE,
    )
    noise_ceiling: float = threshold(
        0.5,
        "share of contradicted labels among confident predictions from which labels and predictions have too little in "
        "common to say anything about either",
        "above one half the given class is no longer the likeliest under its own prediction",
        _NOISE,
        SHARE,
    )
    confident_share: float = threshold(
        0.5,
        "share of each predicted class, the most confident part of it, on which noise is told from model error",
        "a judgement: a tenth has an interval twice as wide, and in the whole the hard rows count as well",
        _NOISE,
        SHARE,
    )
    dependence: float = threshold(
        0.6,
        "AUROC with which the predicted probability of a class tells which confident rows were given that class against "
        "the prediction; 0.5 for noise that depends on the class alone, its 95 % upper end must not exceed this",
        f"0.37–0.57 with noise by class; 0.63–0.96 with model error and noise by instance, trees aside ({_MEASURED})",
        _NOISE,
        Bounds(0.5, 1),
    )
    ties: float = threshold(
        0.03,
        "share of ties among the probabilities of confident rows above which they are too coarse to judge the dependence",
        f"trees of depth 4 have 0.11–0.55, ten nearest neighbours 0.27–0.94, networks and forests of 100 at most 0.01 ({_MEASURED})",
        _NOISE,
        SHARE,
    )
    recall_floor: float = threshold(
        0.25,
        "share of a given class that the model must predict as that class before its labels count as contradictions",
        "a judgement: of rare outcomes that the model never foresees, most are no wrong labels",
        _NOISE,
        SHARE,
    )
    model_floor: float = threshold(
        0.7,
        "share of all given labels that the model must repeat, relative to the share among its confident predictions",
        "a judgement: a model that errs on a third of the rows besides cannot say which labels are wrong",
        _NOISE,
        SHARE,
    )
    adapting_gain: float = threshold(
        0.005,
        "nats per held-out label by which sharper or flatter predictions, or rounds of EM, must be ahead before they are taken",
        "a judgement: enough to outweigh the chance of a held-out fifth of a few thousand rows",
        _NOISE,
        POSITIVE,
    )
    rates_apart: float = threshold(
        3.0,
        "factor between the noise rates of two estimators from which they are said to disagree",
        "a judgement: only a note and the confidence of a finding hang on it",
        _NOISE,
        Bounds(1),
    )
    sample: int = threshold(
        50_000,
        "rows, drawn class by class, from which the noise channel is estimated; every row is then judged by it",
        "a judgement: 500 rows a class at 100 classes; the time for the estimate grows in proportion",
        _NOISE,
        Bounds(100),
    )
    smallest: int = threshold(
        200,
        "labelled rows below which label noise is not judged",
        "a judgement: at 200 rows the interval of a noise rate of 10 % is as wide as the rate",
        _NOISE,
        Bounds(20),
    )
    block: int = threshold(
        4_096,
        "rows that are corrected at a time",
        "a judgement: a block of ten classes in float32 stays in a core's own cache; any value gives the same answer",
        _NOISE,
        Bounds(1),
    )
    memorised: float = threshold(
        0.995,
        "share of labels that the predictions repeat from which they may have been trained on these very rows",
        "a judgement: in-sample networks reach 1, and corrected 0–1.6 % of wrong labels",
        _NOISE,
        SHARE,
    )
    keep_confident: float = threshold(
        0.5,
        "probability of being wrong below which a label is kept in a cleaned file",
        "the label is then likelier right than wrong",
        _NOISE,
        SHARE,
    )
    listed: int = threshold(50, "most suspicious positions that a report lists", "a judgement", _NOISE, Bounds(0))
    coverage: float = threshold(
        0.95, "coverage of the intervals of the noise matrix", "convention", _NOISE, Bounds(0.5, 0.999)
    )
    resamples: int = threshold(
        16,
        "bootstrap resamples behind the intervals of the noise matrix",
        "a judgement: a standard error from 16 normal draws is itself within 18 % (1 / sqrt(2·15)); more cost time alone",
        _NOISE,
        Bounds(2),
    )
    near_name: float = threshold(
        0.85,
        "likeness (difflib ratio) of two class names, case and separators put aside, from which they are taken for a renaming",
        "a judgement: one letter changed in seven",
        ("label-mapping-drift",),
        SHARE,
    )
