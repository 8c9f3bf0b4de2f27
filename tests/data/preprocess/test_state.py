"""Snapshots of fitted states and what differs between two of them."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from osler.core.finding import Finding, Severity
from osler.core.settings import Settings
from osler.core.settings.data import Data
from osler.data.need import DataError
from osler.data.preprocess import check_preprocess, load_snapshot, snapshot

pytest.importorskip("sklearn")
pd = pytest.importorskip("pandas")
from sklearn.compose import ColumnTransformer  # noqa: E402
from sklearn.decomposition import NMF, PCA  # noqa: E402
from sklearn.ensemble import RandomTreesEmbedding  # noqa: E402
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer  # noqa: E402
from sklearn.impute import KNNImputer, SimpleImputer  # noqa: E402
from sklearn.pipeline import FeatureUnion, make_pipeline  # noqa: E402
from sklearn.preprocessing import (  # noqa: E402
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)  # fmt: skip

RNG = np.random.default_rng(0)
ROWS = pd.DataFrame(RNG.normal(size=(400, 3)) * [1, 10, 100] + [0, 40, 2000], columns=["score", "age", "income"])
ROWS["city"] = RNG.choice(["Ulm", "Bonn", "Kiel"], 400)
NUMBERS = ["score", "age", "income"]


def prepared(rows: object) -> ColumnTransformer:
    numbers = make_pipeline(SimpleImputer(), StandardScaler(), PCA(2, svd_solver="full"))
    return ColumnTransformer([("num", numbers, NUMBERS), ("cat", OneHotEncoder(), ["city"])]).fit(rows)


def findings(old: object, new: object, **kwargs: object) -> list[Finding]:
    return check_preprocess(old, new, **kwargs).findings  # type: ignore[arg-type]


def test_the_same_state_has_the_same_hash_and_no_findings(tmp_path: Path) -> None:
    one = snapshot(prepared(ROWS))
    other = snapshot(pickle.loads(pickle.dumps(prepared(ROWS))))
    assert one.hash == other.hash and len(one.hash) == 64
    path = one.save(tmp_path / "state.json")
    assert load_snapshot(path) == one
    report = check_preprocess(path, prepared(ROWS))
    assert report.findings == [] and report.not_checked == [] and report.subject["same"] is True
    assert report.subject["kind"] == "check" and report.subject["reference"] == str(path)


def test_rounding_and_settings_that_change_nothing_are_no_change() -> None:
    assert findings(prepared(ROWS), prepared(ROWS[::-1])) == []
    assert findings(StandardScaler().fit(ROWS[NUMBERS]), StandardScaler(copy=False).fit(ROWS[NUMBERS])) == []
    parts = StandardScaler()
    for part in np.array_split(RNG.permutation(400), 7):
        parts.partial_fit(ROWS[NUMBERS].iloc[part])
    assert findings(StandardScaler().fit(ROWS[NUMBERS]), parts) == []


def test_which_step_which_attribute_which_column_how_much() -> None:
    moved = ROWS.assign(age=ROWS["age"] + 12)
    by_step = {f.where.module: f for f in findings(prepared(ROWS), prepared(moved))}
    scaler = by_step["num.standardscaler"]
    assert scaler.severity is Severity.ERROR and scaler.evidence["attributes"] == ["mean_"]
    spread = ROWS["age"].std(ddof=0)
    assert scaler.evidence["largest_in_spreads"] == pytest.approx(12 / spread)
    (alone,) = findings(StandardScaler().fit(ROWS[NUMBERS]), StandardScaler().fit(moved[NUMBERS]))
    assert alone.where.column == "age" and alone.touches == {"column:age"} and "`age`" in alone.message
    report = check_preprocess(StandardScaler().fit(ROWS[NUMBERS]), StandardScaler().fit(moved[NUMBERS]))
    row = dict(zip(report.tables[0].columns, report.tables[0].rows[0]))
    assert (row["attribute"], row["column"]) == ("mean_", "age") and row["change"] == pytest.approx(12)


def test_how_bad_it_is() -> None:
    old = StandardScaler().fit(ROWS[NUMBERS])
    slight, some, far = (StandardScaler().fit(ROWS[NUMBERS] + [d, 0, 0]) for d in (0.002, 0.1, 1.0))
    assert [findings(old, new)[0].severity for new in (slight, some, far)] == [
        Severity.INFO, Severity.WARNING, Severity.ERROR,
    ]  # fmt: skip
    assert findings(old, slight, tolerance=0.01) == []
    fewer = StandardScaler().fit(np.repeat(ROWS[NUMBERS].to_numpy(), 2, axis=0))
    (counted,) = findings(StandardScaler().fit(ROWS[NUMBERS].to_numpy()), fewer)
    assert counted.severity is Severity.INFO and counted.evidence["attributes"] == ["n_samples_seen_"]


def test_columns_in_another_order_or_others() -> None:
    old = StandardScaler().fit(ROWS[["score", "age"]])
    (order,) = findings(old, StandardScaler().fit(ROWS[["age", "score"]]))
    assert order.severity is Severity.ERROR and "another order" in order.message
    assert order.evidence["attributes"] == ["column order"]  # the numbers are the same, column by column
    (other,) = findings(old, StandardScaler().fit(ROWS[["score", "income"]]))
    assert "1 missing (`age`) and 1 new (`income`)" in other.message
    (narrow,) = findings(StandardScaler().fit(np.eye(4)), StandardScaler().fit(np.eye(3)))
    assert "number of columns" in narrow.message and narrow.severity is Severity.ERROR


def test_settings_classes_and_steps() -> None:
    old = StandardScaler().fit(ROWS[NUMBERS])
    (setting,) = findings(old, StandardScaler(with_mean=False).fit(ROWS[NUMBERS]))
    assert "with_mean is False in serving and True in training" in setting.message
    (kind,) = findings(old, MinMaxScaler().fit(ROWS[NUMBERS]))
    assert "MinMaxScaler" in kind.message
    short, long = make_pipeline(StandardScaler()), make_pipeline(StandardScaler(), PCA(2))
    (step,) = (f for f in findings(short.fit(ROWS[NUMBERS]), long.fit(ROWS[NUMBERS])) if f.where.module == "pca")
    assert step.severity is Severity.ERROR and "in serving only" in step.message
    union = FeatureUnion([("a", StandardScaler()), ("b", PCA(1))]).fit(ROWS[NUMBERS])
    moved = FeatureUnion([("a", StandardScaler()), ("b", PCA(1))]).fit(ROWS[NUMBERS] + [5, 0, 0])
    assert {f.where.module for f in findings(union, moved)} >= {"a"}


def test_categories_and_vocabularies_without_their_words() -> None:
    old = OneHotEncoder().fit(ROWS[["city"]])
    more = ROWS[["city"]].copy()
    more.iloc[0, 0] = "Aachen"  # first in order: all others move
    (moved,) = findings(old, OneHotEncoder().fit(more))
    assert moved.severity is Severity.ERROR and "1 added, 3 moved" in moved.message
    more.iloc[0, 0] = "Zeitz"
    (added,) = findings(old, OneHotEncoder().fit(more))
    assert added.severity is Severity.WARNING and "1 added" in added.message
    text = json.dumps([f.to_dict() for f in (moved, added)]) + str(snapshot(old))
    assert not any(word in text for word in ("Ulm", "Kiel", "Bonn", "Aachen", "Zeitz"))
    assert "Ulm" in str(snapshot(old, show_values=True))
    words = ["red green", "green blue", "blue red red"]
    (vocabulary,) = findings(CountVectorizer().fit(words), CountVectorizer().fit([*words, "amber"]))
    assert "1 added, 3 moved" in vocabulary.message


def test_every_usual_transformer_can_be_read_and_is_repeatable() -> None:
    numbers, target = ROWS[NUMBERS], (ROWS["score"] > 0).astype(int)
    for make in (
        lambda: KBinsDiscretizer(3, encode="ordinal").fit(numbers), lambda: PowerTransformer().fit(numbers),
        lambda: QuantileTransformer(n_quantiles=50).fit(numbers), lambda: RobustScaler().fit(numbers),
        lambda: SplineTransformer().fit(numbers), lambda: KNNImputer().fit(numbers),
        lambda: OrdinalEncoder().fit(ROWS[["city"]]), lambda: TargetEncoder(random_state=0).fit(ROWS[["city"]], target),
        lambda: TfidfVectorizer().fit(["a b c aa", "bb aa"]), lambda: NMF(2, random_state=0).fit(numbers.abs()),
        lambda: RandomTreesEmbedding(3, random_state=0).fit(numbers), lambda: prepared(ROWS),
    ):  # fmt: skip
        first, second = snapshot(make()), snapshot(make())
        assert first.hash == second.hash and any(s.attributes for s in first.steps)
        assert check_preprocess(first, second).findings == []


def test_training_rows_that_an_imputer_keeps_do_not_get_into_the_file(tmp_path: Path) -> None:
    rows = ROWS[NUMBERS].round(3)
    text = snapshot(KNNImputer().fit(rows)).save(tmp_path / "s.json").read_text()
    inner = Counter(repr(float(v)) in text for v in rows.to_numpy()[5:60].ravel())
    assert inner[True] <= 2  # an end of the range at most


class Own:
    """No estimator of scikit-learn."""

    def fit(self, rows: np.ndarray) -> Own:
        self.mean = rows.mean(0)
        self.rates = {"Ulm": 0.5, "Bonn": 0.25}
        self.parts = [rows.min(0), rows.max(0)]
        self.rng = np.random.default_rng()
        self.note = None
        return self


def test_any_object_with_attributes() -> None:
    rows = RNG.normal(size=(50, 3))
    one, two = Own().fit(rows), Own().fit(rows)
    assert snapshot(one).hash == snapshot(two).hash and "Ulm" not in str(snapshot(one))
    two.rates = {"Ulm": 0.75, "Kiel": 0.1}
    two.parts[1] = two.parts[1] + 1
    (finding,) = findings(one, two)
    assert finding.evidence["attributes"] == ["parts[1]", "rates"]
    empty = Own()
    with pytest.raises(DataError, match="fit it before"):
        snapshot(empty)


def test_versions_are_information() -> None:
    import dataclasses

    old = snapshot(StandardScaler().fit(ROWS[NUMBERS]))
    new = dataclasses.replace(old, libraries={**old.libraries, "sklearn": "0.1"})
    (version,) = findings(old, new)
    assert version.severity is Severity.INFO and "0.1 in serving" in version.message and old.hash == new.hash


def test_not_finite_constant_and_empty_states() -> None:
    gaps = SimpleImputer(keep_empty_features=True).fit(np.column_stack([np.full(20, np.nan), np.arange(20.0)]))
    assert findings(gaps, gaps) == []
    constant = StandardScaler().fit(np.ones((20, 2)))
    (moved,) = findings(constant, StandardScaler().fit(np.full((20, 2), 3.0)))
    assert moved.severity is Severity.ERROR
    one = SimpleImputer().fit(np.array([[np.nan], [1.0]]))
    assert findings(one, one) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read"), ("{", "no JSON"), ("[1]", "no snapshot"), ('{"kind": "other"}', "no snapshot"),
        ('{"kind": "osler-preprocess-state", "schema": 9}', "schema 9"),
        ('{"kind": "osler-preprocess-state", "schema": 1, "name": "x"}', "damaged"), ("[" * 100_000, "no JSON"),
    ],
)  # fmt: skip
def test_files_that_are_none_are_one_line(tmp_path: Path, content: str | None, message: str) -> None:
    path = tmp_path / "x.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(DataError, match=message) as caught:
        check_preprocess(path, path)
    assert "\n" not in str(caught.value) and str(path) in str(caught.value)


def test_a_file_that_was_edited_and_arguments_without_sense(tmp_path: Path) -> None:
    scaler = StandardScaler().fit(ROWS[NUMBERS])
    path = snapshot(scaler).save(tmp_path / "x.json")
    path.write_text(path.read_text().replace('"StandardScaler"', '"Scaler"'))
    with pytest.raises(DataError, match="was changed after"):
        load_snapshot(path)
    for bad in (StandardScaler, 3, None, np.zeros(3)):
        with pytest.raises(DataError, match="give a snapshot"):
            check_preprocess(scaler, bad)
    for unfitted in (StandardScaler(), HashingVectorizer()):
        with pytest.raises(DataError, match="fit it before"):
            check_preprocess(scaler, unfitted)
    for tolerance in (-1.0, float("nan"), float("inf")):
        with pytest.raises(DataError, match="tolerance"):
            check_preprocess(scaler, scaler, tolerance=tolerance)


def test_words_are_shown_where_asked_for() -> None:
    steps: list[tuple[str, int, int | None]] = []
    check_preprocess(
        prepared(ROWS), prepared(ROWS), settings=Settings(data=Data(show_values=True)),
        progress=lambda *told: steps.append(told),
    )  # fmt: skip
    assert steps[-1] == ("snapshots", 2, 2)
