"""TimeSplit keeps apart what must be apart, whatever it is given, and refuses the rest."""

from __future__ import annotations

import datetime
import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from osler.data.need import DataError
from osler.data.splits import TimeSplit, check_splits

HOUR = np.timedelta64(1, "h")
START = np.datetime64("2024-01-01", "ns")


def folds(splitter: TimeSplit, data: Any, groups: Any = None) -> list[tuple[np.ndarray, np.ndarray]]:
    return list(splitter.split(data, groups=groups))


@st.composite
def series(draw: st.DrawFn) -> dict[str, Any]:
    n = draw(st.integers(12, 120))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    ticks = rng.integers(0, draw(st.integers(8, 400)), n)
    numeric = draw(st.booleans())
    embargo = draw(st.one_of(st.none(), st.integers(0, 30)))
    lengths = draw(st.one_of(st.none(), st.integers(1, 100)))
    times = ticks if numeric else START + ticks * HOUR
    ends = None
    if draw(st.booleans()):
        horizon = rng.integers(0, 20, n)
        ends = times + (horizon if numeric else horizon * HOUR)
    return {
        "times": times,
        "ends": ends,
        "groups": rng.integers(0, draw(st.integers(2, 40)), n) if draw(st.booleans()) else None,
        "n_splits": draw(st.integers(1, 5)),
        "embargo": embargo if numeric or embargo is None else f"{embargo}h",
        "distance": (embargo or 0) if numeric else (embargo or 0) * HOUR,
        "max_train_size": lengths if numeric or lengths is None or draw(st.booleans()) else f"{lengths}h",
        "window": draw(st.sampled_from(["expanding", "rolling"])),
        "test_size": draw(st.sampled_from([None, 1, 3, 10])),
    }


@given(series())
@settings(max_examples=200, deadline=None)
def test_nothing_leaks(case: dict[str, Any]) -> None:
    times, ends, groups = case["times"], case["ends"], case["groups"]
    splitter = TimeSplit(
        case["n_splits"],
        time=times,
        embargo=case["embargo"],
        label_end=ends,
        max_train_size=case["max_train_size"],
        window=case["window"],
        test_size=case["test_size"],
    )
    try:
        got = folds(splitter, times, groups)
    except DataError as error:
        assert "\n" not in str(error)
        assume(False)
    assert len(got) == splitter.get_n_splits() == case["n_splits"]
    seen: set[int] = set()
    sizes = []
    for train, test in got:
        assert train.size and test.size
        assert len(set(train) | set(test)) == train.size + test.size
        start = times[test].min()
        # strictly before evaluation, and farther than the embargo
        assert times[train].max() < start
        assert (start - times[train] > case["distance"]).all()
        if ends is not None:
            assert (ends[train] < start).all()
        if groups is not None:
            assert not set(groups[train]) & set(groups[test])
        # evaluation windows do not overlap, and rows of one time stay together
        assert not seen & set(test.tolist())
        seen |= set(test.tolist())
        assert np.isin(times, times[test]).sum() == test.size
        assert (np.diff(times[test]) >= times[test][:1] - times[test][:1]).all()
        if isinstance(case["max_train_size"], int) and not isinstance(times[0], np.datetime64):
            assert train.size <= case["max_train_size"]
        sizes.append(train.size)
    if case["window"] == "rolling" and case["max_train_size"] is None:
        assert max(sizes) <= sizes[0]
    # the rows after the last window's start are all evaluated
    assert times[got[-1][1]].max() == times.max()


def test_without_times_it_is_scikit_learns_split() -> None:
    model_selection = pytest.importorskip("sklearn.model_selection")
    x = np.zeros((53, 2))
    for ours, theirs in (
        (TimeSplit(4), model_selection.TimeSeriesSplit(4)),
        (TimeSplit(4, embargo=2), model_selection.TimeSeriesSplit(4, gap=2)),
        (
            TimeSplit(3, max_train_size=10, test_size=5),
            model_selection.TimeSeriesSplit(3, max_train_size=10, test_size=5),
        ),
    ):
        for (a, b), (c, d) in zip(ours.split(x), theirs.split(x), strict=True):
            assert a.tolist() == c.tolist()
            assert b.tolist() == d.tolist()


