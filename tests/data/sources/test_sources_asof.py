"""The as-of join that asserts alignment."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from sources_builders import BASE, S, instants

from osler.data.need import DataError
from osler.data.sources import AlignmentError, asof_join

AT = BASE + np.arange(10) * S
LEFT = pa.table({"t": instants(AT + S // 2), "g": ["a", "b"] * 5, "x": range(10)})
RIGHT = pa.table({"t": instants(AT), "g": ["a", "b"] * 5, "x": range(10), "y": np.arange(10.0)})


def refused(reason: str, row: int | None, side: str, left=LEFT, right=RIGHT, **options) -> str:
    with pytest.raises(AlignmentError) as caught:
        asof_join(left, right, **{"on": "t", **options})
    assert (caught.value.reason, caught.value.row, caught.value.side) == (reason, row, side)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("library", ["pyarrow", "polars"])
def test_the_same_library_comes_out(library):
    left, right = (LEFT, RIGHT) if library == "pyarrow" else (pl.from_arrow(LEFT), pl.from_arrow(RIGHT))
    aligned = asof_join(left, right, on="t", by="g", tolerance="1s", require=1.0, keep_time="seen")
    assert type(aligned.table) is type(left)
    table = aligned.table if library == "pyarrow" else aligned.table.to_arrow()
    assert table.column_names == ["t", "g", "x", "seen", "x_right", "y"]
    assert table["y"].to_pylist() == list(range(10))
    assert aligned.matched == 1 and set(aligned.lags) == {S // 2}


def test_pandas_agrees_with_merge_asof():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    left = pd.DataFrame({"t": pd.to_datetime(np.sort(rng.integers(0, 10**12, 500))), "g": rng.integers(0, 5, 500)})
    right = pd.DataFrame(
        {"t": pd.to_datetime(np.sort(rng.choice(10**12, 400, replace=False))), "g": rng.integers(0, 5, 400)}
    )
    right["v"] = rng.random(400)
    left.index = left.index + 7
    ours = asof_join(left, right, on="t", by="g", tolerance="5s").table
    theirs = pd.merge_asof(left, right, on="t", by="g", tolerance=pd.Timedelta("5s"))
    pd.testing.assert_frame_equal(ours, theirs, check_dtype=False)


def test_agrees_with_a_loop():
    rng = np.random.default_rng(1)
    a, b = np.sort(rng.integers(0, 3000, 200)), np.sort(rng.choice(3000, 150, replace=False))
    ga, gb = rng.integers(0, 3, 200), rng.integers(0, 3, 150)
    left, right = pa.table({"n": a, "g": ga}), pa.table({"n": b, "g": gb, "v": b})
    for exact in (True, False):
        rows = asof_join(left, right, on="n", by="g", tolerance=40, allow_exact_matches=exact).right_rows
        for i in range(200):
            fits = [
                j
                for j in range(150)
                if gb[j] == ga[i] and a[i] - 40 <= b[j] and (b[j] <= a[i] if exact else b[j] < a[i])
            ]
            assert rows[i] == (max(fits) if fits else -1)


def test_nothing_from_the_future():
    assert "future" in refused("future", None, "both", direction="forward")
    assert "500 ms later" in refused(
        "future", 0, "left", direction="nearest", left=LEFT, right=RIGHT.set_column(0, "t", instants(AT + S))
    )
    assert asof_join(LEFT, RIGHT, on="t", direction="forward", allow_future=True).right_rows.tolist() == [
        *range(1, 10),
        -1,
    ]


def test_what_must_hold_before():
    refused("unsorted", 1, "right", right=RIGHT.take([1, 0, *range(2, 10)]))
    refused("unsorted", 4, "left", left=LEFT.take([0, 1, 2, 5, 4, 6]))
    refused("duplicate", 10, "right", right=pa.concat_tables([RIGHT, RIGHT.slice(9)]))
    refused("duplicate", 10, "right", right=pa.concat_tables([RIGHT, RIGHT.slice(9)]), by="g")
    refused(
        "null",
        3,
        "right",
        right=RIGHT.set_column(
            0,
            "t",
            pa.array([None if i == 3 else v for i, v in enumerate(RIGHT["t"].to_pylist())], pa.timestamp("ns", "UTC")),
        ),
    )
    refused("zone", 0, "right", right=RIGHT.set_column(0, "t", instants(AT, zone=None)))
    refused("unit", 0, "both", right=RIGHT.set_column(0, "t", pa.array(AT // S)))
    refused("type", None, "both", by="x=g")


def test_another_zone_is_the_same_instant():
    berlin = RIGHT.set_column(0, "t", RIGHT["t"].cast(pa.timestamp("us", "Europe/Berlin")))
    assert asof_join(LEFT, berlin, on="t").right_rows.tolist() == list(range(10))


def test_order_may_be_made_and_twins_dropped():
    mixed = [3, 1, 2, 0]
    assert asof_join(LEFT.take(mixed), RIGHT, on="t", sort=True).right_rows.tolist() == mixed
    twice = pa.concat_tables([RIGHT, RIGHT.slice(9)])
    assert asof_join(LEFT, twice, on="t", duplicates="last").right_rows[-1] == 10
    by_group = RIGHT.take([0, 2, 4, 6, 8, 1, 3, 5, 7, 9])
    assert asof_join(LEFT, by_group, on="t", by="g").matched == 1


def test_too_few_matches():
    text = refused("unmatched", 5, "left", right=RIGHT.slice(0, 5), tolerance="1s", require=0.9)
    assert "50.0%" in text and "90.0%" in text
    report = asof_join(LEFT, RIGHT.slice(0, 5), on="t", tolerance="1s").report
    assert report.findings[0].evidence["kind"] == "unmatched" and report.findings[0].evidence["first_rows"] == [5]
    assert asof_join(LEFT, RIGHT, on="t").report.findings == []
    strange = LEFT.set_column(1, "g", pa.array(["z"] * 10))
    assert "a group that the right side lacks" in refused("unmatched", 0, "left", left=strange, by="g", require=0.5)


def test_empty_sides():
    assert asof_join(LEFT.slice(0, 0), RIGHT, on="t").matched == 1
    assert asof_join(LEFT, RIGHT.slice(0, 0), on="t").table["y"].null_count == 10


def test_missing_groups_never_match():
    left = LEFT.set_column(1, "g", pa.array([None] * 10, pa.string()))
    right = RIGHT.set_column(1, "g", pa.array([None] * 10, pa.string()))
    assert asof_join(left, right, on="t", by="g").matched == 0


def test_epochs_and_plain_numbers():
    left, right = pa.table({"n": AT // S + 1}), pa.table({"n": AT // S, "v": range(10)})
    assert asof_join(left, right, on="n", tolerance="1s", allow_exact_matches=False).matched == 1
    left, right = pa.table({"n": [5, 9]}), pa.table({"m": [1, 8], "v": [1, 2]})
    assert asof_join(left, right, on="n=m", tolerance=2).right_rows.tolist() == [-1, 1]
    with pytest.raises(DataError, match="plain numbers"):
        asof_join(left, right, on="n=m", tolerance="2s")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"direction": "up"}, "direction"), ({"duplicates": "first"}, "duplicates"), ({"require": 2}, "require"),
        ({"tolerance": "-1s"}, "negative"), ({"tolerance": dt.datetime.now()}, "no length of time"), ({"on": "q"}, "'q'"),
        ({"suffix": ""}, "two columns"), ({"keep_time": "x"}, "two columns"),
    ],
)  # fmt: skip
def test_bad_arguments(options, words):
    with pytest.raises(DataError, match=words):
        asof_join(LEFT, RIGHT, **{"on": "t", **options})


def test_text_is_no_time():
    with pytest.raises(DataError, match="holds text"):
        asof_join(pa.table({"t": ["2024-01-01"]}), RIGHT, on="t")
