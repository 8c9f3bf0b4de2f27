"""What an estimator is, and what the fit of a transformer learns from its rows."""

from __future__ import annotations

from enum import IntEnum
from typing import Any


class Learned(IntEnum):
    """What of the fitted rows the state holds, from harmless to grave."""

    NOTHING = 0  # the state does not depend on the values
    VOCABULARY = 1  # which categories or words there are, and how often
    STATISTICS = 2  # means, spreads, quantiles, directions, neighbours
    TARGET = 3  # what goes with the target


_LABELS = {"LabelEncoder", "LabelBinarizer", "MultiLabelBinarizer"}
_NOTHING = {
    "AdditiveChi2Sampler",
    "Binarizer",
    "FeatureHasher",
    "FunctionTransformer",
    "GaussianRandomProjection",
    "HashingVectorizer",
    "MissingIndicator",
    "Normalizer",
    "PolynomialCountSketch",
    "PolynomialFeatures",
    "RBFSampler",
    "SkewedChi2Sampler",
    "SparseRandomProjection",
}
_VOCABULARY = {
    "CountVectorizer",
    "DictVectorizer",
    "OneHotEncoder",
    "OrdinalEncoder",
    "TfidfTransformer",
    "TfidfVectorizer",
}
_TARGET = {
    "LinearDiscriminantAnalysis",
    "NeighborhoodComponentsAnalysis",
    "RFE",
    "RFECV",
    "SelectFdr",
    "SelectFpr",
    "SelectFromModel",
    "SelectFwe",
    "SelectKBest",
    "SelectPercentile",
    "SequentialFeatureSelector",
    "TargetEncoder",
    "GenericUnivariateSelect",
    "CCA",
    "PLSCanonical",
    "PLSRegression",
    "PLSSVD",
}
_COMPOSITIONS = {"Pipeline", "ColumnTransformer", "FeatureUnion", "TransformedTargetRegressor", "BaseSearchCV"}
_FROZEN = "FrozenEstimator"
_BOOKKEEPING = {"n_features_in_", "feature_names_in_"}
_WARM_BUT_CONVEX = ("SGD", "PassiveAggressive", "Perceptron")  # linear models whose warm start does carry state

_families: dict[type, frozenset[str]] = {}


def family(kind: type) -> frozenset[str]:
    """The names of an estimator's class and of the classes it inherits from."""
    names = _families.get(kind)
    if names is None:
        names = _families[kind] = frozenset(c.__name__ for c in kind.__mro__)
    return names


def is_composition(estimator: object) -> bool:
    """Whether its parts are fitted on rows and in an order that is worth following."""
    return not _COMPOSITIONS.isdisjoint(family(type(estimator)))


def is_frozen(estimator: object) -> bool:
    """Whether `fit` does nothing."""
    return _FROZEN in family(type(estimator))


def is_model(estimator: object) -> bool:
    """Whether its predictions on held-out rows are what it is judged by: a classifier or a regressor."""
    names = family(type(estimator))
    if "ClassifierMixin" in names or "RegressorMixin" in names:
        return True
    if not is_composition(estimator):
        return False
    from sklearn.base import is_classifier, is_regressor

    return bool(is_classifier(estimator) or is_regressor(estimator))


def carries_on(estimator: Any) -> bool:
    """Whether `fit` starts from what earlier fits left, so that their rows still count.

    A convex linear model only starts its search there, and ends where it would have ended anyway.
    """
    if not getattr(estimator, "warm_start", False):
        return False
    kind = type(estimator)
    return not kind.__module__.startswith("sklearn.linear_model") or kind.__name__.startswith(_WARM_BUT_CONVEX)


def learned(estimator: Any, target_given: bool) -> Learned:
    """What a fit that has just ended learned from its rows.

    Args:
        estimator: a fitted estimator that is no composition.
        target_given: whether `fit` was given a target.
    """
    names = family(type(estimator))
    if names & _LABELS or names & _NOTHING:
        return Learned.NOTHING
    if names & _TARGET:
        # SelectFromModel and the sequential selector may wrap an unsupervised estimator.
        return Learned.TARGET if target_given else Learned.STATISTICS
    if names & _VOCABULARY:
        categories = getattr(estimator, "categories", "auto")
        fixed = (not isinstance(categories, str)) or getattr(estimator, "vocabulary", None) is not None
        weighs = "TfidfTransformer" in names or "TfidfVectorizer" in names
        return Learned.NOTHING if fixed and not weighs else Learned.VOCABULARY
    if "SimpleImputer" in names and getattr(estimator, "strategy", None) == "constant":
        return Learned.NOTHING
    if not _has_state(estimator):
        return Learned.NOTHING
    return Learned.STATISTICS


def _has_state(estimator: Any) -> bool:
    attributes = set(getattr(estimator, "__dict__", {}))
    names = getattr(type(estimator), "_get_param_names", None)
    parameters = set(names()) if names is not None else set()
    return bool(attributes - parameters - _BOOKKEEPING)


def title(estimator: object, parts: list[str]) -> str:
    """Its class, with the parts of a composition: `Pipeline (SimpleImputer, PCA)`."""
    name = type(estimator).__name__
    shown = list(dict.fromkeys(parts))
    return f"{name} ({', '.join(shown[:4])}{', …' if len(shown) > 4 else ''})" if shown else name
