"""Imputers side by side on real sets: error on the features that a model leans on, and what it costs the model.

    python benchmarks/imputation.py [--seeds 5] [--sets wine,…] [--california FILE] [--json FILE]

Each seed draws a split (70 % to fit, 30 % to judge), a mask of 20 % of the cells and, in each split, the same mask for every
imputer. Masks: MCAR (each cell alike) and MAR (a row's cells go missing with a chance that rises with the row's rank in one
feature that is always observed). The features are those that `SensitivityImputer` holds sensitive in that split, by a quick
model of the label.

- error: mean absolute error on the hidden cells of the sensitive features, in standard deviations of the feature.
- loss, fixed model: log loss (classes) or squared error in squared standard deviations of a model that was trained on
  complete rows and meets imputed ones: values that go missing in service.
- loss, trained on holes: the same of a model trained on imputed rows.

The model is a standardised logistic or ridge regression: it sees the values themselves, where trees could find the filled-in
constant. `ratio` is the imputer's error over IterativeImputer's (with a split's two errors as a pair, median of the seeds);
`wins` counts the seeds in which the error is at most IterativeImputer's. California housing is read from the CSV that
NannyML's wheel carries (`nannyml/datasets/data/california_housing_reference.csv`); without it a line says so.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import common
import numpy as np
from sklearn import datasets
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from osler.data.missing.imputer import SensitivityImputer
from osler.data.missing.models import is_classes, losses
from osler.data.missing.sensitivity import sensitivity

ROWS = 1_000
SHARE = 0.2
CALIFORNIA = ("MedInc", "HouseAge", "AveRooms", "AveBedrms", "Population", "AveOccup", "Latitude", "Longitude")


def sets(california: Path | None) -> dict[str, Callable[[], tuple[np.ndarray, np.ndarray]]]:
    """Name → (X, y) of complete numbers."""
    found: dict[str, Callable[[], tuple[np.ndarray, np.ndarray]]] = {
        "breast cancer": lambda: datasets.load_breast_cancer(return_X_y=True),
        "wine": lambda: datasets.load_wine(return_X_y=True),
        "diabetes": lambda: datasets.load_diabetes(return_X_y=True, scaled=False),
        "digits 4×4": _digits,
    }
    path = california or _nannyml()
    if path is not None and path.exists():
        found["california"] = lambda: _california(path)
    else:
        common.progress("california housing left out: neither --california nor an installed nannyml")
    return found


def _digits() -> tuple[np.ndarray, np.ndarray]:
    X, y = datasets.load_digits(return_X_y=True)
    # 4 × 4 means of 2 × 2 pixels: 57 single pixels that vary would take the peers minutes a split
    return X.reshape(-1, 4, 2, 4, 2).mean((2, 4)).reshape(len(X), 16), y


def _nannyml() -> Path | None:
    spec = find_spec("nannyml")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / "datasets" / "data" / "california_housing_reference.csv"


def _california(path: Path) -> tuple[np.ndarray, np.ndarray]:
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    X = np.array([[float(row[name]) for name in CALIFORNIA] for row in rows])
    return X, np.array([float(row["clf_target"]) for row in rows])


def masks(X: np.ndarray, seed: int) -> Iterator[tuple[str, np.ndarray]]:
    """Which cells are hidden, at random and at random given an observed feature."""
    random = np.random.default_rng(seed)
    yield "MCAR", random.random(X.shape) < SHARE
    driver = int(random.integers(X.shape[1]))
    rank = X[:, driver].argsort().argsort() / len(X)
    hidden = random.random(X.shape) < 2 * SHARE * rank[:, None]
    hidden[:, driver] = False
    yield "MAR", hidden


def imputers(seed: int) -> dict[str, Callable[[], object]]:
    """Name → a new imputer."""
    trees = ExtraTreesRegressor(10, min_samples_leaf=2, random_state=seed, max_features=0.3)
    return {
        "mean": lambda: SimpleImputer(),
        "median": lambda: SimpleImputer(strategy="median"),
        "kNN (5)": lambda: make_pipeline(StandardScaler(), KNNImputer()),
        "IterativeImputer": lambda: IterativeImputer(random_state=seed),
        "missForest-like": lambda: IterativeImputer(trees, max_iter=2, random_state=seed),
        "SensitivityImputer": lambda: SensitivityImputer(random_state=seed),
    }


def model(y: np.ndarray) -> object:
    """The task's model, unfitted."""
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=500) if is_classes(y) else Ridge())


