"""`check_drift`: what moved is found and named, what did not is left alone, and every odd input has a right answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from osler.core.finding import Confidence, Severity
from osler.core.report import Report
from osler.core.settings import Data, Drift, Settings
from osler.data.drift import Profile, build_profile, check_drift
from osler.data.need import DataError

N = 3000


def column(values: Any, others: Any) -> Report:
    """One column `v` against another."""
    return check_drift(pa.table({"v": values}), pa.table({"v": others}))


def drifted(report: Report) -> dict[str, list[str]]:
    return {str(f.where.column): f.evidence["reasons"] for f in report.findings}  # type: ignore[misc]


def unjudged(report: Report) -> dict[str, str]:
    return {n.what.removeprefix("column ").strip("'"): n.why for n in report.not_checked}


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_a_mixed_table() -> None:
    def draw(seed: int, moved: float) -> pa.Table:
        r = rng(seed)
        return pa.table(
            {
                "still": r.normal(size=N),
                "mean": r.normal(size=N) + moved,
                "spread": r.normal(size=N) * (1 + moved),
                "plan": r.choice(["a", "b", "c"], N, p=[0.6 - moved, 0.3, 0.1 + moved]),
                "gaps": pa.array(r.normal(size=N), mask=r.random(N) < 0.1 + moved / 3),
                "ratio": np.where(r.random(N) < moved / 5, np.inf, r.normal(size=N)),
            }
        )

    report = check_drift(draw(1, 0.0), draw(2, 0.4))
    assert drifted(report) == {
        "mean": ["distribution"],
        "spread": ["distribution"],
        "plan": ["categories"],
        "gaps": ["missing"],
        "ratio": ["infinite"],
    }
    for finding in report.findings:
        assert finding.rule == "feature-drift"
        assert finding.severity is Severity.WARNING
        assert finding.confidence is Confidence.PROBABLE
        assert finding.touches == {f"column:{finding.where.column}"}
        assert finding.fix
        assert "\n" not in finding.message
    said = {str(f.where.column): f.message for f in report.findings}
    assert "moved up by 0.4" in said["mean"]
    assert "spread grew to 1.4 times" in said["spread"]
    assert "#1" in said["plan"]
    assert "10.3 % to 23" in said["gaps"] or "% to 2" in said["gaps"]
    assert report.subject["check"] == "drift"
    assert report.subject["rows"] == N
    (features,) = report.tables
    assert [row[0] for row in features.rows][-1] == "still"
    assert all(len(row) == len(features.columns) for row in features.rows)
    histograms = {s.name: s for s in report.series if s.kind == "histogram"}
    assert set(histograms) == {"still", "mean", "spread", "plan", "gaps", "ratio"}
    assert sum(histograms["mean"].values[0]) == pytest.approx(1)  # type: ignore[arg-type]
    assert len(histograms["mean"].edges) == len(histograms["mean"].values[0]) + 1  # type: ignore[arg-type]
    json.dumps(report.to_dict({}), allow_nan=False)


def test_identical_data_and_the_same_object_give_nothing() -> None:
    table = pa.table({"x": rng().normal(size=N), "c": rng().choice(["a", "b"], N)})
    report = check_drift(table, table)
    assert report.findings == []
    assert report.not_checked == []


def test_big_data_with_a_small_move_is_not_reported() -> None:
    """A result must not depend on the number of rows alone (evidently#50)."""
    report = column(rng(1).normal(size=200_000), rng(2).normal(0.05, 1, 200_000))
    assert report.findings == []
    assert report.tables[0].rows[0][3] < 1e-6  # significant all the same


def test_one_value_of_1e7_hides_no_drift() -> None:
    reference = rng(1).normal(size=20_000)
    reference[5] = 1e7
    report = column(reference, rng(2).normal(1.0, 1, 20_000))
    assert report.findings[0].evidence["ks"] == pytest.approx(0.38, abs=0.02)


def test_the_tail_alone() -> None:
    current = rng(2).normal(size=N)
    current[:90] = 9.0
    report = column(rng(1).normal(size=N), current)
    assert drifted(report) == {"v": ["distribution"]}
    assert "beyond anything in the reference" in report.findings[0].message


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda n: pa.nulls(n), id="null type"),
        pytest.param(lambda n: pa.nulls(n, pa.float64()), id="all null"),
        pytest.param(lambda n: pa.nulls(n, pa.string()), id="all null text"),
        pytest.param(lambda n: np.full(n, np.nan), id="all NaN"),
        pytest.param(lambda n: np.full(n, 3), id="constant"),
        pytest.param(lambda n: ["same"] * n, id="constant text"),
        pytest.param(lambda n: np.full(n, np.inf), id="all infinite"),
        pytest.param(lambda n: [{"a": 1}] * n, id="struct"),
        pytest.param(lambda n: [[1, 2]] * n, id="list"),
        pytest.param(lambda n: [b"x"] * n, id="binary"),
        pytest.param(lambda n: pa.array([i % 100 for i in range(n)], pa.duration("s")), id="duration"),
        pytest.param(lambda n: [True, False] * (n // 2), id="boolean"),
        pytest.param(lambda n: np.full(n, 1.7e308), id="huge"),
        pytest.param(lambda n: np.where(np.arange(n) % 2, 5e-324, -5e-324), id="subnormal"),
        pytest.param(lambda n: np.where(np.arange(n) % 2, 0.0, -0.0), id="zeros of both signs"),
    ],
)
def test_odd_columns_beside_a_good_one_neither_crash_nor_alarm(make: Any) -> None:
    """One empty column must not take the whole report down (evidently#1480)."""
    before = pa.table({"odd": make(400), "good": rng(1).normal(size=400)})
    now = pa.table({"odd": make(300), "good": rng(2).normal(2, 1, 300)})
    report = check_drift(before, now)
    assert drifted(report) == {"good": ["distribution"]}
    json.dumps(report.to_dict({}), allow_nan=False)


