"""Missing values weighed by what a model leans on."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from osler.catalogue import RULES
from osler.core.finding import Severity
from osler.core.settings import Missing, Settings
from osler.data.missing import check_missing
from osler.data.need import DataError

pytest.importorskip("sklearn")
pd = pytest.importorskip("pandas")

from sklearn.ensemble import HistGradientBoostingClassifier  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402

RULE = "missing-sensitive"


def table(n=1000, seed=0):
    """`score` and, less, `age` decide; `twin` follows the score; nothing depends on `noise` and `town`."""
    random = np.random.default_rng(seed)
    score = random.normal(600, 80, n)
    age = random.integers(18, 80, n).astype(float)
    y = random.random(n) < 1 / (1 + np.exp(-0.05 * (score - 600) - 0.06 * (age - 49)))
    return pd.DataFrame(
        {
            "score": score,
            "age": age,
            "twin": score + random.normal(0, 20, n),
            "noise": random.normal(size=n),
            "town": random.choice(["Alpha", "Beta", "Gamma"], n),
            "y": y.astype(int),
        }
    )


def without(data, column, share, seed=5):
    out = data.copy()
    out.loc[np.random.default_rng(seed).random(len(out)) < share, column] = None
    return out


TRAIN = table()
MODEL = LogisticRegression(max_iter=10).fit(TRAIN[["score", "age", "twin", "noise"]] * 0, TRAIN["y"])
MODEL.coef_, MODEL.intercept_ = np.array([[0.05, 0.06, 0.0, 0.0]]), np.array([-0.05 * 600 - 0.06 * 49])


def at(report, level=Severity.WARNING):
    return [f for f in report.findings if f.severity >= level]


def test_a_sensitive_feature_that_stops_coming():
    today = table(seed=1)
    today.loc[200:499, "score"] = np.nan
    report = check_missing(today, reference=TRAIN, model=MODEL)
    (finding,) = at(report)
    assert (finding.rule, finding.where.column, finding.severity.label) == (RULE, "score", "warning")
    assert finding.confidence.label == "definite"
    assert finding.touches == {"column:score"}
    assert finding.evidence["missing_share"] == pytest.approx(0.3)
    assert (finding.evidence["block_start"], finding.evidence["block_rows"]) == (200, 300)
    assert "rows 200 to 499 in one block" in finding.message
    features, effect = report.tables
    assert features.rows[0][:2] == ["score", pytest.approx(0.3)]
    losses = {row[0]: row[1] for row in effect.rows}
    assert losses["true values"] <= losses["reconstruction"] <= losses["mean or mode"]
    # nothing of the data itself, and strict JSON
    text = json.dumps(report.to_dict(RULES), allow_nan=False)
    assert "Alpha" not in text


def test_a_feature_that_is_gone_altogether_is_an_error():
    report = check_missing(table(seed=1).assign(score=np.nan), reference=TRAIN, model=MODEL)
    assert [(f.severity.label, f.where.column) for f in at(report)] == [("error", "score")]


def test_holes_that_nobody_uses_are_silent():
    today = without(without(without(table(seed=1), "noise", 0.6), "town", 0.5), "twin", 0.4)
    for extra in ({"model": MODEL}, {"label": "y"}):
        if "label" in extra:
            today = today.drop(columns="twin")
        report = check_missing(today, reference=TRAIN, **extra)
        assert not report.findings
        assert not report.not_checked


def test_what_is_missing_as_in_training_is_no_fault():
    train, today = without(TRAIN, "score", 0.2), without(table(seed=1), "score", 0.2, seed=6)
    model = HistGradientBoostingClassifier(max_iter=40).fit(train[["score", "age", "noise"]], train["y"])
    report = check_missing(today, reference=train, model=model)
    assert not at(report)
    assert [f.severity.label for f in report.findings] == ["info"]
    assert "as in training" in report.findings[0].message


def test_without_a_reference_the_effect_decides():
    report = check_missing(without(table(seed=1), "score", 0.3), model=MODEL)
    (finding,) = at(report)
    assert finding.where.column == "score"
    assert "filling in the mean costs" in finding.message
    blind = table(seed=1).assign(twin=0.0)
    report = check_missing(without(blind, "score", 0.3), model=MODEL)
    # the score follows from no other feature now: there is nothing to gain
    assert not at(report)
    assert [f.where.column for f in report.findings] == ["score"]


def test_a_label_stands_in_for_a_model():
    report = check_missing(
        without(table(seed=1), "score", 0.3).drop(columns="twin"), reference=TRAIN.drop(columns="twin"), label="y"
    )
    (finding,) = at(report)
    assert finding.where.column == "score"
    assert finding.confidence.label == "probable"
    given = check_missing(table(seed=1).drop(columns="y"), label=table(seed=1)["y"].to_numpy())
    assert not given.findings
    assert {row[0] for row in given.tables[0].rows} <= {"score", "twin", "age"}


def test_a_code_for_missing_is_named_and_nothing_is_changed():
    today = table(seed=1)
    today.loc[::9, "age"] = -999.0
    before = today.copy()
    (finding,) = at(check_missing(today, reference=TRAIN, model=MODEL))
    assert finding.where.column == "age"
    assert "-999" in finding.message
    assert finding.evidence["coded_share"] == pytest.approx(0.112)
    pd.testing.assert_frame_equal(today, before)
    # trained with it, it is no news
    train = TRAIN.copy()
    train.loc[::9, "age"] = -999.0
    assert not at(check_missing(today, reference=train, model=MODEL))


def test_holes_that_go_with_the_label_are_worth_knowing():
    today = table(seed=1)
    today.loc[(today.y == 1) & (np.random.default_rng(0).random(1000) < 0.4), "noise"] = np.nan
    report = check_missing(today, model=MODEL, label="y")
    (finding,) = report.findings
    assert (finding.severity.label, finding.where.column) == ("info", "noise")
    assert finding.evidence["label_tie"] > 0.4


def test_neither_model_nor_label_is_not_health():
    report = check_missing(without(TRAIN, "score", 0.4))
    assert not report.findings
    assert [n.what for n in report.not_checked] == [RULE]
    assert report.tables[0].rows[0][0] == "score"


def test_files_of_every_kind_of_column(tmp_path):
    n = 300
    data = pa.table(
        {
            "x": pa.array([None if i % 3 == 0 else float(i % 17) for i in range(n)]),
            "t": pa.array(np.arange(n), pa.timestamp("s")),
            "l": pa.array([[1]] * n),
            "nothing": pa.nulls(n),
            "one": np.ones(n),
            "flag": pa.array([i % 2 == 0 for i in range(n)]),
            "y": np.arange(n) % 2,
        }
    )
    pq.write_table(data, tmp_path / "data.parquet")
    report = check_missing(tmp_path / "data.parquet", label="y")
    assert {n.what for n in report.not_checked} == {"column t", "column l"}
    assert not at(report)
    assert report.subject["rows"] == n


def test_a_reference_without_a_feature_of_the_model():
    report = check_missing(without(table(seed=1), "score", 0.3), reference=TRAIN.drop(columns="age"), model=MODEL)
    assert [n.what for n in report.not_checked] == ["column age"]
    assert [f.where.column for f in at(report)] == ["score"]


def test_thresholds_are_settings():
    today = without(table(seed=1), "score", 0.1)
    assert at(check_missing(today, reference=TRAIN, model=MODEL))
    strict = Settings(missing=Missing(exposure=0.2))
    assert not check_missing(today, reference=TRAIN, model=MODEL, settings=strict).findings


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"label": "Y"}, "'y'"),
        ({"columns": ["scor"]}, "'score'"),
        ({"columns": "score"}, "list of names"),
        ({"label": [0, 1]}, "1000 rows"),
        ({"model": MODEL, "columns": ["age"]}, "fitted on column 'score'"),
        ({"model": object()}, "neither predict"),
        ({"model": LogisticRegression().fit(np.zeros((4, 3)) + np.arange(4)[:, None], [0, 1, 0, 1])}, "3 features"),
    ],
)
def test_what_makes_no_sense_is_one_line(arguments, message):
    with pytest.raises(DataError, match=message) as error:
        check_missing(TRAIN, **arguments)
    assert "\n" not in str(error.value)


def test_no_rows_and_one_row():
    with pytest.raises(DataError, match="no rows"):
        check_missing(TRAIN.iloc[:0], label="y")
    report = check_missing(TRAIN.iloc[:1], label="y")
    assert [n.what for n in report.not_checked] == [RULE]
    assert not report.findings
