"""The audit: what is noise and what is not, the choice of the estimator, and everything that comes out of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

from osler.core.finding import Severity
from osler.core.settings import Settings
from osler.data.labels import audit_labels, check_labels
from osler.data.labels.intervals import intervals
from osler.data.need import DataError


def accuracy(labels: np.ndarray, true: np.ndarray) -> float:
    return float((labels == true).mean())


@pytest.mark.parametrize("noise", [0.1, 0.2, 0.4])
@pytest.mark.parametrize("classes", [2, 5])
def test_noise_by_class_is_found_and_mended(made: Callable[..., tuple], noise: float, classes: int) -> None:
    given, probs, true, _ = made(noise=noise, classes=classes)
    audit = audit_labels(given, probs, out_of_fold=True)
    assert audit.noisy, audit.fits
    assert abs(audit.noise_rate - accuracy(given != true, np.ones_like(true))) < 0.06
    corrected = audit.corrected()
    assert accuracy(corrected, true) > accuracy(given, true) + 0.5 * noise
    assert accuracy(corrected, true) >= accuracy(probs.argmax(axis=1), true) - 0.003
    [finding] = audit.report().findings
    assert finding.rule == "label-noise"
    assert finding.severity == Severity.WARNING


@pytest.mark.parametrize("apart", [1.5, 2.5, 4.0])
def test_right_labels_under_any_model_raise_no_alarm_and_stay(made: Callable[..., tuple], apart: float) -> None:
    given, probs, true, _ = made(kind="none", apart=apart)
    audit = audit_labels(given, probs, out_of_fold=True)
    assert not audit.noisy
    assert not audit.report().findings
    assert np.array_equal(audit.corrected(), given)
    assert audit.keep().all()
    assert accuracy(audit.soft_targets().argmax(axis=1), true) == 1


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_noise_on_look_alikes_is_recognised_and_the_vote_recommended(made: Callable[..., tuple], seed: int) -> None:
    given, probs, true, _ = made(kind="instance", seed=seed, apart=3)
    audit = audit_labels(given, probs, out_of_fold=True)
    assert audit.fits[0] is False
    assert "look-alikes" in audit.fits[1]
    assert audit.chosen == "argmax"
    assert accuracy(audit.corrected(audit.chosen), true) >= accuracy(probs.argmax(axis=1), true)
    report = audit.report()
    assert not report.findings
    assert any(n.what == "label-noise" for n in report.not_checked)


def test_the_answer_does_not_depend_on_blocks_maps_or_precision(made: Callable[..., tuple], tmp_path: Path) -> None:
    given, probs, _, _ = made(classes=4)
    tree = Settings()
    whole = audit_labels(given, probs, out_of_fold=True)
    lean = audit_labels(given, probs, out_of_fold=True, settings=replace(tree, labels=replace(tree.labels, block=97)))
    np.save(tmp_path / "p.npy", probs)
    np.save(tmp_path / "y.npy", given)
    mapped = audit_labels(tmp_path / "y.npy", tmp_path / "p.npy", out_of_fold=True)
    for other in (lean, mapped):
        assert np.array_equal(whole.suggested, other.suggested)
        np.testing.assert_allclose(whole.suspicion, other.suspicion, atol=1e-5)
        assert set(whole.ranked(100).index) == set(other.ranked(100).index)
        assert len(whole.ranked().index) == len(other.ranked().index)
    half = audit_labels(given, probs.astype(np.float16), out_of_fold=True)
    assert (whole.suggested != half.suggested).mean() < 0.002


def test_ranking(made: Callable[..., tuple]) -> None:
    given, probs, true, _ = made()
    audit = audit_labels(given, probs, out_of_fold=True)
    ranked = audit.ranked(200)
    assert len(ranked.index) == 200
    assert (np.diff(ranked.probability) <= 0).all()
    assert (ranked.given == given[ranked.index]).all()
    assert (ranked.given != ranked.suggested).all()
    assert (ranked.suggested == true[ranked.index]).mean() > 0.95
    assert np.array_equal(audit.ranked().index[:200], ranked.index)


def test_soft_targets(made: Callable[..., tuple]) -> None:
    given, probs, _, _ = made()
    audit = audit_labels(given, probs, out_of_fold=True)
    soft = audit.soft_targets()
    np.testing.assert_allclose(soft.sum(axis=1), 1, atol=1e-4)
    assert np.array_equal(soft.argmax(axis=1), audit.corrected())
    out = np.empty_like(soft)
    assert audit.soft_targets(out=out) is out
    for name in audit.estimates:
        assert audit.soft_targets(name).shape == probs.shape
        assert audit.labels(name).shape == given.shape
    with pytest.raises(DataError, match="no estimator 'best'; there are argmax"):
        audit.corrected("best")
    with pytest.raises(DataError, match="soft targets have"):
        audit.soft_targets(out=np.empty((3, 3), np.float32))


def test_rows_without_a_label_stay_without(made: Callable[..., tuple]) -> None:
    given, probs, true, _ = made()
    given = given.copy()
    given[::7] = -100
    audit = audit_labels(given, probs, out_of_fold=True)
    assert (audit.corrected()[::7] == -1).all()
    assert (audit.suspicion[::7] == 0).all()
    assert accuracy(audit.suggested[::7], true[::7]) > 0.9
    assert not set(audit.ranked().index) & set(range(0, len(given), 7))
    assert any("have no label" in note for note in audit.report().notes)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npy"])
def test_a_cleaned_file(made: Callable[..., tuple], tmp_path: Path, suffix: str) -> None:
    given, probs, true, _ = made(rows=2000, classes=3)
    source = tmp_path / "data.parquet"
    pq.write_table(pa.table({"id": np.arange(2000), "keep": ["x"] * 2000}), source)
    audit = audit_labels(given, probs, out_of_fold=True, classes=["ant", "bee", "fly"])
    out = audit.write_cleaned(tmp_path / f"clean{suffix}", source)
    if suffix == ".npy":
        table = np.load(out, allow_pickle=False)
        assert table.dtype.names == ("given", "suggested", "probability_wrong", "keep")
        kept = table["keep"]
    else:
        table = csv.read_csv(out) if suffix == ".csv" else pq.read_table(out)
        assert table.column_names == ["id", "keep", "given", "suggested", "probability_wrong", "keep_by_osler"]
        assert set(table["suggested"].to_pylist()) == {"ant", "bee", "fly"}
        kept = np.array(table["keep_by_osler"])
    assert accuracy(given[kept], true[kept]) > accuracy(given, true) + 0.1
    assert np.array_equal(kept, audit.keep())
    with pytest.raises(DataError, match=r"is \.csv, \.parquet or \.npy"):
        audit.write_cleaned(tmp_path / "clean.xlsx")
    pq.write_table(pa.table({"id": [1]}), source)
    with pytest.raises(DataError, match="has 1 rows and there are 2,000 labels"):
        audit.write_cleaned(tmp_path / "clean.csv", source)


def test_predictions_must_be_out_of_fold(made: Callable[..., tuple]) -> None:
    given, probs, _, _ = made(rows=2000)
    with pytest.raises(DataError, match="cross_validated_probs"):
        audit_labels(given, probs, out_of_fold=False)
    assert any("nobody said" in n.why for n in audit_labels(given, probs).report().not_checked)
    learnt = np.full_like(probs, 0.001)
    learnt[np.arange(2000), given] = 1 - 0.001 * (probs.shape[1] - 1)
    report = audit_labels(given, learnt).report()
    assert not report.findings
    assert any("trained on these rows" in n.why for n in report.not_checked)


def test_a_fold_that_saw_its_own_rows_is_refused(made: Callable[..., tuple]) -> None:
    given, probs, _, _ = made(rows=5000, noise=0.25)
    folds = np.arange(5000) % 4
    assert audit_labels(given, probs, folds=folds).noisy
    leaked = probs.copy()
    own = folds == 2
    leaked[own] = np.eye(probs.shape[1], dtype=np.float32)[given[own]]
    with pytest.raises(DataError, match="the predictions of fold 2 repeat 100"):
        audit_labels(given, leaked, folds=folds)
    with pytest.raises(DataError, match="give one fold number"):
        audit_labels(given, probs, folds=folds[:5])


def test_too_few_labels(made: Callable[..., tuple]) -> None:
    given, probs, _, _ = made(rows=100)
    with pytest.raises(DataError, match=r"100 labels of 5 classes are too few .* 200 are needed"):
        audit_labels(given, probs)
    assert any("too few" in n.why for n in check_labels(given, probs).not_checked)


def test_intervals_cover_the_matrix(made: Callable[..., tuple]) -> None:
    inside, rates = [], []
    for seed in range(5):
        given, probs, true, matrix = made(rows=4000, classes=4, seed=seed)
        audit = audit_labels(given, probs, out_of_fold=True)
        low, high = audit.intervals
        inside.append((low <= matrix) & (matrix <= high))
        rate_low, rate_high = audit.noise_rate_interval
        rates.append(rate_low <= (given != true).mean() <= rate_high)
        assert (low <= audit.noise_matrix).all()
        assert (audit.noise_matrix <= high).all()
    assert np.mean(inside) > 0.85
    assert np.mean(rates) >= 0.6


def test_intervals_narrow_with_more_rows(made: Callable[..., tuple]) -> None:
    width = []
    for rows in (1500, 24_000):
        given, probs, _, _ = made(rows=rows)
        low, high = audit_labels(given, probs, out_of_fold=True).intervals
        width.append(np.median(high - low))
    assert width[1] < 0.7 * width[0]
    assert callable(intervals)


def test_the_report(made: Callable[..., tuple]) -> None:
    given, probs, _, _ = made(classes=3)
    seen: list[str] = []
    report = check_labels(
        given, probs, classes=["ant", "bee", "fly"], out_of_fold=True, progress=lambda w, d, n: seen.append(w)
    )
    assert [t.name for t in report.tables] == ["label noise by estimator", "noise matrix", "most suspicious labels"]
    assert [row[0] for row in report.tables[0].rows] == ["argmax", "confident-joint", "em", "ccc", "em+ccc"]
    assert sum(bool(row[3]) for row in report.tables[0].rows) == 1
    assert report.tables[1].columns == ["true \\ given", "ant", "bee", "fly"]
    assert len(report.tables[2].rows) == 50
    for table in report.tables:
        assert all(len(row) == len(table.columns) for row in table.rows)
    [series] = report.series
    assert series.kind == "histogram"
    assert len(series.edges) == len(series.values[0]) + 1
    assert sum(series.values[0]) == pytest.approx(1)
    [finding] = report.findings
    assert "given as" in finding.message
    assert "soft targets" in finding.fix
    assert {"reading predictions", "estimating label noise", "judging labels"} <= set(seen)
    from osler.catalogue import RULES

    assert report.to_dict(RULES)["findings"]


def test_many_classes(made: Callable[..., tuple]) -> None:
    given, probs, true, _ = made(rows=9000, classes=30, apart=5)
    audit = audit_labels(given, probs, out_of_fold=True)
    assert audit.noisy, audit.fits
    assert accuracy(audit.corrected(), true) > 0.93
    assert audit.report().tables[1].columns == ["true", "given", "share", "low", "high"]


def test_labels_that_are_no_classes_come_first(made: Callable[..., tuple]) -> None:
    given, probs, _, _ = made(rows=1000, classes=4)
    report = check_labels(given + 1, probs)
    assert [f.rule for f in report.findings] == ["label-out-of-range"]
    assert any(n.what == "label-noise" for n in report.not_checked)
    assert any("no out-of-fold predictions" in n.why for n in check_labels(given).not_checked)


def test_a_model_that_knows_no_class_judges_nothing(made: Callable[..., tuple]) -> None:
    given, probs, _, _ = made(rows=1000)
    report = check_labels(given, np.full_like(probs, 1 / probs.shape[1]), out_of_fold=True)
    assert not report.findings
    assert any(n.what == "label-noise" for n in report.not_checked)