def test_constant_that_changes() -> None:
    assert drifted(column(np.full(200, 3.0), np.full(200, 3.5))) == {"v": ["distribution"]}
    report = column(np.full(200, 3.0), np.full(200, 3.0 + 1e-9))
    assert report.findings == []
    assert "rounding" in report.notes[0]


def test_becoming_empty_is_a_drift_of_the_missing_share() -> None:
    for empty in (pa.nulls(500), pa.nulls(500, pa.float64()), np.full(500, np.nan)):
        report = column(rng().normal(size=500), empty)
        assert drifted(report) == {"v": ["missing"]}
        assert "0 values" in unjudged(report)["v"]
    assert drifted(column(pa.nulls(500), rng().normal(size=500))) == {"v": ["missing"]}
    assert drifted(column(["a", "b"] * 250, pa.nulls(500, pa.string()))) == {"v": ["missing"]}


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_hardly_any_rows_are_not_judged(rows: int) -> None:
    report = column(rng().normal(size=500), np.full(rows, 1e9))
    assert report.findings == []
    assert ("no rows" if rows == 0 else f"{rows} row") in unjudged(report)["v"]
    assert column(np.zeros(rows), rng().normal(size=500)).findings == []


def test_times_move_on_by_themselves() -> None:
    for kind in (pa.timestamp("ms"), pa.timestamp("us", tz="Europe/Berlin"), pa.date32()):
        step = 1 if kind == pa.date32() else 10**6
        before = pa.array(np.arange(400) * step, pa.int32() if kind == pa.date32() else pa.int64()).cast(kind)
        now = pa.array(np.arange(400, 800) * step, pa.int32() if kind == pa.date32() else pa.int64()).cast(kind)
        tables = pa.table({"t": before}), pa.table({"t": now})
        report = check_drift(*tables)
        assert report.findings == []
        assert "times move on" in unjudged(report)["t"]
        assert drifted(check_drift(*tables, numeric=["t"])) == {"t": ["distribution"]}


def test_ids_and_free_text_are_not_judged() -> None:
    before = pa.table({"id": [f"u{i}" for i in range(N)], "number": [str(i) for i in range(N)]})
    now = pa.table({"id": [f"w{i}" for i in range(N)], "number": [str(i + N) for i in range(N)]})
    report = check_drift(before, now)
    assert report.findings == []
    assert "ids" in unjudged(report)["id"]
    assert "text or ids" in unjudged(report)["number"]
    assert "group them first" in unjudged(check_drift(before, now, categorical=["id"]))["id"]
    few = check_drift(before.slice(0, 40), now.slice(0, 40))
    assert few.findings == []
    assert "40 distinct texts" in unjudged(few)["id"]


def test_integers_are_numbers_however_few_and_categories_when_asked() -> None:
    r = rng()
    before, now = r.choice([0, 1, 2, 3], N), r.choice([0, 1, 2, 3], N, p=[0.0, 0.3, 0.3, 0.4])
    report = check_drift({"k": before}, {"k": now})
    assert report.tables[0].rows[0][4] is not None
    asked = check_drift({"k": before}, {"k": now}, categorical=["k"])
    assert drifted(asked) == {"k": ["categories"]}
    noisy = check_drift({"k": before}, {"k": before + 1e-9}, categorical=["k"])
    assert noisy.findings == []
    assert noisy.tables[0].rows[0][10] == 0  # 3.000000001 is no new category


def test_float_noise_in_codes_is_no_drift() -> None:
    r = rng()
    code = r.integers(0, 4, N).astype(float)
    report = column(code, code + 1e-9 * r.random(N))
    assert report.findings == []
    assert "rounding" in report.notes[0]
    assert column((r.integers(0, 30, N) / 10), (r.integers(0, 30, N) / 10).astype(np.float32)).findings == []


