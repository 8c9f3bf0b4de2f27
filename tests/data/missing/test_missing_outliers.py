"""Values and rows outside what training saw."""

import json

import numpy as np
import pytest

from osler.catalogue import RULES
from osler.core.finding import Severity
from osler.core.settings import Missing, Settings
from osler.data.missing import check_outliers
from osler.data.missing.ranges import counts_on, outside
from osler.data.missing.rows import benjamini_hochberg, fewest
from osler.data.missing.tails import tail_of
from osler.data.missing.units import some_rows, whole_column
from osler.data.need import DataError

pytest.importorskip("sklearn")

S = Missing(reconstruction="covariance")
PLAIN = Settings(missing=S)


def at(report):
    return [f for f in report.findings if f.severity >= Severity.WARNING]


def related(n, seed):
    random = np.random.default_rng(seed)
    base = random.normal(size=n)
    return {
        "a": 70 + 10 * base,
        "b": 70 + 10 * base + random.normal(size=n),
        "c": random.lognormal(0, 1, n),
        "d": random.standard_t(3, n),
    }


def test_the_tail_of_known_laws():
    random = np.random.default_rng(0)
    for sample, heavier, lighter in (
        (random.normal(size=5000), -0.2, 0.45),
        (random.pareto(1.5, 5000), 0.5, 1.2),
        (random.standard_cauchy(5000), 0.8, 1.7),
        (random.random(5000), -1.3, -0.1),
    ):
        tail = tail_of(np.sort(sample), 1)
        assert heavier < tail.shape < lighter
        inside = float(np.quantile(sample, 0.999))
        assert 0.0002 < tail.probability(np.array([inside]))[0] < 0.02
    normal = tail_of(np.sort(random.normal(size=5000)), -1)
    assert normal.probability(np.array([-15.0]))[0] < 1e-7
    assert normal.probability(np.array([0.0]))[0] == 1.0
    assert tail_of(np.sort(random.poisson(2, 5000).astype(float)), 1) is None
    assert tail_of(np.zeros(100), 1) is None


LAWS = {
    "normal": lambda r, n: r.normal(size=n),
    "log-normal": lambda r, n: np.exp(2 * r.normal(size=n)),
    "Pareto": lambda r, n: r.pareto(1.2, n),
    "Cauchy": lambda r, n: r.standard_cauchy(n),
    "uniform": lambda r, n: r.random(n),
    "exponential": lambda r, n: r.exponential(size=n),
    "Poisson": lambda r, n: r.poisson(3, n).astype(float),
    "Zipf": lambda r, n: r.zipf(2, n).astype(float),
    "mostly zero": lambda r, n: np.where(r.random(n) < 0.9, 0, np.exp(2 * r.normal(size=n))),
    "two humps": lambda r, n: np.where(r.random(n) < 0.95, r.normal(size=n), 30 + r.normal(size=n)),
    "rounded": lambda r, n: np.round(r.normal(size=n), 1),
    "geometric": lambda r, n: r.geometric(0.05, n).astype(float),
    "two values": lambda r, n: r.integers(0, 2, n).astype(float),
}


@pytest.mark.parametrize("law", LAWS)
def test_the_same_law_is_silent_whatever_its_tail(law):
    alarms = 0
    for seed in range(100):
        random = np.random.default_rng(seed)
        alarms += outside(LAWS[law](random, 1000), LAWS[law](random, 2000), 1, S) is not None
    assert alarms <= 1


def test_gross_values_are_found():
    found = 0
    for seed in range(50):
        random = np.random.default_rng(seed)
        current = random.normal(size=1000)
        current[3] = 15
        seen = outside(random.normal(size=5000), current, 1, S)
        found += seen is not None and seen.rows.tolist() == [3]
    assert found >= 45
    codes = outside(np.arange(1000) % 2 * 1.0, np.array([0.0, 1.0, 7.0]), 1, S)
    assert codes.rows.tolist() == [2]


def test_infinity_is_outside_unless_training_had_it():
    random = np.random.default_rng(0)
    current = random.normal(size=200)
    current[7] = np.inf
    reference = random.normal(size=500)
    assert outside(reference, current, 1, S).infinite == 1
    assert outside(reference, current, 1, S).rows.tolist() == [7]
    reference[0] = -np.inf
    assert outside(reference, current, 1, S) is None


def test_columns_that_number_the_rows():
    random = np.random.default_rng(0)
    assert counts_on(np.arange(100.0))
    assert counts_on(random.permutation(100) + 5.0)
    assert counts_on(np.arange(100.0) ** 2)
    assert not counts_on(random.integers(0, 10**9, 100).astype(float))
    assert not counts_on(random.normal(size=100))
    assert not counts_on(np.arange(100.0) % 50)


