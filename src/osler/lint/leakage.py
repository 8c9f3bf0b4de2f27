"""How rows go from a table through splits and fitted steps to an evaluation, as far as a trace shows it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from osler.lint.facts import Facts
from osler.lint.objects import model_like
from osler.lint.reading import brings_in, named
from osler.syntax.trace import Event
from osler.syntax.values import (
    CONSTANT,
    EXTERNAL,
    INSTANCE,
    JOIN,
    RESULT,
    SEQUENCE,
    UNKNOWN,
    Site,
    Value,
    alternatives,
    slice_back,
)

# A file that imports none of these has nothing to show here.
LIBRARIES = ("sklearn", "imblearn", "cuml")
TRAIN_TEST = frozenset(f"sklearn.{m}.train_test_split" for m in ("model_selection", "cross_validation"))
CROSS = (
    "sklearn.model_selection.cross_val_score",
    "sklearn.model_selection.cross_validate",
    "sklearn.model_selection.cross_val_predict",
)
# Steps that learn from the labels: what they pick is fitted to the rows that should judge.
SUPERVISED = named(
    "SelectKBest SelectPercentile SelectFdr SelectFpr SelectFwe GenericUnivariateSelect RFE RFECV SelectFromModel "
    "SequentialFeatureSelector TargetEncoder LeaveOneOutEncoder WOEEncoder CatBoostEncoder NeighborhoodComponentsAnalysis"
)
# Steps that learn a list of values only: what they hide is that others will come.
LISTS = named("OneHotEncoder OrdinalEncoder CountVectorizer DictVectorizer MultiLabelBinarizer")
_LEARN = named(
    "StandardScaler MinMaxScaler MaxAbsScaler RobustScaler QuantileTransformer PowerTransformer KBinsDiscretizer "
    "SplineTransformer SimpleImputer KNNImputer IterativeImputer VarianceThreshold PCA IncrementalPCA KernelPCA SparsePCA "
    "MiniBatchSparsePCA TruncatedSVD FastICA NMF MiniBatchNMF FactorAnalysis DictionaryLearning LatentDirichletAllocation "
    "Isomap LocallyLinearEmbedding TfidfVectorizer TfidfTransformer Nystroem KernelCenterer UMAP"
)
LEARNING = _LEARN | SUPERVISED | LISTS
_HOMES = ("sklearn.", "imblearn.", "category_encoders.", "umap.", "feature_engine.", "cuml.")
_COMPOSED = frozenset(
    ("sklearn.pipeline.Pipeline", "sklearn.pipeline.FeatureUnion", "sklearn.compose.ColumnTransformer")
) | {"sklearn.pipeline.make_pipeline", "sklearn.pipeline.make_union", "sklearn.compose.make_column_transformer"}
EVALUATES = (".score", ".predict", ".predict_proba", ".decision_function", ".predict_log_proba", ".evaluate")
_STATISTICS = named("mean std median quantile var nanmean nanstd nanmedian mode percentile")


@dataclass(slots=True, eq=False)
class Split:
    """Rows taken apart.

    Attributes:
        result: of the call that does it; of two slices, the table.
        order: when.
        site: where.
        folds: a splitter that gives indices of folds, one pair after the other.
        bases: what is taken apart.
        cut: of two slices `rows[:n]` and `rows[n:]`: which of them a value is, by its id.
    """

    result: Value
    order: int
    site: Site
    folds: bool = False
    bases: list[Value] = field(default_factory=list)
    cut: dict[int, int] = field(default_factory=dict)

    def side(self, value: Value) -> int | None:
        """0 for a train part, 1 for a test part, None for any other value."""
        if self.cut:
            return self.cut.get(id(value))
        if value.kind != RESULT or not value.sources or not value.name.startswith("[") or len(value.name) < 3:
            return None
        source = value.sources[0]
        if self.folds and source.kind == RESULT and source.name in ("element", "builtins.next") and source.sources:
            source = source.sources[0]
            if source.kind == RESULT and source.name in ("builtins.list", "builtins.tuple") and source.sources:
                source = source.sources[0]
        if source is not self.result or not value.name[1:-1].isdigit():
            return None
        return int(value.name[1:-1]) % 2

    def gives(self, over: Value) -> bool:
        """Whether a loop goes through its folds."""
        wraps = ("builtins.enumerate", "builtins.zip", "builtins.list")
        return any(v is self.result for v in slice_back(over, lambda v: v.kind == JOIN or v.name in wraps, limit=20))

    def sides(self, value: Value) -> set[int]:
        """Which parts a value was made of."""
        return {s for v in slice_back(value) if (s := self.side(v)) is not None}


@dataclass(slots=True, eq=False)
class Rows:
    """One trace, as far as rows go.

    Attributes:
        events: all of it.
        splits: what takes rows apart.
        evaluations: events that judge a model on rows, each with the rows.
    """

    events: list[Event]
    splits: list[Split] = field(default_factory=list)
    evaluations: list[tuple[Event, Value]] = field(default_factory=list)

    def fits(self, value: Value, before: int, names: Sequence[str] = (".fit", ".fit_transform")) -> list[Event]:
        """The events that fit an object before a moment."""
        ids = {id(v) for v in alternatives(value)}
        return [
            e
            for e in self.events
            if e.name in names
            and e.order < before
            and e.receiver is not None
            and any(id(v) in ids for v in alternatives(e.receiver))
        ]

    def tested(self, split: Split) -> list[Value]:
        """The evaluated rows that are of a split's test part."""
        return [rows for event, rows in self.evaluations if event.order > split.order and 1 in split.sides(rows)]


