"""Order in time, and evaluation after training."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from osler.core.finding import Finding, Severity
from osler.core.report import Report
from osler.data.need import DataError
from osler.data.splits import check_splits

HOUR = np.timedelta64(1, "h")
START = np.datetime64("2024-01-01", "ns")
RNG = np.random.default_rng(0)


def table(times: Any, **more: Any) -> pa.Table:
    return pa.table({"x": RNG.normal(size=len(times)), "time": times, **more})


def findings(report: Report, rule: str) -> list[Finding]:
    return [f for f in report.findings if f.rule == rule]


def order(times: Any, **more: Any) -> list[Finding]:
    """time-not-monotonic in training, with a small evaluation long after it."""
    n = len(times)
    later = {k: np.resize(np.asarray(v), 5) for k, v in more.items()}
    end = np.datetime64("2030-01-01", "ns") + np.arange(5) * HOUR
    report = check_splits(
        table(times, **more), table(end, **later), time="time", group=tuple(more), near=False, columns=["x"]
    )
    assert report.subject["rows"] == {"train": n, "eval": 5}
    return [f for f in findings(report, "time-not-monotonic") if f.evidence.get("side") == "training"]


def test_ascending_hours_are_fine() -> None:
    assert order(START + np.arange(500) * HOUR) == []


def test_one_step_back_in_a_regular_series() -> None:
    times = START + np.arange(500) * HOUR
    times = np.concatenate([times[250:], times[:250]])
    (finding,) = order(times)
    assert finding.severity is Severity.WARNING
    assert finding.message.startswith("time goes back once in training, by up to 20.8 days, first at row 250")
    assert finding.evidence["rows"] == [250]


def test_the_end_of_daylight_saving_time() -> None:
    zone = "Europe/Berlin"
    utc = np.datetime64("2024-10-20", "ns") + np.arange(24 * 14) * HOUR
    local = pa.array(utc, pa.timestamp("ns", "UTC")).cast(pa.timestamp("ns", zone))
    assert order(local) == []
    (finding,) = order(pc.local_timestamp(local))
    assert "the hour that the end of daylight saving time repeats" in finding.message
    quarters = np.datetime64("2024-10-20", "ns") + np.arange(24 * 14 * 4) * np.timedelta64(15, "m")
    local = pa.array(quarters, pa.timestamp("ns", "UTC")).cast(pa.timestamp("ns", zone))
    (finding,) = order(pc.local_timestamp(local))
    assert "goes back once in training, by an hour, where daylight saving time ends" in finding.message
    assert finding.evidence["daylight_saving"] is True


def test_several_series_side_by_side_are_fine_with_their_group() -> None:
    one = START + np.arange(200) * HOUR
    stacked, device = np.concatenate([one, one, one]), np.repeat(["a", "b", "c"], 200)
    woven, device_woven = np.repeat(one, 3), np.tile(["a", "b", "c"], 200)
    assert order(stacked, device=device) == []
    assert order(woven, device=device_woven) == []
    stacked[30], stacked[31] = stacked[31], stacked[30]
    (finding,) = order(stacked, device=device)
    assert finding.evidence["steps_back"] == 1


def test_woven_series_without_group_are_not_judged() -> None:
    times = np.repeat(START + np.arange(200) * HOUR, 4)
    report = check_splits(table(times), table(times[-1:] + HOUR), time="time")
    assert not findings(report, "time-not-monotonic")
    assert any("name the column that tells them apart" in n.why for n in report.not_checked)


def test_no_order_at_all_and_newest_first_are_information() -> None:
    times = START + np.arange(300) * HOUR
    for values, words in ((RNG.permutation(times), "in no order"), (times[::-1], "from the newest row to the oldest")):
        (finding,) = order(values)
        assert finding.severity is Severity.INFO
        assert words in finding.message


def test_a_log_a_little_out_of_order_is_information() -> None:
    times = START + np.cumsum(RNG.exponential(5e9, 2_000)).astype("timedelta64[ns]")
    times[100:2_000:300] -= np.timedelta64(8, "s")
    assert [f.severity for f in order(times)] == [Severity.INFO]


def test_repeats_in_a_regular_series() -> None:
    times = START + np.arange(500) * HOUR
    times[100] = times[99]
    (finding,) = order(times)
    assert finding.severity is Severity.WARNING
    assert "1 row of training has the same time as the row before" in finding.message


def test_repeats_in_irregular_events_are_fine() -> None:
    assert order(START + np.sort(RNG.integers(0, 5_000, 1_000)).astype("timedelta64[s]")) == []


def test_seconds_beside_milliseconds() -> None:
    seconds = 1_700_000_000 + np.arange(400) * 3600
    mixed = seconds.copy()
    mixed[300:320] *= 1_000
    report = check_splits(table(mixed), table(seconds[-1] + 3600 * np.arange(1, 9)), time="time")
    (finding,) = [f for f in findings(report, "time-not-monotonic") if f.severity is Severity.ERROR]
    assert "mixes units: 5.0 % of the times count milliseconds" in finding.message
    report = check_splits(table(seconds), table((seconds[-1] + 3600 * np.arange(1, 9)) * 1_000), time="time")
    assert any("counts seconds since 1970 in training and milliseconds" in f.message for f in report.findings)
    assert any("counted in milliseconds and in seconds" in n.why for n in report.not_checked)


def test_zero_for_no_time() -> None:
    times = START + np.arange(300) * HOUR
    times[40:44] = np.datetime64(0, "ns")
    assert any("beginning of 1970" in f.message for f in order(times))


def test_zones_mixed_within_text_and_between_sides() -> None:
    text = [f"2024-01-{d:02d}T00:00:00+01:00" for d in range(1, 25)]
    assert order(text) == []
    (finding,) = order([*text[:20], *(t[:-6] for t in text[20:])])
    assert "have no zone and the others have one" in finding.message
    aware = pa.array(START + np.arange(50) * HOUR, pa.timestamp("ns", "UTC"))
    later = START + np.arange(100, 120) * HOUR
    report = check_splits(table(aware), table(later), time="time")
    assert any("have a zone in training only" in f.message for f in report.findings)


def test_summer_offsets_in_text_are_no_mixed_zones() -> None:
    text = ["2024-10-27T01:30:00+02:00", "2024-10-27T02:30:00+02:00", "2024-10-27T02:30:00+01:00"]
    assert order(text) == []


def test_missing_times_are_said() -> None:
    times = pa.array([None if i % 10 == 0 else i for i in range(100)], pa.int64())
    report = check_splits(table(times), table(np.arange(200, 220)), time="time")
    assert not report.findings
    assert any("10 rows of training have no time" in n.why for n in report.not_checked)


@pytest.mark.parametrize("kind", ["timestamp", "date", "number", "text"])
def test_evaluation_after_training_is_fine_in_every_form(kind: str) -> None:
    days = np.datetime64("2024-01-01", "D") + np.arange(100)
    values: Any = {
        "timestamp": days.astype("datetime64[ns]"),
        "date": pa.array(days),
        "number": np.arange(100.0),
        "text": [str(d) for d in days],
    }[kind]
    cut = pa.array(values) if not isinstance(values, pa.Array) else values
    report = check_splits(table(cut[:80]), table(cut[80:]), time="time")
    assert not report.findings
    assert [s.rows for s in report.series] == [["train", "evaluation"]]


def test_rows_after_the_start_of_evaluation() -> None:
    times = START + np.arange(1_000) * HOUR
    report = check_splits(table(times[:820]), table(times[800:]), time="time")
    (finding,) = findings(report, "split-time-overlap")
    assert finding.severity is Severity.ERROR
    assert finding.message == (
        "20 training rows (2.4 %) lie at or after the start of evaluation in time, first at row 800; 20 evaluation rows of "
        "200 (10.0 %) are no later than training."
    )


def test_a_shared_border_is_information() -> None:
    times = np.arange(5_000)
    report = check_splits(table(times[:4_001]), table(times[4_000:]), time="time")
    assert [f.severity for f in findings(report, "split-time-overlap")] == [Severity.INFO]


def test_a_shuffled_split_is_recognised() -> None:
    times = RNG.permutation(START + np.arange(1_000) * HOUR)
    (finding,) = findings(check_splits(table(times[:800]), table(times[800:]), time="time"), "split-time-overlap")
    assert finding.severity is Severity.ERROR
    assert finding.message.startswith("The split is shuffled over time")
    assert finding.evidence["shuffled"] is True


def test_gap() -> None:
    times = START + np.arange(1_000) * HOUR
    train, fresh = table(times[:800]), table(times[810:])
    for fine in ("11h", datetime.timedelta(hours=11), np.timedelta64(660, "m")):
        assert not check_splits(train, fresh, time="time", gap=fine).findings
    (finding,) = check_splits(train, fresh, time="time", gap="1d").findings
    assert finding.message == "13 training rows lie closer than 1 day to evaluation in time, first at row 787."


def test_training_after_evaluation_with_an_embargo() -> None:
    times = START + np.arange(1_000) * HOUR
    middle = table(times[400:500])
    around = table(np.concatenate([times[:400], times[520:]]))
    assert findings(check_splits(around, middle, time="time"), "split-time-overlap")
    assert not check_splits(around, middle, time="time", embargo="20h").findings
    (finding,) = check_splits(around, middle, time="time", embargo="1d").findings
    assert finding.evidence["train_rows_overlapping"] == 3


def test_each_group_has_its_own_time() -> None:
    a, b = START + np.arange(100) * HOUR, START + np.arange(500, 600) * HOUR
    train = table(np.concatenate([a[:80], b[:80]]), who=["a"] * 80 + ["b"] * 80)
    fresh = table(np.concatenate([a[80:], b[80:]]), who=["a"] * 20 + ["b"] * 20)
    report = check_splits(train, fresh, time="time", group="who")
    assert not findings(report, "split-time-overlap")
    # groups recur in a split by time: worth knowing, no fault
    assert [f.severity for f in findings(report, "split-group-overlap")] == [Severity.INFO]
    assert findings(check_splits(train, fresh, time="time"), "split-time-overlap")


def test_different_groups_at_the_same_time_are_fine() -> None:
    times = START + np.arange(100) * HOUR
    train, fresh = table(times, who=["a"] * 100), table(times, who=["b"] * 100)
    assert not check_splits(train, fresh, time="time", group="who").findings


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"gap": "1d"}, "gap and embargo need time"),
        ({"time": "time", "gap": "soon"}, "gap 'soon' is no duration"),
        ({"time": "time", "gap": "5 parsecs"}, "has no known unit"),
        ({"time": "time", "gap": 5}, "gap 5 has no unit"),
        ({"time": "time", "gap": datetime.timedelta(days=-1)}, "must not be negative"),
        ({"time": "time", "embargo": [1]}, "embargo must be a duration"),
        ({"time": "flag"}, "is boolean and holds no times"),
        ({"time": "word"}, "not every value is an ISO 8601 time"),
    ],
)
def test_arguments_that_make_no_sense(arguments: dict[str, Any], line: str) -> None:
    times = START + np.arange(60) * HOUR
    more = {"flag": [True, False] * 30, "word": ["noon"] * 60}
    with pytest.raises(DataError, match=line):
        check_splits(table(times, **more), table(times + 100 * HOUR, **more), near=False, **arguments)


def test_a_duration_needs_a_unit_in_a_column_of_numbers() -> None:
    train, fresh = table(np.arange(50)), table(np.arange(60, 70))
    with pytest.raises(DataError, match="plain numbers"):
        check_splits(train, fresh, time="time", gap="1d")
    assert not check_splits(train, fresh, time="time", gap=11).findings
    assert check_splits(train, fresh, time="time", gap="12").findings
    seconds = 1_700_000_000 + np.arange(100) * 60
    report = check_splits(table(seconds[:50]), table(seconds[60:]), time="time", gap="1h")
    assert "closer than 1 hour" in report.findings[0].message


def test_a_side_without_times() -> None:
    empty = pa.array([None] * 20, pa.timestamp("ns"))
    report = check_splits(table(START + np.arange(50) * HOUR), table(empty), time="time")
    assert any(n.what == "split-time-overlap" and "no time" in n.why for n in report.not_checked)