def test_unseen_categories() -> None:
    r = rng()
    before, now = r.choice(["a", "b"], N), r.choice(["a", "b", "c"], N, p=[0.48, 0.48, 0.04])
    report = column(before, now)
    assert drifted(report)["v"][-1] == "unseen"
    assert "never had" in report.findings[0].message
    rare = [*before[:-2].tolist(), "x", "y"]
    assert column(before, rare).findings == []
    streets = [f"s{i}" for i in np.minimum(r.zipf(1.5, N), 900)]
    others = [f"s{i}" for i in np.minimum(r.zipf(1.5, N), 900)]
    assert column(streets, others).findings == []


def test_values_stay_out_of_the_report_unless_asked_for() -> None:
    r = rng()
    tables = [pa.table({"v": r.choice(["Ann Smith", "Bob Jones"], N, p=[p, 1 - p])}) for p in (0.2, 0.6)]
    assert "Ann" not in json.dumps(check_drift(*tables).to_dict({}))
    shown = check_drift(*tables, settings=Settings(data=Data(show_values=True)))
    assert "Ann Smith" in shown.findings[0].message


def test_a_change_of_kind_is_a_finding() -> None:
    report = check_drift({"v": [1.5] * 100, "w": [1] * 100}, {"v": ["1.5"] * 100, "w": [1] * 100})
    (finding,) = report.findings
    assert finding.evidence == {"reasons": ["kind"], "kind_before": "number", "kind_now": "category"}
    assert finding.confidence is Confidence.DEFINITE
    assert check_drift({"v": [1, 2] * 50}, {"v": [1.0, 2.0] * 50}).findings == []
    assert check_drift({"v": [1, 0] * 50}, {"v": [True, False] * 50}).findings == []


def test_columns_that_come_and_go_are_said() -> None:
    report = check_drift({"a": np.arange(99), "label": np.arange(99)}, {"a": np.arange(99), "extra": np.arange(99)})
    assert report.findings == []
    assert "reference has it" in unjudged(report)["label"]
    assert "reference does not" in unjudged(report)["extra"]
    assert "lacks 1 columns" in report.notes[0]


@pytest.mark.parametrize(
    ("kwargs", "why"),
    [
        ({"columns": ["aeg"]}, "did you mean 'age'"),
        ({"categorical": ["agee"]}, "did you mean 'age'"),
        ({"numeric": ["city"]}, "not numbers"),
        ({"time": "age"}, "how long a window is"),
        ({"time": "city", "window": "1d"}, "not times"),
        ({"time": "agee", "window": "1d"}, "did you mean 'age'"),
        ({"window": "1d"}, "whole number of rows"),
        ({"window": 0}, "whole number of rows"),
        ({"time": "age", "window": "soon"}, "must be a number"),
        ({"time": "age", "window": 0}, "longer than 0"),
        ({"time": "age", "window": 1e-9}, "choose longer ones"),
    ],
)
def test_wishes_that_make_no_sense_are_one_clear_line(kwargs: dict[str, Any], why: str) -> None:
    data = {"age": rng().normal(size=2000), "city": ["x", "y"] * 1000}
    with pytest.raises(DataError, match=why) as caught:
        check_drift(data, data, **kwargs)
    assert "\n" not in str(caught.value)


def test_nothing_in_common() -> None:
    with pytest.raises(DataError, match="no column in common"):
        check_drift({"a": [1]}, {"b": [1]})


def test_names_like_internal_ones() -> None:
    names = ["counts", "column", "edges", "__index_level_0__", "osler.profile", "nulls", "", "a b", "#1"]
    before = {name: rng(i).normal(size=200) for i, name in enumerate(names)}
    now = {name: rng(i + 50).normal(3, 1, 200) for i, name in enumerate(names)}
    assert set(drifted(check_drift(before, now))) == set(names)


def test_duplicate_names_are_told_apart() -> None:
    x = rng().normal(size=300)
    before = pa.table([x, x], names=["a", "a"])
    report = check_drift(before, pa.table([x, x + 5], names=["a", "a"]))
    assert drifted(report) == {"a.1": ["distribution"]}
    assert "more than once" in " ".join(report.notes)


def test_mixed_objects_of_pandas() -> None:
    frame = pd.DataFrame({"mixed": [1, "a", None, 2.5] * 100, "x": np.arange(400.0)})
    report = check_drift(frame, frame.iloc[::-1])
    assert report.findings == []


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_every_kind_of_frame(make: Any) -> None:
    before = {"x": rng(1).normal(size=500), "c": rng(1).choice(["a", "b"], 500).tolist()}
    now = {"x": rng(2).normal(1, 1, 500), "c": ["b"] * 500}
    assert set(drifted(check_drift(make(before), make(now)))) == {"x", "c"}


