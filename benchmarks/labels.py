"""Label noise: how much is mended, what is left alone, and what it costs, beside cleanlab.

    python benchmarks/labels.py                                   # accuracy; sets in ../shared/data/labels where they are
    python benchmarks/labels.py --speed                           # 1,000,000 rows by 10 and by 100 classes
    python benchmarks/labels.py --cleanlab /path/to/venv/bin/python

Tables: *noise* (labels flipped by class), *instance* (labels flipped by a second model's errors), *clean* (right labels under
good and bad models), *speed*. `e`: share of confident predictions contradicted; `U`: AUROC of the dependence on the row;
`ties`: share of ties. *recommended* is the estimator to correct with, *corrected()* what the tool does by itself: it corrects only
where it has shown noise. cleanlab runs in a process of its own, with the Python given.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from common import facts, machine, progress, table

DATA = Path(__file__).resolve().parents[2] / "shared/data/labels"
ESTIMATORS = ("argmax", "confident-joint", "em", "ccc", "em+ccc")
EIGHT = [10, 20, 28, 34, 36, 42, 52, 60]

PEER = """
import sys
import numpy as np
from cleanlab.count import compute_confident_joint, estimate_latent
from cleanlab.filter import find_label_issues
z = np.load(sys.argv[1])
y, p = z["y"], z["p"]
issues = find_label_issues(y, p, filter_by="prune_by_noise_rate", n_jobs=1)
_, noise, _ = estimate_latent(compute_confident_joint(y, p), y)
np.savez(sys.argv[2], issues=issues, matrix=noise.T)
"""

TIMED = """
import json, resource, sys, time
import numpy as np
who, rows, classes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
rng = np.random.default_rng(0)
true = rng.integers(0, classes, rows)
y = true.copy()
wrong = rng.random(rows) < 0.2
y[wrong] = rng.integers(0, classes, wrong.sum())
p = np.empty((rows, classes), np.float32)
for s in range(0, rows, 50_000):
    part = true[s : s + 50_000]
    z = rng.normal(size=(len(part), classes)).astype(np.float32) * 0.7
    z[np.arange(len(part)), part] += 3 + np.log(classes)
    e = np.exp(z)
    p[s : s + 50_000] = 0.8 * e / e.sum(1, keepdims=True) + 0.2 / classes
if who == "osler":
    import scipy.optimize, scipy.stats
    from osler.data.labels import check_labels
    work = lambda: check_labels(y, p, out_of_fold=True)
else:
    from cleanlab.filter import find_label_issues
    work = lambda: find_label_issues(y, p, n_jobs=1)
wall, cpu = time.perf_counter(), time.process_time()
work()
print(json.dumps({
    "wall": time.perf_counter() - wall,
    "cpu": time.process_time() - cpu,
    "peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    "input_gib": p.nbytes / 2**30,
}))
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--speed", action="store_true", help="time 1,000,000 rows instead")
    parser.add_argument("--runs", type=int, default=3, help="timed runs of each, interleaved")
    parser.add_argument("--cleanlab", default=sys.executable, help="Python that has cleanlab")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    peer = subprocess.run([options.cleanlab, "-c", "import cleanlab"], capture_output=True).returncode == 0
    if not peer:
        progress("cleanlab skipped: not installed (--cleanlab PYTHON names one that has it)")
    python = options.cleanlab if peer else None
    tables = speed(options.runs, python) if options.speed else accuracy(python)
    if options.json:
        print(json.dumps({name: {"columns": head, "rows": rows} for name, head, rows in tables}))
        return 0
    print(facts(machine()))
    for name, head, rows in tables:
        print(f"\n### {name}\n\n{table(head, rows)}")
    return 0


Named = tuple[str, list[str], list[list[str]]]


def accuracy(python: str | None) -> list[Named]:
    head = [
        "set",
        "given",
        *ESTIMATORS,
        "recommended",
        "corrected()",
        "cleanlab",
        "L1 of T",
        "cleanlab's",
        "noise found",
        "e",
        "U",
        "ties",
    ]
    noise = [judged(name, y, p, true, python) for name, y, p, true in (*stored(), *by_class())]
    instance = [judged(name, y, p, true, python) for name, y, p, true in by_instance()]
    clean = [judged(name, y, p, true, None) for name, y, p, true in right()]
    return [("noise", head, noise), ("instance", head, instance), ("clean", head, clean)]


