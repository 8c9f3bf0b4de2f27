"""Arrow to numpy: floats, validity, times."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import pyarrow as pa
import pytest

from osler.data.tables import NAT, floats, times, validity

UTC = datetime.timezone.utc


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array([1.5, None, float("nan"), float("inf")]), [1.5, np.nan, np.nan, np.inf]),
        (pa.array([1, None]), [1, np.nan]),
        (pa.array([2**64 - 1, None], pa.uint64()), [2.0**64, np.nan]),
        (pa.array([2**63 + 1025], pa.uint64()), [2.0**63 + 2048]),
        (pa.array([2**53 + 1]), [2.0**53]),
        (pa.array([True, None, False]), [1, np.nan, 0]),
        (pa.array([1.5, None], pa.float16()), [1.5, np.nan]),
        (pa.array([1.5, None], pa.float32()), [1.5, np.nan]),
        (pa.array([decimal.Decimal("1.10"), None]), [1.1, np.nan]),
        (pa.array([decimal.Decimal("1.10"), None], pa.decimal256(60, 2)), [1.1, np.nan]),
        (pa.nulls(2), [np.nan, np.nan]),
        (pa.array([1, None, 2]).dictionary_encode(), [1, np.nan, 2]),
        (pa.array([datetime.datetime(1970, 1, 1, 0, 0, 1, 500000), None]), [1.5, np.nan]),
        (pa.array([datetime.date(1970, 1, 2), None]), [86400, np.nan]),
        (pa.array([datetime.timedelta(milliseconds=250), None]), [0.25, np.nan]),
        (pa.array([datetime.time(0, 1)]), [60]),
        (pa.array([], pa.float64()), []),
    ],
)
def test_floats(array: pa.Array, expected: list[float]) -> None:
    for form in (array, pa.chunked_array([array]), pa.chunked_array([array[:1], array[1:]])):
        out = floats(form)
        assert out.dtype == np.float64
        np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize(
    "array", [pa.array(["1"]), pa.array([b"1"]), pa.array([[1]]), pa.array(["1"]).dictionary_encode()]
)
def test_no_floats(array: pa.Array) -> None:
    with pytest.raises(TypeError):
        floats(array)


def test_floats_without_nulls_are_not_copied() -> None:
    values = np.arange(5.0)
    assert np.shares_memory(floats(pa.array(values)), values)
    assert np.shares_memory(floats(pa.array(values)[2:]), values)


def test_validity() -> None:
    array = pa.array([1.0, None, float("nan")])
    np.testing.assert_array_equal(validity(array), [True, False, True])
    np.testing.assert_array_equal(validity(array[1:]), [False, True])
    assert validity(pa.array([1, 2])).all()
    assert not validity(pa.nulls(2)).any()
    hidden = pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), pa.array(["a", None]))
    np.testing.assert_array_equal(validity(hidden), [True, False, False])
    np.testing.assert_array_equal(validity(pa.chunked_array([array, array])), [True, False, True] * 2)


def test_times() -> None:
    moment = datetime.datetime(2026, 3, 29, 1, 0, tzinfo=UTC)
    berlin = pa.array([moment, None], pa.timestamp("ms", "Europe/Berlin"))
    nanoseconds = int(moment.timestamp()) * 10**9
    assert times(berlin).tolist() == [nanoseconds, NAT]
    naive = pa.array([moment.replace(tzinfo=None)], pa.timestamp("s"))
    assert times(naive).tolist() == [nanoseconds]
    assert times(pa.array([datetime.date(1969, 12, 31)])).tolist() == [-86400 * 10**9]
    assert times(pa.array([datetime.date(1969, 12, 31)], pa.date64())).tolist() == [-86400 * 10**9]
    assert times(pa.nulls(1)).tolist() == [NAT]
    assert np.array([NAT]).view("M8[ns]")[0] is not None and np.isnat(np.array([NAT]).view("M8[ns]")[0])
    assert times(berlin).dtype == np.int64


def test_times_out_of_range_are_held_at_the_end() -> None:
    never = pa.array([datetime.datetime(9999, 12, 31), datetime.datetime(1, 1, 1)], pa.timestamp("s"))
    last = np.iinfo(np.int64).max
    assert times(never).tolist() == [last, -last]
    assert times(pa.array([datetime.date(9999, 12, 31)])).tolist() == [last]


def test_no_times() -> None:
    with pytest.raises(TypeError):
        times(pa.array([1.5]))
