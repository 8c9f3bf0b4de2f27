"""Labels and predictions that belong together: checked once, then handed out block by block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osler.core.progress import Progress, quiet
from osler.data.labels.estimators.channel import Floats
from osler.data.need import DataError

MISSING = -1
_SUM = 0.02  # float16 rows of ten classes sum to 1 within 0.013
_CHECK = 65_536


@dataclass(frozen=True, eq=False)
class Inputs:
    """Given labels and predictions of the same rows.

    Attributes:
        codes: N int32 given classes, 0 … K - 1; -1 where there is no label.
        probs: N × K predictions as they came (any float type, perhaps mapped from a file).
        names: K names of the classes for reports.
        logits: rows are logits; softmax is applied block by block.
        notes: what was assumed.
    """

    codes: NDArray[np.int32]
    probs: NDArray[Any]
    names: list[str]
    logits: bool = False
    notes: list[str] = field(default_factory=list)

    @property
    def classes(self) -> int:
        """K."""
        return int(self.probs.shape[1])

    def columns(self, rows: NDArray[np.integer] | slice) -> Floats:
        """K × B float32 predictions of the given rows; columns sum to 1."""
        block = np.ascontiguousarray(self.probs[rows].T, dtype=np.float32)
        if self.logits:
            block -= block.max(axis=0)
            np.exp(block, out=block)
        block /= block.sum(axis=0)
        return block

    def blocks(self, rows: int) -> Iterator[tuple[slice, Floats]]:
        """Every row, `rows` at a time: where they are, and their K × B predictions."""
        for start in range(0, len(self.codes), rows):
            where = slice(start, min(start + rows, len(self.codes)))
            yield where, self.columns(where)


def join(
    labels: NDArray[Any],
    probs: NDArray[Any],
    classes: Sequence[object] | None = None,
    *,
    logits: bool = False,
    ignore_index: int | None = -100,
    show_values: bool = False,
    progress: Progress = quiet,
) -> Inputs:
    """Labels and predictions as `Inputs`.

    Args:
        labels: N labels: integers, floats that are integers, strings or booleans.
        probs: N × K predictions.
        classes: names of the K columns; needed where string labels are not exactly the K sorted names.
        logits: the rows are logits.
        ignore_index: label of rows without one, None if there is none.
        show_values: string labels that no list names may appear in reports.
        progress: told how many rows have been looked at.

    Raises:
        DataError: lengths or numbers of classes differ, a row is no distribution, a label is no class.
    """
    if len(labels) != len(probs):
        raise DataError(f"{len(labels):,} labels and {len(probs):,} rows of predictions; they must be of the same rows")
    count = int(probs.shape[1])
    if count < 2:
        raise DataError("the predictions have one column; give one per class")
    if classes is not None and len(classes) != count:
        raise DataError(f"{len(classes)} class names for {count} columns of predictions")
    if not len(labels):
        raise DataError("there are no labels")
    codes, names, notes = encode(labels, count, classes, ignore_index, show_values)
    _distributions(probs, logits, progress)
    return Inputs(codes, probs, names, logits, notes)


def encode(
    labels: NDArray[Any],
    count: int,
    classes: Sequence[object] | None,
    ignore_index: int | None,
    show_values: bool,
) -> tuple[NDArray[np.int32], list[str], list[str]]:
    """Codes, names for reports, notes.

    Raises:
        DataError: a label is no class.
    """
    notes: list[str] = []
    names = [str(c) for c in classes] if classes is not None else [str(k) for k in range(count)]
    if labels.dtype.kind in "OUST":
        words, inverse, present = _words(labels)
        if classes is None:
            if len(words) != count:
                raise DataError(
                    f"the labels hold {len(words)} different words and the predictions {count} columns: give the class "
                    "names in the order of the columns"
                )
            order = {word: k for k, word in enumerate(words)}  # np.unique sorts, as sklearn's classes_ are
            names = list(words) if show_values else [f"class {k}" for k in range(count)]
            notes.append("classes were taken in sorted order, as sklearn's classes_ are")
        else:
            order = {name: k for k, name in enumerate(names)}
            unknown = [w for w in words if w not in order]
            if unknown:
                raise DataError(
                    f"{len(unknown)} of the {len(words)} different labels are none of the class names given"
                )
        table = np.array([order[w] for w in words], dtype=np.int32)
        codes = np.full(len(labels), MISSING, dtype=np.int32)
        codes[present] = table[inverse]
        return codes, names, notes
    if labels.dtype.kind not in "iufb":
        raise DataError(f"labels of type {labels.dtype} are no classes")
    if labels.dtype.kind == "f":
        absent = np.isnan(labels)
        whole = np.where(absent, 0, labels)
        if not np.isfinite(whole).all() or (whole != np.floor(whole)).any():
            raise DataError("some labels are no whole numbers; give class indices")
        codes64 = whole.astype(np.int64)
        codes64[absent] = MISSING if ignore_index is None else ignore_index
        if absent.any() and ignore_index is None:
            ignore_index = MISSING
    else:
        codes64 = labels.astype(np.int64)
    if ignore_index is not None:
        ignored = codes64 == ignore_index
        codes64[ignored] = MISSING
        outside = ((codes64 < 0) & ~ignored) | (codes64 >= count)
    else:
        outside = (codes64 < 0) | (codes64 >= count)
    if outside.any():
        first = int(np.flatnonzero(outside)[0])
        raise DataError(
            f"{int(outside.sum()):,} labels are outside 0 … {count - 1} (first at row {first}): see label-out-of-range"
        )
    return codes64.astype(np.int32), names, notes


def _words(labels: NDArray[Any]) -> tuple[list[str], NDArray[np.int64], NDArray[np.bool_]]:
    """Sorted different words, for each present row which one, and which rows are present."""
    if labels.dtype.kind == "O":
        present = np.array([v is not None and v == v for v in labels], dtype=bool)  # NaN is not itself
        texts = np.array([str(v) for v in labels[present]], dtype=str)
    elif labels.dtype.kind == "S":
        present = np.ones(len(labels), dtype=bool)
        texts = np.char.decode(labels, "utf-8", "replace")
    else:
        present = np.ones(len(labels), dtype=bool)
        texts = labels.astype(str)
    words, inverse = np.unique(texts, return_inverse=True)
    return [str(w) for w in words], inverse.astype(np.int64), present


def _distributions(probs: NDArray[Any], logits: bool, progress: Progress) -> None:
    n = len(probs)
    for start in range(0, n, _CHECK):
        progress("reading predictions", start, n)
        part = np.asarray(probs[start : start + _CHECK])
        # float16 sums of many classes would lose their own rounding
        total = part.sum(axis=1, dtype=np.float32 if part.dtype.itemsize < 8 else np.float64)
        bad = ~np.isfinite(total)
        if bad.any():
            row = start + int(np.flatnonzero(bad)[0])
            raise DataError(
                f"{int(bad.sum())} rows of predictions hold NaN or Inf (first: row {row}); drop or mend them"
            )
        if logits:
            continue
        low = part.min()
        off = np.abs(total - 1) > _SUM
        if low < 0 or off.mean() > 0.5:
            row = start + int(np.flatnonzero(off if off.any() else (part < 0).any(axis=1))[0])
            raise DataError(
                f"row {row} of the predictions sums to {float(total[row - start]):.4g}: these look like logits or scores; "
                "give probabilities, or say that they are logits and softmax is applied"
            )
        if off.any():
            row = start + int(np.flatnonzero(off)[0])
            raise DataError(f"row {row} of the predictions sums to {float(total[row - start]):.4g}, not to 1")
    progress("reading predictions", n, n)
