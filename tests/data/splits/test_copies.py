"""Copies across a split: found where they are, and not where rows are equal by nature."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from osler.core.finding import Confidence, Finding, Severity
from osler.core.report import Report
from osler.core.settings import Settings
from osler.core.settings.splits import Splits
from osler.data.need import DataError
from osler.data.splits import check_splits, exact

COPIES = ("split-duplicate-rows", "eval-on-training-data")


def frame(x: np.ndarray, **more: Any) -> pa.Table:
    return pa.table({**{f"c{i}": x[:, i] for i in range(x.shape[1])}, **more})


def found(report: Report) -> list[Finding]:
    return [f for f in report.findings if f.rule in COPIES]


def alarms(report: Report) -> list[Finding]:
    return [f for f in found(report) if f.severity >= Severity.WARNING]


def open_points(report: Report) -> str:
    return " | ".join(n.why for n in report.not_checked if n.what == "split-duplicate-rows")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_exact_copies_are_counted_and_placed(rng: np.random.Generator) -> None:
    x, e = rng.normal(size=(1_000, 6)), rng.normal(size=(300, 6))
    e[17], e[40:70] = x[5], x[100:130]
    (finding,) = found(check_splits(frame(x), frame(e)))
    assert finding.rule == "split-duplicate-rows"
    assert (finding.severity, finding.confidence) == (Severity.ERROR, Confidence.DEFINITE)
    assert finding.message == (
        "31 of 300 evaluation rows (10.3 %) are also training rows, first at row 17, which is training row 5."
    )
    assert finding.evidence["rows"][:3] == [17, 40, 41]
    assert finding.evidence["train_rows_first"][:3] == [5, 100, 101]
    assert finding.evidence["hash_collisions"] == 0


def test_near_copies_are_counted_beside_exact_ones(rng: np.random.Generator) -> None:
    x, e = rng.normal(size=(2_000, 8)), rng.normal(size=(400, 8))
    e[:20] = x[:20]
    e[100:140] = x[300:340] + 1e-3 * rng.normal(size=(40, 8))
    exact_, near = found(check_splits(frame(x), frame(e)))
    assert exact_.evidence["eval_rows_equal"] == 20
    assert near.evidence["eval_rows_near"] == 40
    assert near.evidence["rows"] == list(range(100, 120))
    assert near.evidence["train_rows_first"] == list(range(300, 320))
    assert near.severity is Severity.ERROR


def test_rows_apart_are_no_finding(rng: np.random.Generator) -> None:
    report = check_splits(frame(rng.normal(size=(3_000, 6))), frame(rng.normal(size=(1_000, 6))))
    assert not found(report)
    assert not open_points(report)


@pytest.mark.parametrize("noise", [5e-4, 1e-3, 1e-2])
def test_recall_of_near_copies(rng: np.random.Generator, noise: float) -> None:
    x, e = rng.normal(size=(10_000, 20)), rng.normal(size=(2_000, 20))
    x[:, 0], e[:, 0] = x[:, 0] > 0, e[:, 0] > 0
    x[:, 1], e[:, 1] = np.exp(2 * x[:, 1]), np.exp(2 * e[:, 1])
    x[:, 2] = e[:, 2] = 3.0
    rows = rng.permutation(2_000)[:500]
    e[rows] = x[:500]
    e[rows, 3:] += noise * rng.normal(size=(500, 17))
    e[rows, 1] *= 1 + noise * rng.normal(size=500)
    (near,) = found(check_splits(frame(x), frame(e)))
    assert near.evidence["eval_rows_near"] >= 495
    assert set(near.evidence["rows"]) <= set(rows.tolist())


def test_a_row_number_does_not_hide_copies(rng: np.random.Generator) -> None:
    x, e = rng.normal(size=(500, 5)), rng.normal(size=(200, 5))
    e[:50] = x[:50]
    report = check_splits(frame(x, id=np.arange(500)), frame(e, id=np.arange(500, 700)))
    assert [f.evidence["eval_rows_equal"] for f in found(report)] == [50]
    assert any(note.startswith("id numbers the rows") for note in report.notes)


def test_matching_row_numbers_show_copies_among_coarse_columns(rng: np.random.Generator) -> None:
    def table(ids: np.ndarray) -> pa.Table:
        local = np.random.default_rng(5)
        a = local.random(2_000) < 0.5
        return pa.table({"id": ids, "a": a[ids], "b": ~a[ids]})

    report = check_splits(table(np.arange(1_000)), table(np.concatenate([np.arange(1_000, 1_300), np.arange(60)])))
    assert [f.evidence["eval_rows_equal"] for f in found(report)] == [60]


def test_coarse_columns_are_equal_by_nature(rng: np.random.Generator) -> None:
    def survey(n: int) -> pa.Table:
        return pa.table({f"q{i}": np.clip(rng.normal(3, 1, n).round(), 1, 5).astype(int) for i in range(5)})

    def flags(n: int) -> pa.Table:
        return pa.table({name: rng.random(n) < 0.5 for name in "abc"})

    for make in (survey, flags):
        report = check_splits(make(4_000), make(1_000))
        assert not found(report)
        assert "equal by nature" in open_points(report)


def test_a_wide_survey_is_not_equal_by_nature(rng: np.random.Generator) -> None:
    def survey(n: int) -> pa.Table:
        return pa.table({f"q{i}": np.clip(rng.normal(3, 1, n).round(), 1, 5).astype(int) for i in range(20)})

    train, fresh = survey(4_000), survey(900)
    assert not found(check_splits(train, fresh))
    (finding,) = found(check_splits(train, pa.concat_tables([fresh, train.slice(40, 100)])))
    assert finding.evidence["eval_rows_equal"] == 100
    assert finding.evidence["rows"][0] == 900


def test_passengers_with_correlated_coarse_columns(rng: np.random.Generator) -> None:
    """Like the Titanic's list: class, sex, age in years, relatives, fare by class; random split."""
    n = 900
    class_ = rng.choice([1, 2, 3], n, p=[0.24, 0.21, 0.55])
    age = np.where(rng.random(n) < 0.2, np.nan, np.clip(rng.normal(30, 13, n), 1, 80).round())
    fares = {1: [26.55, 52.0, 83.2], 2: [10.5, 13.0, 26.0], 3: [7.75, 7.9, 8.05]}
    fare = np.array([rng.choice(fares[c]) for c in class_])
    table = pa.table(
        {
            "class": class_,
            "sex": rng.choice(["m", "f"], n),
            "age": pa.array(age),
            "relatives": rng.choice([0, 1, 2], n, p=[0.7, 0.2, 0.1]),
            "fare": fare,
        }
    )
    report = check_splits(table.slice(0, 630), table.slice(630))
    assert not alarms(report)


