"""Numpy arrays and tensors, dicts and lists of plain Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from osler.data.need import DataError
from osler.data.tables.objects import from_numpy, from_objects, rows_as_columns
from osler.data.tables.source import Source, from_table


def from_numpy_like(data: object, name: str | None) -> Source | None:
    """A source over a numpy array, a tensor or what numpy can make one of; None for anything else."""
    if hasattr(data, "detach") and hasattr(data, "cpu"):
        data = _tensor(data)
    elif not isinstance(data, np.ndarray) and hasattr(data, "__array__") and not hasattr(data, "__arrow_c_stream__"):
        data = np.asarray(data)
    if not isinstance(data, np.ndarray):
        return None
    return from_array(data, name or "numpy array")


def _tensor(data: Any) -> Any:
    data = data.detach().cpu()
    try:
        return data.numpy()
    except TypeError:
        # bfloat16 and the 8-bit floats have no numpy dtype
        return data.float().numpy()


def from_array(data: npt.NDArray[Any], name: str) -> Source:
    """A source over a numpy array: one column `value`, columns `0`, `1`, …, or the fields of a structured array.

    Raises:
        DataError: an array of no or of more than two dimensions.
    """
    if data.dtype.names:
        columns = {field: data.reshape(-1)[field] for field in data.dtype.names}
        return from_arrays(columns, name)
    if data.ndim == 1:
        return from_arrays({"value": data}, name)
    if data.ndim == 2:
        return from_arrays({str(i): data[:, i] for i in range(data.shape[1])}, name, rows=len(data))
    shape = " × ".join(map(str, data.shape)) or "no shape"
    raise DataError(f"{name} has {data.ndim} dimensions ({shape}): give one row a sample, e.g. x.reshape(len(x), -1)")


def from_arrays(columns: Mapping[str, npt.NDArray[Any]], name: str, rows: int | None = None) -> Source:
    """A source over named numpy arrays of the same length; arrays of more dimensions become columns of lists.

    Raises:
        DataError: their lengths differ, or one is a single value.
    """
    for column, array in columns.items():
        if array.ndim == 0:
            raise DataError(f"{name}: {column!r} is one value, not an array of values")
    _same_length({column: len(array) for column, array in columns.items()}, name)
    notes = []
    whole: dict[int, pa.Array] = {}
    fields = []
    values = list(columns.values())
    for i, (column, array) in enumerate(columns.items()):
        if array.ndim > 1:
            array = values[i] = _rows_of(array)
        if array.dtype.kind in "OcV":
            whole[i], note = from_numpy(array)
            if note:
                notes.append(f"{name}: column {column!r} {note}")
        fields.append(pa.field(column, whole[i].type if i in whole else from_numpy(array[:0])[0].type))
    count = len(values[0]) if values else (rows or 0)

    def read(chosen: Sequence[int], size: int) -> Iterator[pa.RecordBatch]:
        for start in range(0, count, size):
            parts = [
                whole[i].slice(start, size) if i in whole else from_numpy(values[i][start : start + size])[0]
                for i in chosen
            ]
            yield pa.record_batch(parts, names=[str(i) for i in chosen])

    return Source(name, pa.schema(fields), read, rows=count, notes=notes)


def _rows_of(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """One object a row of an array with more dimensions: a list each."""
    out = np.empty(len(array), object)
    out[:] = [row.tolist() for row in array]
    return out


Opener = Callable[[object, str | None], Source | None]


def from_plain(data: object, name: str | None, opener: Opener) -> Source | None:
    """A source over a dict of columns, a list of dicts, of record batches, of rows or of numbers; None for anything else.

    Args:
        data: what the user has.
        name: for messages.
        opener: opens a column of a dict that is a series of some library.

    Raises:
        DataError: columns of different length, rows of different length, nothing.
    """
    if isinstance(data, Mapping):
        return _mapping(data, opener, name or "dict of columns")
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        if not data:
            raise DataError(f"{name or 'the list'} is empty: there are no columns")
        if all(isinstance(row, Mapping) for row in data):
            return _mapping(rows_as_columns(data), opener, name or "list of dicts")
        if all(isinstance(row, pa.RecordBatch) for row in data):
            return from_table(pa.Table.from_batches(list(data)), name or "Arrow record batches")
        return _listed(data, name or "list")
    return None


def _mapping(data: Mapping[Any, Any], opener: Opener, name: str) -> Source:
    lengths: dict[str, int] = {}
    columns: dict[str, npt.NDArray[Any]] = {}
    ready: dict[str, pa.Array] = {}
    notes = []
    for label, values in data.items():
        column = str(label)
        if isinstance(values, (str, bytes)) or not (hasattr(values, "__len__") and hasattr(values, "__getitem__")):
            raise DataError(
                f"{name}: column {column!r} is one {type(values).__name__}, not a list or an array of values"
            )
        lengths[column] = len(values)
        if isinstance(values, np.ndarray):
            columns[column] = values
        elif isinstance(values, (list, tuple)):
            ready[column], note = from_objects(list(values))
            if note:
                notes.append(f"{name}: column {column!r} {note}")
        else:
            ready[column] = _single(values, opener, name, column)
    _same_length(lengths, name)
    if not ready:
        return from_arrays(columns, name)
    for column, array in columns.items():
        ready[column], note = from_numpy(array if array.ndim == 1 else _rows_of(array))
        if note:
            notes.append(f"{name}: column {column!r} {note}")
    return from_table(pa.table({column: ready[column] for column in lengths}), name, notes)


def _same_length(lengths: Mapping[str, int], name: str) -> None:
    if len(set(lengths.values())) > 1:
        (first, n), *others = lengths.items()
        other, m = next(pair for pair in others if pair[1] != n)
        raise DataError(f"{name}: columns of different length: {first!r} has {n} rows, {other!r} {m}")


def _single(values: object, opener: Opener, name: str, column: str) -> pa.Array:
    found = opener(values, f"{name}, column {column!r}")
    if found is None or len(found.columns) != 1:
        raise DataError(f"{name}: column {column!r} is a {type(values).__name__}, not one column of values")
    return found.table().column(0).combine_chunks()


def _listed(data: Sequence[Any], name: str) -> Source:
    """A list of numbers (one column) or of equally long rows."""
    try:
        array = np.array(data)
    except ValueError:
        array = None
    if array is None or array.dtype.kind not in "biuf":
        if any(isinstance(row, (Sequence, np.ndarray)) and not isinstance(row, (str, bytes)) for row in data):
            raise DataError(f"{name}: its rows are not equally long lists of numbers: give a dict of columns")
        values, note = from_objects(list(data))
        notes = [f"{name} {note}"] if note else []
        return from_table(pa.table({"value": values}), name, notes)
    return from_array(array, name)