def test_pandas_categories_and_nullable_types() -> None:
    before = pd.DataFrame({"c": pd.Categorical(["a", "b"] * 200), "i": pd.array([1, None] * 200, "Int64")})
    now = pd.DataFrame({"c": pd.Categorical(["b", "b"] * 200), "i": pd.array([1, 1] * 200, "Int64")})
    assert drifted(check_drift(before, now)) == {"c": ["categories"], "i": ["missing"]}


def test_numpy_arrays_and_files(tmp_path: Path) -> None:
    x = rng().normal(size=(400, 2))
    assert drifted(check_drift(x, x + np.array([0, 2]))) == {"1": ["distribution"]}
    pq.write_table(pa.table({"a": x[:, 0]}), tmp_path / "ref.parquet")
    (tmp_path / "now.csv").write_text("a\n" + "\n".join(str(v + 3) for v in x[:, 0]) + "\n")
    report = check_drift(tmp_path / "ref.parquet", str(tmp_path / "now.csv"))
    assert drifted(report) == {"a": ["distribution"]}
    with pytest.raises(DataError, match="nowhere"):
        check_drift(tmp_path / "nowhere.parquet", x)


def test_a_saved_profile_stands_in_for_either_side(tmp_path: Path) -> None:
    before = pa.table({"x": rng(1).normal(size=N), "c": rng(1).choice(["a", "b"], N)})
    now = pa.table({"x": rng(2).normal(0.5, 1, N), "c": rng(2).choice(["a", "b"], N)})
    profile = build_profile(before)
    profile.save(tmp_path / "ref.profile")
    for reference in (profile, tmp_path / "ref.profile", Profile.load(tmp_path / "ref.profile")):
        assert drifted(check_drift(reference, now)) == {"x": ["distribution"]}
    now_profile = build_profile(now, profile_of=profile)
    assert drifted(check_drift(profile, now_profile)) == {"x": ["distribution"]}
    assert drifted(check_drift(before, now_profile)) == {"x": ["distribution"]}
    with pytest.raises(DataError, match=r"'x'.*same edges"):
        check_drift(profile, build_profile(now))
    with pytest.raises(DataError, match="no rows to cut"):
        check_drift(profile, now_profile, window=10)
    with pytest.raises(DataError, match="make it anew"):
        check_drift(profile, now, categorical=["x"])
    with pytest.raises(DataError, match="no column 'xx'"):
        check_drift(profile, now, columns=["xx"])


def test_the_same_answer_from_a_profile_of_256_edges_as_from_the_data() -> None:
    before, now = {"x": rng(1).normal(size=20_000)}, {"x": rng(2).normal(0.6, 1, 20_000)}
    whole = check_drift(before, now).findings[0].evidence
    small = check_drift(build_profile(before), now).findings[0].evidence
    assert small["ks"] == pytest.approx(whole["ks"], abs=0.01)
    assert small["wasserstein_spreads"] == pytest.approx(whole["wasserstein_spreads"], abs=0.02)


def test_nan_poisons_no_threshold() -> None:
    x = np.where(rng().random(N) < 0.5, np.nan, rng(1).normal(size=N))
    y = np.where(rng(5).random(N) < 0.5, np.nan, rng(2).normal(1, 1, N))
    report = column(x, y)
    assert drifted(report) == {"v": ["distribution"]}
    assert all(v == v for v in report.tables[0].rows[0] if isinstance(v, float))


def test_thresholds_are_settings() -> None:
    before, now = {"x": rng(1).normal(size=N)}, {"x": rng(2).normal(0.5, 1, N)}
    assert check_drift(before, now).findings
    deaf = Settings(drift=Drift(ks=0.9, wasserstein=9.0))
    assert check_drift(before, now, settings=deaf).findings == []


def test_progress_is_told() -> None:
    told: list[tuple[str, int, int | None]] = []
    data = pa.table({"x": rng().normal(size=N)})
    check_drift(data, data, progress=lambda *step: told.append(step))
    assert told[-1][1:] == (N, N)


@pytest.mark.parametrize("window", [200, 1000])
def test_identical_windows_keep_the_level_over_dependent_features(window: int) -> None:
    """25 tables of 20 features at a family-wise level of 5 %: more than 5 alarms has a probability of 0.1 %."""
    mix = rng(0).normal(size=(5, 20))
    alarms = 0
    reference = build_profile({str(i): c for i, c in enumerate((rng(99).normal(size=(5000, 5)) @ mix).T)})
    for seed in range(25):
        r = rng(seed + 1000)
        alarms += bool(check_drift(reference, r.normal(size=(window, 5)) @ mix).findings)
    assert alarms <= 5
