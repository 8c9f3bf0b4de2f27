"""Real digits under real models: noise of a second model's errors, weak models on right labels, cross-validation."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pytest

from osler.data.labels import audit_labels, check_labels, cross_validated_probs
from osler.data.need import DataError

sklearn = pytest.importorskip("sklearn")
pytest.importorskip("scipy")
pytestmark = pytest.mark.filterwarnings("ignore:lbfgs failed")

EIGHT = [10, 20, 28, 34, 36, 42, 52, 60]


@cache
def digits() -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return X / 16, y


def model(name: str) -> object:
    from sklearn.ensemble import ExtraTreesClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.tree import DecisionTreeClassifier

    return {
        "lr": lambda: LogisticRegression(C=0.3, max_iter=50),
        "et": lambda: ExtraTreesClassifier(60, min_samples_leaf=2, random_state=0),
        "knn": lambda: KNeighborsClassifier(10),
        "nb": GaussianNB,
        "tree": lambda: DecisionTreeClassifier(max_depth=5, random_state=0),
    }[name]()


def instance_noise(second: str, rows: int, columns: list[int] | None = None) -> np.ndarray:
    """True labels but where a second model, trained on few rows, errs: there, what it says."""
    X, y = digits()
    X = X if columns is None else X[:, columns]
    seen = np.random.default_rng(0).permutation(len(y))[:rows]
    guess = model(second).fit(X[seen], y[seen]).predict(X)
    out = np.where(guess != y, guess, y)
    out[seen] = y[seen]
    return out


@pytest.mark.parametrize("first", ["lr", "et", "knn"])
@pytest.mark.parametrize(
    ("second", "rows", "columns"), [("lr", 300, EIGHT), ("nb", 60, None), ("tree", 200, None), ("knn", 150, None)]
)
def test_never_below_the_vote_where_a_second_model_made_the_noise(
    first: str, second: str, rows: int, columns: list[int] | None
) -> None:
    X, y = digits()
    given = instance_noise(second, rows, columns)
    assert 0.05 < (given != y).mean() < 0.45
    probs = cross_validated_probs(X, given, model(first), folds=3)
    audit = audit_labels(given, probs, out_of_fold=True)
    assert not audit.fits[0], audit.fits
    recommended = (audit.labels(audit.chosen) == y).mean()
    assert recommended >= (probs.argmax(axis=1) == y).mean()


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("lr", None),
        ("lr", EIGHT),
        ("lr", EIGHT[:3]),
        ("et", EIGHT),
        ("knn", None),
        ("nb", None),
        ("nb", EIGHT),
        ("tree", None),
    ],
)
def test_a_model_s_own_errors_are_no_label_noise(name: str, columns: list[int] | None) -> None:
    X, y = digits()
    probs = cross_validated_probs(X if columns is None else X[:, columns], y, model(name), folds=3)
    audit = audit_labels(y, probs, out_of_fold=True)
    assert not audit.report().findings, audit.fits
    assert np.array_equal(audit.corrected(), y)


@pytest.mark.parametrize("name", ["lr", "et"])
@pytest.mark.parametrize("noise", [0.1, 0.2, 0.4])
def test_noise_by_class_is_found(name: str, noise: float) -> None:
    X, y = digits()
    rng = np.random.default_rng(1)
    given = y.copy()
    wrong = rng.random(len(y)) < noise
    given[wrong] = (y[wrong] + rng.integers(1, 10, wrong.sum())) % 10
    probs = cross_validated_probs(X, given, model(name), folds=4)
    audit = audit_labels(given, probs, out_of_fold=True)
    assert audit.noisy, audit.fits
    assert (audit.corrected() == y).mean() > (probs.argmax(axis=1) == y).mean() - 0.003
    assert abs(audit.noise_rate - noise) < 0.06


def test_features_in_place_of_predictions() -> None:
    X, y = digits()
    given = y.copy()
    given[::5] = (y[::5] + 3) % 10
    given[3::50] = -100
    report = check_labels(given, features=X, model=model("et"))
    assert [f.rule for f in report.findings] == ["label-noise"]
    assert report.subject["labelled"] == int((given >= 0).sum())
    words = np.array([f"digit {k}" for k in y])
    assert not check_labels(words, features=X, model=model("knn")).findings


def test_cross_validation() -> None:
    X, y = digits()
    probs = cross_validated_probs(X, y, model("lr"), folds=3)
    assert probs.shape == (len(y), 10)
    assert probs.dtype == np.float32
    np.testing.assert_allclose(probs.sum(axis=1), 1, atol=1e-5)
    assert (probs.argmax(axis=1) == y).mean() > 0.9

    class Memory:
        """Knows the rows it was trained on; out of fold it knows nothing."""

        def fit(self, X: np.ndarray, y: np.ndarray) -> Memory:
            self.classes_ = np.unique(y)
            self.seen = {row.tobytes(): k for row, k in zip(X, y)}
            return self

        def predict_proba(self, X: np.ndarray) -> np.ndarray:
            assert not any(row.tobytes() in self.seen for row in X)
            return np.full((len(X), len(self.classes_)), 1 / len(self.classes_))

        def get_params(self, deep: bool = True) -> dict[str, object]:
            return {}

    X3 = X + np.arange(len(X))[:, None]
    assert (cross_validated_probs(X3, y, Memory(), folds=3) > 0).all()

    groups = np.arange(len(y)) // 5
    parts: list[set[int]] = []

    class Grouped(Memory):
        def fit(self, X: np.ndarray, y: np.ndarray) -> Memory:
            parts.append(set((X[:, 0]).astype(int)))
            self.classes_ = np.unique(y)
            return self

        def predict_proba(self, X: np.ndarray) -> np.ndarray:
            assert not parts[-1] & set(X[:, 0].astype(int))
            return np.full((len(X), 10), 0.1)

    cross_validated_probs(groups[:, None].astype(float), y, Grouped(), folds=3, groups=groups)


def test_cross_validation_says_what_is_wrong() -> None:
    X, y = digits()
    with pytest.raises(DataError, match="5 rows of features and 1,797 labels"):
        cross_validated_probs(X[:5], y)
    with pytest.raises(DataError, match="the same"):
        cross_validated_probs(X[:20], np.zeros(20))
    with pytest.raises(DataError, match="a class has 1 rows, fewer than the 5 folds"):
        cross_validated_probs(X[:20], np.array([0] * 19 + [1]))
    with pytest.raises(DataError, match="no predict_proba"):
        cross_validated_probs(X, y, sklearn.svm.LinearSVC() if hasattr(sklearn, "svm") else object())
    broken = X.copy()
    broken[3, 3] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(DataError, match="LogisticRegression cannot be trained on these features"):
            cross_validated_probs(broken, y, model("lr"))
        assert cross_validated_probs(broken[:600], y[:600], folds=2).shape == (600, 10)  # the default model takes NaN


def test_a_table_of_features_without_its_label_column() -> None:
    import pyarrow as pa

    rng = np.random.default_rng(0)
    true = rng.integers(0, 2, 900)
    given = np.where(rng.random(900) < 0.2, 1 - true, true)
    table = pa.table(
        {
            "size": true * 3.0 + rng.normal(size=900),
            "kind": np.where(rng.random(900) < 0.9, true, 1 - true).astype(str),
            "label": given,
        }
    )
    from osler.data.labels.check import judge_labels

    report, audit = judge_labels(given, features=table)
    assert audit is not None
    assert audit.agreement < 0.9  # the label did not serve as its own feature
    assert any("label holds the labels" in note for note in report.notes)
    assert judge_labels(given)[1] is None
    with pytest.raises(DataError, match="900 rows of features and 300 labels"):
        judge_labels(given[:300], features=table)