def one(X: np.ndarray, y: np.ndarray, seed: int, skip: set[str]) -> Iterator[dict[str, object]]:
    """Every imputer on one split under both masks."""
    random = np.random.default_rng(seed)
    order = random.permutation(len(X))[:ROWS]
    X, y = X[order], y[order]
    cut = int(0.7 * len(X))
    size = X[:cut].std(0)
    for mechanism, hidden in masks(X, seed):
        holes = np.where(hidden, np.nan, X)
        fit, judge = holes[:cut], holes[cut:]
        lean = sensitivity(None, fit, y[:cut], seed=seed)
        features = np.flatnonzero(lean.above(0.15, 1.5))
        complete = model(y).fit(X[:cut], y[:cut])
        for name, make in imputers(seed).items():
            if name in skip:
                continue
            imputer = make()
            start = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if name == "SensitivityImputer":
                    imputer.set_params(sensitivity=lean)
                filled = imputer.fit_transform(fit, y[:cut])
                done = imputer.transform(judge)
            seconds = time.process_time() - start
            if name.startswith("kNN"):
                filled, done = (imputer[0].inverse_transform(part) for part in (filled, done))
            errors = [
                np.abs(done[at, j] - X[cut:][at, j]).mean() / size[j] for j in features if (at := hidden[cut:, j]).any()
            ]
            holed = model(y).fit(filled, y[:cut])
            yield {
                "mechanism": mechanism,
                "imputer": name,
                "error": float(np.mean(errors)),
                "fixed": float(losses(complete, done, y[cut:]).mean()),
                "trained": float(losses(holed, done, y[cut:]).mean()),
                "seconds": seconds,
                "features": len(features),
            }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--sets", default="")
    parser.add_argument("--skip", default="", help="imputers to leave out, with commas")
    parser.add_argument("--california", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    available = sets(options.california)
    chosen = options.sets.split(",") if options.sets else list(available)
    skip = {name.strip() for name in options.skip.split(",") if name.strip()}
    found = []
    for name in chosen:
        X, y = available[name]()
        for seed in range(options.seeds):
            common.progress(f"{name}, seed {seed}")
            found += [{"set": name, "seed": seed, **row} for row in one(X, y, seed, skip)]
    print(common.facts(common.machine()), end="\n\n")
    print(summary(found, chosen))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


def summary(found: list[dict[str, object]], chosen: list[str]) -> str:
    """The Markdown table: means over the seeds, ratios of pairs."""
    rows = []
    for name in chosen:
        for mechanism in ("MCAR", "MAR"):
            here = [r for r in found if r["set"] == name and r["mechanism"] == mechanism]
            yard = {r["seed"]: r for r in here if r["imputer"] == "IterativeImputer"}
            for imputer in dict.fromkeys(r["imputer"] for r in here):
                own = [r for r in here if r["imputer"] == imputer]
                ratios = [r["error"] / yard[r["seed"]]["error"] for r in own if r["seed"] in yard]
                wins = sum(ratio <= 1 for ratio in ratios)
                rows.append(
                    [
                        f"{name}, {mechanism}: {imputer}",
                        f"{np.mean([r['error'] for r in own]):.3f}",
                        f"{np.median(ratios):.2f}" if ratios else "–",
                        f"{wins}/{len(own)}" if ratios else "–",
                        f"{np.mean([r['fixed'] for r in own]):.4f}",
                        f"{np.mean([r['trained'] for r in own]):.4f}",
                        f"{np.median([r['seconds'] for r in own]):.2f}",
                    ]
                )
    header = ["set, mask: imputer", "error", "ratio", "wins", "loss, fixed model", "loss, trained on holes", "CPU s"]
    return common.table(header, rows)


if __name__ == "__main__":
    main()
