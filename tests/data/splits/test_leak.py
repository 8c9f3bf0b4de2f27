"""Features that know the answer, and honest ones that are merely strong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from osler.core.finding import Confidence, Finding, Severity
from osler.core.report import Report
from osler.data.need import DataError
from osler.data.splits import check_splits

datasets = pytest.importorskip("sklearn.datasets")

N = 1_500


def leaks(report: Report) -> list[Finding]:
    return [f for f in report.findings if f.rule == "target-leak"]


def shown(report: Report) -> list[Finding]:
    return [f for f in leaks(report) if f.severity >= Severity.WARNING and f.confidence >= Confidence.PROBABLE]


def checked(columns: dict[str, Any], **arguments: Any) -> Report:
    table = pa.table(columns)
    return check_splits(table, table.slice(0, 40), near=False, **{"label": "y", **arguments})


@pytest.fixture
def hard() -> dict[str, Any]:
    """Five features of which two say a little about the label."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, 5))
    y = (x[:, 0] + 0.5 * x[:, 1] + rng.normal(size=N) > 0).astype(int)
    return {**{f"x{i}": x[:, i] for i in range(5)}, "y": y}


def test_ordinary_features_are_fine(hard: dict[str, Any]) -> None:
    report = checked(hard)
    assert not leaks(report)
    (table,) = report.tables
    assert table.rows[0][0] == "x0"
    assert 0.1 < table.rows[0][1] < 0.5


@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer", "digits", "diabetes"])
def test_real_sets_are_fine(name: str) -> None:
    data = getattr(datasets, f"load_{name}")()
    order = np.random.default_rng(1).permutation(len(data.target))
    report = checked({**{f"f{i}": c[order] for i, c in enumerate(data.data.T)}, "y": data.target[order]})
    assert not leaks(report)


def test_an_easy_label_that_many_features_give_is_fine() -> None:
    data = datasets.load_iris()
    report = checked({**{f"f{i}": c for i, c in enumerate(data.data.T)}, "y": data.target == 0})
    assert not shown(report)
    assert any("the label is easy" in n.why for n in report.not_checked)


@pytest.mark.parametrize("kind", ["number", "text", "flag"])
def test_a_relabelled_copy(hard: dict[str, Any], kind: str) -> None:
    y = hard["y"]
    hard["outcome"] = {"number": 7 - 3.5 * y, "text": np.where(y, "won", "lost"), "flag": ~y.astype(bool)}[kind]
    (finding,) = shown(checked(hard))
    assert finding.where.column == "outcome"
    assert finding.severity is Severity.WARNING
    assert "one value for each class" in finding.message


def test_the_label_itself_under_another_name_is_an_error() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=(N, 3))
    y = x[:, 0] + rng.normal(size=N)
    (finding,) = shown(checked({"a": x[:, 0], "b": x[:, 1], "sales_final": y, "y": y}))
    assert finding.severity is Severity.ERROR
    assert "is the label itself" in finding.message
    scaled = checked({"a": x[:, 0], "b": x[:, 1], "sales_usd": (1.07 * y + 3).astype(np.float32), "y": y})
    assert [f.severity for f in shown(scaled)] == [Severity.WARNING]


def test_a_feature_filled_in_with_the_answer(hard: dict[str, Any]) -> None:
    rng = np.random.default_rng(3)
    hard["days_to_refund"] = np.where(hard["y"] == 1, rng.integers(1, 30, N).astype(float), np.nan)
    (finding,) = shown(checked(hard))
    assert finding.where.column == "days_to_refund"
    assert "is missing for one class" in finding.message


def test_numbers_given_after_sorting_by_label(hard: dict[str, Any]) -> None:
    order = np.argsort(hard["y"], kind="stable")
    columns = {k: v[order] for k, v in hard.items()}
    columns["ticket"] = np.arange(N) + 40_000
    mixed = np.random.default_rng(4).permutation(N)
    (finding,) = shown(checked({k: v[mixed] for k, v in columns.items()}))
    assert finding.where.column == "ticket"
    assert "numbers the rows" in finding.message