def test_durations() -> None:
    days = np.datetime64("2024-01-01") + np.arange(100)
    got = folds(TimeSplit(3, time=days, test_size="7d", embargo="2d", max_train_size="30d"), days)
    assert [(len(a), len(b)) for a, b in got] == [(30, 7)] * 3
    assert [int(b[0]) for _, b in got] == [79, 86, 93]
    # rows 77 and 78 lie within two days of row 79; row 77 at exactly two
    assert int(got[0][0][-1]) == 76
    same = folds(TimeSplit(3, time=days, test_size=datetime.timedelta(days=7), embargo=np.timedelta64(2, "D")), days)
    assert [int(b[0]) for _, b in same] == [79, 86, 93]


def test_rolling_keeps_the_first_length() -> None:
    got = folds(TimeSplit(4, window="rolling"), np.zeros(50))
    assert [len(a) for a, _ in got] == [10] * 4
    assert [int(a[0]) for a, _ in got] == [0, 10, 20, 30]


@pytest.mark.parametrize("form", ["pandas", "polars", "pyarrow", "column number", "datetimes", "aware"])
def test_times_of_every_kind(form: str) -> None:
    stamps = START + np.random.default_rng(0).permutation(60) * HOUR
    plain = [datetime.datetime(2024, 1, 1) + datetime.timedelta(hours=int(h)) for h in (stamps - START) // HOUR]
    data: Any = np.zeros(60)
    time: Any = "when"
    if form == "pandas":
        data = pytest.importorskip("pandas").DataFrame({"when": stamps, "x": 0})
    elif form == "polars":
        data = pytest.importorskip("polars").DataFrame({"when": stamps, "x": np.zeros(60)})
    elif form == "pyarrow":
        data = pa.table({"when": stamps})
    elif form == "column number":
        data, time = np.stack([np.zeros(60), (stamps - START) // HOUR], axis=1), 1
    elif form == "datetimes":
        time = plain
    else:
        east = datetime.timezone(datetime.timedelta(hours=5))
        time = [t.replace(tzinfo=datetime.timezone.utc).astimezone(east) for t in plain]
    expected = folds(TimeSplit(3, time=stamps), np.zeros(60))
    for (a, b), (c, d) in zip(folds(TimeSplit(3, time=time), data), expected, strict=True):
        assert a.tolist() == c.tolist()
        assert b.tolist() == d.tolist()


def test_groups_may_recur_where_that_is_asked_for() -> None:
    groups = np.arange(60) % 3
    with pytest.raises(DataError, match="no training row left: groups are in training and evaluation alike"):
        folds(TimeSplit(3), np.zeros(60), groups)
    got = folds(TimeSplit(3, isolate_groups=False), np.zeros(60), groups)
    assert [len(a) for a, _ in got] == [15, 30, 45]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"n_splits": 0}, "n_splits must be a whole number"),
        ({"n_splits": True}, "n_splits must be a whole number"),
        ({"n_splits": 60}, "60 rows are too few for 60 evaluation windows"),
        ({"test_size": 0}, "test_size must be at least 1"),
        ({"test_size": 0.2}, "test_size must be at least 1"),
        ({"test_size": 1.5}, "must be a number of rows or a duration"),
        ({"max_train_size": 0}, "max_train_size must be at least 1"),
        ({"window": "sliding"}, "window must be one of expanding, rolling"),
        ({"embargo": -1}, "embargo must be at least 0"),
        ({"embargo": "1d"}, "time is counted in numbers"),
        ({"embargo": 40}, "fold 1 of 5 has no training row left: take fewer splits"),
        ({"time": np.arange(59)}, "time has shape .* name a column of X in place of an array"),
        ({"time": "when"}, "has no column 'when'"),
        ({"time": 3}, "is no column of X"),
        ({"time": np.zeros(60)}, "starts at the first row"),
        ({"time": np.r_[np.arange(59.0), np.nan]}, "time is missing in 1 rows, first at row 59"),
        ({"time": START + np.arange(60) * HOUR, "embargo": 5}, "must be a duration such as 7d, not 5"),
        ({"time": np.array(["NaT"] * 60, "datetime64[ns]")}, "time is missing in 60 rows"),
        ({"time": ["noon"] * 60}, "parse text to datetimes first"),
        ({"time": [datetime.datetime(9999, 1, 1)] * 60}, "years outside 1678 to 2261"),
        (
            {"time": [datetime.datetime(2024, 1, 1), datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc)] * 30},
            "some values of time have a time zone",
        ),
        ({"label_end": np.arange(60)}, "label_end needs time"),
        ({"time": np.arange(60), "label_end": np.arange(60) - 1}, "label_end lies before time in 60 rows"),
        ({"time": np.arange(60), "label_end": START + np.arange(60) * HOUR}, "must both be times or both be numbers"),
        ({"time": START + np.arange(60) * HOUR, "test_size": "0d"}, "test_size must be longer than 0"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(arguments: dict[str, Any], line: str) -> None:
    with pytest.raises(DataError, match=line) as caught:
        folds(TimeSplit(**arguments), np.zeros(60))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("groups", "line"), [(["a"] * 5, "groups has shape"), ([None] * 30, "missing values")])
