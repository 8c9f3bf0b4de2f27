"""`check_shift`: silent on what is the same, loud on what moved, one clear line on what cannot be compared."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from osler.core.finding import Severity
from osler.core.report import Report
from osler.core.settings import Settings
from osler.data.need import DataError
from osler.data.shift import check_shift

FAST = dataclasses.replace(
    Settings(), shift=dataclasses.replace(Settings().shift, permutations=100, max_exact=600, random_features=256)
)


def check(reference: object, current: object, **more: object) -> Report:
    return check_shift(reference, current, settings=FAST, **more)  # type: ignore[arg-type]


def normal(seed: int, rows: int, features: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((rows, features))


@pytest.mark.parametrize("d", [1, 8, 64])
def test_identical_data_are_silent_although_the_raw_divergence_is_large(d: int) -> None:
    report = check(normal(0, 3000, d), normal(1, 1000, d))
    assert not report.findings
    assert not report.not_checked
    row = next(r for r in report.tables[0].rows if r[1] == "Gaussian KL")
    assert row[-1] == "silent"
    if d == 64:
        assert float(row[3]) > 0.5  # what identical data give by themselves


def test_a_moved_mean_is_found_with_its_feature_and_its_beginning() -> None:
    current = normal(1, 8000, 12)
    current[5000:, 3] += 1
    report = check(normal(0, 5000, 12), current)
    (found,) = report.findings
    assert found.rule == "covariate-shift"
    assert found.severity is Severity.ERROR
    assert found.evidence["began_row"] == 5000
    assert found.touches == {"column:3"}
    assert "feature 3" in found.message
    assert "5000" in found.message
    assert {s.name for s in report.series} == {"kl", "mmd"}
    assert len(report.series[0].steps) == 8
    assert report.tables[1].rows[0][0] == "3"


def test_a_small_shift_is_an_alert_and_a_large_one_a_freeze() -> None:
    reference = normal(0, 6000, 4)
    small, large = normal(1, 2000, 4), normal(2, 2000, 4)
    small[:, 0] += 0.4  # KL 0.08
    large[:, 0] += 1.5
    (alert,) = check(reference, small).findings
    (freeze,) = check(reference, large).findings
    assert (alert.severity, freeze.severity) == (Severity.WARNING, Severity.ERROR)
    assert alert.evidence["tier"] == "alert"
    assert freeze.evidence["tier"] == "freeze"
    assert "out of service" in freeze.fix


def test_a_correlation_that_turns_round_is_found_where_no_column_moves() -> None:
    rng = np.random.default_rng(0)
    one = rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], 3000)
    other = rng.multivariate_normal([0, 0], [[1, -0.8], [-0.8, 1]], 3000)
    report = check(one, other)
    assert report.findings[0].severity is Severity.ERROR
    table = {t.name: t for t in report.tables}
    assert max(float(row[3]) for row in table["features"].rows) < 0.02
    assert float(table["directions"].rows[0][1]) > 0.3


def test_a_shape_that_changes_with_equal_mean_and_variance_is_found() -> None:
    rng = np.random.default_rng(0)
    current = rng.choice([-1.0, 1.0], size=(2000, 1)) * 0.95 + 0.31 * rng.standard_normal((2000, 1))
    report = check(normal(1, 4000, 1), current)
    assert report.findings
    kl = next(r for r in report.tables[0].rows if r[:2] == ["all rows", "nearest-neighbour KL"])
    assert kl[-1] != "silent"


def test_tables_use_numeric_columns_and_say_what_they_leave_out(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)

    def table(rows: int, first: int, moved: float) -> pa.Table:
        return pa.table(
            {
                "id": np.arange(first, first + rows),
                "age": rng.normal(40, 10, rows) + moved,
                "income": np.exp(rng.normal(8, 1, rows)),
                "city": ["x"] * rows,
                "constant": np.ones(rows),
                "empty": pa.nulls(rows, pa.float64()),
            }
        )

    pq.write_table(table(4000, 0, 0), tmp_path / "a.parquet")
    pq.write_table(table(3000, 4000, 0), tmp_path / "b.parquet")
    pq.write_table(table(3000, 4000, 8), tmp_path / "c.parquet")
    same = check(tmp_path / "a.parquet", tmp_path / "b.parquet")
    assert not same.findings
    assert same.subject["features"] == 2
    left = {n.what for n in same.not_checked}
    assert {"column id", "column city", "column empty"} <= left
    (found,) = check(tmp_path / "a.parquet", tmp_path / "c.parquet").findings
    assert found.touches == {"column:age"}


def test_embeddings_in_a_list_column() -> None:
    left, right = normal(0, 1500, 8).astype(np.float32), normal(1, 1500, 8).astype(np.float32)
    right[:, 2] += 1

    def table(rows: np.ndarray) -> pa.Table:
        return pa.table({"embedding": pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), 8)})

    assert not check(table(left), table(normal(2, 1500, 8).astype(np.float32))).findings
    (found,) = check(table(left), table(right)).findings
    assert found.touches == {"column:embedding[2]"}
    ragged = pa.table({"embedding": pa.array([[1.0, 2.0], [1.0]] * 500)})
    with pytest.raises(DataError, match="different lengths"):
        check(ragged, ragged)


def test_npy_files_half_floats_and_one_feature(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", normal(0, 1200, 1).astype(np.float16))
    np.save(tmp_path / "b.npy", (normal(1, 1200, 1) + 1).astype(np.float16))
    assert check(tmp_path / "a.npy", tmp_path / "b.npy").findings
    assert not check(tmp_path / "a.npy", normal(2, 1200, 1)[:, 0]).findings


def test_more_features_than_rows_and_many_features() -> None:
    assert not check(normal(0, 150, 300), normal(1, 100, 300), columns=[str(i) for i in range(120)]).findings
    few = dataclasses.replace(FAST, shift=dataclasses.replace(FAST.shift, max_dimensions=50))
    report = check_shift(normal(0, 600, 200), normal(1, 300, 200), settings=few)
    assert not report.findings
    assert any("50 random directions" in note for note in report.notes)
    assert check_shift(normal(0, 600, 200), normal(1, 300, 200) + 0.4, settings=few).findings


def test_equal_columns_and_a_wild_value_are_no_shift() -> None:
    reference, current = normal(0, 3000, 6), normal(1, 1000, 6)
    for rows in (reference, current):
        rows[:, 5] = rows[:, 4]
    reference[17, 0] = 1e30
    current[3, 1] = -1e25
    assert not check(reference, current).findings


def test_rows_with_gaps_are_counted_and_left_out() -> None:
    reference, current = normal(0, 3000, 3), normal(1, 2000, 3)
    reference[:10, 0] = np.nan
    current[:7, 1] = np.inf
    current[5:9, 2] = -np.inf
    report = check(reference, current)
    assert not report.findings
    assert any(note.startswith("10 of 3000 rows of reference") for note in report.notes)
    assert any(note.startswith("9 of 2000 rows of current") and "1 (7)" in note for note in report.notes)


def test_what_cannot_be_judged_is_said() -> None:
    few = check(normal(0, 3000, 3), normal(1, 20, 3))
    assert not few.findings
    assert few.not_checked[0].what == "covariate-shift"
    assert "20 whole rows" in few.not_checked[0].why
    none = check(normal(0, 3000, 3), np.empty((0, 3)))
    assert "0 whole rows" in none.not_checked[0].why
    small = check(normal(0, 30, 3), normal(1, 500, 3))
    assert "30 whole rows" in small.not_checked[0].why
    constant = check(np.ones((500, 2)), np.ones((500, 2)))
    assert "no feature" in constant.not_checked[0].why
    hollow = normal(1, 500, 3)
    hollow[:] = np.nan
    assert any(n.what == "covariate-shift" for n in check(normal(0, 500, 3), hollow).not_checked)


def test_a_constant_that_changes_is_a_finding_and_a_rare_flag_is_not() -> None:
    reference = np.concatenate([normal(0, 1000, 2), np.zeros((1000, 1))], axis=1)
    current = np.concatenate([normal(1, 1000, 2), np.zeros((1000, 1))], axis=1)
    current[:3, 2] = 1
    assert not check(reference, current).findings
    current[:400, 2] = 1
    (found,) = check(reference, current).findings
    assert found.where.column == "2"
    assert found.evidence["changed"] == 400


def test_a_slow_wave_that_the_reference_has_too_is_no_shift() -> None:
    rng = np.random.default_rng(0)
    phase = np.arange(24_000) / 6000 * 2 * np.pi
    rows = np.stack([np.sin(phase), np.cos(phase)], axis=1) + rng.standard_normal((24_000, 2))
    report = check(rows[:18_000], rows[18_000:])
    assert not report.findings
    assert any("alike over" in note for note in report.notes)


def test_what_the_reference_does_by_itself_lifts_the_thresholds() -> None:
    rows = normal(0, 6000, 3)
    rows[2000:3000] += 1  # one odd window in the reference
    current = normal(1, 2000, 3)
    current[1000:] += 0.9
    report = check(rows, current)
    assert all(f.severity < Severity.ERROR for f in report.findings)
    assert any("consecutive windows of the reference" in n or "alike over" in n for n in report.notes)


def test_a_left_over_part_of_a_window_is_not_judged_by_itself() -> None:
    report = check(normal(0, 3000, 2), normal(1, 2300, 2))
    assert any(n.what == "the last 300 rows as a window" for n in report.not_checked)
    assert len(report.series[0].steps) == 2


@pytest.mark.parametrize(
    ("reference", "current", "message"),
    [
        (np.zeros((200, 3)), np.zeros((200, 4)), "3 features and current has 4"),
        (np.zeros((200, 3, 2)), np.zeros((200, 3)), "one row a sample"),
        (np.array([["a"] * 2] * 200), np.zeros((200, 2)), "not real numbers"),
        (np.zeros((200, 2), complex), np.zeros((200, 2)), "not real numbers"),
        (np.zeros((200, 0)), np.zeros((200, 0)), "no features"),
        ({"a": np.arange(200.0)}, {"b": np.arange(200.0)}, "no numeric column in common"),
        ({"a": ["x"] * 200}, {"a": ["x"] * 200}, "no numeric column"),
        ("missing.npy", np.zeros((200, 2)), "does not exist"),
    ],
)
def test_what_makes_no_sense_is_one_line(reference: object, current: object, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        check(reference, current)
    assert "\n" not in str(caught.value)


def test_columns_and_windows_are_chosen() -> None:
    rng = np.random.default_rng(0)
    left = {"a": rng.random(1000), "b": rng.random(1000)}
    right = {"a": rng.random(1000), "b": rng.random(1000) + 1}
    assert not check(left, right, columns=["a"]).findings
    assert check(left, right, columns=["b"]).findings[0].where.column == "b"
    assert check(normal(0, 900, 2), normal(1, 900, 2), columns=["1"]).subject["features"] == 1
    with pytest.raises(DataError, match="did you mean"):
        check({"age": rng.random(200)}, {"age": rng.random(200)}, columns=["agee"])
    with pytest.raises(DataError, match="no feature '7'"):
        check(normal(0, 900, 2), normal(1, 900, 2), columns=["7"])
    with pytest.raises(DataError, match="too small"):
        check(normal(0, 900, 2), normal(1, 900, 2), window=10)
    assert check(normal(0, 900, 2), normal(1, 900, 2), window=200).findings == []


def test_no_raw_value_enters_the_report() -> None:
    reference, current = normal(0, 1500, 3), normal(1, 1500, 3)
    current[:, 1] = 123456.789
    report = check(reference, current)
    assert report.findings
    assert "123456" not in str(report.to_dict({}))


def test_the_same_input_gives_the_same_report() -> None:
    one = check(normal(0, 1500, 3), normal(1, 1500, 3)).to_dict({})
    assert one == check(normal(0, 1500, 3), normal(1, 1500, 3)).to_dict({})
