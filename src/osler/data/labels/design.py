"""Features in any shape as the matrix that a classifier is cross-validated on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from osler.data.need import DataError
from osler.data.tables import Kind, open_source
from osler.data.tables import floats as as_floats

_NUMBERS = (Kind.NUMBER, Kind.INTEGER, Kind.BOOLEAN, Kind.TIME, Kind.DURATION)


def design(features: Any, labels: NDArray[Any]) -> tuple[NDArray[Any], list[str]]:
    """N × D features, and notes on columns that were left out.

    Arrays are taken as they are. Of tables, numbers become float64 (nulls NaN) and words the number of their rank of
    frequency; nested and binary columns are left out, and so is a column that holds the labels themselves.

    Raises:
        DataError: no column is left, or rows and labels differ in number.
    """
    if isinstance(features, np.ndarray) and features.dtype.kind in "fiub" and features.ndim >= 2:
        return features.reshape(len(features), -1), []
    source = open_source(features)
    table = source.table()
    if table.num_rows != len(labels):
        raise DataError(
            f"{table.num_rows:,} rows of features and {len(labels):,} labels; they must be of the same rows"
        )
    notes: list[str] = []
    columns: list[NDArray[np.float64]] = []
    for column in source.columns:
        values = table.column(column.name)
        if column.kind in _NUMBERS:
            numbers = as_floats(values)
        elif column.kind is Kind.CATEGORY:
            numbers = _ranks(values)
        else:
            notes.append(f"column {column.name} is no feature ({column.kind.name.lower()})")
            continue
        if _is_label(values, numbers, labels):
            notes.append(f"column {column.name} holds the labels and was left out of the features")
            continue
        columns.append(numbers)
    if not columns:
        raise DataError(f"{source.name}: no column can serve as a feature")
    return np.stack(columns, axis=1), notes


def _ranks(values: Any) -> NDArray[np.float64]:
    """Each word's rank of frequency, NaN for null."""
    coded = values.combine_chunks()
    if not hasattr(coded, "indices"):
        coded = coded.dictionary_encode()
    coded = coded if hasattr(coded, "indices") else coded.chunk(0)
    codes = coded.indices.to_numpy(zero_copy_only=False).astype(np.float64)
    there = np.isfinite(codes)
    count = np.bincount(codes[there].astype(np.int64), minlength=len(coded.dictionary))
    rank = np.empty(len(count))
    rank[np.argsort(-count, kind="stable")] = np.arange(len(count))
    out = np.full(len(codes), np.nan)
    out[there] = rank[codes[there].astype(np.int64)]
    return out


def _is_label(values: Any, numbers: NDArray[np.float64], labels: NDArray[Any]) -> bool:
    if labels.dtype.kind in "iufb":
        same = numbers == labels.astype(np.float64)
        return bool(np.mean(same | (np.isnan(numbers))) == 1 and same.any())
    try:
        return bool(values.to_pylist() == labels.tolist())
    except (TypeError, ValueError):
        return False