def judged(name: str, given: np.ndarray, probs: np.ndarray, true: np.ndarray, python: str | None) -> list[str]:
    from osler.data.labels import audit_labels

    progress(name)
    audit = audit_labels(given, probs, out_of_fold=True)
    right_by = {e: float((audit.labels(e) == true).mean()) for e in ESTIMATORS}
    truth = transitions(true, given, probs.shape[1])
    issues, matrix = peer_of(given, probs, python)
    theirs = "–" if issues is None else f"{(np.where(issues, probs.argmax(axis=1), given) == true).mean():.4f}"
    d = audit.choice.dependence
    return [
        name,
        f"{(given == true).mean():.4f}",
        *[f"{right_by[e]:.4f}" for e in ESTIMATORS],
        f"{audit.chosen} {right_by[audit.chosen]:.4f}",
        f"{(audit.corrected() == true).mean():.4f}",
        theirs,
        f"{np.abs(audit.noise_matrix - truth).sum():.2f}",
        "–" if matrix is None else f"{np.abs(matrix - truth).sum():.2f}",
        "yes" if audit.noisy else "no",
        f"{d.share:.3f}",
        f"{d.auroc:.2f} ± {1.96 * d.error:.2f}",
        f"{d.ties:.2f}",
    ]


def transitions(true: np.ndarray, given: np.ndarray, classes: int) -> np.ndarray:
    out = np.bincount(true * classes + given, minlength=classes * classes).reshape(classes, classes).astype(float)
    return out / np.maximum(out.sum(axis=1, keepdims=True), 1)


def peer_of(given: np.ndarray, probs: np.ndarray, python: str | None) -> tuple[np.ndarray | None, np.ndarray | None]:
    if python is None:
        return None, None
    with tempfile.TemporaryDirectory() as folder:
        into, out = Path(folder) / "in.npz", Path(folder) / "out.npz"
        whole = probs / probs.sum(axis=1, keepdims=True)
        np.savez(into, y=given, p=whole)
        done = subprocess.run([python, "-c", PEER, str(into), str(out)], capture_output=True, text=True)
        if done.returncode:
            progress(f"cleanlab failed: {done.stderr.strip().splitlines()[-1]}")
            return None, None
        with np.load(out) as found:
            return found["issues"], found["matrix"]


Set = tuple[str, np.ndarray, np.ndarray, np.ndarray]


def stored() -> Iterator[Set]:
    """Out-of-fold ResNet-50 predictions of CIFAR-10."""
    if not DATA.is_dir():
        progress(f"CIFAR-10 skipped: {DATA} is not there")
        return
    for name in ("clean", "noise20", "noise40", "noise40_sparse60"):
        with np.load(DATA / f"cifar10_resnet50_{name}.npz", allow_pickle=False) as z:
            yield f"CIFAR-10 {name}", z["given"].astype(int), z["pred_probs"].astype(np.float32), z["true"].astype(int)


def models() -> dict[str, Callable[[], Any]]:
    from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.tree import DecisionTreeClassifier

    return {
        "logistic": lambda: LogisticRegression(max_iter=150),
        "trees": lambda: ExtraTreesClassifier(100, min_samples_leaf=2, random_state=0),
        "boosting": lambda: HistGradientBoostingClassifier(max_iter=40, random_state=0),
        "10 neighbours": lambda: KNeighborsClassifier(10),
        "naive Bayes": GaussianNB,
        "tree of depth 4": lambda: DecisionTreeClassifier(max_depth=4, random_state=0),
        "one neighbour": lambda: KNeighborsClassifier(1),
    }


def digits() -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return X / 16, y


def clouds(apart: float) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import make_classification

    return make_classification(
        8000, 12, n_informative=6, n_classes=4, class_sep=apart, flip_y=0, random_state=1, n_clusters_per_class=2
    )


