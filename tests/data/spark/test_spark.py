"""Spark for real, in one local session: what it counts is what a local run counts."""

from __future__ import annotations

import datetime
import decimal
import os
import shutil
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pandas")
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("Spark needs Java", allow_module_level=True)

from osler.data.drift import check_drift
from osler.data.drift.profile import Profile, build_profile
from osler.data.need import DataError
from osler.data.spark import is_spark, overlap_spark, profile_spark, row_hashes_spark
from osler.data.splits.hashes import row_hashes
from osler.data.tables import Kind, open_source

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    # Spark warns of pandas 3, which it only partly knows; mapInArrow does not go through pandas
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]

ROWS = 3000
PARTS = 5


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("osler tests")
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.sql.session.timeZone": "America/New_York",
        "spark.ui.showConsoleProgress": "false",
    }.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


def table(rows: int, seed: int, shift: float = 0.0) -> pa.Table:
    """Columns of every kind with everything that breaks tools: nulls, NaN, infinities, heavy tails, ties, zones."""
    rng = np.random.default_rng(seed)
    number = rng.normal(shift, 1, rows)
    number[rng.integers(0, rows, rows // 50)] = np.nan
    number[rng.integers(0, rows, 3)] = np.inf
    number[rng.integers(0, rows, 2)] = -np.inf
    start = datetime.datetime(2026, 3, 8, 1, 30)
    seconds = np.sort(rng.integers(0, 10**7, rows)).tolist()
    moments = [start + datetime.timedelta(seconds=s, microseconds=7) for s in seconds]

    def some(values: list[Any], share: float = 0.05) -> list[Any]:
        return [None if r < share else v for v, r in zip(values, rng.random(rows))]

    return pa.table(
        {
            "number": pa.array(number, mask=rng.random(rows) < 0.03),
            "tail": np.exp(rng.normal(shift, 4, rows)),
            "ties": rng.integers(0, 5, rows) / 2,
            "constant": np.full(rows, 7.5),
            "float32": pa.array(rng.normal(shift, 1, rows).astype(np.float32)),
            "integer": pa.array(some(rng.integers(-(2**60), 2**60, rows).tolist()), pa.int64()),
            "short": pa.array(rng.integers(0, 3, rows).astype(np.int16)),
            "money": pa.array(
                some([decimal.Decimal(int(v)) / 100 for v in rng.integers(0, 10**6, rows)]), pa.decimal128(12, 2)
            ),
            "flag": pa.array(some((rng.random(rows) < 0.3).tolist())),
            "text": pa.array(some([f"ä{v}" if v else "" for v in rng.poisson(3, rows).tolist()])),
            "moment": pa.array(some(moments), pa.timestamp("us", "UTC")),
            "naive": pa.array(some(moments), pa.timestamp("us")),
            "day": pa.array(some([m.date() for m in moments])),
            "nothing": pa.nulls(rows, pa.float64()),
            "list": pa.array(some([[1, 2]] * rows)),
            "a.b `c`": rng.normal(shift, 1, rows),
        }
    )


@pytest.fixture(scope="module")
def data(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A reference on disk, current data on disk in several files, and the latter as a Spark DataFrame."""
    folder = tmp_path_factory.mktemp("spark")
    reference, current = table(ROWS, 1), table(ROWS, 2, 0.2)
    pq.write_table(reference, folder / "reference.parquet")
    (folder / "current").mkdir()
    step = ROWS // PARTS
    for i in range(PARTS):
        pq.write_table(current[i * step : (i + 1) * step], folder / "current" / f"{i}.parquet")
    options = spark.read.option("inferTimestampNTZ", "true")
    return {
        "reference": str(folder / "reference.parquet"),
        "current": str(folder / "current"),
        "reference frame": options.parquet(str(folder / "reference.parquet")),
        "frame": options.parquet(str(folder / "current")).repartition(PARTS),
        "table": current,
    }


@pytest.fixture(scope="module")
def profile(data: dict[str, Any]) -> Profile:
    return build_profile(data["reference"], edges=128)


def same(one: Profile, other: Profile, sums: str) -> None:
    """Everything equal bit for bit; sums bit for bit (`exact`) or but for the order of adding (`close`)."""
    assert list(one.columns) == list(other.columns)
    assert one.rows == other.rows
    for name, left in one.columns.items():
        right = other.columns[name]
        assert (left.form, left.rows, left.missing) == (right.form, right.rows, right.missing), name
        if left.grid is not None:
            a, b = left.grid, right.grid
            for part in ("edges", "counts", "lows", "highs"):
                np.testing.assert_array_equal(getattr(a, part), getattr(b, part), err_msg=f"{name}: {part}")
            assert (a.nulls, a.nans, a.neg_inf, a.pos_inf) == (b.nulls, b.nans, b.neg_inf, b.pos_inf), name
            if sums == "exact":
                np.testing.assert_array_equal(a.gaps, b.gaps, err_msg=name)
            else:
                np.testing.assert_allclose(a.gaps, b.gaps, rtol=1e-12, atol=0, err_msg=name)
        elif left.categories is not None:
            assert left.categories.counts == right.categories.counts, name
            assert (left.categories.n, left.categories.nulls) == (right.categories.n, right.categories.nulls), name


def test_counts_agree_with_a_local_run(data: dict[str, Any], profile: Profile) -> None:
    local = build_profile(data["current"], profile_of=profile)
    there = profile_spark(data["frame"], profile_of=profile)
    assert not there.absent and not there.extra and not there.changed
    same(there, local, "close")
    number = there.columns["number"].grid
    assert number.nulls and number.nans and number.neg_inf and number.pos_inf
    assert there.columns["moment"].kind is Kind.TIME and there.columns["moment"].grid.n > 0
    assert there.columns["list"].form == "none" and 0 < there.columns["list"].missing < ROWS
    assert there.columns["nothing"].missing == ROWS


def test_one_partition_in_order_agrees_in_the_sums_too(spark: Any, data: dict[str, Any], profile: Profile) -> None:
    frame = spark.read.option("inferTimestampNTZ", "true").parquet(f"{data['current']}/0.parquet").coalesce(1)
    same(
        profile_spark(frame, profile_of=profile),
        build_profile(f"{data['current']}/0.parquet", profile_of=profile),
        "exact",
    )


def test_the_same_partitions_give_the_same_sums(data: dict[str, Any], profile: Profile) -> None:
    columns = ["tail", "number"]
    first, second = (profile_spark(data["frame"], profile_of=profile, columns=columns) for _ in range(2))
    same(first, second, "exact")
    assert list(first.columns) == columns


def test_edges_from_spark_are_those_of_a_local_run_where_all_values_are_drawn(data: dict[str, Any]) -> None:
    told: list[str] = []
    there = profile_spark(
        data["reference frame"], edges=64, categorical=["short"], progress=lambda what, done, total: told.append(what)
    )
    same(there, build_profile(data["reference"], edges=64, categorical=["short"]), "close")
    assert there.columns["short"].form == "category"
    assert told and all("Spark" in what for what in told)


def test_edges_from_a_draw_still_hold_everything(data: dict[str, Any]) -> None:
    there = profile_spark(data["frame"], edges=32, columns=["tail", "a.b `c`"])
    again = profile_spark(data["frame"], edges=32, columns=["tail", "a.b `c`"])
    same(there, again, "exact")
    for name, state in there.columns.items():
        values = data["table"][name].to_numpy()
        assert state.grid.n == values.size
        assert (state.grid.low, state.grid.high) == (values.min(), values.max())
        assert 16 <= len(state.grid.edge_set) <= 64
        inner = state.grid.counts[state.grid.counts > 0]
        assert inner.max() < values.size / 4


def test_types_that_files_do_not_hold(spark: Any, profile: Profile) -> None:
    frame = spark.sql(
        "select id, make_dt_interval(0, 0, 0, id) as span, interval '1' year * id as years, void, b, m, i from ("
        "select id, null as void, cast('x' as binary) as b, map('k', id) as m, cast(id as tinyint) as i from range(10))"
    )
    found = profile_spark(frame)
    kinds = {name: state.kind for name, state in found.columns.items()}
    assert kinds == {
        "id": Kind.INTEGER,
        "span": Kind.DURATION,
        "years": Kind.NESTED,
        "void": Kind.NULL,
        "b": Kind.BINARY,
        "m": Kind.NESTED,
        "i": Kind.INTEGER,
    }
    assert found.rows == 10
    assert found.columns["void"].missing == 10 and found.columns["years"].missing == 0
    assert found.columns["span"].grid.high == 9.0  # seconds


def test_few_rows_and_no_columns_to_judge(spark: Any, profile: Profile) -> None:
    empty = profile_spark(spark.createDataFrame([], "x double, s string"))
    assert empty.rows == 0 and empty.columns["x"].grid.rows == 0
    one = profile_spark(spark.createDataFrame([(1.5, "a")], "x double, s string"))
    assert one.rows == 1 and one.columns["x"].grid.n == 1 and one.columns["s"].categories.n == 1
    other = profile_spark(spark.createDataFrame([(1,)], "unknown int"), profile_of=profile)
    assert other.rows == 1 and not other.columns and other.extra == ["unknown"]


def test_double_names_and_what_is_asked_of_spark(spark: Any, data: dict[str, Any]) -> None:
    frame = spark.createDataFrame([(1, 2)], "x int, y int")
    double = profile_spark(frame.crossJoin(frame))
    assert list(double.columns) == ["x", "y", "x.1", "y.1"]
    assert any("'x.1'" in note for note in double.notes)
    with pytest.raises(DataError, match="no column 'Number'; did you mean 'number'"):
        profile_spark(data["frame"], columns=["Number"])
    with pytest.raises(DataError, match="stays on Spark"):
        open_source(data["frame"]).table()
    assert open_source(data["frame"], "today").column("moment").kind is Kind.TIME
    with pytest.raises(DataError, match="stream"):
        profile_spark(spark.readStream.format("rate").load())
    assert is_spark(data["frame"]) and not is_spark(data["table"])
    failing = frame.selectExpr("raise_error('no luck') as x")
    with pytest.raises(DataError) as caught:
        profile_spark(failing.selectExpr("cast(x as double) as x"))
    assert "\n" not in str(caught.value)


def test_row_hashes_agree_and_shared_rows_are_counted(spark: Any, data: dict[str, Any]) -> None:
    columns = ["integer", "text", "moment", "naive", "number", "money", "flag", "day"]
    there = np.sort([row.row_hash for row in row_hashes_spark(data["frame"], columns).collect()])
    here = np.sort(row_hashes(open_source(data["current"]).table(), columns).view(np.int64))
    np.testing.assert_array_equal(there, here)
    frame = data["frame"].select(*columns)
    part = frame.limit(100)
    found = overlap_spark(frame, part.union(data["reference frame"].select(*columns).limit(50)))
    assert (found.train_rows, found.eval_rows, found.shared_rows) == (ROWS, 150, 100)
    assert found.shared_distinct == 100
    with pytest.raises(DataError, match="no column in common"):
        overlap_spark(frame, spark.createDataFrame([(1,)], "other int"))


def test_drift_is_judged_alike(data: dict[str, Any]) -> None:
    current = build_profile(data["current"], edges=64)  # of the current data, so that both ways round are asked
    local = verdicts(data["reference"], data["current"])
    assert local["a.b `c`"] == "distribution" and local["constant"] == "steady"
    assert verdicts(data["reference frame"], data["frame"]) == local
    assert verdicts(data["reference"], data["frame"]) == local
    assert verdicts(data["reference frame"], data["current"]) == local
    assert verdicts(data["reference frame"], current).keys() == local.keys()
    with pytest.raises(DataError, match="windows"):
        check_drift(data["reference"], data["frame"], time="moment", window="7d")


def test_what_has_no_counterpart_is_told(data: dict[str, Any]) -> None:
    here = check_drift(data["reference"], open_source(data["current"]).table().drop(["tail"]))
    there = check_drift(data["reference"], data["frame"].drop("tail"))
    assert [(n.what, n.why) for n in there.not_checked] == [(n.what, n.why) for n in here.not_checked]


def verdicts(reference: object, current: object) -> dict[str, str]:
    (features,) = (t for t in check_drift(reference, current).tables if t.name == "features")
    place = {name: i for i, name in enumerate(features.columns)}
    return {str(row[0]): str(row[place["verdict"]]) for row in features.rows}
