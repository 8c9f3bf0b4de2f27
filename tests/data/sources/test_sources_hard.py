"""Inputs that break tools like this one, and rates, order, durations."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from sources_builders import BASE, S, events, instants, kinds, noise, only, table

from osler.core.finding import Severity
from osler.data.need import DataError
from osler.data.sources import check_sources, parse_duration, parse_rate
from osler.data.sources.durations import show

ON = {"id": "id", "time": "t", "tolerance": "500ms"}


@pytest.fixture
def rng():
    return np.random.default_rng(3)


@pytest.fixture
def whole(rng):
    return table(np.arange(1000), events(rng, 1000))


def test_an_empty_source_is_not_judged(whole):
    for pair in ([whole, whole.slice(0, 0)], [whole.slice(0, 0), whole], [whole.slice(0, 0)] * 2):
        report = check_sources(pair, **ON)
        assert report.findings == [] and "has no rows" in report.not_checked[0].why


def test_one_row(whole):
    assert kinds(check_sources([whole.slice(0, 1), whole.slice(0, 1)], **ON)) == []
    assert kinds(check_sources([whole, whole.slice(0, 1)], **ON)) == ["missing"]


def test_ids_or_times_that_are_all_null(whole):
    lost = pa.table({"id": pa.nulls(1000, pa.int64()), "t": whole["t"]})
    report = check_sources([whole, lost], **ON)
    assert kinds(report) == ["null-ids"] and any("no row with an id" in entry.why for entry in report.not_checked)
    report = check_sources([whole, pa.table({"id": whole["id"], "t": pa.nulls(1000)})], **ON)
    assert kinds(report) == ["null-times"]
    assert kinds(check_sources([whole, pa.table({"id": pa.nulls(1000), "t": pa.nulls(1000)})], **ON)) == [
        "null-ids",
        "null-times",
    ]


def test_some_nulls_and_nan(whole, rng):
    some = pl.from_arrow(whole).with_columns(
        pl.when(pl.col("id") % 50 == 0).then(None).otherwise(pl.col("id")).alias("id"),
        pl.when(pl.col("id") % 40 == 1).then(None).otherwise(pl.col("t")).alias("t"),
    )
    assert kinds(check_sources([whole, some], **ON)) == []
    floats = pa.table({"id": np.where(np.arange(1000) % 50 == 0, np.nan, np.arange(1000.0)), "t": whole["t"]})
    assert kinds(check_sources([whole, floats], **ON)) == []


def test_unsorted_rows_are_matched_all_the_same(whole, rng):
    report = check_sources([whole, whole.take(rng.permutation(1000))], **ON)
    assert report.findings == []


def test_a_column_name_that_occurs_twice(whole):
    double = pa.table([whole["id"], whole["t"], whole["t"]], names=["id", "t", "t"])
    assert kinds(check_sources([whole, double], **ON)) == []


@pytest.mark.parametrize("form", ["iso", "space", "text seconds", "seconds", "milliseconds", "float"])
def test_times_in_any_form(whole, form):
    ns = np.asarray(whole["t"].cast(pa.int64())) // 1_000_000 * 1_000_000
    exact = table(np.arange(1000), ns)
    moments = ns.view("datetime64[ns]").astype("datetime64[ms]").astype(str)
    column = {
        "iso": [m + "Z" for m in moments],
        "space": [m.replace("T", " ") + "+00:00" for m in moments],
        "text seconds": [f"{n / 1e9:.3f}" for n in ns],
        "seconds": ns // S,
        "milliseconds": ns // 1_000_000,
        "float": ns / 1e9,
    }[form]
    report = check_sources([exact, pa.table({"id": np.arange(1000), "t": column})], **{**ON, "tolerance": "1s"})
    assert kinds(report) == []


def test_times_far_outside_the_range_are_counted():
    far = pa.array([253_402_300_799] * 30 + [1_700_000_000] * 70, pa.timestamp("s", "UTC"))
    left = pa.table({"id": range(100), "t": pa.array([1_700_000_000] * 100, pa.timestamp("s", "UTC"))})
    found = only(check_sources([left, pa.table({"id": range(100), "t": far})], **ON), "null-times")
    assert found.evidence["outside_range"] == 30


def test_columns_that_cannot_be_a_time_or_an_id(whole):
    with pytest.raises(DataError, match="no time"):
        check_sources([whole, pa.table({"id": [1], "t": ["soon"]})], **ON)
    with pytest.raises(DataError, match="no time"):
        check_sources([whole, pa.table({"id": [1], "t": [True]})], **ON)
    with pytest.raises(DataError, match="cannot be an id"):
        check_sources([whole, pa.table({"id": [[1]], "t": [1]})], **ON)
    with pytest.raises(DataError, match="needs numbers"):
        check_sources(
            [whole.append_column("v", whole["id"]), pa.table({"t": [1], "v": ["x"], "id": [1]})], values="v", **ON
        )


def test_files_of_several_kinds_and_more_than_two(tmp_path, whole, rng):
    pq.write_table(whole, tmp_path / "a.parquet")
    pyarrow.csv.write_csv(whole, tmp_path / "b.csv")
    shifted = table(np.arange(1000), np.asarray(whole["t"].cast(pa.int64())) + 3600 * S)
    report = check_sources([tmp_path / "a.parquet", tmp_path / "b.csv", pl.from_arrow(shifted)], **ON)
    assert kinds(report) == ["zone"]
    assert report.findings[0].evidence["sources"][1] == "polars DataFrame"
    assert len(report.tables[1].rows) == 2


def grid(rng, hertz: float, jitter: float, seconds: int = 600) -> pa.Table:
    t = np.arange(int(seconds * hertz)) / hertz + rng.normal(0, jitter, int(seconds * hertz))
    return pa.table({"t": instants(np.sort(BASE + (t * S).astype(np.int64)))})


def test_rates_that_differ(rng):
    found = only(check_sources([grid(rng, 10, 0.004), grid(rng, 1, 0.02)], time="t"), "rate")
    assert found.evidence["ratio"] == pytest.approx(10, rel=0.03)
    assert "rows of" in found.message


def test_rates_that_agree_up_to_jitter_and_loss(rng):
    right = grid(rng, 10, 0.012)
    right = right.filter(pa.array(rng.random(len(right)) > 0.05))
    assert kinds(check_sources([grid(rng, 10, 0.004), right], time="t")) == []


def test_declared_rates_may_differ_and_are_held_to(rng):
    pair = [grid(rng, 10, 0.004), grid(rng, 1, 0.02)]
    for declared in (["10Hz", "1Hz"], "10Hz,1Hz", {0: "100ms", 1: 1}):
        assert kinds(check_sources(pair, time="t", rates=declared)) == []
    found = only(check_sources(pair, time="t", rates=["10Hz", "2Hz"]), "rate")
    assert found.evidence["declared_s"] == 0.5


def test_rates_of_series_are_taken_within_each(rng):
    device, step = np.repeat(np.arange(30), 60), np.tile(np.arange(60), 30)
    left, right = table(device, BASE + step * 10 * S), table(device, BASE + step * 60 * S)
    assert kinds(check_sources([left, left], id="id", time="t")) == []
    assert kinds(check_sources([left, right], id="id", time="t")) == ["rate"]


def test_gaps_that_only_one_source_has(rng):
    left = grid(rng, 1, 0.01)
    there = np.ones(600, bool)
    there[200:300] = False
    found = only(check_sources([left, left.filter(pa.array(there))], time="t"), "gaps")
    assert found.severity is Severity.INFO and found.evidence["longest_s"] == pytest.approx(101, abs=1)


def test_rows_that_arrive_late(rng):
    seen = events(rng, 2000)
    late = rng.random(2000) < 0.05
    arrived = np.argsort(seen + late * 3600 * S, kind="stable")
    left, right = pa.table({"t": instants(seen)}), pa.table({"t": instants(seen[arrived])})
    found = only(check_sources([left, right], time="t", tolerance="1s"), "out-of-order")
    assert found.severity is Severity.WARNING and found.evidence["count"] == pytest.approx(late.sum(), rel=0.2)
    assert kinds(check_sources([left, right], time="t")) == []
    shuffled = pa.table({"t": instants(rng.permutation(seen))})
    assert kinds(check_sources([left, shuffled], time="t", tolerance="1s")) == []


@pytest.mark.parametrize(
    ("value", "ns"),
    [
        ("500ms", 500_000_000), ("2s", 2 * S), ("1h", 3600 * S), ("1h30m", 5400 * S), ("-5 min", -300 * S), ("PT0.5S", S // 2),
        ("P1DT2H", 93_600 * S), (1.5, 1_500_000_000), (dt.timedelta(days=2, microseconds=3), 2 * 86_400 * S + 3000),
        (np.timedelta64(7, "ms"), 7_000_000), ("3 µs", 3000), (0, 0),
    ],
)  # fmt: skip
def test_durations(value, ns):
    assert parse_duration(value) == ns


@pytest.mark.parametrize(
    "value", ["", "5", "1mo", "5M", "ms", "1 s 2", None, True, float("nan"), float("inf"), "400000 d", []]
)
def test_what_is_no_duration(value):
    with pytest.raises(DataError):
        parse_duration(value)


@pytest.mark.parametrize(
    ("value", "ns"), [("10Hz", S / 10), ("0.5 kHz", 2e6), ("3/min", 20e9), ("100ms", 1e8), (4, S / 4)]
)
def test_rates_as_text(value, ns):
    assert parse_rate(value) == pytest.approx(ns)


@pytest.mark.parametrize("value", ["fast", 0, -1, "0Hz", "-3Hz", "1/0"])
def test_what_is_no_rate(value):
    with pytest.raises(DataError):
        parse_rate(value)


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (5e8, "500 ms"),
        (3600e9, "1 h"),
        (19800e9, "5 h 30 min"),
        (-2.35e9, "-2.35 s"),
        (3 * 86400e9, "3 d"),
        (20, "20 ns"),
    ],
)
def test_durations_for_people(ns, text):
    assert show(ns) == text


def test_clock_estimates_are_unbiased_and_their_intervals_hold(rng):
    from osler.data.sources.estimate import compare_clocks

    held = 0
    for _ in range(40):
        seen = events(rng, 500, 1)
        right = (
            seen
            + int(0.2 * S)
            + ((seen - seen[0]) * 8e-6).astype(np.int64)
            + (rng.standard_t(3, 500) * 0.05 * S).astype(np.int64)
        )
        clocks = compare_clocks(seen, right, 2.576, S)
        held += clocks.drift_low <= 8e-6 <= clocks.drift_high
        assert abs(clocks.offset - 0.2 * S - 8e-6 * clocks.span / 2) < 0.02 * S
    assert held >= 37


def test_noise_is_no_drift(rng):
    seen = events(rng, 1000)
    for spread in (0.05, 0.5, 5.0):
        right = seen + noise(rng, 1000, spread)
        report = check_sources([table(np.arange(1000), seen), table(np.arange(1000), right)], id="id", time="t")
        assert kinds(report) == []
