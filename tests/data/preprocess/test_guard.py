"""What the guard reports and on what it stays silent. scikit-learn is imported once."""

from __future__ import annotations

import copy
import inspect
import pickle
import threading
from collections.abc import Callable

import numpy as np
import pytest

from osler.core.finding import Confidence, Finding, Severity
from osler.core.settings import Settings
from osler.core.settings.preprocess import Preprocess
from osler.data.preprocess import guard, patches

sklearn = pytest.importorskip("sklearn")
from sklearn.base import BaseEstimator, TransformerMixin, clone  # noqa: E402
from sklearn.cluster import KMeans  # noqa: E402
from sklearn.compose import ColumnTransformer  # noqa: E402
from sklearn.feature_extraction.text import CountVectorizer  # noqa: E402
from sklearn.feature_selection import SelectKBest  # noqa: E402
from sklearn.impute import SimpleImputer  # noqa: E402
from sklearn.linear_model import LogisticRegression, SGDClassifier  # noqa: E402
from sklearn.model_selection import (  # noqa: E402
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneOut,
    cross_val_score,
    train_test_split,
)  # fmt: skip
from sklearn.pipeline import Pipeline, make_pipeline  # noqa: E402
from sklearn.preprocessing import LabelEncoder, Normalizer, OneHotEncoder, StandardScaler  # noqa: E402

RNG = np.random.default_rng(0)
X = RNG.normal(size=(240, 12))
y = RNG.integers(0, 2, 240)
LEAK, REUSED = "preprocess-leak", "model-reused-across-folds"


def found(work: Callable[[], object], **kwargs: object) -> list[Finding]:
    with guard(**kwargs) as g:  # type: ignore[arg-type]
        work()
    report = g.report()
    assert not report.notes, report.notes
    return report.findings


def line_of(work: Callable[..., object], text: str) -> int:
    lines, first = inspect.getsourcelines(work)
    return first + next(i for i, line in enumerate(lines) if text in line)


def halves(Z: object) -> None:
    a, b, c, d = train_test_split(Z, y, random_state=0)
    LogisticRegression().fit(a, c).score(b, d)


def before_split() -> None:
    Z = StandardScaler().fit_transform(X)  # here
    halves(Z)


def by_hand() -> None:
    Z = StandardScaler().fit(X).transform(X)  # here
    order = RNG.permutation(240)
    model = LogisticRegression().fit(Z[order[:180]], y[order[:180]])
    model.score(Z[order[180:]], y[order[180:]])


def selection() -> None:
    Z = SelectKBest(k=4).fit_transform(X, y)  # here
    cross_val_score(LogisticRegression(), Z, y)


def searched() -> None:
    Z = SelectKBest(k=4).fit_transform(X, y)  # here
    GridSearchCV(LogisticRegression(), {"C": [0.1, 1]}, cv=3).fit(Z, y)


def stacked_rows() -> None:
    a, b, c, d = train_test_split(X, y, random_state=0)
    scaler = StandardScaler().fit(np.vstack([a, b]))  # here
    LogisticRegression().fit(scaler.transform(a), c).score(scaler.transform(b), d)


def fitted_anew() -> None:
    a, b, c, d = train_test_split(X, y, random_state=0)
    scaler = StandardScaler()
    model = LogisticRegression().fit(scaler.fit_transform(a), c)
    model.score(scaler.fit_transform(b), d)  # here


def first_fold_only() -> None:
    scaler = None
    for train, test in KFold(4).split(X):
        scaler = scaler or StandardScaler().fit(X[train])  # here
        LogisticRegression().fit(scaler.transform(X[train]), y[train]).score(scaler.transform(X[test]), y[test])


def carried() -> None:
    scaler = StandardScaler()
    for train, test in KFold(4).split(X):
        scaler.partial_fit(X[train])  # here
        LogisticRegression().fit(scaler.transform(X[train]), y[train]).score(scaler.transform(X[test]), y[test])


def columns_leak() -> None:
    parts = ColumnTransformer([("n", StandardScaler(), slice(0, 6)), ("k", "passthrough", slice(6, 12))])
    Z = parts.fit_transform(X)  # here
    halves(Z)


def one_by_one() -> None:
    Z = StandardScaler().fit_transform(X[:40])  # here
    cross_val_score(LogisticRegression(), Z, y[:40], cv=LeaveOneOut())


