"""Labels that are no classes: outside 0 … C - 1, off by one, of a wrong type, or a sentinel that nothing ignores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osler.core.finding import Confidence, Finding, Severity
from osler.core.progress import Progress, quiet
from osler.core.report import NotChecked, Report
from osler.core.settings import Settings
from osler.data.labels.read import read_labels

RULE = "label-out-of-range"
_MANY = 100  # different values from which labels that are mostly different are no classes
_SENTINELS = (-1, -100, 254, 255, 65535, 2**31 - 1)


def check_encoding(
    labels: Any,
    *,
    n_classes: int | None = None,
    classes: Sequence[object] | None = None,
    ignore_index: int | None = -100,
    settings: Settings | None = None,
    progress: Progress = quiet,
) -> Report:
    """Look at how labels are encoded.

    Args:
        labels: N labels, an array or a file.
        n_classes: number of classes C of the model; taken from `classes`, else from the labels themselves.
        classes: names of the classes in order.
        ignore_index: label that the loss passes over (-100 is torch's default), None if there is none.
        settings: not used; every check takes them.
        progress: not used; every check takes it.

    Returns:
        Findings of `label-out-of-range`; the most telling one only.

    Raises:
        DataError: the labels cannot be read, or are not one per row.
    """
    array = read_labels(labels)
    count = len(classes) if classes is not None else n_classes
    out = Report(subject={"kind": "check", "check": "encoding", "rows": len(array), "classes": count})
    if not len(array):
        out.not_checked.append(NotChecked(RULE, "there are no labels"))
    elif array.dtype.kind in "OUST":
        _words(array, classes, out)
    elif array.dtype.kind == "b":
        _single(np.unique(array), len(array), out)
    elif array.dtype.kind in "iuf":
        _numbers(array, count, ignore_index, out)
    else:
        _add(
            out, Severity.ERROR, f"labels of type {array.dtype} are no classes", {"dtype": str(array.dtype)}, _AS_INDEX
        )
    return out


_AS_INDEX = "Store class indices 0 … C - 1 as int64, from one list of class names that training and serving share."


def _add(
    out: Report,
    severity: Severity,
    message: str,
    evidence: dict[str, object],
    fix: str,
    confidence: Confidence = Confidence.DEFINITE,
) -> None:
    out.findings.append(
        Finding(RULE, severity, confidence, message, evidence=evidence, fix=fix, touches=frozenset({"labels"}))
    )


def _words(array: NDArray[Any], classes: Sequence[object] | None, out: Report) -> None:
    values = array.tolist()
    empty = sum(v is None or v != v for v in values)
    words = {str(v) for v in values if v is not None and v == v}
    if empty:
        _missing(empty, len(array), out)
    if classes is not None:
        known = {str(c) for c in classes}
        unknown = words - known
        if unknown:
            rows = sum(str(v) in unknown for v in values)
            folded = {str(c).strip().casefold() for c in classes}
            near = sum(w.strip().casefold() in folded for w in unknown)
            hint = f"; {near} of them differ only in case or spaces" if near else ""
            _add(
                out,
                Severity.ERROR,
                f"{len(unknown)} of {len(words)} different labels, on {rows:,} of {len(array):,} rows, are none of the "
                f"{len(known)} class names{hint}",
                {"unknown": len(unknown), "rows": rows, "classes": len(known), "near": near},
                "Bring the labels and the class list to one spelling, and let loading fail on a name that is not in the list.",
            )
        return
    if len(words) > _MANY and len(words) > len(array) / 2:
        out.not_checked.append(
            NotChecked(RULE, f"{len(words):,} different words on {len(array):,} rows are no classes")
        )
        return
    if len(words) == 1 and not empty:
        _one(len(array), out)


def _numbers(array: NDArray[Any], count: int | None, ignore: int | None, out: Report) -> None:
    n = len(array)
    if array.dtype.kind == "f":
        absent = ~np.isfinite(array)
        whole = array[~absent]
        broken = whole != np.floor(whole)
        if broken.any() and count is None:
            out.not_checked.append(
                NotChecked(RULE, "labels that are no whole numbers are taken for a regression's targets")
            )
            return
        if absent.any():
            _missing(int(absent.sum()), n, out)
        if broken.any():
            _add(
                out,
                Severity.ERROR,
                f"{int(broken.sum()):,} of {n:,} labels are no whole numbers, for {count} classes",
                {"rows": int(broken.sum()), "classes": count},
                _AS_INDEX,
            )
            return
        if not absent.any():
            _add(
                out,
                Severity.INFO,
                f"class indices are stored as {array.dtype}; cross-entropy takes float targets for probabilities",
                {"dtype": str(array.dtype)},
                "Cast to int64 where they are loaded.",
            )
        array = whole.astype(np.int64)
    if not len(array):
        return
    values, counts = np.unique(array.astype(np.int64, copy=False), return_counts=True)
    if ignore is not None:
        ignored = values == ignore
        if ignored.any():
            rows = int(counts[ignored][0])
            if count is not None and 0 <= ignore < count:
                _add(
                    out,
                    Severity.ERROR,
                    f"ignore_index {ignore} is a class: {rows:,} of {n:,} rows never train",
                    {"rows": rows, "ignore_index": ignore, "classes": count},
                    "Take a number outside 0 … C - 1 as ignore_index, e.g. torch's default -100.",
                )
                return
            out.notes.append(f"{rows:,} of {n:,} rows carry the ignore index {ignore} and have no label")
            values, counts = values[~ignored], counts[~ignored]
    if not len(values):
        _add(out, Severity.ERROR, f"all {n:,} rows carry the ignore index: nothing trains", {"rows": n}, _AS_INDEX)
        return
    if count is None and len(values) > _MANY and len(values) > n / 2:
        out.not_checked.append(NotChecked(RULE, f"{len(values):,} different values on {n:,} rows are no classes"))
        return
    if not _range(values, counts, n, count, ignore, str(array.dtype), out):
        _single(values, n, out)


def _range(
    values: NDArray[np.int64],
    counts: NDArray[np.int64],
    n: int,
    count: int | None,
    ignore: int | None,
    dtype: str,
    out: Report,
) -> bool:
    """Add what is wrong with the range of the values; whether there was something."""
    low, high = int(values[0]), int(values[-1])
    facts: dict[str, object] = {
        "lowest": low,
        "highest": high,
        "different": len(values),
        "classes": count,
        "dtype": dtype,
    }
    dense = len(values) == high - low + 1
    if count is not None and low == 1 and high == count and (dense or len(values) > count / 2):
        facts["rows"] = int(counts[-1])
        _add(
            out,
            Severity.ERROR,
            f"labels run from 1 to {count} for {count} classes: off by one, and {facts['rows']:,} rows of class {count} are out of range",
            facts,
            "Subtract 1 from every label where they are loaded, and check that the class names still begin at index 0.",
        )
        return True
    strange = [v for v in _SENTINELS if v in values and v != ignore and (v < 0 or _alone(values, v, count))]
    if values.tolist() == [-1, 1] and count in (None, 2):
        out.notes.append("labels are -1 and 1, as for hinge losses; cross-entropy wants 0 and 1")
        if count is None:
            return True
    if strange:
        rows = int(counts[np.isin(values, strange)].sum())
        sentinel = strange[0]
        cause = " (-1 stored as uint8)" if sentinel == 255 and dtype == "uint8" else ""
        facts |= {"rows": rows, "sentinel": sentinel, "ignore_index": ignore}
        _add(
            out,
            Severity.ERROR,
            f"{rows:,} of {n:,} labels are {sentinel}{cause}, which stands for no label, and the loss ignores {ignore if ignore is not None else 'nothing'}",
            facts,
            f"Give the loss ignore_index={sentinel}, or drop those rows"
            + ("; keep labels signed (int64) so that -1 stays -1." if cause else "."),
        )
        return True
    if low < 0 or (count is not None and high >= count):
        outside = (values < 0) | (values >= (count if count is not None else high + 1))
        rows = int(counts[outside].sum())
        facts["rows"] = rows
        limit = f"0 … {count - 1}" if count is not None else "0 …"
        _add(
            out,
            Severity.ERROR,
            f"{rows:,} of {n:,} labels are outside {limit}: they reach from {low} to {high}",
            facts,
            "Look up which classes they are: the label list has grown, or labels of another list were mixed in. "
            + _AS_INDEX,
        )
        return True
    if count is None and low == 1 and dense and len(values) > 1:
        _add(
            out,
            Severity.WARNING,
            f"labels run from 1 to {high} and none is 0: off by one, if the model has {high} outputs",
            facts,
            "Subtract 1 from every label where they are loaded; say how many classes there are (n_classes) to be sure.",
            Confidence.PROBABLE,
        )
        return True
    if count is None and len(values) > 1 and len(values) * 2 < high + 1:
        _add(
            out,
            Severity.WARNING,
            f"{len(values)} different labels are spread over 0 … {high}: {high + 1 - len(values)} classes would never occur",
            facts,
            "Renumber the classes 0 … C - 1 without gaps, and keep the list that says which is which.",
            Confidence.PROBABLE,
        )
        return True
    if count is not None and len(values) < count:
        out.notes.append(f"{count - len(values)} of {count} classes have no label here")
    return False


def _alone(values: NDArray[np.int64], value: int, count: int | None) -> bool:
    """A large value that stands far above all the others, and is no class."""
    if count is not None:
        return value >= count
    others = values[values != value]
    return bool(len(others)) and int(others[-1]) < value // 2


def _single(values: NDArray[Any], n: int, out: Report) -> None:
    if len(values) == 1:
        _one(n, out)


def _one(n: int, out: Report) -> None:
    _add(
        out,
        Severity.WARNING,
        f"all {n:,} labels are the same class: there is nothing to learn",
        {"rows": n},
        "Look at how the file was cut: a sorted file read from its head holds one class, as does a filter on the label.",
    )


def _missing(rows: int, n: int, out: Report) -> None:
    _add(
        out,
        Severity.WARNING,
        f"{rows:,} of {n:,} rows have no label (NaN or null); cast to an integer they become a class or a huge negative number",
        {"rows": rows, "share": rows / n},
        "Drop those rows, or give them the loss's ignore_index, before the labels are cast to int64.",
    )