def by_class() -> Iterator[Set]:
    from osler.data.labels import cross_validated_probs

    rng = np.random.default_rng(0)
    for label, (X, true), names in (
        ("digits", digits(), ("logistic", "trees")),
        ("clouds", clouds(2.0), ("boosting",)),
    ):
        classes = int(true.max()) + 1
        for kind, share in (("even", 0.1), ("even", 0.2), ("even", 0.4), ("next", 0.2)):
            given = true.copy()
            wrong = rng.random(len(true)) < share
            step = rng.integers(1, classes, wrong.sum()) if kind == "even" else 1
            given[wrong] = (true[wrong] + step) % classes
            for name in names:
                probs = cross_validated_probs(X, given, models()[name]())
                yield f"{label}, {share:.0%} {kind}, {name}", given, probs, true


def by_instance() -> Iterator[Set]:
    from osler.data.labels import cross_validated_probs

    X, true = digits()
    seconds = (
        ("logistic, 8 pixels", "logistic", EIGHT, 300),
        ("naive Bayes, 60 rows", "naive Bayes", slice(None), 60),
        ("tree, 200 rows", "tree of depth 4", slice(None), 200),
        ("one neighbour, 40 rows", "one neighbour", slice(None), 40),
    )
    for label, second, columns, rows in seconds:
        seen = np.random.default_rng(1).permutation(len(true))[:rows]
        given = models()[second]().fit(X[seen][:, columns], true[seen]).predict(X[:, columns])
        given[seen] = true[seen]
        for first in ("logistic", "trees", "10 neighbours"):
            yield f"digits, {label}; {first}", given, cross_validated_probs(X, given, models()[first]()), true


def right() -> Iterator[Set]:
    from osler.data.labels import cross_validated_probs

    X, true = digits()
    for label, columns in (("digits", slice(None)), ("digits, 8 pixels", EIGHT), ("digits, 3 pixels", EIGHT[:3])):
        for name in ("logistic", "trees", "10 neighbours", "naive Bayes", "tree of depth 4"):
            yield f"{label}, {name}", true, cross_validated_probs(X[:, columns], true, models()[name]()), true
    for apart in (0.6, 1.0, 2.0):
        X, true = clouds(apart)
        for name in ("logistic", "boosting", "naive Bayes"):
            yield f"clouds {apart}, {name}", true, cross_validated_probs(X, true, models()[name]()), true
    rng = np.random.default_rng(3)
    X = rng.normal(size=(10_000, 8))
    for label, level in (("chance outcome", -1.0), ("rare outcome", -4.5)):
        true = (rng.random(len(X)) < 1 / (1 + np.exp(-(X[:, 0] + 0.8 * X[:, 1] - 0.5 * X[:, 2] + level)))).astype(int)
        for name in ("logistic", "boosting"):
            yield f"{label}, {name}", true, cross_validated_probs(X, true, models()[name]()), true


def speed(runs: int, python: str | None) -> list[Named]:
    rows = []
    for classes in (10, 100):
        taken: dict[str, list[dict[str, float]]] = {}
        for run in range(runs):
            for who, interpreter in (("osler", sys.executable), ("cleanlab", python)):
                if interpreter is None:
                    continue
                progress(f"{classes} classes, run {run + 1}, {who}")
                done = subprocess.run(
                    [interpreter, "-c", TIMED, who, "1000000", str(classes)],
                    capture_output=True,
                    text=True,
                    timeout=900,
                )
                if done.returncode:
                    raise SystemExit(f"{who} failed:\n{done.stderr[-2000:]}")
                taken.setdefault(who, []).append(json.loads(done.stdout.splitlines()[-1]))
        for who, measured in taken.items():
            median = {key: float(np.median([m[key] for m in measured])) for key in measured[0]}
            what = "whole report" if who == "osler" else "find_label_issues alone"
            rows.append(
                [
                    f"1,000,000 × {classes}, {who}",
                    what,
                    *[f"{median[k]:.2f}" for k in ("wall", "cpu", "peak_gib", "input_gib")],
                ]
            )
    return [("speed", ["rows × classes", "what", "seconds", "CPU seconds", "peak GiB", "of which input"], rows)]


if __name__ == "__main__":
    sys.exit(main())
