"""When a drift began, by time and by rows."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest

from osler.core.settings import Drift, Settings
from osler.data.drift import build_profile, check_drift

DAY = 86_400
START = 1_704_067_200  # 2024-01-01


def days(
    count: int, a_day: int = 300, from_day: int = 10**9, seed: int = 0, kind: pa.DataType | None = None
) -> pa.Table:
    r = np.random.default_rng(seed)
    rows = count * a_day
    at = np.sort(r.integers(0, count * DAY, rows))
    stamps = pa.array(START + at, pa.int64()).cast(pa.timestamp("s")).cast(kind or pa.timestamp("ms", tz="UTC"))
    return pa.table({"at": stamps, "x": r.normal(size=rows) + (at >= from_day * DAY), "y": r.normal(size=rows)})


def test_the_first_window_from_which_it_stays_out() -> None:
    report = check_drift(days(20), days(20, from_day=12, seed=1), time="at", window="1d")
    (finding,) = report.findings
    assert finding.where.column == "x"
    assert finding.evidence["since"] == "2024-01-13T00:00:00Z"
    assert finding.evidence["since_window"] == 12
    assert finding.evidence["windows_in_a_row"] == 8
    assert "out since 2024-01-13" in finding.message
    (curve,) = [s for s in report.series if s.kind == "curve"]
    assert curve.steps == list(range(20))
    assert max(curve.values[:12]) < 0.2 < min(curve.values[12:])  # type: ignore[type-var]
    assert "20 windows" in report.notes[-1]


def test_rows_out_of_order_make_no_difference() -> None:
    now = days(10, from_day=5, seed=1)
    mixed = now.take(pa.array(np.random.default_rng(0).permutation(now.num_rows)))
    one, two = (check_drift(days(10), t, time="at", window=datetime.timedelta(days=1)) for t in (now, mixed))
    assert one.findings[0].evidence["since"] == two.findings[0].evidence["since"]
    assert one.findings[0].evidence["ks"] == two.findings[0].evidence["ks"]


def test_what_only_the_last_windows_show() -> None:
    """Four days of 60: too little to move the whole, enough to move each of these days."""
    report = check_drift(days(60), days(60, from_day=56, seed=1), time="at", window="1d")
    assert [f.where.column for f in report.findings] == ["x"]
    assert report.findings[0].evidence["windows_in_a_row"] == 4
    assert [row[2] for row in report.tables[0].rows if row[0] == "x"] == ["distribution"]
    assert report.findings[0].evidence["values"] == [18_000, pytest.approx(300, abs=80)]


def test_a_bad_day_that_passes_is_no_beginning() -> None:
    now = days(10, seed=1)
    x = now["x"].to_numpy().copy()
    x[900:1500] += 6
    report = check_drift(days(10), now.set_column(1, "x", pa.array(x)), time="at", window="1d")
    (finding,) = report.findings
    assert "since" not in finding.evidence
    assert finding.evidence["windows_out"] >= 2


def test_a_left_over_window_is_passed_over() -> None:
    now = pa.concat_tables([days(10, seed=1), days(11, a_day=1, seed=2).slice(10, 1)])
    assert check_drift(days(10), now, time="at", window="1d").findings == []


def test_rows_numbers_and_rows_without_a_time() -> None:
    r = np.random.default_rng(0)
    before = {"k": np.arange(6000), "x": r.normal(size=6000)}
    now = {"k": np.arange(6000), "x": np.append(r.normal(size=3000), r.normal(1, 1, 3000))}
    by_rows = check_drift(before, now, window=500, columns=["x"]).findings[0]
    assert by_rows.evidence["since"] == "row 3000"
    by_number = check_drift(before, now, time="k", window=500, columns=["x"]).findings[0]
    assert by_number.evidence["since"] == "3000"
    assert check_drift(before, now, window="500", columns=["x"]).findings[0].evidence["since"] == "row 3000"
    at = days(10, seed=1)["at"].to_pylist()
    at[:7] = [None] * 7
    table = days(10, seed=1).set_column(0, "at", pa.array(at, pa.timestamp("ms", tz="UTC")))
    assert "7 rows without a time" in check_drift(days(10), table, time="at", window="1d").notes[-1]


@pytest.mark.parametrize("kind", [pa.timestamp("ns"), pa.timestamp("s", tz="Asia/Tokyo"), pa.date32()])
def test_times_of_every_sort(kind: pa.DataType) -> None:
    report = check_drift(days(8, kind=kind), days(8, from_day=4, seed=1, kind=kind), time="at", window="1d")
    assert report.findings[0].evidence["since"] == "2024-01-05T00:00:00Z"


def test_a_profile_as_the_reference() -> None:
    report = check_drift(build_profile(days(20)), days(20, from_day=12, seed=1), time="at", window="1d")
    assert report.findings[0].evidence["since_window"] == 12


def test_categories_and_missing_values_have_an_onset_too() -> None:
    r = np.random.default_rng(0)

    def draw(switch: int) -> pa.Table:
        late = np.arange(4000) >= switch
        return pa.table(
            {
                "c": np.where(late, r.choice(["a", "b"], 4000, p=[0.2, 0.8]), r.choice(["a", "b"], 4000)),
                "m": pa.array(r.normal(size=4000), mask=r.random(4000) < np.where(late, 0.4, 0.1)),
            }
        )

    report = check_drift(draw(4000), draw(2000), window=400)
    assert {str(f.where.column): f.evidence["since"] for f in report.findings} == {"c": "row 2000", "m": "row 2000"}


def test_no_rows_at_all() -> None:
    assert check_drift(days(5), days(5).slice(0, 0), time="at", window="1d").findings == []


def test_settings_of_windows() -> None:
    settings = Settings(drift=Drift(stays_out=9))
    report = check_drift(days(20), days(20, from_day=12, seed=1), time="at", window="1d", settings=settings)
    assert "since" not in report.findings[0].evidence
