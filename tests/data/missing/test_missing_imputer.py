"""The imputer that follows what a model leans on."""

import warnings

import numpy as np
import pytest

from osler.data.need import DataError

pytest.importorskip("sklearn")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

from sklearn.base import clone  # noqa: E402
from sklearn.datasets import load_wine  # noqa: E402
from sklearn.experimental import enable_iterative_imputer  # noqa: E402, F401
from sklearn.frozen import FrozenEstimator  # noqa: E402
from sklearn.impute import IterativeImputer  # noqa: E402
from sklearn.linear_model import LinearRegression  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.utils.estimator_checks import check_estimator  # noqa: E402

from osler.data.missing.imputer import SensitivityImputer  # noqa: E402
from osler.data.missing.sensitivity import Sensitivity  # noqa: E402

FAST = ("iterative", "knn")
rng = np.random.default_rng(0)
X = rng.normal(size=(400, 4))
X[:, 1] = X[:, 0] + 0.3 * X[:, 1]
Y = 3 * X[:, 0] + 1 * X[:, 2]


def holes(data, share=0.2, seed=1):
    return np.where(np.random.default_rng(seed).random(data.shape) < share, np.nan, data)


def test_scikit_learns_own_checks():
    # skipped inside: the array API check, which needs an environment variable
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(SensitivityImputer(methods=("iterative", "knn")), on_fail=None, on_skip=None)
    failed = [(r["check_name"], r["exception"]) for r in results if r["status"] not in ("passed", "skipped")]
    assert not failed
    assert sum(r["status"] == "skipped" for r in results) <= 1


