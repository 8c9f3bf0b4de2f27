"""Tables of numbers and categories as one matrix, and codes for missing."""

import numpy as np
import pyarrow as pa
import pytest

from osler.core.settings.missing import Missing
from osler.data.missing.coded import as_missing, coded
from osler.data.missing.columns import encode, is_missing, learn, read
from osler.data.missing.design import Design
from osler.data.need import DataError

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")


def encoded(data):
    columns = read(data)
    plans = learn(columns)
    return columns, plans, encode(columns, plans)


def test_a_pandas_frame_of_every_kind():
    frame = pd.DataFrame(
        {
            "f": [1.5, np.nan, 3.0],
            "i": pd.array([1, None, 3], dtype="Int64"),
            "b": [True, False, True],
            "s": ["a", None, "b"],
            "c": pd.Categorical(["x", "x", None]),
            "o": pd.Series([1, None, 2.5], dtype=object),
        }
    )
    columns, plans, codes = encoded(frame)
    assert [p.is_category for p in plans] == [False, False, False, True, True, False]
    assert [p.integer for p in plans] == [False, True, True, False, False, False]
    assert [int(c.missing.sum()) for c in columns] == [1, 1, 0, 1, 1, 1]
    assert np.isnan(codes).sum() == 5
    assert codes[:, 1].tolist()[::2] == [1.0, 3.0]


def test_polars_and_arrow_read_alike():
    data = {"x": [1.0, None, float("nan")], "k": ["a", "b", None], "n": [None, None, None], "t": [True, None, False]}
    _, plans, codes = encoded(pl.DataFrame(data))
    _, plans2, codes2 = encoded(pa.table(data))
    assert np.array_equal(codes, codes2, equal_nan=True)
    assert [p.is_category for p in plans] == [p.is_category for p in plans2] == [False, True, False, False]
    assert np.isnan(codes[:, 2]).all()


def test_object_arrays_hold_numbers_or_categories():
    data = np.array([[1, "a"], [None, "b"], [np.nan, None]], dtype=object)
    _, plans, codes = encoded(data)
    assert [p.is_category for p in plans] == [False, True]
    assert np.array_equal(np.isnan(codes), [[False, False], [True, False], [True, True]])


def test_mixed_types_in_one_column_are_categories():
    _, plans, _ = encoded(pd.DataFrame({"m": pd.Series([1, "1", 1, None], dtype=object)}))
    assert plans[0].categories == (1, "1")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (np.zeros(3), "2-dimensional"),
        (np.zeros((2, 2), dtype="datetime64[s]"), "neither numbers nor categories"),
        (pd.DataFrame({"t": pd.to_datetime(["2024-01-01"])}), "column 't'"),
        (pd.DataFrame({"l": [[1, 2], [3]]}), "column 'l' holds list values"),
        (pl.DataFrame({"l": [[1, 2], [3]]}), "column 'l'"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "column 'a' appears more than once"),
    ],
)
def test_what_is_no_table_of_numbers_and_categories_is_one_line(data, message):
    with pytest.raises(DataError, match=message) as error:
        read(data)
    assert "\n" not in str(error.value)


def test_unseen_categories_have_no_code_but_are_not_missing():
    plans = learn(read(pd.DataFrame({"k": ["a", "b", "a"]})))
    later = read(pd.DataFrame({"k": ["a", "new", None]}))
    assert np.array_equal(np.isnan(encode(later, plans)[:, 0]), [False, True, True])
    assert later[0].missing.tolist() == [False, False, True]


def test_text_where_numbers_were_is_refused():
    plans = learn(read(pd.DataFrame({"k": [1.0, 2.0]})))
    with pytest.raises(DataError, match="'k' held numbers before"):
        encode(read(pd.DataFrame({"k": ["a", "b"]})), plans)


def test_missing_in_every_spelling():
    assert all(is_missing(v) for v in (None, float("nan"), np.float32("nan"), pd.NA, pd.NaT))
    assert not any(is_missing(v) for v in (0, "", "nan", False, float("inf")))


def test_the_design_spreads_a_missing_category_over_its_shares():
    _, plans, codes = encoded(pd.DataFrame({"x": [1.0, 3.0, np.nan, 2.0], "k": ["a", "a", "b", None]}))
    matrix = Design(plans).learn(codes).matrix(codes)
    assert matrix.shape == (4, 3)
    assert np.isnan(matrix).sum() == 1
    assert matrix[3, 1:].tolist() == pytest.approx([2 / 3, 1 / 3])
    assert matrix[:, 0][[0, 1, 3]].tolist() == pytest.approx([-1.22474, 1.22474, 0.0], abs=1e-4)


def codes_in(**columns):
    return {(c.column, c.code): c for c in coded(read(pa.table(columns)), Missing())}


def test_codes_for_missing_are_found():
    rng = np.random.default_rng(0)
    age = np.where(np.arange(500) % 20 == 0, -999.0, rng.integers(18, 90, 500).astype(float))
    big = np.where(np.arange(500) % 20 == 0, 99999.0, rng.normal(50, 10, 500))
    text = np.where(np.arange(500) % 50 == 0, "?", "left")
    numbers = np.where(np.arange(500) % 250 == 0, "n/a", rng.integers(0, 900, 500).astype(str))
    found = codes_in(age=age, big=big, text=text, numbers=numbers)
    assert set(found) == {("age", "-999"), ("big", "99999"), ("text", "?"), ("numbers", "n/a")}
    assert found["age", "-999"].certain
    assert found["age", "-999"].share == pytest.approx(0.05)
    assert found["numbers", "n/a"].text_for_numbers


def test_what_may_be_meant_is_left_alone():
    rng = np.random.default_rng(0)
    found = codes_in(
        balance=np.where(np.arange(500) % 20 == 0, -999.0, rng.normal(0, 1500, 500)),
        price=np.where(np.arange(500) % 5 == 0, 999.0, rng.uniform(100, 2000, 500)),
        rating=rng.choice([-1.0, 0.0, 1.0], 500),
        once=np.where(np.arange(500) == 3, -999.0, rng.normal(0, 1, 500)),
        plain=rng.choice(["red", "green"], 500),
    )
    assert not found


def test_namibia_is_only_possible():
    country = np.random.default_rng(0).choice(["NA", "ZA", "BW", "ZM"], 400)
    assert [c.certain for c in codes_in(country=country).values()] == [False]


def test_codes_are_taken_as_missing_on_a_copy_only():
    values = np.array([-999.0] * 10 + list(range(40, 80)))
    (column,) = read(pa.table({"x": values}))
    found = coded([column], Missing())
    assert as_missing(column, found).missing.sum() == 10
    assert column.missing.sum() == 0
