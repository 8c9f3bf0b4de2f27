"""Labels that are no classes, and labels that only look so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from osler.core.finding import Severity
from osler.data.labels import check_encoding

RNG = np.random.default_rng(0)
TEN = RNG.integers(0, 10, 500)


def void(value: int, dtype: str = "int64") -> np.ndarray:
    out = TEN.astype(dtype)
    out[::10] = value
    return out


@pytest.mark.parametrize(
    ("labels", "options", "severity", "message"),
    [
        (TEN + 1, {"n_classes": 10}, Severity.ERROR, "off by one"),
        (TEN + 1, {}, Severity.WARNING, "none is 0"),
        (void(-1), {}, Severity.ERROR, "50 of 500 labels are -1"),
        (void(-1), {"n_classes": 10}, Severity.ERROR, "the loss ignores -100"),
        (void(255, "uint8"), {}, Severity.ERROR, r"255 \(-1 stored as uint8\)"),
        (void(255, "uint8"), {"n_classes": 10, "ignore_index": None}, Severity.ERROR, "the loss ignores nothing"),
        (void(-100), {"ignore_index": None}, Severity.ERROR, "-100"),
        (void(12), {"n_classes": 10}, Severity.ERROR, "50 of 500 labels are outside 0 … 9: they reach from 0 to 12"),
        (TEN, {"n_classes": 10, "ignore_index": 0}, Severity.ERROR, "ignore_index 0 is a class"),
        (TEN * 100, {}, Severity.WARNING, "10 different labels are spread over 0 … 900"),
        (TEN.astype(float), {}, Severity.INFO, "float64"),
        (np.where(TEN == 3, np.nan, TEN), {}, Severity.WARNING, "have no label"),
        (TEN / 10, {"n_classes": 10}, Severity.ERROR, "no whole numbers"),
        (np.zeros(50, int), {}, Severity.WARNING, "the same class"),
        (np.full(50, -100), {}, Severity.ERROR, "nothing trains"),
        (np.array(["cat", "Dog", "cat"]), {"classes": ["cat", "dog"]}, Severity.ERROR, "1 of them differ only in case"),
        (np.array(["cat", None, "dog"], dtype=object), {}, Severity.WARNING, "1 of 3 rows have no label"),
        (np.array(["2026-01-01"], dtype="datetime64[D]"), {}, Severity.ERROR, "are no classes"),
    ],
)
def test_faults(labels: np.ndarray, options: dict[str, Any], severity: Severity, message: str) -> None:
    import re

    report = check_encoding(labels, **options)
    assert report.findings, report
    assert re.search(message, report.findings[0].message), report.findings[0].message
    assert report.findings[0].severity == severity
    assert report.findings[0].rule == "label-out-of-range"
    assert report.findings[0].fix
    assert len(report.findings) == 1


@pytest.mark.parametrize(
    ("labels", "options"),
    [
        (TEN, {}),
        (TEN, {"n_classes": 12}),  # two classes do not occur here
        (TEN[TEN > 0], {"n_classes": 10}),
        (void(-100), {}),
        (void(255, "uint8"), {"ignore_index": 255}),
        (RNG.choice([-1, 1], 100), {}),
        (RNG.random(100) > 0.5, {}),
        (RNG.choice(["a", "b"], 100), {}),
        (np.arange(256).repeat(3).astype("uint8"), {}),  # 255 is a class among others
        (np.array([], dtype=int), {}),
    ],
)
def test_healthy(labels: np.ndarray, options: dict[str, Any]) -> None:
    assert not check_encoding(labels, **options).findings


@pytest.mark.parametrize(
    "labels",
    [RNG.normal(size=300), np.arange(5000), np.array([f"id-{k}" for k in range(400)]), np.array([], dtype=int)],
)
def test_what_is_no_list_of_classes_is_said(labels: np.ndarray) -> None:
    report = check_encoding(labels)
    assert not report.findings
    assert report.not_checked


def test_no_raw_words_in_a_report() -> None:
    report = check_encoding(np.array(["Meier", "Huber", "Meier"]), classes=["cat"])
    assert "Meier" not in str(report)