def test_groups_that_make_no_sense(groups: list[Any], line: str) -> None:
    with pytest.raises(DataError, match=line):
        folds(TimeSplit(2), np.zeros(30), groups)


def test_folds_pass_the_check() -> None:
    rng = np.random.default_rng(0)
    table = pa.table(
        {"time": START + rng.permutation(300) * HOUR, "x": rng.normal(size=300), "y": rng.normal(size=300)}
    )
    for train, test in TimeSplit(4, time="time", embargo="5h").split(table):
        report = check_splits(table.take(pa.array(train)), table.take(pa.array(test)), time="time", gap="5h")
        assert not report.findings


def test_it_works_in_scikit_learn() -> None:
    base = pytest.importorskip("sklearn.base")
    linear = pytest.importorskip("sklearn.linear_model")
    selection = pytest.importorskip("sklearn.model_selection")
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    x = pandas.DataFrame({"when": np.arange(200), "a": rng.normal(size=200)})
    y = x["a"] * 2 + rng.normal(size=200)
    splitter = TimeSplit(4, time="when", embargo=3)
    copy = base.clone(splitter)
    assert copy.get_params() == splitter.get_params()
    assert copy is not splitter
    assert selection.cross_val_score(linear.Ridge(), x, y, cv=splitter).shape == (4,)
    search = selection.GridSearchCV(linear.Ridge(), {"alpha": [0.1, 1.0]}, cv=splitter).fit(x, y)
    assert search.n_splits_ == 4
    # an inner search sees part of the rows; the name of the column goes with them
    assert selection.cross_val_score(search, x, y, cv=TimeSplit(3, time="when")).shape == (3,)
    scores = selection.cross_val_score(
        linear.Ridge(), x, y, cv=TimeSplit(3, isolate_groups=False), groups=np.arange(200) % 7
    )
    assert scores.shape == (3,)


def test_parameters_and_repr() -> None:
    splitter = TimeSplit(3, time=np.arange(5), embargo="2d")
    assert repr(splitter) == "TimeSplit(n_splits=3, time=array of 5, embargo='2d')"
    assert splitter.set_params(n_splits=7).get_n_splits() == 7
    with pytest.raises(ValueError, match="no argument 'gap'"):
        splitter.set_params(gap=1)


def test_importing_it_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom osler.data.splits import TimeSplit\nTimeSplit(2)\n"
        "print([m for m in ('sklearn', 'scipy', 'numba', 'polars', 'pandas', 'torch') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