@pytest.mark.parametrize(
    ("factor", "offset", "text"),
    [
        (1000, 0, "×1,000"),
        (0.01, 0, "÷100"),
        (1.8, 32, "Fahrenheit"),
        (2.54, 0, "centimetres"),
        (0.453592, 0, "kilograms"),
    ],
)
def test_another_unit_is_recognised(factor, offset, text):
    random = np.random.default_rng(0)
    reference = np.sort(random.normal(20, 4, 2000))
    current = np.sort(random.normal(20, 4, 1000) * factor + offset)
    assert text in whole_column(reference, current, S).text
    assert whole_column(reference, np.sort(random.normal(23, 4, 1000)), S) is None
    assert whole_column(reference, np.sort(random.normal(30, 12, 1000)), S) is None


def test_some_rows_in_another_unit():
    random = np.random.default_rng(0)
    reference = np.sort(random.lognormal(0, 0.6, 2000))
    assert "×1,000" in some_rows(reference, random.lognormal(0, 0.6, 10) * 1000, S).text
    assert some_rows(reference, np.array([1e9, 3.0, 77.0]), S) is None
    assert some_rows(reference, np.array([1000.0]), S) is None


def test_benjamini_hochberg_by_hand():
    p = [0.001, 0.008, 0.039, 0.041, 0.042, 0.06, 0.074, 0.205, 0.212, 0.216]
    assert benjamini_hochberg(p, 0.05).tolist() == [True, True] + [False] * 8
    assert benjamini_hochberg([], 0.05).tolist() == []
    assert fewest(999, 1000, 0.05) == 20


def test_one_report():
    reference, current = related(3000, 0), related(2000, 1)
    current["a"][17] = 1e6
    current["c"][100:112] *= 1000
    current["d"] = current["d"] * 1000
    reference["id"], current["id"] = np.arange(3000), np.arange(3000, 5000)
    reference["same"], current["same"] = np.ones(3000), np.full(2000, 2.0)
    reference["name"], current["name"] = np.array(["x"] * 3000), np.array(["y"] * 2000)
    report = check_outliers(reference, current, settings=PLAIN)
    found = {f.where.column: f for f in at(report)}
    assert set(found) == {"a", "c", "d"}
    assert found["a"].evidence["first_rows"] == [17]
    assert found["c"].evidence["unit_factor"] == 1000
    assert set(found["c"].evidence["first_rows"]) <= set(range(100, 112))
    assert "whole column d" in found["d"].message
    assert found["a"].touches == {"column:a"}
    assert {n.what for n in report.not_checked} == {"column id", "column same", "column name"}
    rows = next(t for t in report.tables if t.name == "rows").rows
    assert {r[0] for r in rows} >= {17}
    text = json.dumps(report.to_dict(RULES), allow_nan=False)
    assert "1000000" not in text.replace("×1,000,000", "")


def test_rows_that_are_odd_only_as_a_whole():
    reference, current = related(6000, 0), related(2000, 1)
    current["b"][:150] = current["b"][:150][::-1].copy()
    wrong = np.flatnonzero(np.abs(current["a"] - current["b"]) > 6)
    (finding,) = at(check_outliers(reference, current, settings=PLAIN))
    assert finding.where.column in ("a", "b")
    assert finding.evidence["rows"] >= 0.7 * len(wrong)
    assert "as a whole" in finding.message
    assert not at(check_outliers(reference, related(2000, 1), settings=PLAIN))


def test_healthy_rows_raise_no_alarm():
    alarms = sum(bool(at(check_outliers(related(800, s), related(500, 1000 + s), settings=PLAIN))) for s in range(6))
    assert alarms <= 1


def test_missing_cells_are_no_outliers():
    reference, current = related(1000, 0), related(1000, 1)
    current["a"][::2] = np.nan
    current["b"][:] = np.nan
    report = check_outliers(reference, current, settings=PLAIN)
    assert not at(report)
    assert any("without a, b" in n.why for n in report.not_checked)
    current = related(1000, 1)
    current["a"][::10] = np.nan
    report = check_outliers(reference, current, settings=PLAIN)
    assert not at(report)
    assert any("100 rows with missing values" in n.why for n in report.not_checked)


def test_what_cannot_be_judged_is_said():
    small = check_outliers(related(100, 0), related(50, 1))
    assert "too little" in small.not_checked[0].why
    none = check_outliers({"x": np.ones(3)}, {"y": np.ones(3)})
    assert none.not_checked[0].what == "outlier"
    one = check_outliers({"x": np.random.default_rng(0).normal(size=300)}, {"x": np.array([0.5])})
    assert not one.findings
    assert any(n.what == "rows as a whole" for n in one.not_checked)
    with pytest.raises(DataError, match="no rows"):
        check_outliers(related(300, 0), {k: v[:0] for k, v in related(5, 0).items()})
    with pytest.raises(DataError, match="'a'"):
        check_outliers(related(300, 0), related(300, 1), columns=["A"])


def test_large_tables_are_sampled_and_it_is_said():
    settings = Settings(missing=Missing(sample_rows=500, reconstruction="covariance"))
    report = check_outliers(related(2000, 0), related(1500, 1), settings=settings)
    assert sum("random sample of 500" in note for note in report.notes) == 2