def rows(facts: Facts) -> Iterator[Rows]:
    """Each trace in which something is split, cross-validated or evaluated."""
    if not brings_in(facts.module, *LIBRARIES):
        return
    for trace in facts.traces:
        events = trace.events()
        one = Rows(events)
        for event in events:
            split = _split(event)
            if split is not None:
                one.splits.append(split)
            judged = _evaluated(event)
            if judged is not None:
                one.evaluations.append((event, judged))
        for split in one.splits:
            if split.folds:
                split.bases += _indexed(split, one)
        one.splits += _cuts(one)
        if one.splits or any(e.name in CROSS for e in events):
            yield one


def _split(event: Event) -> Split | None:
    if event.name in TRAIN_TEST:
        return Split(event.result, event.order, event.site, bases=list(event.arguments))
    if event.name == ".split" and event.receiver is not None and splitter(event.receiver):
        return Split(event.result, event.order, event.site, folds=True)
    return None


def _cuts(one: Rows) -> list[Split]:
    """Tables of which a model is fitted on `rows[:n]` and judged on `rows[n:]`."""
    heads: dict[int, Value] = {}
    tails: dict[int, Value] = {}
    for event, judged in one.evaluations:
        tails |= {id(v): v for v in slice_back(judged) if _slice(v)[0] is not None}
        if event.receiver is not None and event.name != "()":
            for fit in one.fits(event.receiver, event.order, (".fit",)):
                for given in fit.arguments[:1]:
                    heads |= {id(v): v for v in slice_back(given) if _slice(v)[1] is not None}
    out = []
    for tail in tails.values():
        low = _slice(tail)[0]
        for head in heads.values():
            high = _slice(head)[1]
            if low is not None and high is not None and head.sources[0] is tail.sources[0] and alike(low, high):
                first = min((head, tail), key=lambda v: v.order)
                base = tail.sources[0]
                site = first.site or tail.site
                if site is not None:
                    out.append(Split(base, first.order, site, bases=[base], cut={id(head): 0, id(tail): 1}))
    return out


def _slice(value: Value) -> tuple[Value | None, Value | None]:
    """Where `rows[n:]` begins, or where `rows[:n]` ends; nothing for any other value."""
    if value.kind != RESULT or value.name != "[]" or len(value.sources) < 2:
        return None, None
    index = value.sources[1]
    if index.kind == SEQUENCE and index.items:
        index = index.items[0]
    if index.name != "slice" or not isinstance(index.node, ast.Slice) or index.node.step is not None:
        return None, None
    bounds = index.sources
    if len(bounds) != 1:
        return None, None
    return (bounds[0], None) if index.node.lower is not None else (None, bounds[0])


def splitter(value: Value) -> bool:
    """It was made by a splitter class of scikit-learn."""
    return any(
        v.kind == INSTANCE
        and v.name.startswith("sklearn.model_selection.")
        and v.name.endswith(("Fold", "Split", "KFold", "LeaveOneOut", "LeavePOut"))
        for v in alternatives(value)
    )


def _evaluated(event: Event) -> Value | None:
    """The rows of an event that judges a model."""
    if event.name in EVALUATES and event.arguments:
        return event.arguments[0]
    if event.name == "()" and event.arguments and event.receiver is not None and model_like(event.receiver):
        return event.arguments[0]
    return None


def _indexed(split: Split, one: Rows) -> list[Value]:
    """What a splitter's indices of the test part are used on."""
    found: dict[int, Value] = {}
    for event, judged in one.evaluations:
        if event.order < split.order:
            continue
        for value in slice_back(judged):
            if value.kind == RESULT and value.name == "[]" and len(value.sources) > 1:
                index = value.sources[1]
                if any(split.side(v) == 1 for v in slice_back(index, limit=40)):
                    found[id(value.sources[0])] = value.sources[0]
    return list(found.values())


def learner(value: Value) -> str | None:
    """Name of the class of a step that learns from rows; None for one that does not, or that nobody knows."""
    for one in alternatives(value):
        last = one.name.rpartition(".")[2]
        ours = one.kind == INSTANCE and one.definition is None and one.name.startswith(_HOMES)
        if ours and last in LEARNING and not _constant_imputer(one):
            return last
        if one.name in _COMPOSED:
            # Its last step may be a model; those before it and the ones of a union count.
            for part in slice_back(one, limit=80):
                if part is not one and part.kind == INSTANCE and part.name.rpartition(".")[2] in LEARNING:
                    found = learner(part)
                    if found is not None:
                        return found
    return None


