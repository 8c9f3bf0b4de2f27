"""Sources in memory: every frame and array that users bring, and the bad inputs that crash other tools."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import pyarrow as pa
import pyarrow.dataset as pads
import pytest

from osler.data.need import DataError
from osler.data.tables import Kind, Source, floats, open_source

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
nw = pytest.importorskip("narwhals")


def kinds(source: Source) -> dict[str, Kind]:
    return {column.name: column.kind for column in source.columns}


def test_pandas_kinds() -> None:
    frame = pd.DataFrame(
        {
            "float": [1.5, np.nan],
            "half": np.array([1, 2], np.float16),
            "int": [1, 2],
            "big": np.array([2**64 - 1, 0], np.uint64),
            "Int64": pd.array([1, None], "Int64"),
            "bool": [True, False],
            "boolean": pd.array([True, None], "boolean"),
            "object bool": pd.Series([True, None], dtype=object),
            "text": ["1", "2"],
            "category": pd.Categorical(["a", None]),
            "numbers as category": pd.Categorical([1, 2]),
            "time": pd.to_datetime(["2026-01-01", None]),
            "zone": pd.date_range("2026-01-01", periods=2, tz="Europe/Berlin"),
            "date": [datetime.date(2026, 1, 1), None],
            "delta": pd.to_timedelta([1, 2], "s"),
            "period": pd.period_range("2026-01", periods=2, freq="M"),
            "interval": pd.interval_range(0, 2),
            "decimal": [decimal.Decimal("1.5"), None],
            "list": [[1], [2, 3]],
            "bytes": [b"a", b"b"],
            "nothing": pd.Series([None, None], dtype=object),
            "sparse": pd.arrays.SparseArray([0.0, 1.0]),
            "complex": np.array([1j, 2]),
        }
    )
    source = open_source(frame)
    assert kinds(source) == {
        "float": Kind.NUMBER,
        "half": Kind.NUMBER,
        "int": Kind.INTEGER,
        "big": Kind.INTEGER,
        "Int64": Kind.INTEGER,
        "bool": Kind.BOOLEAN,
        "boolean": Kind.BOOLEAN,
        "object bool": Kind.BOOLEAN,
        "text": Kind.CATEGORY,
        "category": Kind.CATEGORY,
        "numbers as category": Kind.CATEGORY,
        "time": Kind.TIME,
        "zone": Kind.TIME,
        "date": Kind.TIME,
        "delta": Kind.DURATION,
        "period": Kind.TIME,
        "interval": Kind.NESTED,
        "decimal": Kind.NUMBER,
        "list": Kind.NESTED,
        "bytes": Kind.BINARY,
        "nothing": Kind.NULL,
        "sparse": Kind.NUMBER,
        "complex": Kind.NESTED,
    }
    assert source.column("zone").zone == "Europe/Berlin"
    assert source.column("time").zone is None
    assert source.rows == 2
    table = source.table()
    assert table.schema == source.schema
    assert table["float"].null_count == 1  # NaN in numpy-backed pandas is a missing value
    assert table["text"].to_pylist() == ["1", "2"]


def test_pandas_nan_is_null_and_numpy_nan_is_nan() -> None:
    values = np.array([1.0, np.nan, np.inf])
    assert open_source(pd.DataFrame({"x": values})).table()["x"].null_count == 1
    assert open_source({"x": values}).table()["x"].null_count == 0
    assert open_source(pl.DataFrame({"x": values})).table()["x"].null_count == 0


def test_pandas_mixed_objects_become_text_with_a_note() -> None:
    frame = pd.DataFrame({"mixed": pd.Series([1, "a", None, 2.5, np.nan, object()], dtype=object)})
    source = open_source(frame)
    assert source.column("mixed").kind is Kind.CATEGORY
    assert source.table()["mixed"].to_pylist() == ["1", "a", None, "2.5", None, "object"]
    assert "mixed" in source.notes[0] and "read as text" in source.notes[0]


@pytest.mark.parametrize("values", [[b"a", "b"], [1, 2**70], [{"a": 1}, "x"], [[1], 2], [True, "x"], [1 + 2j, None]])
def test_objects_never_crash(values: list[object]) -> None:
    source = open_source(pd.DataFrame({"x": pd.Series(values, dtype=object)}))
    assert source.table().num_rows == 2


def test_integers_among_floats_in_objects_are_numbers() -> None:
    source = open_source(pd.DataFrame({"x": pd.Series([1, 2.5, None], dtype=object)}))
    assert source.column("x").kind is Kind.NUMBER
    np.testing.assert_array_equal(floats(source.table()["x"]), [1, 2.5, np.nan])


def test_duplicate_names_are_numbered_as_in_pandas() -> None:
    frame = pd.DataFrame(np.arange(8.0).reshape(2, 4), columns=["x", "x", "x.1", "x"])
    source = open_source(frame)
    assert source.names == ("x", "x.2", "x.1", "x.3")
    assert source.table(["x.3", "x"]).to_pydict() == {"x.3": [3.0, 7.0], "x": [0.0, 4.0]}
    assert len(source.notes) == 2


def test_odd_labels() -> None:
    frame = pd.DataFrame(np.zeros((1, 3)), columns=pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", "")]))
    assert open_source(frame).names == ("a.1", "a.2", "b.")
    assert open_source(pd.DataFrame({0: [1], None: [2], "__index_level_0__": [3], "": [4]})).names == (
        "0",
        "None",
        "__index_level_0__",
        "",
    )


def test_pandas_index_is_no_column_but_is_named_in_the_error() -> None:
    source = open_source(pd.DataFrame({"x": [1]}, index=pd.Index([5], name="time")))
    assert source.names == ("x",)
    with pytest.raises(DataError, match="index of the frame"):
        source.column("time")


@pytest.mark.parametrize("rows", [0, 1])
def test_few_rows(rows: int) -> None:
    for data in (
        pd.DataFrame({"x": np.zeros(rows), "s": pd.Series(["a"] * rows, dtype="string")}),
        pl.DataFrame({"x": np.zeros(rows), "s": pl.Series(["a"] * rows, dtype=pl.String)}),
        pa.table({"x": np.zeros(rows), "s": pa.array(["a"] * rows, pa.string())}),
        {"x": np.zeros(rows), "s": np.array(["a"] * rows, dtype=str)},
        pl.LazyFrame({"x": np.zeros(rows), "s": pl.Series(["a"] * rows, dtype=pl.String)}),
    ):
        source = open_source(data)
        assert kinds(source) == {"x": Kind.NUMBER, "s": Kind.CATEGORY}
        assert sum(batch.num_rows for batch in source.batches()) == rows
        assert source.table().num_rows == rows


def test_polars_kinds() -> None:
    frame = pl.DataFrame(
        {
            "text": ["x"],
            "category": pl.Series(["x"], dtype=pl.Categorical),
            "enum": pl.Series(["x"], dtype=pl.Enum(["x", "y"])),
            "decimal": pl.Series(["1.5"]).cast(pl.Decimal(10, 2)),
            "huge": pl.Series([1], dtype=pl.Int128),
            "time": pl.Series([1]).cast(pl.Datetime("us", "UTC")),
            "of day": pl.Series([1]).cast(pl.Time),
            "object": pl.Series([object()], dtype=pl.Object),
            "list": [[1]],
            "struct": [{"a": 1}],
            "nothing": [None],
        }
    )
    expected = [Kind.CATEGORY] * 3 + [Kind.NUMBER] * 2 + [Kind.TIME, Kind.DURATION, Kind.CATEGORY]
    expected += [Kind.NESTED] * 2 + [Kind.NULL]
    assert list(kinds(open_source(frame)).values()) == expected
    lazy = open_source(frame.drop("object").lazy())
    assert lazy.rows is None
    assert lazy.table(["text", "huge"]).to_pydict() == {"text": ["x"], "huge": [1.0]}
    assert lazy.table(["text"]).num_rows == 1  # repeatable


def test_polars_batches_in_order_and_bounded() -> None:
    frame = pl.DataFrame({"x": np.arange(1000), "y": np.arange(1000) * 2})
    for data in (frame, frame.lazy(), pl.concat([frame[:300], frame[300:]], rechunk=False)):
        source = open_source(data)
        batches = list(source.batches(["y"], size=64))
        assert max(b.num_rows for b in batches) <= 64
        assert np.array_equal(np.concatenate([b.column(0).to_numpy() for b in batches]), np.arange(1000) * 2)


def test_lazy_frame_that_cannot_be_computed() -> None:
    with pytest.raises(DataError, match="cannot be computed"):
        open_source(pl.LazyFrame({"x": [1]}).select("nope"))


def test_arrow_kinds_and_normal_types() -> None:
    table = pa.table(
        {
            "view": pa.array(["a", None], pa.string_view()),
            "binary view": pa.array([b"a", None], pa.binary_view()),
            "dictionary": pa.array(["a", None]).dictionary_encode(),
            "small dictionary": pa.array(["a", None]).dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string())),
            "runs": pa.RunEndEncodedArray.from_arrays([2], [1.5]),
            "uuid": pa.array([b"0" * 16, None], pa.uuid()),
            "time of day": pa.array([1, None], pa.time32("s")),
            "month day": pa.array([(1, 2, 3), None], pa.month_day_nano_interval()),
        }
    )
    source = open_source(table)
    types = {column.name: column.type for column in source.columns}
    assert types["view"] == pa.large_string()
    assert types["binary view"] == pa.large_binary()
    assert types["small dictionary"] == types["dictionary"] == pa.dictionary(pa.int32(), pa.string())
    assert types["runs"] == pa.float64()
    assert list(kinds(source).values()) == [
        Kind.CATEGORY,
        Kind.BINARY,
        Kind.CATEGORY,
        Kind.CATEGORY,
        Kind.NUMBER,
        Kind.BINARY,
        Kind.DURATION,
        Kind.NESTED,
    ]
    out = source.table()
    assert out["runs"].to_pylist() == [1.5, 1.5]
    assert out["small dictionary"].to_pylist() == ["a", None]
    assert out["view"].to_pylist() == ["a", None]


def test_arrow_streams_datasets_arrays() -> None:
    table = pa.table({"x": [1, 2, 3], "s": ["a", "b", "c"]})
    stream = open_source(table.to_reader(2))
    assert not stream.repeatable and stream.rows is None
    assert stream.table(["s"]).to_pydict() == {"s": ["a", "b", "c"]}
    with pytest.raises(DataError, match="read once only"):
        stream.table()
    dataset = open_source(pads.dataset(table))
    assert dataset.table(["s", "x"]).column_names == ["s", "x"]
    assert open_source(table.to_batches()[0]).table() == table
    assert open_source(table.to_batches()).table() == table
    assert open_source(table["x"]).names == ("value",)


def test_narwhals_frames() -> None:
    for native in (pd.DataFrame({"x": [1]}), pl.DataFrame({"x": [1]}), pl.LazyFrame({"x": [1]}), pa.table({"x": [1]})):
        assert open_source(nw.from_native(native)).table().to_pydict() == {"x": [1]}
    assert open_source(nw.from_native(pl.Series("s", [1]), series_only=True)).names == ("s",)


def test_anything_with_an_arrow_stream() -> None:
    class Foreign:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return pa.table({"x": [1, 2]}).__arrow_c_stream__(requested_schema)

    assert open_source(Foreign()).table().to_pydict() == {"x": [1, 2]}


def test_series() -> None:
    assert open_source(pd.Series([1.0], name="age")).names == ("age",)
    assert open_source(pd.Series([1.0])).names == ("value",)
    assert open_source(pl.Series([1.0])).names == ("value",)


def test_numpy() -> None:
    assert open_source(np.zeros(3)).names == ("value",)
    two = open_source(np.arange(6).reshape(3, 2))
    assert two.names == ("0", "1") and two.rows == 3
    assert two.table(["1"]).to_pydict() == {"1": [1, 3, 5]}
    fields = np.array([(1, 2.5, "a")], dtype=[("i", "<i4"), ("f", ">f8"), ("s", "U3")])
    assert open_source(fields).table().to_pydict() == {"i": [1], "f": [2.5], "s": ["a"]}
    masked = np.ma.masked_array([1.0, 2.0], mask=[True, False])
    assert open_source({"x": masked}).table().to_pydict() == {"x": [None, 2.0]}
    assert kinds(open_source(np.array([1, "a", None], dtype=object))) == {"value": Kind.CATEGORY}


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (np.array(["2020", "NaT"], "M8[M]"), Kind.TIME),
        (np.array(["2020-01-01T00"], "M8[h]"), Kind.TIME),
        (np.array([1, 2], "m8[D]"), Kind.DURATION),
        (np.array([1.0], np.longdouble), Kind.NUMBER),
        (np.array([1.0], ">f4"), Kind.NUMBER),
        (np.array([1j]), Kind.NESTED),
        (np.array([True]), Kind.BOOLEAN),
        (np.array(["a"]), Kind.CATEGORY),
        (np.array([b"a"]), Kind.BINARY),
    ],
)
def test_numpy_dtypes(values: np.ndarray, kind: Kind) -> None:
    source = open_source(values)
    assert source.columns[0].kind is kind
    assert source.table().num_rows == len(values)


@pytest.mark.parametrize("shape", [(), (2, 3, 4)])
def test_numpy_dimensions(shape: tuple[int, ...]) -> None:
    with pytest.raises(DataError, match="dimensions"):
        open_source(np.zeros(shape))


def test_plain_python() -> None:
    assert open_source([{"a": 1}, {"b": "x"}]).table().to_pydict() == {"a": [1, None], "b": [None, "x"]}
    assert open_source({"a": [1, 2], "b": pd.Series([1.0, 2.0])}).table().to_pydict() == {"a": [1, 2], "b": [1.0, 2.0]}
    assert open_source([[1, 2], [3, 4]]).names == ("0", "1")
    assert open_source([1.5, 2.5]).table().to_pydict() == {"value": [1.5, 2.5]}
    assert open_source({"e": np.zeros((3, 2))}).column("e").kind is Kind.NESTED


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"a": [1, 2], "b": [1]}, "'a' has 2 rows, 'b' 1"),
        ({"a": np.zeros(2), "b": np.zeros(1)}, "'a' has 2 rows, 'b' 1"),
        ({"a": 1}, "'a' is one int"),
        ({"a": "text"}, "'a' is one str"),
        ({}, "no columns"),
        ([], "empty"),
        ([[1, 2], [3]], "not equally long"),
        (None, "None"),
        (b"x", "bytes"),
        (3, "is a int"),
        (object(), "is a object"),
        ("", "path of the table is empty"),
        (pa.table({}), "no columns"),
    ],
)
def test_what_is_no_table(data: object, words: str) -> None:
    with pytest.raises(DataError, match=words) as caught:
        open_source(data)
    assert "\n" not in str(caught.value)


def test_names_and_columns() -> None:
    source = open_source({"Age": [1], "income": [2]}, name="today")
    assert source.name == "today" and "Age" in source and "age" not in source
    with pytest.raises(DataError, match="today has no column 'age'; did you mean 'Age'"):
        source.column("age")
    with pytest.raises(DataError, match="it has 'Age', 'income'"):
        source.column("zzzz")
    with pytest.raises(DataError, match="asked for twice"):
        list(source.batches(["Age", "Age"]))
    with pytest.raises(DataError, match="no column"):
        source.batches(["nope"])  # at once, not at the first batch
    assert list(source.batches([])) == []
    assert open_source(source) is source


def test_batches_share_memory_with_the_frame() -> None:
    values = np.arange(1000.0)
    batch = next(open_source({"x": values}).batches(size=100))
    assert np.shares_memory(floats(batch.column(0)), values)