def frozen() -> None:
    from sklearn.frozen import FrozenEstimator

    scaler = StandardScaler().fit(X)  # here
    a, b, c, d = train_test_split(X, y, random_state=0)
    make_pipeline(FrozenEstimator(scaler), LogisticRegression()).fit(a, c).score(b, d)


@pytest.mark.parametrize(
    ("work", "severity", "sure"),
    [
        (before_split, Severity.WARNING, True), (by_hand, Severity.WARNING, False), (selection, Severity.ERROR, True),
        (searched, Severity.ERROR, True), (stacked_rows, Severity.WARNING, False), (fitted_anew, Severity.WARNING, True),
        (first_fold_only, Severity.WARNING, False), (carried, Severity.WARNING, False),
        (columns_leak, Severity.WARNING, True), (one_by_one, Severity.WARNING, True), (frozen, Severity.WARNING, True),
    ],
)  # fmt: skip
def test_leaks_are_found_at_the_line_of_the_fit(work: Callable[[], None], severity: Severity, sure: bool) -> None:
    (finding,) = found(work)
    assert (finding.rule, finding.severity) == (LEAK, severity)
    assert (finding.confidence is Confidence.DEFINITE) == sure
    assert finding.where.file == __file__ and finding.where.line == line_of(work, "# here")
    assert finding.where.function == work.__name__
    evidence = finding.evidence
    assert 0 < evidence["rows_shared"] <= evidence["rows_evaluated"]  # type: ignore[operator]
    assert finding.fix and str(evidence["evaluated_line"]) in finding.message


def test_the_numbers_and_the_wording() -> None:
    (finding,) = found(before_split)
    assert finding.evidence == {
        "rows_fitted": 240, "rows_evaluated": 60, "rows_shared": 60, "learned": "statistics", "rows_by": "position",
        "evaluated_line": line_of(halves, "score"),
    }  # fmt: skip
    assert "before the rows were split: 60 of the 60 rows" in finding.message
    (finding,) = found(carried)
    assert "an earlier fit left" in finding.message and "clone" in finding.fix
    (finding,) = found(fitted_anew)
    assert "anew on the evaluation rows" in finding.message and "`transform`" in finding.fix


def test_pandas_columns_assigned_one_by_one() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(12)])
    numbers = list(frame.columns[:6])

    def assigned() -> None:
        df = frame.copy()
        df[numbers] = StandardScaler().fit_transform(df[numbers])  # here
        train = df.sample(frac=0.7, random_state=0)
        test = df.drop(train.index)
        model = LogisticRegression().fit(train, y[train.index])
        model.score(test, y[test.index])

    (finding,) = found(assigned)
    assert finding.where.line == line_of(assigned, "# here") and finding.severity is Severity.WARNING

    def set_output() -> None:
        Z = StandardScaler().set_output(transform="pandas").fit_transform(frame)  # here
        halves(Z)

    (finding,) = found(set_output)
    assert finding.where.line == line_of(set_output, "# here")


def test_a_vocabulary_is_only_worth_knowing() -> None:
    words = [" ".join(RNG.choice(list("abcdefghij"), 7)) for _ in range(240)]

    def work() -> None:
        halves(CountVectorizer(token_pattern=".").fit_transform(words))

    (finding,) = found(work)
    assert finding.severity is Severity.INFO and finding.evidence["learned"] == "vocabulary"


def test_split_without_an_evaluation_is_only_worth_knowing() -> None:
    def work() -> None:
        Z = StandardScaler().fit_transform(X)
        train_test_split(Z, y)

    with guard() as g:
        work()
    (finding,) = g.report().findings
    assert finding.severity is Severity.INFO and "no evaluation" in finding.message
    assert [n.what for n in g.report().not_checked] == [LEAK]


# --- what must stay silent --------------------------------------------------------------------------------------------