def test_rows_sorted_by_label_are_information(hard: dict[str, Any]) -> None:
    order = np.argsort(hard["y"], kind="stable")
    (finding,) = leaks(checked({k: v[order] for k, v in hard.items()}))
    assert finding.severity is Severity.INFO
    assert "sorted by y" in finding.message


def test_a_physical_law_is_no_error() -> None:
    rng = np.random.default_rng(5)
    voltage, temperature = rng.uniform(1, 10, N), rng.normal(20, 3, N)
    current = voltage / 47 * (1 + 0.003 * rng.normal(size=N))
    report = checked({"voltage": voltage, "temperature": temperature, "y": current})
    assert not shown(report)
    assert [f.confidence for f in leaks(report)] == [Confidence.POSSIBLE]


def test_a_strong_but_imperfect_feature_is_fine(hard: dict[str, Any]) -> None:
    rng = np.random.default_rng(6)
    hard["test_result"] = np.where(rng.random(N) < 0.97, hard["y"], 1 - hard["y"])
    assert not leaks(checked(hard))


def test_a_category_of_many_values_is_judged_out_of_fold(hard: dict[str, Any]) -> None:
    rng = np.random.default_rng(7)
    hard["street"] = [f"street {i}" for i in rng.integers(0, 900, N)]
    assert not leaks(checked(hard))


def test_a_feature_alone_is_never_shown() -> None:
    rng = np.random.default_rng(8)
    x = rng.normal(size=N)
    assert not shown(checked({"x": x, "y": (x > 0).astype(int)}))


def test_regression_with_outliers_and_missing_values() -> None:
    rng = np.random.default_rng(9)
    x = rng.normal(size=(N, 3))
    y = np.exp(2 * x[:, 0]) + rng.normal(size=N)
    x[rng.random((N, 3)) < 0.1] = np.nan
    x[5, 1] = np.inf
    assert not leaks(checked({"a": x[:, 0], "b": x[:, 1], "c": x[:, 2], "y": y}))


@pytest.mark.parametrize(
    ("label", "why"),
    [
        (np.ones(N), "one value only"),
        (np.full(N, np.nan), "one value only"),
        ([f"name {i}" for i in range(N)], "1500 classes"),
        ([[1]] * N, "the label is nested"),
    ],
)
def test_labels_that_cannot_be_judged(hard: dict[str, Any], label: Any, why: str) -> None:
    report = checked({**hard, "y": label})
    assert any(n.what == "target-leak" and why in n.why for n in report.not_checked)


def test_few_rows_are_not_judged() -> None:
    report = checked({"x": np.arange(30.0), "y": [0, 1] * 15})
    assert any("too few" in n.why for n in report.not_checked)


def test_features_written_after_the_label(hard: dict[str, Any]) -> None:
    start = np.datetime64("2024-01-01", "ns")
    known = start + np.arange(N) * np.timedelta64(1, "h")
    written = known - np.timedelta64(5, "m")
    written[100:250] += np.timedelta64(2, "D")
    hard.update(decided=known, balance_at=written, fine_at=known - np.timedelta64(1, "D"))
    report = checked(
        hard, label=None, label_time="decided", feature_times={"x0": "balance_at", "x1": "balance_at", "x2": "fine_at"}
    )
    (finding,) = leaks(report)
    assert (finding.severity, finding.confidence) == (Severity.ERROR, Confidence.DEFINITE)
    assert finding.message == (
        "x0, x1 were written after the label in 150 of 1,500 training rows (10.0 %): balance_at is later than decided, first "
        "at row 100."
    )
    assert {"column:x0", "column:x1"} <= finding.touches
    with pytest.raises(DataError, match="feature_times needs label_time"):
        checked(hard, feature_times=["balance_at"])
