"""`check labels`: encoding first, then noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osler.core.finding import Severity
from osler.core.progress import Progress, quiet
from osler.core.report import NotChecked, Report
from osler.core.settings import Settings
from osler.data.labels.audit import LabelAudit, audit_labels, too_few
from osler.data.labels.design import design
from osler.data.labels.encoding import check_encoding
from osler.data.labels.folds import cross_validated_probs
from osler.data.labels.inputs import MISSING
from osler.data.labels.read import read_labels, read_probs
from osler.data.need import DataError

_NOISE = "label-noise"


def check_labels(
    labels: Any,
    pred_probs: Any = None,
    *,
    features: Any = None,
    model: Any = None,
    classes: Sequence[object] | None = None,
    out_of_fold: bool | None = None,
    folds: Any = None,
    logits: bool = False,
    ignore_index: int | None = -100,
    settings: Settings | None = None,
    progress: Progress = quiet,
) -> Report:
    """Look for labels that are no classes, and for labels contradicted by out-of-fold predictions.

    Args:
        labels: N labels, an array or a file.
        pred_probs: N × K out-of-fold probabilities, an array or a file.
        features: N rows of features to cross-validate a model on, where there are no predictions: an array, a frame, a file.
        model: scikit-learn classifier for that; None takes one that suits tables.
        classes: names of the classes in the order of the columns.
        out_of_fold, folds, logits: as for `audit_labels`.
        ignore_index: label of rows that have none.
        settings: thresholds.
        progress: told how far it has come.

    Returns:
        Findings of `label-out-of-range` and `label-noise`.

    Raises:
        DataError: input that cannot be used.
    """
    return judge_labels(
        labels,
        pred_probs,
        features=features,
        model=model,
        classes=classes,
        out_of_fold=out_of_fold,
        folds=folds,
        logits=logits,
        ignore_index=ignore_index,
        settings=settings,
        progress=progress,
    )[0]


def judge_labels(
    labels: Any,
    pred_probs: Any = None,
    *,
    features: Any = None,
    model: Any = None,
    classes: Sequence[object] | None = None,
    out_of_fold: bool | None = None,
    folds: Any = None,
    logits: bool = False,
    ignore_index: int | None = -100,
    settings: Settings | None = None,
    progress: Progress = quiet,
) -> tuple[Report, LabelAudit | None]:
    """As `check_labels`, with the audit behind the report; None where label noise was not judged."""
    tree = settings or Settings()
    given = read_labels(labels)
    probs = None if pred_probs is None else read_probs(pred_probs)
    if probs is not None and len(probs) != len(given):
        raise DataError(f"{len(given):,} labels and {len(probs):,} rows of predictions; they must be of the same rows")
    count = len(classes) if classes is not None else None if probs is None else int(probs.shape[1])
    out = check_encoding(given, n_classes=count, classes=classes, ignore_index=ignore_index, settings=tree)
    if any(f.severity is Severity.ERROR for f in out.findings):
        out.not_checked.append(NotChecked(_NOISE, "some labels are no classes; mend them first"))
        return out, None
    if probs is None and features is None:
        out.not_checked.append(
            NotChecked(_NOISE, "no out-of-fold predictions (--pred-probs) and no features to cross-validate a model on")
        )
        return out, None
    there = labelled(given, ignore_index)
    seen = count if probs is not None and count is not None else len(set(given[there].tolist()))
    few = too_few(int(there.sum()), seen, tree.labels)
    if few or seen < 2:
        out.not_checked.append(NotChecked(_NOISE, few or "all labels are the same"))
        return out, None
    notes: list[str] = []
    if probs is None:
        table, notes = design(features, given)
        if len(table) != len(given):
            raise DataError(f"{len(table):,} rows of features and {len(given):,} labels; they must be of the same rows")
        given, probs, classes = _cross_validated(given, there, table, model, classes, tree, progress)
        out_of_fold, ignore_index, logits = True, MISSING, False
    audit = audit_labels(
        given,
        probs,
        classes=classes,
        out_of_fold=out_of_fold,
        folds=folds,
        logits=logits,
        ignore_index=ignore_index,
        settings=tree,
        progress=progress,
    )
    noise = audit.report()
    noise.findings[:0] = out.findings
    noise.not_checked[:0] = out.not_checked
    noise.notes[:0] = [*out.notes, *notes]
    return noise, audit


def labelled(given: NDArray[Any], ignore_index: int | None) -> NDArray[np.bool_]:
    """Which rows have a label."""
    if given.dtype.kind in "Of":
        there = np.array([v is not None and v == v for v in given.tolist()], dtype=bool)  # NaN is not itself
    else:
        there = np.ones(len(given), dtype=bool)
    if ignore_index is not None and given.dtype.kind in "iuf":
        there &= given != ignore_index
    return there


def _cross_validated(
    given: NDArray[Any],
    there: NDArray[np.bool_],
    features: NDArray[Any],
    model: Any,
    classes: Sequence[object] | None,
    tree: Settings,
    progress: Progress,
) -> tuple[NDArray[np.int64], NDArray[np.float32], list[str]]:
    """Codes of the labels that occur (-1 for none), out-of-fold probabilities of their rows, and names for reports."""
    present = given[there].astype(str) if given.dtype.kind == "O" else given[there]
    values, codes = np.unique(present, return_inverse=True)
    kept = np.flatnonzero(there)
    probs = np.full((len(given), len(values)), 1 / len(values), dtype=np.float32)
    probs[kept] = cross_validated_probs(features[kept], codes, model, progress=progress)
    out = np.full(len(given), MISSING, dtype=np.int64)
    out[kept] = codes
    if present.dtype.kind in "US":
        listed = classes is not None or tree.data.show_values
        names = [str(v) if listed else f"class {k}" for k, v in enumerate(values)]
    elif classes is not None:
        names = [str(classes[int(v)]) for v in values]
    else:
        names = [str(int(v)) for v in values]
    return out, probs, names