def test_copies_made_before_the_split_are_found(rng: np.random.Generator) -> None:
    x = rng.normal(size=(1_000, 5))
    x = np.concatenate([x, x[:200]])[rng.permutation(1_200)]
    (finding,) = found(check_splits(frame(x[:900]), frame(x[900:])))
    assert finding.severity is Severity.ERROR
    assert finding.evidence["train_rows_repeating"] > 0.15
    assert finding.evidence["explained_by_chance"] < 0.05


def test_augmentation_before_the_split_is_found(rng: np.random.Generator) -> None:
    x = rng.normal(size=(600, 10))
    x = np.concatenate([x + 1e-3 * rng.normal(size=x.shape) for _ in range(5)])[rng.permutation(3_000)]
    (finding,) = found(check_splits(frame(x[:2_400]), frame(x[2_400:])))
    assert finding.evidence["kind"] == "near"
    assert finding.evidence["share"] > 0.95


def test_a_resting_state_is_no_copy(rng: np.random.Generator) -> None:
    def sensor(n: int) -> pa.Table:
        x = rng.normal(size=(n, 4))
        x[rng.random(n) < 0.3] = 0.0
        return frame(x)

    report = check_splits(sensor(3_000), sensor(1_000))
    assert not found(report)
    assert "resting state" in open_points(report)


def test_a_resting_state_with_noise_is_no_near_copy(rng: np.random.Generator) -> None:
    def sensor(n: int) -> pa.Table:
        x = rng.normal(size=(n, 4))
        idle = rng.random(n) < 0.3
        x[idle] = 1e-4 * x[idle]
        return frame(x)

    assert not found(check_splits(sensor(6_000), sensor(1_500)))


@pytest.mark.parametrize("d", [1, 2, 3])
def test_dense_data_of_few_columns_are_no_near_copies(rng: np.random.Generator, d: int) -> None:
    report = check_splits(frame(rng.normal(size=(20_000, d))), frame(rng.normal(size=(5_000, d))))
    assert not alarms(report)


