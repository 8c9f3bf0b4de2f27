"""Clocks, zones, units and dates of two sources."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from sources_builders import BASE, DAY, S, events, instants, kinds, noise, only, table

from osler.core.finding import Confidence, Severity
from osler.data.sources import check_sources
from osler.data.sources.calendar import swapped

ON = {"id": "id", "time": "t", "tolerance": "500ms"}
IDS = np.arange(2000)


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.fixture
def seen(rng):
    return events(rng)


def compare(left, right, **changes):
    return check_sources([left, right], names=["a", "b"], **{**ON, **changes})


@pytest.mark.parametrize("spread", [0.0, 0.01, 0.15])
def test_clocks_that_agree_up_to_jitter_are_silent(rng, seen, spread):
    report = compare(table(IDS, seen), table(IDS, seen + noise(rng, 2000, spread)))
    assert report.findings == []


@pytest.mark.parametrize(
    ("hours", "text"), [(1, "1 h ahead of"), (-5, "5 h behind"), (5.5, "5 h 30 min ahead of"), (13, "13 h")]
)
def test_a_missing_zone_is_named_by_its_hours(rng, seen, hours, text):
    shift = int(hours * 3600) * S
    found = only(compare(table(IDS, seen), table(IDS, seen + shift + noise(rng, 2000))), "zone")
    assert found.severity is Severity.ERROR
    assert found.evidence["zone_hours"] == hours
    assert text in found.message
    assert found.where.column == "t" and "column:t" in found.touches


def test_a_zone_is_named_without_a_tolerance_too(rng, seen):
    assert kinds(compare(table(IDS, seen), table(IDS, seen + 3600 * S + noise(rng, 2000)), tolerance=None)) == ["zone"]


def test_a_tolerance_beyond_the_shift_accepts_it(rng, seen):
    report = compare(table(IDS, seen), table(IDS, seen + 3600 * S + noise(rng, 2000)), tolerance="2h")
    assert kinds(report, Severity.INFO) == []


def test_an_offset_beyond_the_tolerance(rng, seen):
    found = only(compare(table(IDS, seen), table(IDS, seen - 2 * S + noise(rng, 2000))), "offset")
    assert found.severity is Severity.WARNING
    assert found.evidence["offset_low_s"] <= -2 <= found.evidence["offset_high_s"]
    assert "behind" in found.message
    assert (
        only(compare(table(IDS, seen), table(IDS, seen - 2 * S + noise(rng, 2000)), tolerance=None), "offset").severity
        is Severity.INFO
    )
    assert compare(table(IDS, seen), table(IDS, seen - 2 * S + noise(rng, 2000)), tolerance="3s").findings == []


@pytest.mark.parametrize("ppm", [-40.0, 3.0, 500.0])
def test_drift_in_parts_per_million(rng, seen, ppm):
    right = seen + ((seen - BASE) * ppm * 1e-6).astype(np.int64) + noise(rng, 2000)
    keep = rng.random(2000) > 0.04
    found = only(compare(table(IDS, seen), table(IDS[keep], right[keep])), "drift")
    assert found.evidence["drift_low_ppm"] <= ppm <= found.evidence["drift_high_ppm"]
    assert found.evidence["drift_ppm"] == pytest.approx(ppm, rel=0.02)
    assert f"{abs(ppm):.3g} ppm" in found.message


def test_drift_and_an_offset_that_it_does_not_explain(rng, seen):
    right = seen + 60 * S + ((seen - BASE) * 5e-6).astype(np.int64) + noise(rng, 2000)
    assert sorted(kinds(compare(table(IDS, seen), table(IDS, right)))) == ["drift", "offset"]


def test_daylight_saving_in_a_column_without_a_zone(rng, seen):
    change = BASE + 12 * DAY
    local = seen + np.where(seen > change, 7200, 3600) * S + noise(rng, 2000)
    found = only(compare(table(IDS, seen), table(IDS, local, zone=None)), "dst")
    assert found.evidence["levels_s"] == pytest.approx([3600, 7200], abs=1)
    assert found.evidence["jump_after"][0].startswith(str(np.datetime64(change, "ns").astype("datetime64[D]"))[:8])
    assert kinds(compare(table(IDS, seen), table(IDS, local, zone=None))) == ["dst"]


def test_two_changes_of_the_hour_in_a_year(rng):
    seen = events(rng, 2000, 365)
    summer = (seen > BASE + 90 * DAY) & (seen < BASE + 300 * DAY)
    found = only(compare(table(IDS, seen), table(IDS, seen + np.where(summer, 7200, 3600) * S)), "dst")
    assert len(found.evidence["jumps_s"]) == 2


def test_a_clock_that_was_set_once(rng, seen):
    right = seen + np.where(seen > BASE + 20 * DAY, 45, 0) * S + noise(rng, 2000)
    assert kinds(compare(table(IDS, seen), table(IDS, right))) == ["step"]


def test_epochs_in_two_units(rng, seen):
    left, right = pa.table({"id": IDS, "t": seen // S}), pa.table({"id": IDS, "t": seen // 1_000_000})
    found = only(compare(left, right, tolerance="2s"), "units")
    assert found.evidence["units"] == ["s", "ms"] and found.evidence["ratio"] == 1000


@pytest.mark.parametrize(("divisor", "unit", "holds"), [(10**6, "ns", "ms"), (10**9, "ms", "s"), (10**6, "s", "ms")])
def test_a_timestamp_read_in_the_wrong_unit(seen, divisor, unit, holds):
    wrong = pa.table({"id": IDS, "t": pa.array(seen // divisor, pa.timestamp(unit, "UTC"))})
    found = only(compare(table(IDS, seen), wrong), "units")
    assert (found.evidence["read_as"], found.evidence["holds"]) == (unit, holds)


@pytest.mark.parametrize(("scale", "number"), [(1e3, "1,000"), (60.0, "60"), (1e-3, "1,000")])
def test_times_since_the_start_in_two_units(rng, scale, number):
    start = np.sort(rng.uniform(0, 5000, 2000))
    left, right = pa.table({"id": IDS, "t": start}), pa.table({"id": IDS, "t": start * scale})
    assert number in only(compare(left, right), "units").message


def test_truncated_times_are_no_offset(seen):
    report = compare(table(IDS, seen), table(IDS, seen // S * S))
    assert only(report, "rounded").evidence == {
        "kind": "rounded", "sources": ["a", "b"], "source": "b", "grain_s": 1.0, "how": "truncated",
    }  # fmt: skip
    assert kinds(report) == ["rounded"]
    assert kinds(compare(table(IDS, seen), table(IDS, seen // S * S), tolerance="2s")) == []


@pytest.mark.parametrize("ids", [True, False])
def test_day_and_month_exchanged(seen, ids):
    left, right = table(IDS, seen), table(IDS, swapped(seen)[0])
    report = compare(left, right) if ids else compare(left.select(["t"]), right.select(["t"]), id=())
    assert kinds(report) == ["day-month"]


def test_text_with_the_day_first_is_read_as_such(seen):
    text = [str(t.astype("datetime64[s]").item().strftime("%d/%m/%Y %H:%M:%S")) for t in seen.view("datetime64[ns]")]
    report = compare(table(IDS, seen // S * S), pa.table({"id": IDS, "t": text}))
    assert kinds(report) == []


def test_a_zone_on_one_side_only(rng, seen):
    report = compare(table(IDS, seen), table(IDS, seen + noise(rng, 2000), zone=None))
    assert kinds(report, Severity.INFO) == ["naive-aware"] and kinds(report) == []
    assert kinds(compare(table(IDS, seen), table(IDS, seen + 3600 * S, zone=None))) == ["zone"]


def test_text_with_and_without_an_offset(seen):
    some = seen[:200].view("datetime64[ns]").astype("datetime64[s]").astype(str)
    text = [t + ("Z" if i % 4 else "") for i, t in enumerate(some)]
    found = only(compare(table(IDS[:200], seen[:200] // S * S), pa.table({"id": IDS[:200], "t": text})), "mixed-zones")
    assert found.evidence["count"] == 50


def test_times_of_different_events_are_not_compared(rng, seen):
    later = seen + (rng.exponential(3 * 86400, 2000) * S).astype(np.int64)
    report = compare(table(IDS, seen), table(IDS, later), tolerance=None)
    assert report.findings == []
    assert any("different events" in entry.why for entry in report.not_checked)
    assert kinds(compare(table(IDS, seen), table(IDS, later))) == ["scatter"]


@pytest.mark.parametrize(
    ("shift", "ppm", "expected"), [(0, 0, []), (3600, 0, ["zone"]), (3, 0, ["offset"]), (0, 20, ["drift"])]
)
def test_without_ids_the_pattern_of_events_tells(rng, seen, shift, ppm, expected):
    right = seen + shift * S + ((seen - BASE) * ppm * 1e-6).astype(np.int64) + noise(rng, 2000)
    right = np.sort(right[rng.random(2000) > 0.2])
    report = compare(pa.table({"t": instants(seen)}), pa.table({"t": instants(right)}), id=())
    assert kinds(report) == expected


def test_ids_of_series_narrow_the_pattern(rng, seen):
    device = rng.integers(0, 60, 2000)
    right = seen + 7200 * S + noise(rng, 2000)
    assert kinds(compare(table(device, seen), table(device, right))) == ["zone"]
    assert kinds(compare(table(device, seen), table(device, seen + noise(rng, 2000)))) == []


def test_unrelated_events_say_nothing(rng):
    for _ in range(5):
        left, right = events(rng, 800), events(rng, 900)
        report = compare(pa.table({"t": instants(left)}), pa.table({"t": instants(right)}), id=(), tolerance=None)
        assert kinds(report) == []
        assert any(entry.what.startswith("clock offset") for entry in report.not_checked)


def test_a_quantity_that_both_measure(rng):
    grid = BASE + np.arange(6000) * S
    value = np.cumsum(rng.normal(0, 1, 6000))
    left = pa.table({"t": instants(grid), "v": value})
    right = pa.table({"t": instants(grid + 3600 * S), "w": value + rng.normal(0, 0.1, 6000)})
    found = only(compare(left, right, id=(), values="v=w"), "zone")
    assert found.confidence is Confidence.PROBABLE and found.evidence["zone_hours"] == 1
    assert kinds(compare(left, right.set_column(0, "t", left["t"]), id=(), values="v=w")) == []


def test_the_report_has_the_figures(rng, seen):
    report = compare(table(IDS, seen), table(IDS, seen + noise(rng, 2000)))
    sources, pairs = report.tables
    assert [row[:4] for row in sources.rows] == [["a", 2000, 2000, 0], ["b", 2000, 2000, 0]]
    row = dict(zip(pairs.columns, pairs.rows[0]))
    assert row["shared ids"] == 2000 and abs(row["offset s"]) < 0.01 and row["jitter s"] == pytest.approx(0.05, rel=0.1)
    assert report.series[0].kind == "curve" and report.series[0].unit == "s"
    assert report.subject["reference"] == "a" and report.subject["rows"] == 4000