class Stateless(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        return np.tanh(X)


def clean_pipeline() -> None:
    pipe = make_pipeline(SimpleImputer(), StandardScaler(), SelectKBest(k=5), LogisticRegression())
    cross_val_score(pipe, X, y)
    GridSearchCV(pipe, {"selectkbest__k": [2, 4]}, cv=3).fit(X, y)
    halves_pipe = train_test_split(X, y)
    pipe.fit(halves_pipe[0], halves_pipe[2]).score(halves_pipe[1], halves_pipe[3])
    pipe.fit(X, y).predict(X)


def fitted_on_training_transforms_all() -> None:
    for train, test in KFold(4, shuffle=True).split(X):
        Z = StandardScaler().fit(X[train]).transform(X)
        LogisticRegression().fit(Z[train], y[train]).score(Z[test], y[test])


def stateless() -> None:
    halves(Normalizer().fit_transform(Stateless().fit_transform(SimpleImputer(strategy="constant").fit_transform(X))))


def target_encoded() -> None:
    labels = LabelEncoder().fit_transform(np.where(y, "b", "a"))
    cross_val_score(LogisticRegression(), X, labels)


def refit_at_the_end() -> None:
    halves(X)
    scaler = StandardScaler().fit(X)
    LogisticRegression().fit(scaler.transform(X), y).predict(scaler.transform(RNG.normal(size=(30, 12))))


def looked_at_only() -> None:
    Z = StandardScaler().fit_transform(X)
    SelectKBest(k=3).fit_transform(X, y)
    KMeans(3, n_init=1).fit(Z).predict(Z)
    order = RNG.permutation(240)
    scaler = StandardScaler().fit(X[order[:180]])
    model = LogisticRegression().fit(scaler.transform(X[order[:180]]), y[order[:180]])
    model.score(scaler.transform(X[order[180:]]), y[order[180:]])


def nothing_filled() -> None:
    """An imputer that had nothing to fill gives the raw rows again: its fit is not to blame for them."""
    SimpleImputer().fit_transform(X)
    order = RNG.permutation(240)
    LogisticRegression().fit(X[order[:180]], y[order[:180]]).score(X[order[180:]], y[order[180:]])


def equal_rows() -> None:
    codes = RNG.integers(0, 2, (240, 3)).astype(float)
    order = RNG.permutation(240)
    encoder = OneHotEncoder().fit(codes[order[:180]])
    model = LogisticRegression().fit(encoder.transform(codes[order[:180]]), y[order[:180]])
    model.score(encoder.transform(codes[order[180:]]), y[order[180:]])


def stream() -> None:
    scaler, model = StandardScaler(), SGDClassifier()
    for i in range(8):
        batch, labels = RNG.normal(size=(30, 4)), RNG.integers(0, 2, 30)
        ready = scaler.partial_fit(batch).transform(batch)
        if i:
            model.predict(ready)
        model.partial_fit(ready, labels, classes=[0, 1])


def by_group() -> None:
    Z, groups = np.empty_like(X), np.repeat(np.arange(6), 40)
    for g in range(6):
        Z[groups == g] = StandardScaler().fit_transform(X[groups == g])
    for train, test in GroupKFold(6).split(Z, y, groups):
        LogisticRegression().fit(Z[train], y[train]).score(Z[test], y[test])


def part_of_the_training_rows() -> None:
    a, b, c, d = train_test_split(X, y, random_state=0)
    scaler = StandardScaler().fit(a)
    model = LogisticRegression().fit(scaler.transform(a)[:60], c[:60])
    model.score(scaler.transform(a), c)
    model.score(scaler.transform(b), d)


def another_precision() -> None:
    """Trained on a copy whose values are rounded: what it was trained on is not known."""
    a, _, c, _ = train_test_split(X, y, random_state=0)
    scaler = StandardScaler().fit(a)
    model = LogisticRegression().fit(scaler.transform(a).astype(np.float32), c)
    model.score(scaler.transform(a), c)
    codes = (X > 0).astype(float)
    encoder = OneHotEncoder(sparse_output=False).fit(codes)
    Z = encoder.transform(codes)
    few = RNG.permutation(240)[:100]
    LogisticRegression().fit(Z[few], y[few]).score(Z, y)


def epochs() -> None:
    for train, test in KFold(3).split(X):
        model = SGDClassifier()
        for _ in range(4):
            for part in np.array_split(train, 4):
                model.partial_fit(X[part], y[part], classes=[0, 1])
            model.score(X[train], y[train])
            model.score(X[test], y[test])


def warm_but_convex() -> None:
    model = LogisticRegression(warm_start=True)
    for train, test in KFold(4).split(X):
        model.fit(X[train], y[train]).score(X[test], y[test])


SILENT = [
    clean_pipeline, fitted_on_training_transforms_all, stateless, target_encoded, refit_at_the_end, looked_at_only,
    nothing_filled, equal_rows, stream, by_group, part_of_the_training_rows, another_precision, epochs, warm_but_convex,
]  # fmt: skip


@pytest.mark.parametrize("work", SILENT, ids=lambda w: w.__name__)
def test_silent_on(work: Callable[[], None]) -> None:
    assert found(work) == []


# --- models through folds ---------------------------------------------------------------------------------------------


def test_a_model_that_goes_on_learning() -> None:
    from sklearn.ensemble import RandomForestClassifier

    def partial() -> None:
        model = SGDClassifier()
        for train, test in KFold(4).split(X):
            for part in np.array_split(train, 3):
                model.partial_fit(X[part], y[part], classes=[0, 1])  # here
            model.score(X[test], y[test])

    (finding,) = found(partial)
    assert (finding.rule, finding.severity, finding.confidence) == (REUSED, Severity.ERROR, Confidence.DEFINITE)
    assert finding.where.line == line_of(partial, "# here") and finding.count == 3
    assert finding.evidence["rows_already_learned"] == finding.evidence["rows_evaluated"] == 60

    def warm() -> None:
        model = RandomForestClassifier(n_estimators=2, warm_start=True)
        for train, test in KFold(4).split(X):
            model.fit(X[train], y[train]).score(X[test], y[test])
            model.n_estimators += 2

    assert [f.rule for f in found(warm)] == [REUSED]


# --- the patient ------------------------------------------------------------------------------------------------------


def test_everything_is_put_back() -> None:
    def state() -> dict[str, object]:
        import sklearn.model_selection._split as split
        import sklearn.utils.metaestimators as meta

        out: dict[str, object] = {"a": split._safe_indexing, "b": meta._safe_indexing, "c": KFold.__dict__.get("split")}
        for kind in patches._family(BaseEstimator):
            for owner in kind.__mro__:
                for name in (*patches.METHODS, "__init_subclass__"):
                    if name in owner.__dict__ and owner is not object:
                        out[f"{owner}{name}"] = owner.__dict__[name]
        return out

    before = state()
    with guard():
        assert StandardScaler.__dict__["fit"] is not before[f"{StandardScaler}fit"]

        class Late(TransformerMixin, BaseEstimator):
            def fit(self, X, y=None):
                self.mean_ = X.mean()
                return self

            def transform(self, X):
                return X - self.mean_

        Late().fit(X).transform(X)
    assert state().items() >= before.items()
    assert patches.current is None
    fit, transform = Late.__dict__["fit"], Late.__dict__["transform"]
    assert not fit.__code__.co_filename.endswith("patches.py")
    inner = [c.cell_contents for c in transform.__closure__ or ()]
    assert all(not getattr(f, "__code__", fit.__code__).co_filename.endswith("patches.py") for f in inner)


def test_a_class_made_inside_is_watched() -> None:
    def work() -> None:
        class Mean(TransformerMixin, BaseEstimator):
            def fit(self, X, y=None):
                self.mean_ = X.mean(0)
                return self

            def transform(self, X):
                return X - self.mean_

        halves(Mean().fit_transform(X))

    assert [f.evidence["learned"] for f in found(work)] == ["statistics"]


def test_classes_of_ones_own() -> None:
    class Plain:
        def fit(self, X, y=None):
            self.mean = X.mean(0)
            return self

        def transform(self, X):
            return X - self.mean

    def work() -> None:
        halves(Plain().fit(X).transform(X))

    assert found(work) == []
    assert [f.rule for f in found(work, watch=[Plain])] == [LEAK]
    assert not Plain.fit.__code__.co_filename.endswith("patches.py")


def test_results_objects_and_signatures_are_as_without() -> None:
    pipe = make_pipeline(SimpleImputer(), StandardScaler(), SelectKBest(k=3), LogisticRegression())

    def run() -> tuple[object, ...]:
        fitted = clone(pipe).fit(X[:180], y[:180])
        scores = cross_val_score(pipe, X, y)
        return (
            fitted.predict_proba(X[180:]).tobytes(), scores.tobytes(), pickle.dumps(fitted[1]), vars(fitted[1]).keys(),
            str(inspect.signature(StandardScaler.fit)), str(inspect.signature(LogisticRegression().fit)), repr(fitted),
            fitted.get_params().keys(), type(copy.deepcopy(fitted)), hasattr(make_pipeline(StandardScaler()), "predict"),
            StandardScaler.fit.__doc__, StandardScaler.fit.__qualname__, KFold(3).split.__name__,
        )  # fmt: skip

    before = run()
    with guard():
        during = run()
        blob = pickle.dumps(StandardScaler().fit(X))
    assert before == during == run()
    assert pickle.loads(blob).transform(X).tobytes() == StandardScaler().fit_transform(X).tobytes()


def test_classes_that_are_pickled_by_value_take_nothing_along() -> None:
    cloudpickle = pytest.importorskip("cloudpickle")
    import subprocess
    import sys

    space: dict[str, object] = {
        "__name__": "__main__",
        "BaseEstimator": BaseEstimator,
        "TransformerMixin": TransformerMixin,
    }
    with guard():
        exec(
            "class Mine(TransformerMixin, BaseEstimator):\n"
            "    def fit(self, X, y=None):\n        self.m_ = sum(X)\n        return self\n"
            "    def transform(self, X):\n        return [x - self.m_ for x in X]\n",
            space,
        )
        blob = cloudpickle.dumps(space["Mine"]().fit([1, 2]))  # type: ignore[operator]
    code = "import pickle, sys; m = pickle.load(sys.stdin.buffer); print(m.transform([4]), 'osler' in sys.modules)"
    child = subprocess.run([sys.executable, "-c", code], input=blob, capture_output=True, timeout=60, check=False)
    assert child.stdout.decode().split() == ["[1]", "False"], child.stderr


def test_exceptions_pass_and_what_failed_is_forgotten() -> None:
    class Angry(BaseEstimator):
        def fit(self, X, y=None):
            raise OSError("disk")

    with guard() as g, pytest.raises(OSError, match="disk"):
        Angry().fit(X)
    with guard() as g:
        with pytest.raises(ValueError, match="NaN"):
            LogisticRegression().fit(np.full((20, 2), np.nan), [0, 1] * 10)
        with pytest.raises(sklearn.exceptions.NotFittedError):
            StandardScaler().transform(X)
        with pytest.raises(TypeError):
            StandardScaler().fit()
    assert g.report().findings == [] and g.report().notes == []


def test_a_fault_of_ours_steps_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    from osler.data.preprocess.book import Book

    def broken(self: object, data: object) -> None:
        raise RuntimeError("no book")

    monkeypatch.setattr(Book, "look", broken)
    with guard() as g:
        Z = StandardScaler().fit_transform(X)
        halves(Z)
        assert not StandardScaler.fit.__code__.co_filename.endswith("patches.py")
    assert np.allclose(Z.mean(0), 0)
    assert len(g.report().notes) == 1 and "stepped aside (RuntimeError: no book)" in g.report().notes[0]
    assert [n.what for n in g.report().not_checked] == [LEAK]


def test_input_is_not_consumed_and_odd_input_is_said() -> None:
    with guard() as g:
        counts = CountVectorizer(token_pattern=".").fit_transform(letter for letter in "abcabc")
    assert counts.sum() == 6
    assert any("could not be told" in n.why for n in g.report().not_checked)


def test_threads() -> None:
    errors: list[BaseException] = []

    def work() -> None:
        try:
            Z = StandardScaler().fit_transform(RNG.normal(size=(200, 4)))
            model = LogisticRegression().fit(Z[:150], y[:150])
            model.score(Z[150:], y[150:200])
        except BaseException as error:
            errors.append(error)

    with guard() as g:
        threads = [threading.Thread(target=work) for _ in range(6)]
        [t.start() for t in threads]
        [t.join() for t in threads]
    assert not errors
    (finding,) = g.report().findings
    assert finding.count == 6


def test_inside_another_guard_the_outer_one_has_the_findings() -> None:
    with guard() as outer:
        with guard() as inner:
            before_split()
        assert patches.current is not None
    assert inner.report().findings == [] and "watched already" in inner.report().notes[0]
    assert len(outer.report().findings) == 1


def test_time_is_bounded_and_said() -> None:
    settings = Settings(preprocess=Preprocess(guard_s=0.0, guard_share=1e-6))
    with guard(settings=settings) as g:
        before_split()
        by_hand()
    report = g.report()
    assert [f.where.function for f in report.findings] == ["before_split"]
    assert any("guard_share" in n.why for n in report.not_checked)


def test_settings_decide() -> None:
    settings = Settings(preprocess=Preprocess(leak_rows=100))
    assert found(before_split, settings=settings) == []


def test_what_is_inside_a_composition_costs_no_memory() -> None:
    with guard():
        watcher = patches.current
        pipe = Pipeline([("a", StandardScaler()), ("b", StandardScaler()), ("m", LogisticRegression())])
        for _ in range(20):
            pipe.fit(X, y)
        assert len(watcher._book._made) == 0 and len(watcher._book._roots) == 1  # type: ignore[union-attr]
        assert len(watcher._estimators._held) <= 5  # type: ignore[union-attr]
