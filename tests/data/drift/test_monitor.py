"""`DriftMonitor`: windows, runs, lateness, what is said of what was not judged."""

from __future__ import annotations

import dataclasses
import datetime as dt
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from osler.core.settings import Settings
from osler.data.drift.monitor import DriftMonitor
from osler.data.drift.profile import build_profile
from osler.data.drift.verdicts import Resample
from osler.data.need import DataError

HOUR = 3600 * 10**9
START = 1_767_225_600 * 10**9  # 2026-01-01


def settings(**monitor: Any) -> Settings:
    tree = Settings()
    return dataclasses.replace(tree, monitor=dataclasses.replace(tree.monitor, **monitor))


def rows(seed: int, n: int, moved: float = 0.0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {"a": rng.standard_normal(n) + moved, "b": rng.random(n), "c": rng.choice(["x", "y", "z"], n)}


REFERENCE = rows(0, 5000)


def test_three_windows_in_a_row_and_once_a_run() -> None:
    events: list[Resample] = []
    monitor = DriftMonitor(REFERENCE, window=500, on_resample=events.append)
    assert [v.drifted for v in monitor.update(rows(1, 1000))] == [(), ()]
    verdicts = monitor.update(rows(2, 2500, 1.0))
    assert [v.runs.get("a", 0) for v in verdicts] == [1, 2, 3, 4, 5]
    assert [v.resample for v in verdicts] == [(), (), ("a",), (), ()]
    assert len(events) == 1
    assert events[0].columns == ("a",)
    assert monitor.resample
    assert monitor.exit_code == 1
    monitor.update(rows(3, 500))  # a good window ends the run
    monitor.update(rows(4, 1500, 1.0))
    assert len(events) == 2
    (found,) = monitor.report().findings
    assert found.rule == "feature-drift"
    assert found.where.column == "a"
    assert found.count == 2
    assert (found.first_step, found.last_step) == (4, 10)


def test_two_windows_are_not_three_and_columns_do_not_share_a_run() -> None:
    monitor = DriftMonitor(REFERENCE, window=500)
    monitor.update(rows(1, 1000, 1.0))
    other = rows(2, 500)
    other["b"] = other["b"] + 1
    monitor.update(other)
    assert not monitor.resample
    assert monitor.exit_code == 0
    assert monitor.report().findings == []


@pytest.mark.parametrize("parts", [1, 7, 300])
def test_batches_of_any_size_give_the_same_windows(parts: int) -> None:
    data = rows(5, 3000, 0.3)
    whole = DriftMonitor(REFERENCE, window=1000, every=250)
    expected = whole.update(data)
    monitor = DriftMonitor(REFERENCE, window=1000, every=250)
    got = [
        verdict
        for at in np.array_split(np.arange(3000), parts)
        for verdict in monitor.update({name: values[at] for name, values in data.items()})
    ]
    assert len(expected) == 9
    assert got == expected
    assert [g.effects() for g in got] == [e.effects() for e in expected]


def test_a_sliding_window_equals_one_that_is_counted_afresh() -> None:
    data = rows(6, 4000, 0.2)
    monitor = DriftMonitor(REFERENCE, window=1000, every=100)
    for verdict in monitor.update(data):
        fresh = DriftMonitor(monitor.reference, window=1000)
        (alone,) = fresh.update({n: v[verdict.start : verdict.end] for n, v in data.items()})
        assert alone.effects() == verdict.effects()
        assert alone.drifted == verdict.drifted
    assert len(monitor.panes) <= 10


def test_hours_of_event_time_with_rows_out_of_order() -> None:
    rng = np.random.default_rng(0)
    n = 4000
    at = START + np.sort(rng.integers(0, 8 * HOUR, n))
    data = rows(9, n)
    data["a"][at >= START + 5 * HOUR] += 1.5
    jumbled = np.argsort(at + rng.integers(0, HOUR // 20, n))  # up to three minutes late
    monitor = DriftMonitor(REFERENCE, window="1h", columns=["a"])
    got = []
    for part in np.array_split(jumbled, 50):
        got += monitor.update({k: v[part] for k, v in data.items()}, time=at[part])
    got += monitor.close()
    assert [v.start for v in got] == [START + i * HOUR for i in range(8)]
    assert sum(v.rows for v in got) == n
    assert [v.drifted for v in got] == [()] * 5 + [("a",)] * 2 + [()]
    assert got[6].span == "2026-01-01T06:00:00Z to 2026-01-01T07:00:00Z"
    assert not got[7].judged  # the stream ends some seconds before the hour does
    assert monitor.clock.late == 0  # type: ignore[union-attr]


def test_late_rows_are_counted_and_left_out() -> None:
    monitor = DriftMonitor(REFERENCE, window="1h")
    monitor.update(rows(1, 200), time=np.full(200, START))
    assert monitor.update(rows(2, 200), time=np.full(200, START + HOUR + HOUR // 20)) == []  # within the lateness
    monitor.update(rows(3, 10), time=np.full(10, START + 1))
    (first,) = monitor.update(rows(4, 200), time=np.full(200, START + 2 * HOUR))
    assert first.rows == 210
    monitor.update(rows(5, 30), time=np.full(30, START + 2))
    assert any(n.what == "30 rows" and "closed" in n.why for n in monitor.report().not_checked)


def test_one_wrong_clock_closes_nothing() -> None:
    monitor = DriftMonitor(REFERENCE, window="1h")
    at = np.full(300, START)
    at[7] = START + 10**6 * HOUR
    at[8] = np.iinfo(np.int64).min
    assert monitor.update(rows(1, 300), time=at) == []
    assert monitor.update(rows(2, 300), time=START + HOUR - 1) == []
    whys = {n.why for n in monitor.report().not_checked}
    assert "their time lies far ahead of the rest of their batch" in whys
    assert "they have no time" in whys


def test_a_silent_night_is_one_window_that_was_not_judged() -> None:
    monitor = DriftMonitor(REFERENCE, window="1h")
    monitor.update(rows(1, 200, 2.0), time=START)
    monitor.update(rows(2, 200, 2.0), time=START + HOUR)
    got = monitor.update(rows(3, 200, 2.0), time=START + 100_000 * HOUR)
    assert [v.rows for v in got] == [200, 200, 0]
    assert not got[2].judged
    assert "0 rows" in got[2].why
    got = monitor.update(rows(4, 200), time=START + 100_002 * HOUR)
    assert got[0].runs == {"a": 3}  # what was not judged neither lengthens a run nor breaks it
    assert monitor.resample


def test_a_left_over_part_of_a_window_is_said_and_not_judged() -> None:
    monitor = DriftMonitor(REFERENCE, window=1000)
    (full,) = monitor.update(rows(1, 1300))
    (left,) = monitor.close()
    assert full.judged
    assert (left.judged, left.rows, left.start) == (False, 300, 1000)
    assert "ended before" in left.why
    assert any("rows 1000 to 1299" in n.what for n in monitor.report().not_checked)
    assert monitor.close() == []
    (full,) = monitor.update(rows(2, 700))  # the stream may go on
    assert (full.judged, full.rows, full.start) == (True, 1000, 1000)
    assert not any("ended" in n.why for n in monitor.report().not_checked)


def test_small_windows_are_not_judged() -> None:
    monitor = DriftMonitor(REFERENCE, window="1h")
    monitor.update(rows(1, 20, 5.0), time=START)
    (verdict,) = monitor.update(rows(2, 200), time=START + 2 * HOUR)[:1]
    assert not verdict.judged
    assert "20 rows" in verdict.why


def test_what_disjoint_runs_wait_for() -> None:
    data = rows(8, 6000, 1.0)
    overlapping = DriftMonitor(REFERENCE, window=1000, every=100)
    overlapping.update(data)
    disjoint = DriftMonitor(REFERENCE, window=1000, every=100, settings=settings(disjoint=True))
    disjoint.update(data)
    assert overlapping.triggers[0].window.end == 1200
    assert disjoint.triggers[0].window.end == 3000


@pytest.mark.parametrize(
    "make",
    [
        pd.DataFrame,
        pl.DataFrame,
        lambda d: pa.table({k: pa.array(v) for k, v in d.items()}),
        lambda d: [dict(zip(d, values)) for values in zip(*(v.tolist() for v in d.values()))],
    ],
)
def test_frames_of_every_kind(make: Any) -> None:
    monitor = DriftMonitor(make(REFERENCE), window=500)
    (verdict,) = monitor.update(make(rows(1, 500)))
    assert verdict.judged
    assert not verdict.drifted


def test_times_in_a_column_and_of_every_kind() -> None:
    def frame(seed: int, hours: float) -> pd.DataFrame:
        start = pd.Timestamp("2026-01-01 01:00", tz="Europe/Berlin") + pd.Timedelta(hours=hours)
        return pd.DataFrame({"at": pd.date_range(start, periods=200, freq="1s"), **rows(seed, 200)})

    monitor = DriftMonitor(frame(0, 0), window="1h", time="at")
    assert list(monitor.reference.columns) == ["a", "b", "c"]
    monitor.update(frame(1, 0))
    (verdict,) = monitor.update(frame(2, 1.5))
    assert verdict.start == START
    when = dt.datetime(2026, 1, 1, 3, tzinfo=dt.timezone.utc)
    for time in (
        when,
        when.replace(tzinfo=None),
        np.datetime64("2026-01-01T03:00"),
        "2026-01-01T03:00:00",
        [when] * 50,
    ):
        monitor.update(rows(3, 50), time=time)
    assert monitor.panes[(START + 3 * HOUR) // HOUR].rows == 250
    with pytest.raises(DataError, match="no column 'at'"):
        monitor.update(rows(4, 50))
    with pytest.raises(DataError, match="3 entries"):
        monitor.update(rows(4, 50), time=[when] * 3)
    with pytest.raises(DataError, match="no times"):
        monitor.update(rows(4, 50), time="yesterday")


def test_a_column_that_is_gone_or_of_another_kind_counts_as_missing() -> None:
    monitor = DriftMonitor(REFERENCE, window=500)
    gone = rows(1, 500)
    del gone["b"]
    gone["a"] = np.array(["text"] * 500)
    gone["new"] = np.arange(500)
    (verdict,) = monitor.update(gone)
    assert set(verdict.drifted) == {"a", "b"}
    assert monitor.unusable == {"a": 500, "b": 500}
    with pytest.raises(DataError, match="none of the columns"):
        monitor.update({"other": np.arange(10)})
    assert monitor.update({name: values[:0] for name, values in REFERENCE.items()}) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"window": "an hour"}, "no length"),
        ({"window": 0}, "at least 1"),
        ({"window": True}, "bool"),
        ({"window": 1000, "every": 300}, "does not divide"),
        ({"window": "1h", "every": 100}, "both be rows or both be times"),
        ({"window": dt.timedelta(0)}, "longer than 0"),
        ({"window": 1000, "time": "a"}, "of no use"),
        ({"window": 50}, "never judged"),
        ({"window": 1000, "columns": ["aa"]}, "no column 'aa'"),
        ({"window": 1000, "webhook": "ftp://host/x"}, "http"),
        ({"window": 1000, "webhook": "not a url"}, "http"),
    ],
)
def test_bad_arguments_are_one_line(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        DriftMonitor(REFERENCE, **arguments)
    assert "\n" not in str(caught.value)


def test_lengths_of_time() -> None:
    for window in ("90min", "1.5h", dt.timedelta(minutes=90), np.timedelta64(5400, "s")):
        assert DriftMonitor(REFERENCE, window=window).length == 3 * HOUR // 2
    assert DriftMonitor(REFERENCE, window="500", every=" 250 ").step == 250


def test_windows_of_time_need_times() -> None:
    with pytest.raises(DataError, match="need times"):
        DriftMonitor(REFERENCE, window="1h").update(rows(1, 10))


def test_a_callback_that_raises_does_not_reach_the_service() -> None:
    def broken(event: Resample) -> None:
        raise RuntimeError("out of order")

    monitor = DriftMonitor(REFERENCE, window=500, on_resample=broken)
    monitor.update(rows(1, 2000, 2.0))
    assert monitor.callback_errors == 1
    assert len(monitor.triggers) == 1


def test_a_profile_in_place_of_the_data_and_chosen_columns(tmp_path: Path) -> None:
    profile = build_profile(REFERENCE)
    profile.save(tmp_path / "reference.profile")
    assert list(DriftMonitor(tmp_path / "reference.profile", window=500).reference.columns) == ["a", "b", "c"]
    monitor = DriftMonitor(profile, window=500, columns=["a"])
    moved = rows(1, 1500)
    moved["b"] = moved["b"] + 5
    assert all(v.drifted == () for v in monitor.update(moved))
    with pytest.raises(DataError, match="needs rows"):
        DriftMonitor(profile, window=500, settings=settings(sequential=True))


def test_the_sequential_test_alarms_and_is_told_once() -> None:
    events: list[Resample] = []
    monitor = DriftMonitor(
        REFERENCE, window=1000, settings=settings(sequential=True, runs=1000), on_resample=events.append
    )
    monitor.update(rows(1, 5000))
    assert events == []
    moved = rows(2, 4000, 0.4)
    moved["c"] = np.random.default_rng(0).choice(["x", "y", "new"], 4000)
    monitor.update(moved)
    assert {c for e in events for c in e.columns} == {"a", "c"}
    assert sum(len(e.columns) for e in events) == 2
    assert {e.reason for e in events} == {"sequential"}
    found = {f.where.column: f for f in monitor.report().findings}
    assert found["a"].evidence["alpha"] == 0.01
    assert "e-value" in found["a"].message


def test_threads_lose_no_row() -> None:
    monitor = DriftMonitor(REFERENCE, window=1000)
    work = [threading.Thread(target=lambda i=i: [monitor.update(rows(i, 33)) for _ in range(10)]) for i in range(4)]
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()
    assert monitor.rows == 4 * 10 * 33
    assert monitor.clock.seen == monitor.rows  # type: ignore[union-attr]


def test_the_report_has_windows_and_a_heat_map_and_no_values() -> None:
    monitor = DriftMonitor(REFERENCE, window=500)
    assert monitor.report().not_checked[0].what == "feature-drift"
    odd = rows(1, 2000, 2.0)
    odd["c"][:] = "secret"
    monitor.update(odd)
    report = monitor.report()
    assert len(report.tables[0].rows) == 4
    assert report.series[0].rows == ["a", "b", "c"]
    assert len(report.series[0].values) == 4
    assert "secret" not in str(report.to_dict({}))
