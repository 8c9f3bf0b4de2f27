"""Features that know the answer: strong alone beyond what the others can do together, or written after the label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from osler.core.progress import Progress
from osler.core.settings.splits import Splits
from osler.data.need import need
from osler.data.splits.hashes import codes_of
from osler.data.splits.instants import read_instants
from osler.data.tables import Kind, Source, floats

Floats = npt.NDArray[np.float64]

_FOLDS = 3
_MOST_CLASSES = 20
_LEAST_ROWS = 60


@dataclass(slots=True)
class Suspect:
    """A feature that does very well alone.

    Attributes:
        column: its name.
        alone: its skill alone, in cross-validation: 0 is chance, 1 no error.
        rest: the skill of all other features together; None where there are none.
        copy: every value equals the label (`values`), stands for one class and one class for it (`classes`), or is the
            label on another linear scale (`scale`); empty where it is no copy.
        by_absence: it is missing for one class and present for the others.
        identifier: it numbers the rows.
    """

    column: str
    alone: float
    rest: float | None
    copy: str
    by_absence: bool
    identifier: bool


@dataclass(slots=True)
class Knowledge:
    """What features say of the label.

    Attributes:
        task: `classification` or `regression`.
        rows: rows that models were fitted to.
        whole: skill of all features together; None where there is no suspect to hold against it.
        alone: skill of every feature that was tried.
        suspects: those above the settings' skill.
        order: skill of the number of the row alone; None where it was not tried.
        left_out: features that were not tried.
    """

    task: str
    rows: int
    whole: float | None
    alone: dict[str, float]
    suspects: list[Suspect]
    order: float | None
    left_out: tuple[str, ...]


def knowledge(
    rows: pa.Table,
    label: str,
    label_kind: Kind,
    features: Sequence[str],
    kinds: dict[str, Kind],
    positions: Floats,
    settings: Splits,
    progress: Progress,
) -> Knowledge | str:
    """Fit small trees to each feature and boosted trees to all, in three folds; a text says why it cannot be done.

    Skill is 1 − log loss / log loss of the class shares (McFadden's R², 1974) for classes, R² for numbers; both out of
    fold and cut at 0. It is the loss, and not the accuracy, that tells a perfect feature from one that is merely good.

    Args:
        rows: a uniform sample of training rows.
        label: its column.
        label_kind: kind of that column.
        features: columns to try.
        kinds: kind of each.
        positions: the sampled rows' positions in the source, shape (n,).
        settings: `leak_*`.
        progress: is told.

    Raises:
        DataError: scikit-learn is not installed.
    """
    target = _target(rows.column(label), label_kind)
    if isinstance(target, str):
        return target
    y, classes, present = target
    if y.size < _LEAST_ROWS:
        return f"{y.size} labelled rows are too few to fit models to"
    need("sklearn", "data", "target-leak")
    columns = {name: _feature(rows.column(name), kinds[name])[present] for name in features}
    tried = _strongest(columns, y, classes, settings.leak_features)
    folds = _folds(y, classes)
    alone: dict[str, float] = {}
    for done, name in enumerate(tried):
        progress("features tried alone", done, len(tried))
        categorical = kinds[name] in (Kind.CATEGORY, Kind.BINARY)
        alone[name] = _skill(columns[name][:, None], y, classes, folds, small=True, categorical=categorical)
    suspects: list[Suspect] = []
    total = float(positions.max(initial=0.0)) + 1
    # the strongest few: where many features are perfect, each makes up for the others and none is a suspect
    for name in sorted(tried, key=lambda n: -alone[n])[:5]:
        values = columns[name]
        copy = _copy(values, y, classes, rows.column(name), rows.column(label), present)
        if alone[name] < settings.leak_skill and not copy:
            break
        progress("suspects judged", len(suspects), 5)
        others = [n for n in tried if n != name]
        rest = _skill(_matrix(columns, others), y, classes, folds, small=False) if others else None
        absent = np.isnan(values).astype(np.float64)
        by_absence = bool(classes) and 0 < absent.mean() < 1
        by_absence = by_absence and _skill(absent[:, None], y, classes, folds, small=True) >= settings.leak_skill
        numbers = kinds[name] is Kind.INTEGER and _numbers_rows(values, total)
        suspects.append(Suspect(name, alone[name], rest, copy, by_absence, numbers))
    whole = _skill(_matrix(columns, tried), y, classes, folds, small=False) if suspects else None
    order = None
    if not suspects:
        order = _skill(positions[present][:, None], y, classes, folds, small=True)
    left_out = tuple(n for n in features if n not in alone)
    return Knowledge("classification" if classes else "regression", y.size, whole, alone, suspects, order, left_out)


@dataclass(slots=True)
class Late:
    """Features written after the label was known.

    Attributes:
        column: the column of times.
        features: the features it belongs to.
        late: rows whose feature time lies after the label's.
        rows: rows that have both.
        first: the first late rows.
    """

    column: str
    features: tuple[str, ...]
    late: int
    rows: int
    first: list[int]


def written_late(
    source: Source, label_time: str, feature_times: dict[str, tuple[str, ...]], settings: Splits, progress: Progress
) -> list[Late]:
    """Compare each column of feature times with the label's time, row by row.

    Raises:
        DataError: a column is unknown or holds no times.
    """
    label = read_instants(source, label_time, (), progress)
    out: list[Late] = []
    for column, features in feature_times.items():
        times = read_instants(source, column, (), progress)
        both = label.valid & times.valid
        late = np.flatnonzero(both & (times.values > label.values))
        out.append(
            Late(column, features, int(late.size), int(both.sum()), [int(r) for r in late[: settings.positions]])
        )
    return out


def _target(column: pa.ChunkedArray, kind: Kind) -> tuple[npt.NDArray[np.float64], int, npt.NDArray[np.bool_]] | str:
    """Labels as numbers, the number of classes (0: regression), and where there is a label."""
    if kind in (Kind.CATEGORY, Kind.BOOLEAN, Kind.BINARY):
        codes, present = _codes(column)
        different = int(codes[present].max(initial=-1)) + 1
        if different > _MOST_CLASSES * 5:
            return f"the label has {different} classes in the sample"
    elif kind in (Kind.NUMBER, Kind.INTEGER):
        values = floats(column)
        present = np.isfinite(values)
        unique, codes = np.unique(np.where(present, values, np.nan), return_inverse=True)
        different = int(np.isfinite(unique).sum())
        if different > _MOST_CLASSES or (different > 2 and bool((np.mod(unique[:different], 1) != 0).any())):
            return values[present], 0, present
    else:
        return f"the label is {kind.value}"
    if different < 2:
        return "the label has one value only"
    y = codes[present].astype(np.float64)
    counts = np.bincount(y.astype(np.int64))
    rare = counts < 2 * _FOLDS
    if rare.any():
        # classes that cannot be in every fold say nothing
        present = present & ~rare[np.minimum(codes, rare.size - 1)]
        y = np.unique(codes[present], return_inverse=True)[1].astype(np.float64)
        if np.unique(y).size < 2:
            return "all classes but one are too rare"
    return y, int(np.unique(y).size), present


def _codes(column: pa.ChunkedArray) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Values numbered by frequency, the most frequent 0, and where there is one."""
    parts = [codes_of(chunk) for chunk in column.chunks]
    hashed = np.concatenate([c for c, _ in parts]) if parts else np.zeros(0, np.uint64)
    present = ~column.is_null().to_numpy(zero_copy_only=False) if len(column) else np.zeros(0, np.bool_)
    unique, inverse, counts = np.unique(hashed[present], return_inverse=True, return_counts=True)
    rank = np.empty(unique.size, np.int64)
    rank[np.argsort(-counts, kind="stable")] = np.arange(unique.size)
    codes = np.zeros(hashed.size, np.int64)
    codes[present] = rank[inverse]
    return codes, present


def _feature(column: pa.ChunkedArray, kind: Kind) -> Floats:
    if kind in (Kind.CATEGORY, Kind.BINARY):
        codes, present = _codes(column)
        return np.where(present, codes.astype(np.float64), np.nan)
    values = floats(column).astype(np.float64)
    # trees split at thresholds: the largest finite number stands for infinity
    return np.where(np.isinf(values), np.sign(values) * 1e300, values)


def _numbers_rows(values: Floats, total: float) -> bool:
    """Whether whole numbers are those of rows: no two alike, and as dense as a counter leaves them."""
    span = float(values.max() - values.min())
    return not np.isnan(values).any() and np.unique(values).size == values.size and span <= 10 * total


def _matrix(columns: dict[str, Floats], names: Sequence[str]) -> Floats:
    return np.stack([columns[n] for n in names], axis=1)


def _strongest(columns: dict[str, Floats], y: Floats, classes: int, most: int) -> list[str]:
    """The features to try: those that vary, the strongest in rank correlation where there are many."""
    varying = [n for n, v in columns.items() if np.unique(v[~np.isnan(v)]).size + bool(np.isnan(v).any()) > 1]
    if len(varying) <= most:
        return varying

    def strength(name: str) -> float:
        values = columns[name]
        ranks = np.argsort(np.argsort(np.nan_to_num(values, nan=-1e300))).astype(np.float64)
        targets = [y == c for c in range(classes)] if classes > 2 else [y]
        return max(abs(float(np.corrcoef(ranks, t)[0, 1])) for t in targets)

    return sorted(varying, key=strength, reverse=True)[:most]


def _folds(y: Floats, classes: int) -> npt.NDArray[np.int64]:
    """The fold of each row: shuffled, classes spread evenly."""
    rng = np.random.default_rng(13)
    order = rng.permutation(y.size)
    if classes:
        order = order[np.argsort(y[order], kind="stable")]
    fold = np.empty(y.size, np.int64)
    fold[order] = np.arange(y.size) % _FOLDS
    return fold


def _skill(
    x: Floats, y: Floats, classes: int, folds: npt.NDArray[np.int64], *, small: bool, categorical: bool = False
) -> float:
    """Out-of-fold skill of a model, cut at 0."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    loss = base = 0.0
    for k in range(_FOLDS):
        fit, judge = folds != k, folds == k
        a, b = x[fit], x[judge]
        if categorical:
            a, b = _mean_encoded(a[:, 0], y[fit], b[:, 0], classes)
        if small:
            leaf = max(5, min(50, int(fit.sum()) // 50)) if classes else 5
            tree = DecisionTreeClassifier if classes else DecisionTreeRegressor
            model = tree(min_samples_leaf=leaf, max_leaf_nodes=32 if classes else 256, random_state=0)
            a, b = _filled(a), _filled(b)
        else:
            boosted = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
            leaf = max(2, min(20, int(fit.sum()) // 50))
            model = boosted(max_iter=60, min_samples_leaf=leaf, max_leaf_nodes=15, early_stopping=False, random_state=0)
        model.fit(a, y[fit])
        if classes:
            target = y[judge].astype(np.int64)
            p = np.clip(model.predict_proba(b)[np.arange(target.size), target], 1e-3, 1.0)
            shares = np.bincount(y[fit].astype(np.int64), minlength=classes) / fit.sum()
            loss -= float(np.log(p).sum())
            base -= float(np.log(np.maximum(shares[target], 1e-12)).sum())
        else:
            loss += float(np.square(model.predict(b) - y[judge]).sum())
            base += float(np.square(y[judge] - y[fit].mean()).sum())
    return max(0.0, 1 - loss / base) if base > 0 else 0.0


def _filled(x: Floats) -> Floats:
    """Missing values as a value of their own, below all others."""
    return np.where(np.isnan(x), -1.5e300, x).clip(-1e38, 1e38).astype(np.float32)


def _mean_encoded(a: Floats, y: Floats, b: Floats, classes: int) -> tuple[Floats, Floats]:
    """Categories as the smoothed mean label (share of each class) of the fitting rows."""
    codes, inverse = np.unique(a, return_inverse=True)
    targets = np.stack([y == c for c in range(classes)], axis=1).astype(np.float64) if classes else y[:, None]
    prior = targets.mean(axis=0)
    n = np.bincount(inverse, minlength=codes.size)
    sums = np.stack([np.bincount(inverse, weights=t, minlength=codes.size) for t in targets.T], axis=1)
    means = (sums + 2 * prior) / (n + 2)[:, None]
    # a category of its own row alone would hand the label over
    loo = (sums[inverse] - targets + 2 * prior) / (n[inverse] + 1)[:, None]
    at = np.minimum(np.searchsorted(codes, b), codes.size - 1)
    known = (codes[at] == b) | (np.isnan(codes[at]) & np.isnan(b))
    return loo, np.where(known[:, None], means[at], prior)


def _copy(
    values: Floats,
    y: Floats,
    classes: int,
    column: pa.ChunkedArray,
    label: pa.ChunkedArray,
    present: npt.NDArray[np.bool_],
) -> str:
    """Whether a feature is the label: equal, one value a class, or a linear function of a label of many values."""
    if np.isnan(values).any() or values.size < _LEAST_ROWS:
        return ""
    if classes:
        distinct = np.unique(values)
        if distinct.size != classes:
            return ""
        pairs = np.unique(np.stack([values, y], axis=1), axis=0)
        if pairs.shape[0] != classes:
            return ""
        return "values" if classes > 2 and _equal(column, label, present) else "classes"
    if np.array_equal(values, y):
        return "values"
    spread = values.std()
    if not spread > 0 or not np.isfinite(spread):
        return ""
    slope = np.cov(values, y, bias=True)[0, 1] / spread**2
    residual = y - y.mean() - slope * (values - values.mean())
    return "scale" if np.abs(residual).max() <= _tolerance(y) else ""


def _tolerance(y: Floats) -> float:
    """What float32 storage and a change of units leave of a difference."""
    return 4 * float(np.finfo(np.float32).eps) * float(np.abs(y).max() + y.std())


def _equal(column: pa.ChunkedArray, label: pa.ChunkedArray, present: npt.NDArray[np.bool_]) -> bool:
    a, b = (np.concatenate([codes_of(c)[0] for c in x.chunks])[present] for x in (column, label))
    return bool(np.array_equal(a, b))
