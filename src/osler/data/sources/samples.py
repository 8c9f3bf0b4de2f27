"""What a batch is made of: samples, their fields, and the shape of each, from whatever holds them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from osler.data.need import DataError
from osler.data.tables import Kind, Source, open_source


@dataclass(frozen=True, slots=True)
class Shape:
    """One array of one sample.

    Attributes:
        size: its shape; () of a scalar. dtype: its name, `object` where values differ in kind.
        tail: how many equal values stand at the end of its first axis (1 where the last differs from the one before).
        pad: a token of the value that they equal (`0`, `-1`, `-100`, `other`), empty where there is no tail.
        inside: whether that value also stands before the tail.
    """

    size: tuple[int, ...]
    dtype: str
    tail: int = 1
    pad: str = ""
    inside: bool = False


@dataclass(slots=True)
class Batch:
    """The samples of one batch by field; a sample that is one array has the field of the empty name."""

    index: int
    fields: dict[str, list[Shape]]
    first: int
    positions: list[int] | None = None
    stacked: bool = False
    error: str = ""

    def sample(self, i: int) -> int:
        """The number of the i-th sample in its data set."""
        return self.positions[i] if self.positions is not None else self.first + i


@dataclass(slots=True)
class Batches:
    """Batches, and what is known about them.

    Attributes:
        name: for messages. batches: one after another.
        collated: whether something (a collate function, a loader) makes one shape of the samples, so that only what comes
            out counts. total: number of batches where known.
        assumed: words for the size of a batch that was taken because nothing says it, else empty.
    """

    name: str
    batches: Iterator[Batch]
    collated: bool = False
    total: int | None = None
    assumed: str = ""
    notes: list[str] = field(default_factory=list)


def shape_of(value: object) -> Shape:
    """The shape of an array, tensor, list or scalar, without importing the library that it is from.

    Raises:
        DataError: a list within which lengths differ on an inner axis is no array; it gets the dtype `ragged`, not an
            error. An error is raised for values that are no data at all.
    """
    if value is None or isinstance(value, (str, bytes, bool, int, float, complex, np.generic)):
        kind = (
            "str"
            if isinstance(value, str)
            else type(value).__name__
            if not isinstance(value, np.generic)
            else str(value.dtype)
        )
        return Shape((), kind)
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        size = tuple(int(n) for n in value.shape)
        dtype = str(value.dtype).removeprefix("torch.")
        return _with_tail(size, dtype, value)
    if isinstance(value, (list, tuple)):
        return _list_shape(value)
    if hasattr(value, "__array__"):
        return shape_of(np.asarray(value))
    return Shape((), type(value).__name__)


def _list_shape(values: Sequence[object]) -> Shape:
    if not values:
        return Shape((0,), "empty")
    inner = [shape_of(v) for v in values] if len(values) <= 4096 else [shape_of(v) for v in values[:4096]]
    sizes, kinds = {s.size for s in inner}, {s.dtype for s in inner}
    if len(sizes) > 1:
        return Shape((len(values),), "ragged")
    dtype = kinds.pop() if len(kinds) == 1 else "float" if kinds <= {"int", "float", "bool"} else "object"
    return Shape((len(values), *inner[0].size), dtype) if inner[0].size else _with_tail((len(values),), dtype, values)


def _with_tail(size: tuple[int, ...], dtype: str, value: Any) -> Shape:
    if not size or size[0] < 4 or any(word in dtype for word in ("object", "str", "ragged", "<U")):
        return Shape(size, dtype)
    try:
        array = np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)
        if array.dtype.kind not in "iufb":
            return Shape(size, dtype)
        flat = array.reshape(size[0], -1)
    except (TypeError, ValueError, RuntimeError):
        return Shape(size, dtype)
    if not flat.shape[1]:
        return Shape(size, dtype)
    last = flat[-1, 0]
    same = np.all(
        (flat == last) | (np.isnan(flat) & np.isnan(last)) if flat.dtype.kind == "f" else flat == last, axis=1
    )
    tail = size[0] if same.all() else int(np.argmin(same[::-1]))
    if tail < 2 or tail == size[0]:
        return Shape(size, dtype)
    token = {0.0: "0", -1.0: "-1", 1.0: "1", -100.0: "-100"}.get(float(last), "NaN" if last != last else "other")
    return Shape(size, dtype, tail, token, bool(np.any(same[: size[0] - tail])))


def fields_of(samples: Sequence[object]) -> dict[str, list[Shape]]:
    """The shapes of samples by field: keys of dicts, positions in tuples, the empty name for single arrays."""
    if samples and all(isinstance(s, Mapping) for s in samples):
        keys = list(dict.fromkeys(str(k) for s in samples for k in s))  # type: ignore[attr-defined]
        return {k: [shape_of({str(n): v for n, v in s.items()}.get(k)) for s in samples] for k in keys}  # type: ignore[attr-defined]
    if samples and all(isinstance(s, tuple) for s in samples):
        width = max(len(s) for s in samples)  # type: ignore[arg-type]
        return {str(i): [shape_of(s[i] if i < len(s) else None) for s in samples] for i in range(width)}  # type: ignore[index, arg-type]
    return {"": [shape_of(s) for s in samples]}


def gather(
    data: object, column: str | None, batch_size: int | None, collate_fn: Any, batched: bool | None, default: int
) -> Batches:
    """The batches of whatever this is.

    Args:
        data: see `check_batches`. column: a list column of a table. batch_size: samples in a batch.
        collate_fn: makes a batch of samples; None where nothing or the default does.
        batched: whether the items of an iterable are batches; None decides by their type.
        default: samples in a batch where nothing says how many.

    Raises:
        DataError: it is nothing that holds samples, or a file that only unpickling could read.
    """
    from osler.data.sources import loaders

    if loaders.is_loader(data):
        return loaders.from_loader(data)
    if loaders.is_dataset(data):
        return loaders.from_dataset(data, batch_size, collate_fn, default)
    if column is not None or _is_table(data):
        return _from_table(data, column, batch_size)
    if isinstance(data, (str, Path)) and str(data).endswith((".npz", ".npy")):
        return _from_numpy_file(Path(data), batch_size)
    if isinstance(data, np.ndarray) and data.dtype != object:
        return _one_array(data, "numpy array")
    if isinstance(data, np.ndarray):
        data = list(data)
    if isinstance(data, Mapping):
        raise DataError("a mapping is one batch that is already made; give a list of samples, a table or a loader")
    if not isinstance(data, Iterable) or isinstance(data, (str, bytes)):
        raise DataError(
            f"{type(data).__name__} holds no samples; give a list of arrays, a table with --column, or a loader"
        )
    listed = isinstance(data, (list, tuple))
    if batched is None:
        batched = not listed or (bool(data) and all(isinstance(x, list) and x and not _plain(x[0]) for x in data))
    if batched:
        return Batches("the data", made(iter(data)), total=len(data) if listed else None)  # type: ignore[arg-type]
    return Batches("the data", _cut(iter(data), batch_size), assumed="" if batch_size else "all of them")


def _plain(value: object) -> bool:
    return value is None or isinstance(value, (str, bytes, bool, int, float, np.generic))


def _is_table(data: object) -> bool:
    module = type(data).__module__.partition(".")[0]
    if isinstance(data, (Source, pa.Table, pa.RecordBatch, pa.ChunkedArray, pa.Array)) or module in (
        "pandas",
        "polars",
        "narwhals",
    ):
        return True
    return isinstance(data, (str, Path)) and not str(data).endswith((".npz", ".npy"))


def made(items: Iterator[object], loader: bool = False) -> Iterator[Batch]:
    """Batches that something else has made: arrays are of one shape already, lists may not be.

    Args:
        loader: a loader made them: a list then holds the fields of a batch, as torch's default collate function gives
            them, not its samples.
    """
    first = 0
    for index, item in enumerate(items):
        if isinstance(item, Mapping) or (isinstance(item, (tuple, list) if loader else tuple) and item):
            parts = item.items() if isinstance(item, Mapping) else enumerate(item)
            fields, stacked = {}, True
            for key, part in parts:
                if isinstance(part, list) and part and not _plain(part[0]):
                    fields[str(key)], stacked = [shape_of(x) for x in part], False
                elif hasattr(part, "shape") and len(part.shape):
                    fields[str(key)] = _rows(part)
            batch = Batch(index, fields, first, stacked=stacked)
        elif isinstance(item, list):
            batch = Batch(index, fields_of(item), first)
        else:
            batch = Batch(index, {"": _rows(item)}, first, stacked=True)
        first += max((len(v) for v in batch.fields.values()), default=0)
        yield batch


def _rows(part: Any) -> list[Shape]:
    """The samples of a stacked array; each row is looked at for padding."""
    if not hasattr(part, "shape") or not len(part.shape):
        return [shape_of(part)]
    return [shape_of(part[i]) for i in range(min(int(part.shape[0]), 256))]


def _cut(samples: Iterator[object], size: int | None) -> Iterator[Batch]:
    first = 0
    for index in itertools.count():
        taken = list(samples) if size is None else list(itertools.islice(samples, size))
        if not taken:
            return
        yield Batch(index, fields_of(taken), first)
        first += len(taken)


def _from_table(data: object, column: str | None, batch_size: int | None) -> Batches:
    source = open_source(data)
    if column is None:
        nested = [c.name for c in source.columns if c.kind is Kind.NESTED]
        if len(nested) != 1:
            which = f"it has {len(nested)}: {', '.join(nested[:6])}" if nested else "it has none"
            raise DataError(f"{source.name}: name the list column with --column; {which}")
        column = nested[0]
    type_ = source.column(column).type
    if pa.types.is_fixed_size_list(type_):
        return Batches(
            source.name, iter([Batch(0, {column: [Shape((type_.list_size,), str(type_.value_type))]}, 0, stacked=True)])
        )
    if not (pa.types.is_list(type_) or pa.types.is_large_list(type_)):
        raise DataError(
            f"{source.name}: column {column!r} holds {type_}, not lists; sequences are stored as list columns"
        )
    assumed = "" if batch_size else "any rows"
    return Batches(source.name, _table_batches(source, column, batch_size), assumed=assumed)


def _table_batches(source: Source, column: str, size: int | None) -> Iterator[Batch]:
    """Lengths and, on a sample of the rows, padding of a list column."""
    index = first = 0
    for part in source.batches([column], size or 65_536):
        array = part.column(0)
        dtype = str(array.type.value_type)
        lengths = np.diff(np.asarray(array.offsets))
        missing = np.asarray(array.is_null())
        shapes = [Shape((int(n),), dtype) for n in lengths]
        if np.any(missing):
            for row in np.flatnonzero(missing):
                shapes[int(row)] = Shape((), "NoneType")
        if not pa.types.is_nested(array.type.value_type):
            for i in range(0, len(shapes), max(1, len(shapes) // 512)):
                if lengths[i] >= 4 and array[i].is_valid:
                    shapes[i] = _with_tail(
                        (int(lengths[i]),), dtype, np.asarray(array[i].values.to_numpy(zero_copy_only=False))
                    )
        else:
            inner = [shape_of(array[i].as_py()) for i in range(min(len(shapes), 2048)) if array[i].is_valid]
            shapes = inner or shapes
        yield Batch(index, {column: shapes}, first)
        index, first = index + 1, first + len(lengths)


def _from_numpy_file(path: Path, batch_size: int | None) -> Batches:
    try:
        loaded = np.load(path, allow_pickle=False, mmap_mode="r" if path.suffix == ".npy" else None)
        if isinstance(loaded, np.ndarray):
            return _one_array(loaded, str(path))
        arrays = {name: loaded[name] for name in loaded.files}
    except ValueError as error:
        if "pickle" not in str(error).lower() and "object" not in str(error).lower():
            raise DataError(f"{path} cannot be read: {error}") from None
        raise DataError(
            f"{path} holds Python objects, as arrays of unequal length are stored, and only unpickling reads them, which "
            "runs code: save one padded array and the lengths, or a parquet file with a list column"
        ) from None
    except (OSError, EOFError, KeyError) as error:
        raise DataError(f"{path} cannot be read: {error}") from None
    names = list(arrays)
    if names and names == [f"arr_{i}" for i in range(len(names))]:
        return Batches(str(path), _cut(iter(arrays.values()), batch_size), assumed="" if batch_size else "all of them")
    return Batches(str(path), iter([Batch(0, {n: _rows(a) for n, a in arrays.items() if a.ndim}, 0, stacked=True)]))


def _one_array(array: Any, name: str) -> Batches:
    return Batches(name, iter([Batch(0, {"": _rows(array)}, 0, stacked=True)]))