def test_a_smooth_curve_is_no_near_copy(rng: np.random.Generator) -> None:
    t = rng.random(6_000) * 50
    x = np.stack([np.sin(t), np.cos(t), np.sin(2 * t), np.cos(3 * t)], axis=1)
    assert not alarms(check_splits(frame(x[:5_000]), frame(x[5_000:])))


def test_evaluation_within_training(rng: np.random.Generator) -> None:
    x = rng.normal(size=(1_000, 4))
    table = frame(x, id=np.arange(1_000))
    fresh = frame(x[rng.permutation(1_000)[:300]], id=np.arange(5_000, 5_300), extra=np.arange(300.0))
    (finding,) = found(check_splits(table, fresh))
    assert finding.rule == "eval-on-training-data"
    assert (finding.severity, finding.confidence) == (Severity.ERROR, Confidence.DEFINITE)


def test_the_same_file_twice(tmp_path: Path, rng: np.random.Generator) -> None:
    pq.write_table(frame(rng.normal(size=(50, 2))), tmp_path / "a.parquet")
    (tmp_path / "b.parquet").symlink_to(tmp_path / "a.parquet")
    report = check_splits(tmp_path / "a.parquet", str(tmp_path / "b.parquet"))
    assert [f.rule for f in report.findings] == ["eval-on-training-data"]


def test_one_pair_of_equal_rows_is_information(rng: np.random.Generator) -> None:
    x, e = rng.normal(size=(100, 4)), rng.normal(size=(45, 4))
    e[3] = x[7]
    assert [f.severity for f in found(check_splits(frame(x), frame(e)))] == [Severity.INFO]


def test_numbers_in_other_types_and_missing_values_in_either_form(rng: np.random.Generator) -> None:
    x = rng.normal(size=(300, 3))
    x[::3, 1] = np.nan
    whole = rng.integers(0, 10_000, 300)
    train = pa.table({"a": x[:, 0], "b": pa.array(x[:, 1], from_pandas=True), "w": whole})
    narrow = x[:60].astype(np.float32)
    eval_ = pa.table(
        {"w": whole[:60].astype(float), "b": pa.array(narrow[:, 1].astype(float), from_pandas=False), "a": narrow[:, 0]}
    )
    eval_ = eval_.set_column(1, "b", pa.array(x[:60, 1], from_pandas=False))
    (finding,) = found(check_splits(train, eval_))
    assert finding.evidence["eval_rows_equal"] == 60
    strict = Settings(splits=Splits(missing_alike=False))
    (finding,) = found(check_splits(train, eval_, settings=strict, near=False))
    assert finding.evidence["eval_rows_equal"] == 40


def test_columns_that_cannot_be_compared_are_named(rng: np.random.Generator) -> None:
    x = rng.normal(size=(100, 3))
    report = check_splits(frame(x, when=["2024"] * 100), frame(x[:20], when=np.arange(20), new=np.arange(20)))
    assert "column when: text in training, numbers in evaluation" in open_points(report)
    assert any("new" in note for note in report.notes)
    assert found(report)


def test_only_chosen_columns_are_compared(rng: np.random.Generator) -> None:
    x = rng.normal(size=(200, 3))
    e = x[:50].copy()
    e[:, 2] += 1
    assert not found(check_splits(frame(x), frame(e)))
    (finding,) = found(check_splits(frame(x), frame(e), columns=["c0", "c1"]))
    assert finding.evidence["columns_compared"] == 2


def test_labels_do_not_tell_copies_apart(rng: np.random.Generator) -> None:
    x = rng.normal(size=(400, 4))
    y = rng.integers(0, 2, 400)
    report = check_splits(frame(x, y=y), frame(x[:30], y=1 - y[:30]), label="y")
    assert [f.rule for f in found(report)] == ["eval-on-training-data"]