def _constant_imputer(value: Value) -> bool:
    if not value.name.endswith("SimpleImputer") or value.event is None:
        return False
    strategy = value.event.keywords.get("strategy")
    return strategy is not None and strategy.constant == "constant"


@dataclass(frozen=True, slots=True)
class Learned:
    """A place at which something was learned from rows.

    Attributes:
        made: the value that carries it on.
        what: class of the step, or the statistic.
        site: where it was learned.
        statistic: it was computed by hand.
        rows: what it was learned from.
    """

    made: Value
    what: str
    event: Event | None
    statistic: bool
    rows: Value | None


def learned(value: Value, one: Rows) -> Learned | None:
    """What a value carries that was learned from rows, if it is itself the place where that comes in."""
    if value.kind != RESULT or not value.sources:
        return None
    if value.name == ".fit_transform" and len(value.sources) > 1:
        what = learner(value.sources[0])
        return Learned(value, what, value.event, False, value.sources[1]) if what else None
    if value.name == ".transform" and len(value.sources) > 1:
        what = learner(value.sources[0])
        fits = one.fits(value.sources[0], value.order) if what else []
        if what and fits and fits[-1].arguments:
            return Learned(value, what, fits[-1], False, fits[-1].arguments[0])
        return None
    if value.name in ("-", "-=", ".sub", ".fillna") and len(value.sources) > 1:
        found = _statistic(value.sources[0], value.sources[1])
        if found is not None:
            return Learned(value, found.name.rpartition(".")[2], found.event, True, value.sources[0])
    return None


def cross_fitted(value: Value) -> bool:
    """`fit_transform` of scikit-learn's TargetEncoder, which encodes each row by what it learned from others.

    See "Cross fitting" in the user guide of scikit-learn 1.3 and later.
    """
    if value.name != ".fit_transform" or not value.sources:
        return False
    return all(v.name == "sklearn.preprocessing.TargetEncoder" for v in alternatives(value.sources[0]))


def drawn(value: Value) -> bool:
    """The rows come from a random generator in the program itself: what is learned from all of them was known before."""
    generated = False
    for one in slice_back(value, lambda v: not _random(v)):
        if _random(one):
            generated = True
        elif (
            one.kind == UNKNOWN
            or (one.kind == RESULT and one.event is not None and not one.sources)
            or one.name.rpartition(".")[2].startswith(("read", "load", "fetch", "open"))
        ):
            return False
    return generated


def _random(value: Value) -> bool:
    return value.name.startswith(("numpy.random.", "sklearn.datasets.make_", "random.")) or (
        value.name == "sklearn.utils.check_random_state"
    )


def some_rows(value: Value) -> bool:
    """Whether rows are picked out of a table by a mask or a slice: a group, a part, whatever that may be."""
    if value.kind != RESULT or value.name != "[]" or len(value.sources) < 2:
        return False
    index = value.sources[1]
    if index.kind == SEQUENCE and index.name == "Tuple" and index.items:
        index = index.items[0]
    return index.name in ("compare", "&", "|", "not") or (index.name == "slice" and bool(index.sources))


def _statistic(data: Value, taken: Value) -> Value | None:
    """The statistic over all rows of `data` that `taken` is made of."""
    for value in slice_back(
        taken, lambda v: v.name in ("[]", "+", "*", "/", ".iloc", ".values", ".to_numpy"), limit=20
    ):
        if value.kind != RESULT or value.name.rpartition(".")[2] not in _STATISTICS or value.event is None:
            continue
        if not value.name.startswith((".", "numpy.")) or value.event.block is None or not value.sources:
            continue
        axis = value.event.keywords.get("axis") or value.event.argument(0 if value.name.startswith(".") else 1)
        quantile = value.name.endswith(("quantile", "percentile"))
        if axis is not None and not quantile and not (axis.kind == CONSTANT and axis.constant == 0):
            continue
        if "keepdims" in value.event.keywords or "dim" in value.event.keywords:
            continue
        if alike(value.sources[0], data):
            return value
    return None


def alike(a: Value, b: Value, depth: int = 4) -> bool:
    """Whether two values are one object, or read out of one in the same way."""
    if a is b:
        return True
    if a.kind == CONSTANT and b.kind == CONSTANT:
        return bool(type(a.constant) is type(b.constant) and a.constant == b.constant)
    if depth == 0 or a.kind != b.kind or a.name != b.name or len(a.sources) != len(b.sources):
        return False
    if a.kind == EXTERNAL:
        return True
    if not (a.kind == RESULT and a.name in ("[]", ".iloc", ".loc", ".values", "slice")):
        return False
    return all(alike(x, y, depth - 1) for x, y in zip(a.sources, b.sources))
