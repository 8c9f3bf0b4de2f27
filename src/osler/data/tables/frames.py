"""Sources in memory: pandas, polars, pyarrow, narwhals, numpy, plain Python."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as pads

from osler.data.need import DataError
from osler.data.tables.arrays import from_numpy_like, from_plain
from osler.data.tables.objects import arrow_ready, from_numpy, from_objects
from osler.data.tables.polars_frames import from_polars
from osler.data.tables.source import Source, from_table


def from_frame(data: object, name: str | None) -> Source | None:
    """A source over whatever frame, array or collection this is; None for anything that is none of them."""
    if type(data).__module__.partition(".")[0] == "narwhals":
        import narwhals as nw

        data = nw.to_native(data, pass_through=True)
    for maker in (_arrow, _pandas, from_polars, _spark, from_numpy_like, _plain, _other):
        found = maker(data, name)
        if found is not None:
            return found
    return None


def _arrow(data: object, name: str | None) -> Source | None:
    if isinstance(data, pa.RecordBatch):
        return from_table(pa.Table.from_batches([data]), name or "Arrow record batch")
    if isinstance(data, pa.Table):
        return from_table(data, name or "Arrow table")
    if isinstance(data, (pa.Array, pa.ChunkedArray)):
        return from_table(pa.table({"value": data}), name or "Arrow array")
    if isinstance(data, pa.RecordBatchReader):
        return _stream(data, name or "Arrow stream")
    if isinstance(data, pads.Dataset):
        return _dataset(data, name or "Arrow dataset")
    return None


def _stream(reader: pa.RecordBatchReader, name: str) -> Source:
    def read(columns: Sequence[int], size: int) -> Iterator[pa.RecordBatch]:
        for batch in reader:
            yield batch.select(list(columns))

    return Source(name, reader.schema, read, repeatable=False)


def _dataset(dataset: pads.Dataset, name: str) -> Source:
    """A source over an Arrow dataset, read in order with nothing ahead.

    Arrow holds a whole row group of the columns that are read in memory; the paths of the files in place of the dataset
    need less.
    """
    schema = dataset.schema
    names = schema.names
    fragment_options = None
    if isinstance(dataset, pads.FileSystemDataset) and isinstance(dataset.format, pads.ParquetFileFormat):
        fragment_options = pads.ParquetFragmentScanOptions(use_buffered_stream=True, pre_buffer=False)

    def read(columns: Sequence[int], size: int) -> Iterator[pa.RecordBatch]:
        wanted = [names[i] for i in columns]
        yield from dataset.to_batches(
            columns=wanted,
            batch_size=size,
            batch_readahead=0,
            fragment_readahead=0,
            use_threads=False,
            fragment_scan_options=fragment_options,
        )

    if len(set(names)) < len(names):
        double = next(n for n in names if names.count(n) > 1)
        raise DataError(f"{name}: the column name {double!r} occurs more than once in the dataset: rename one")
    return Source(name, schema, read)


def _pandas(data: object, name: str | None) -> Source | None:
    module = type(data).__module__.partition(".")[0]
    if module == "modin" and hasattr(data, "_to_pandas"):
        data = data._to_pandas()
        module = "pandas"
    if module != "pandas" and not any(base.__module__.startswith("pandas.") for base in type(data).__mro__):
        return None
    import pandas as pd

    if isinstance(data, (pd.Series, pd.Index)):
        data = data.to_frame(name="value" if data.name is None else data.name)
    if not isinstance(data, pd.DataFrame):
        return None
    return _PandasFrame(data, name or "pandas DataFrame").source()


class _PandasFrame:
    """Columns of a pandas frame, converted slice by slice; columns of objects once, as their type needs all values."""

    def __init__(self, frame: Any, name: str) -> None:
        self.frame, self.name = frame, name
        self.whole: dict[int, pa.Array] = {}
        self.notes: list[str] = []

    def source(self) -> Source:
        names = [_label(label) for label in self.frame.columns]
        fields = []
        for i, column in enumerate(names):
            if self.frame.dtypes.iloc[i] == np.dtype(object):
                self.whole[i], note = from_objects(self.frame.iloc[:, i])
                if note:
                    self.notes.append(f"{self.name}: column {column!r} {note}")
            fields.append(pa.field(column, self.whole[i].type if i in self.whole else self._part(i, 0, 0).type))
        hints = {
            _label(level): f"{_label(level)!r} is the index of the frame: call reset_index() to make it a column"
            for level in self.frame.index.names
            if level is not None
        }
        return Source(self.name, pa.schema(fields), self.read, rows=len(self.frame), notes=self.notes, hints=hints)

    def read(self, columns: Sequence[int], size: int) -> Iterator[pa.RecordBatch]:
        for start in range(0, len(self.frame), size):
            stop = min(start + size, len(self.frame))
            arrays = [self._part(i, start, stop) for i in columns]
            if not arrays:
                return
            yield pa.record_batch(arrays, names=[str(i) for i in columns])

    def _part(self, i: int, start: int, stop: int) -> pa.Array:
        if i in self.whole:
            return self.whole[i].slice(start, stop - start)
        series = self.frame.iloc[start:stop, i]
        if type(series.dtype).__name__ == "SparseDtype":
            series = series.sparse.to_dense()
        elif type(series.dtype).__name__ == "PeriodDtype":
            series = series.dt.to_timestamp()
        if isinstance(series.dtype, np.dtype):
            values = series.to_numpy()
            if values.dtype.kind == "f":
                # in a column backed by numpy NaN is what pandas has for a missing value
                return pa.array(arrow_ready(values), from_pandas=True)
            return from_numpy(values)[0]
        found = pa.array(series, from_pandas=True)
        return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def _label(label: object) -> str:
    """A column's label as text; the levels of a MultiIndex are joined by a dot."""
    return ".".join(str(part) for part in label) if isinstance(label, tuple) else str(label)


def _plain(data: object, name: str | None) -> Source | None:
    return from_plain(data, name, from_frame)


def _spark(data: object, name: str | None) -> Source | None:
    if not (type(data).__module__.startswith("pyspark.") and hasattr(data, "mapInArrow")):
        return None
    from osler.data.spark.frame import SparkSource

    return SparkSource(data, name)


def _other(data: object, name: str | None) -> Source | None:
    """Whatever speaks Arrow's C stream interface: DuckDB, Ibis, cuDF, DataFusion …"""
    if not hasattr(data, "__arrow_c_stream__"):
        return None
    name = name or f"{type(data).__module__.partition('.')[0]} {type(data).__name__}"
    schema = pa.RecordBatchReader.from_stream(data).schema

    def read(columns: Sequence[int], size: int) -> Iterator[pa.RecordBatch]:
        for batch in pa.RecordBatchReader.from_stream(data):
            yield batch.select(list(columns))

    return Source(name, schema, read)