def test_a_hash_collision_is_no_copy(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    real = exact._nested_hashes

    def poor(*args: Any) -> list[np.ndarray]:
        return [h & np.uint64(0xFF) for h in real(*args)]

    monkeypatch.setattr(exact, "_nested_hashes", poor)
    x, e = rng.normal(size=(500, 5)), rng.normal(size=(100, 5))
    report = check_splits(frame(x), frame(e), near=False)
    assert not found(report)


def test_texts_dictionaries_and_lists_take_part(rng: np.random.Generator) -> None:
    n = 400
    words = [f"name {i}" for i in rng.permutation(n)]
    lists = [rng.normal(size=3).tolist() for _ in range(n)]
    table = pa.table({"w": words, "l": lists, "c": pa.array(rng.choice(["x", "y"], n)).dictionary_encode()})
    (finding,) = found(check_splits(table.slice(0, 300), pa.concat_tables([table.slice(300), table.slice(0, 20)])))
    assert finding.evidence["eval_rows_equal"] == 20


def test_files_are_streamed_to_the_same_result(tmp_path: Path, rng: np.random.Generator) -> None:
    x, e = rng.normal(size=(3_000, 5)), rng.normal(size=(800, 5))
    e[:30] = x[:30]
    e[30:60] = x[30:60] + 1e-3
    pq.write_table(frame(x), tmp_path / "train.parquet", row_group_size=700)
    pq.write_table(frame(e), tmp_path / "eval.parquet", row_group_size=300)
    from_files = check_splits(tmp_path / "train.parquet", tmp_path / "eval.parquet")
    in_memory = check_splits(frame(x), frame(e))
    assert [f.message for f in from_files.findings] == [f.message for f in in_memory.findings]
    reader = pa.RecordBatchReader.from_batches(frame(x).schema, frame(x).to_batches(max_chunksize=500))
    once = check_splits(reader, frame(e))
    assert [f.message for f in once.findings] == [f.message for f in in_memory.findings]


@pytest.mark.parametrize(
    "table",
    [
        pa.table({"x": pa.nulls(50)}),
        pa.table({"x": np.ones(50)}),
        pa.table({"x": [np.inf, -np.inf, np.nan] * 20, "y": np.arange(60.0)}),
        pa.table({"x": pa.array([], pa.float64())}),
        pa.table({"x": [1.0], "y": ["a"]}),
        pa.table({"\0row": np.arange(30.0), "index": np.arange(30)}),
        pa.table({"x": [[1, 2], None] * 20, "s": [{"a": 1}, None] * 20}),
        pa.table({"x": pa.array([None, "a"] * 30), "y": pa.array([None, 1.5] * 30)}),
    ],
)
def test_hard_tables_pass(table: pa.Table) -> None:
    report = check_splits(table, table.slice(0))
    assert report.subject["rows"] == {"train": table.num_rows, "eval": table.num_rows}


def test_nothing_in_common_is_refused() -> None:
    with pytest.raises(DataError, match="no column in common"):
        check_splits(pa.table({"a": [1]}), pa.table({"b": [1]}))


def test_unknown_columns_are_refused_with_the_closest() -> None:
    table = pa.table({"age": [1, 2], "label": [0, 1]})
    with pytest.raises(DataError, match="no column 'lable'; did you mean 'label'"):
        check_splits(table, table.slice(1), label="lable")
    with pytest.raises(DataError, match="no column 'agee'"):
        check_splits(table, table.slice(1), columns=["agee"])
    with pytest.raises(DataError, match="columns is empty"):
        check_splits(table, table.slice(1), columns=[])


def test_a_report_holds_no_values(rng: np.random.Generator) -> None:
    secret = "Erika Mustermann"
    table = pa.table({"name": [f"{secret} {i}" for i in range(100)], "x": rng.normal(size=100)})
    report = check_splits(table, table.slice(0, 60), group="name", text="name")
    assert report.findings
    assert secret not in str(report.to_dict({}))


def test_flowers_measured_to_the_millimetre(rng: np.random.Generator) -> None:
    """Few equal rows, of columns that go together: what the kinds of flower have in common is not chance twice over."""

    def flowers(each: int) -> pa.Table:
        kind = np.repeat([0, 1, 2], each)
        noise = rng.normal(size=(4, 3 * each))
        return pa.table(
            {
                "petal_length": (14 + 28 * kind + 2 * noise[0]).round(),
                "petal_width": (3 + 11 * kind + noise[1]).round(),
                "sepal_length": (50 + 8 * kind + 5 * noise[2]).round(),
                "sepal_width": (31 + 4 * noise[3]).round(),
            }
        )

    for _ in range(5):
        report = check_splits(flowers(300), flowers(80))
        assert not alarms(report)
