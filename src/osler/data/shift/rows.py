"""Samples as rows of numbers: arrays and embeddings as they are, tables by their numeric columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from osler.data.need import DataError

Floats = NDArray[np.float64]
BATCH_VALUES = 4_194_304  # values in a batch: 32 MB of float64, whatever the number of features


@dataclass(slots=True)
class Rows:
    """Rows of numbers that are read in batches.

    Attributes:
        name: for messages.
        names: of the features, in order.
        integer: which features are integers (they may be identifiers), shape [d].
        is_matrix: True for an array or an embedding file, False for a table with named columns.
        skipped: columns that take no part, and why.
        count: rows, None where that is known only after reading.
        named: columns that were asked for by name; they are never left out for looking like an identifier.
    """

    name: str
    names: tuple[str, ...]
    integer: NDArray[np.bool_]
    is_matrix: bool
    read: Callable[[Sequence[int]], Iterator[Floats]]
    skipped: list[tuple[str, str]] = field(default_factory=list)
    count: int | None = None
    named: frozenset[str] = frozenset()

    def batches(self, names: Sequence[str] | None = None) -> Iterator[Floats]:
        """Rows in order, float64, shape [n, len(names)]; missing values are NaN."""
        position = {name: i for i, name in enumerate(self.names)}
        return self.read([position[name] for name in (self.names if names is None else names)])


def open_rows(data: Any, columns: Sequence[str] | None, name: str) -> Rows:
    """Rows of an array (numpy, torch on any device, a `.npy` file) or of a table (anything `open_source` takes).

    Of a table the numeric and boolean columns take part, and lists of numbers of one length (embeddings), feature by
    feature.

    Args:
        data: the samples, one a row.
        columns: names of the features that take part (positions as text for an array); None takes all that can.
        name: what messages call the data when it has no name of its own.

    Raises:
        DataError: a shape or a dtype that makes no rows of numbers; an unknown column; no numeric column.
    """
    if isinstance(data, Rows):
        return data
    array, label = _array(data, name)
    return _matrix(array, columns, label) if array is not None else _table(data, columns, name)


def _array(data: Any, name: str) -> tuple[NDArray[Any] | None, str]:
    if isinstance(data, (str, Path)) and str(data).endswith(".npy"):
        try:
            return np.load(data, mmap_mode="r", allow_pickle=False), str(data)
        except FileNotFoundError:
            raise DataError(f"{data} does not exist") from None
        except (OSError, ValueError) as error:
            raise DataError(f"{data} cannot be read as a numpy array: {str(error).splitlines()[0]}") from None
    if hasattr(data, "detach") and hasattr(data, "cpu"):  # a torch tensor, without importing torch
        data = data.detach().cpu()
        data = data.float() if "bfloat16" in str(data.dtype) else data
        return np.asarray(data), name
    if isinstance(data, np.ndarray) and data.dtype.names is None:
        return data, name
    return None, name


def _matrix(array: NDArray[Any], columns: Sequence[str] | None, name: str) -> Rows:
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2:
        shape = " × ".join(map(str, array.shape)) or "()"
        raise DataError(f"{name} has the shape {shape}: give one row a sample, e.g. x.reshape(len(x), -1)")
    if array.dtype.kind not in "fiub":
        raise DataError(f"{name} holds {array.dtype}, not real numbers: convert it, or pass a table with named columns")
    if array.shape[1] == 0:
        raise DataError(f"{name} has no features (shape {len(array)} × 0)")
    names = tuple(map(str, range(array.shape[1])))
    chosen = list(range(len(names)))
    if columns is not None:
        chosen = [_position(str(column), names, name) for column in columns]
    whole = array

    def read(positions: Sequence[int]) -> Iterator[Floats]:
        picked = [chosen[i] for i in positions]
        everything = picked == list(range(whole.shape[1]))
        size = max(BATCH_VALUES // max(len(picked), 1), 1)
        for start in range(0, len(whole), size):
            part = whole[start : start + size]
            yield np.asarray(part if everything else part[:, picked], dtype=np.float64)

    integer = np.full(len(chosen), array.dtype.kind in "iu")
    named = frozenset(names[i] for i in chosen) if columns is not None else frozenset()
    return Rows(name, tuple(names[i] for i in chosen), integer, True, read, count=len(array), named=named)


def _position(column: str, names: Sequence[str], name: str) -> int:
    if column not in names:
        raise DataError(f"{name} has no feature {column!r}; it has {len(names)}, counted from 0")
    return names.index(column)


def _table(data: Any, columns: Sequence[str] | None, name: str) -> Rows:
    from osler.data.tables import Kind, open_source

    # paths keep the name they were given; frames and dicts have none of their own
    source = open_source(data, None if isinstance(data, (str, Path, list)) else name)
    wanted = source.columns if columns is None else tuple(source.column(column) for column in columns)
    features: list[tuple[str, str, int]] = []  # feature, column, position in a list (-1: the column is the feature)
    integer: list[bool] = []
    skipped: list[tuple[str, str]] = []
    for column in wanted:
        if column.kind.numeric:
            features.append((column.name, column.name, -1))
            integer.append(column.kind is Kind.INTEGER)
            continue
        width = _width(source, column)
        if width:
            features.extend((f"{column.name}[{i}]", column.name, i) for i in range(width))
            integer.extend([False] * width)
        elif columns is not None:
            raise DataError(f"{source.name}: column {column.name!r} holds {column.type}, not numbers")
        else:
            skipped.append((column.name, f"holds {column.type}, not numbers"))
    if not features:
        raise DataError(f"{source.name} has no numeric column to compare")

    def read(positions: Sequence[int]) -> Iterator[Floats]:
        picked = [features[i] for i in positions]
        order = list(dict.fromkeys(column for _, column, _ in picked))
        for batch in source.batches(order, max(BATCH_VALUES // max(len(picked), 1), 1)):
            yield _numbers(batch, picked, source.name)

    named = frozenset(feature for feature, _, _ in features) if columns is not None else frozenset()
    names = tuple(feature for feature, _, _ in features)
    return Rows(source.name, names, np.array(integer), False, read, skipped, source.rows, named)


def _width(source: Any, column: Any) -> int:
    """Numbers in every list of the column; 0 where it holds no lists of numbers."""
    kind = column.type
    fixed = pa.types.is_fixed_size_list(kind)
    if not (fixed or pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        return 0
    if not (pa.types.is_floating(kind.value_type) or pa.types.is_integer(kind.value_type)):
        return 0
    if fixed:
        return int(kind.list_size)
    if not source.repeatable:
        return 0
    for batch in source.batches([column.name], 64):
        lengths = batch.column(0).drop_null()
        if len(lengths):
            return len(lengths[0])
    return 0


def _numbers(batch: pa.RecordBatch, picked: Sequence[tuple[str, str, int]], name: str) -> Floats:
    from osler.data.tables import floats

    out = np.empty((batch.num_rows, len(picked)))
    lists: dict[str, Floats] = {}
    for j, (_, column, at) in enumerate(picked):
        values = batch.column(batch.schema.get_field_index(column))
        if at < 0:
            out[:, j] = floats(values)
            continue
        if column not in lists:
            width = 1 + max(k for _, c, k in picked if c == column)
            lists[column] = _lists(values, width, f"{name}: column {column!r}")
        out[:, j] = lists[column][:, at]
    return out


def _lists(values: pa.Array, width: int, where: str) -> Floats:
    """Lists as rows, shape [n, width]; a missing list is a row of NaN."""
    import pyarrow.compute as pc

    lengths = pc.list_value_length(values).to_numpy(zero_copy_only=False)
    valid = ~np.isnan(lengths.astype(np.float64)) & (values.is_valid().to_numpy(zero_copy_only=False))
    if np.any(lengths[valid] < width) or len(set(lengths[valid].tolist())) > 1:
        raise DataError(f"{where} holds lists of different lengths: embeddings need one length")
    out = np.full((len(values), width), np.nan)
    flat = pc.list_flatten(values).to_numpy(zero_copy_only=False).astype(np.float64)
    if valid.any():
        out[valid] = flat.reshape(int(valid.sum()), -1)[:, :width]
    return out


class Reservoir:
    """A uniform sample of at most `size` rows of a stream, in the order of the stream.

    Rows are drawn in stretches of `length` neighbours, so that the sample shows how alike neighbours are. Every stretch
    draws a random key and the smallest keys stay.
    """

    def __init__(self, size: int, features: int, seed: int, length: int = 1) -> None:
        self.size = size
        self.length = max(1, min(length, size // 10))
        self.seen = 0
        self._rng = np.random.default_rng(seed)
        self._key = 0.0
        self._keys = np.empty(0)
        self._at = np.empty(0, dtype=np.int64)
        self._rows: Floats = np.empty((0, features))

    def add(self, rows: Floats) -> None:
        """Take rows of shape [n, d] into account."""
        at = np.arange(self.seen, self.seen + len(rows))
        keys = self._drawn(len(rows))
        self.seen += len(rows)
        if len(self._keys) >= self.size:
            better = keys <= self._keys.max()
            keys, at, rows = keys[better], at[better], rows[better]
        self._keys = np.concatenate([self._keys, keys])
        self._at = np.concatenate([self._at, at])
        self._rows = np.concatenate([self._rows, rows])
        if len(self._keys) > self.size:
            keep = np.sort(np.argsort(self._keys, kind="stable")[: self.size])
            self._keys, self._at, self._rows = self._keys[keep], self._at[keep], self._rows[keep]

    def _drawn(self, count: int) -> Floats:
        """A key for each of the next rows, the same for all of a stretch."""
        begun = -self.seen % self.length  # rows that belong to the stretch begun before
        fresh = self._rng.random(max(0, -(-(count - begun) // self.length)))
        keys = np.concatenate([np.full(min(begun, count), self._key), np.repeat(fresh, self.length)])[:count]
        if len(fresh):
            self._key = float(fresh[-1])
        return keys

    @property
    def rows(self) -> Floats:
        """The sample, shape [n, d]."""
        return self._rows

    @property
    def positions(self) -> NDArray[np.int64]:
        """Position of every row of the sample in the stream."""
        return self._at
