from __future__ import annotations

import base64
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from osler.render import thin

numbers = st.floats(allow_nan=True, allow_infinity=True, width=32)


def test_a_short_curve_is_kept_whole() -> None:
    assert thin.points([3, 5, 9], [1.0, math.inf, 0.1234567891]) == ([3, 5, 9], [1.0, math.inf, 0.123457])


def test_a_long_curve_keeps_extremes_and_the_one_bad_point() -> None:
    values = [math.sin(i / 1000) for i in range(100_000)]
    values[31_234], values[77_777], values[50_001] = 40.0, -40.0, math.nan
    steps, kept = thin.points(range(100_000), values)
    assert len(steps) <= 2000
    assert steps == sorted(set(steps)) and steps[0] == 0 and steps[-1] == 99_999
    at = dict(zip(steps, kept, strict=True))
    assert at[31_234] == 40.0 and at[77_777] == -40.0 and math.isnan(at[50_001])


@given(st.lists(numbers, max_size=200), st.integers(8, 60))
def test_any_curve_fits_and_keeps_its_range(values: list[float], limit: int) -> None:
    steps, kept = thin.points(range(len(values)), values, limit)
    assert len(steps) == len(kept) <= max(limit, 0) or len(values) <= limit
    finite = [v for v in values if math.isfinite(v)]
    kept_finite = [v for v in kept if math.isfinite(v)]
    if finite:
        assert max(kept_finite) == float(f"{max(finite):.6g}") and min(kept_finite) == float(f"{min(finite):.6g}")
    assert any(not math.isfinite(v) for v in values) == any(not math.isfinite(v) for v in kept)


def test_pooling_takes_the_largest_and_lets_a_bad_number_win() -> None:
    values: list[list[float | None]] = [
        [1.0, 5.0, None],
        [2.0, math.inf, None],
        [3.0, 1.0, None],
        [math.nan, 2.0, 7.0],
    ]
    pooled = thin.pool([10, 11, 12, 13], ["a", "b", "c"], values, columns=2)
    assert (pooled.first, pooled.last, pooled.rows) == ([10, 12], [11, 13], ["a", "b", "c"])
    np.testing.assert_array_equal(pooled.values[:2], [[2.0, np.nan], [np.inf, 2.0]])
    assert pooled.values[2, 1] == 7.0
    assert pooled.empty.tolist() == [[False, False], [False, False], [True, False]]


def test_pooling_rows_names_their_range() -> None:
    pooled = thin.pool([0], [f"r{i}" for i in range(10)], [[float(i) for i in range(10)]], max_rows=5)
    assert pooled.rows[0] == "r0 ... r1" and pooled.values[:, 0].tolist() == [1, 3, 5, 7, 9]


def test_short_rows_are_empty_cells_not_errors() -> None:
    pooled = thin.pool([0, 1], ["a", "b"], [[1.0, 2.0], [3.0]])
    assert pooled.empty.tolist() == [[False, False], [False, True]]
    assert thin.pool([], [], []).values.shape == (0, 0)


def test_a_row_of_zeros_and_numbers_is_pooled_like_the_numbers() -> None:
    assert thin.pool([0, 1], ["a"], [[-5.0], [-3.0]], columns=1).values.tolist() == [[-3.0]]


def unpack(packed: dict[str, object]) -> tuple[list[int], list[float]]:
    codes = np.frombuffer(base64.b64decode(str(packed["data"])), dtype="<u2")
    low, high = float(packed["low"]), float(packed["high"])  # type: ignore[arg-type]
    levels = low + (codes.astype(float) - thin.FIRST) / (thin.LAST - thin.FIRST) * (high - low)
    return codes.tolist(), (10**levels if packed["log"] else levels).tolist()


def test_packed_cells_come_back_within_a_tenth_of_a_percent() -> None:
    values = [[1e-12, 1e-3, 0.0, math.nan], [2.5, 1e4, math.inf, 17.0]]
    packed = thin.pack(thin.pool([0, 1], list("abcd"), values))
    codes, back = unpack(packed)
    assert packed["log"] is True
    flat = np.array(values).T.ravel()
    for code, value, original in zip(codes, back, flat, strict=True):
        if math.isnan(original):
            assert code == thin.NAN
        elif math.isinf(original):
            assert code == thin.INFINITE
        elif original == 0:
            assert code == thin.ZERO
        else:
            assert value == pytest.approx(original, rel=1e-3)


def test_negative_values_are_packed_as_they_are() -> None:
    packed = thin.pack(thin.pool([0], ["a", "b", "c"], [[-1.0, 0.0, 3.0]]))
    assert packed["log"] is False
    assert unpack(packed)[1] == pytest.approx([-1.0, 0.0, 3.0], abs=1e-4)


@given(st.lists(st.lists(st.one_of(st.none(), numbers), min_size=3, max_size=3), max_size=12))
def test_anything_can_be_packed(values: list[list[float | None]]) -> None:
    packed = thin.pack(thin.pool(range(len(values)), ["a", "b", "c"], values, columns=5, max_rows=2))
    assert math.isfinite(float(packed["low"])) and math.isfinite(float(packed["high"]))  # type: ignore[arg-type]
