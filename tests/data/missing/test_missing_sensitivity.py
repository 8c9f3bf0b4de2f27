"""How much models lean on their features."""

import subprocess
import sys
import warnings

import numpy as np
import pytest

from osler.data.need import DataError

pytest.importorskip("sklearn")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

from sklearn.linear_model import LinearRegression  # noqa: E402

from osler.data.missing.sensitivity import sensitivity  # noqa: E402

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 4))
X[:, 1] = X[:, 0] + 0.3 * X[:, 1]
Y = 3 * X[:, 0] + 1 * X[:, 2]


class Linear:
    """A model that knows its own weights and has nothing else."""

    def __init__(self, *weights):
        self.weights = np.array(weights)

    def predict(self, data):
        return np.asarray(data) @ self.weights


def test_permutation_gives_the_weights_times_the_spreads():
    found = sensitivity(Linear(3.0, 0.0, 1.0, 0.0), X)
    assert found.method == "permutation"
    assert found.names == ("x0", "x1", "x2", "x3")
    assert found.values.sum() == pytest.approx(1)
    assert found.values == pytest.approx([0.75, 0, 0.25, 0], abs=0.03)
    assert found.above(0.15, 1.5).tolist() == [True, False, True, False]
    assert sensitivity(Linear(3.0, 0.0, 1.0, 0.0).predict, X).values == pytest.approx(found.values)


def test_a_model_that_leans_on_nothing_gives_zeros():
    assert sensitivity(Linear(0.0, 0.0, 0.0, 0.0), X).values.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_models_get_the_frame_that_they_were_fitted_on(frame):
    data = frame({name: X[:, j] for j, name in enumerate("abcd")})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = sensitivity(LinearRegression().fit(data, Y), data)
    assert found.names == tuple("abcd")
    assert found.values == pytest.approx([0.75, 0, 0.25, 0], abs=0.03)


def test_a_model_that_refuses_nan_gets_medians():
    with_holes = np.where(np.random.default_rng(1).random(X.shape) < 0.2, np.nan, X)
    found = sensitivity(LinearRegression().fit(X, Y), with_holes)
    assert found.values == pytest.approx([0.75, 0, 0.25, 0], abs=0.05)


def test_a_quick_model_gives_noise_nothing():
    y = (X[:, 0] + 0.3 * rng.normal(size=400) > 0).astype(int)
    noisy = np.column_stack([X[:, [0]], rng.normal(size=(400, 9))])
    found = sensitivity(None, noisy, y)
    assert found.method == "model"
    assert found.values[0] > 0.9


def test_labels_of_text_and_none_are_understood():
    y = np.where(X[:, 0] > 0, "yes", "no").astype(object)
    y[:20] = None
    assert sensitivity(None, X, y).values[0] > 0.5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((None, X), "needs a model, or labels"),
        ((None, X, Y[:5]), "400 rows but 5 labels"),
        ((object(), X), "neither predict nor predict_proba"),
        ((None, X[:10], Y[:10]), "too few"),
        ((Linear(1, 1, 1, 1), X[:1]), "at least 2 rows"),
        ((Linear(1, 1, 1, 1), X[:, 0]), "2-dimensional"),
    ],
)
def test_what_cannot_be_asked_is_one_line(arguments, message):
    with pytest.raises(DataError, match=message):
        sensitivity(*arguments)


def test_importing_the_imputer_imports_no_torch():
    code = "import sys, osler.data.missing.imputer, osler.data.missing.check; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_wide_tables_still_have_sensitive_features():
    weights = np.linspace(1, 0, 40)
    found = sensitivity(Linear(*weights), rng.normal(size=(300, 40)))
    assert found.values.max() < 0.15
    assert 5 <= found.above(0.15, 1.5).sum() <= 20