def test_sensitive_features_are_reconstructed_at_least_as_well_as_by_iterative_imputer():
    data, y = load_wine(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(data))
    fit, judge = order[: len(data) * 7 // 10], order[len(data) * 7 // 10 :]
    masked = holes(data)
    gone = np.isnan(masked[judge])
    ours = SensitivityImputer(methods=("iterative", "trees", "knn")).fit(masked[fit], y[fit])
    theirs = IterativeImputer(random_state=0).fit(masked[fit])
    sensitive = np.flatnonzero(ours.sensitive_)
    assert set(ours.choices_) == {f"x{j}" for j in sensitive}
    errors = []
    for imputer in (ours, theirs):
        off = np.abs(imputer.transform(masked[judge]) - data[judge]) / data.std(0)
        errors.append(np.mean([off[gone[:, j], j].mean() for j in sensitive]))
    assert errors[0] < errors[1]
    plain = np.flatnonzero(~ours.sensitive_)
    medians = np.broadcast_to(np.nanmedian(masked[fit], 0), (len(judge), data.shape[1]))
    assert np.array_equal(ours.transform(masked[judge])[:, plain][gone[:, plain]], medians[:, plain][gone[:, plain]])


def frame(n=300, seed=0):
    random = np.random.default_rng(seed)
    kind = random.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    size = np.select([kind == "a", kind == "b"], [10.0, 20.0], 30.0) + random.normal(size=n)
    return pd.DataFrame(
        {
            "kind": pd.Series(kind, dtype="category"),
            "size": size,
            "count": pd.array(np.rint(size).astype(int), dtype="Int64"),
            "name": random.choice(["u", "v"], n),
        }
    )


def test_mixed_frames_come_back_as_they_came():
    full = frame()
    data = full.copy()
    data.loc[::5, "kind"] = None
    data.loc[1::5, "size"] = np.nan
    data.loc[2::5, "count"] = pd.NA
    data.loc[3::5, "name"] = None
    imputer = SensitivityImputer(methods=FAST).fit(data)
    done = imputer.transform(data)
    assert isinstance(done, pd.DataFrame)
    assert list(done.columns) == list(data.columns)
    assert not done.isna().any().any()
    assert done["kind"].dtype == "category"
    assert done["count"].dtype.kind == "i"
    assert (done["kind"].astype(str) == full["kind"].astype(str)).mean() > 0.98
    assert (done["size"] - full["size"]).abs().mean() < 0.3
    assert (done["count"] - full["count"]).abs().max() <= 4
    polars = imputer.transform(pl.from_pandas(data.assign(kind=data["kind"].astype(object))))
    assert isinstance(polars, pl.DataFrame)
    assert polars.null_count().sum_horizontal().item() == 0
    table = clone(imputer).set_output(transform="pandas").fit(data).transform(data)
    assert table.equals(done)


def test_what_was_not_seen_at_fit():
    full = frame()
    imputer = SensitivityImputer(methods=FAST).fit(full)
    later = pd.DataFrame(
        {
            "kind": ["new", None, None, "a"],
            "size": [10.0, np.nan, 20.0, np.nan],
            "count": pd.array([pd.NA, pd.NA, 20, 11], dtype="Int64"),
            "name": ["u", None, "w", "v"],
        }
    )
    done = imputer.transform(later)
    assert done["kind"].tolist() == ["new", "a", "b", "a"]  # kept; the mode of an empty row; what the size says
    assert done["name"].tolist()[2] == "w"
    assert not done.isna().any().any()
    nothing = imputer.transform(later.assign(kind=None).iloc[:2])
    assert not nothing.isna().any().any()


def test_a_column_without_any_value_is_kept_and_said():
    data = holes(X)
    data[:, 2] = np.nan
    with pytest.warns(UserWarning, match="no value was observed in column 'x2'"):
        imputer = SensitivityImputer(methods=FAST).fit(data)
    done = imputer.transform(data)
    assert done.shape == data.shape
    assert np.all(done[:, 2] == 0)


@pytest.mark.parametrize("data", [X[:1], X[:5], X[:, :1], np.full((50, 2), 3.0)])
def test_small_and_constant_tables_pass_through(data):
    imputer = SensitivityImputer(methods=FAST).fit(data)
    assert np.array_equal(imputer.transform(data), data)
    assert np.array_equal(imputer.transform(np.full((1, data.shape[1]), np.nan)), np.median(data, 0, keepdims=True))


def test_it_clones_into_pipelines_and_marks_what_was_missing():
    lean = Sensitivity(np.array([0.7, 0.1, 0.2, 0.0]), ("x0", "x1", "x2", "x3"), "given")
    imputer = SensitivityImputer(sensitivity=lean, methods=FAST, add_indicator=True)
    assert clone(imputer).get_params()["sensitivity"] is not None
    data = holes(X)
    pipe = make_pipeline(imputer, LinearRegression()).fit(data, Y)
    assert pipe.score(data, Y) > 0.6
    assert imputer.sensitive_.tolist() == [True, False, True, False]
    assert imputer.get_feature_names_out().tolist()[4:] == [f"missing_x{j}" for j in range(4)]
    assert np.array_equal(imputer.transform(data)[:, 4:], np.isnan(data))
    model = FrozenEstimator(LinearRegression().fit(X, Y))
    asked = clone(SensitivityImputer(model=model, methods=FAST)).fit(data)
    assert asked.sensitivity_.values == pytest.approx([0.75, 0, 0.25, 0], abs=0.06)
    named = SensitivityImputer(sensitivity={"x3": 1.0}, methods=FAST).fit(data)
    assert named.sensitive_.tolist() == [False, False, False, True]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": 0}, "threshold"),
        ({"methods": "magic"}, "'magic' is unknown"),
        ({"sensitivity": [1.0, 2.0]}, "4 finite numbers"),
        ({"sensitivity": {"age": 1.0}}, "'age'"),
        ({"sensitivity": [np.nan, 1, 1, 1]}, "finite"),
    ],
)
def test_options_that_make_no_sense_are_one_line(options, message):
    with pytest.raises(DataError, match=message):
        SensitivityImputer(**options).fit(X)


def test_infinity_is_refused():
    with pytest.raises(ValueError, match="infinity"):
        SensitivityImputer(methods=FAST).fit(np.where(X > 2, np.inf, X))
    with pytest.raises(DataError, match="column 'a' holds infinity"):
        SensitivityImputer(methods=FAST).fit(pd.DataFrame({"a": [1.0, np.inf], "b": [1.0, 2.0]}))
