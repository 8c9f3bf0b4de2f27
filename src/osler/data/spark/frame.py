"""A Spark DataFrame seen as a source: its columns and kinds, and a way to run a function over its rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from osler.data.need import DataError
from osler.data.tables import Source
from osler.data.tables.kinds import normalise
from osler.data.tables.source import first_line

Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

_TYPES = {
    "double": pa.float64(),
    "float": pa.float32(),
    "byte": pa.int8(),
    "tinyint": pa.int8(),
    "short": pa.int16(),
    "smallint": pa.int16(),
    "integer": pa.int32(),
    "int": pa.int32(),
    "long": pa.int64(),
    "bigint": pa.int64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "char": pa.string(),
    "varchar": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "void": pa.null(),
}
_OTHER = pa.struct([])


def is_spark(data: object) -> bool:
    """Whether this is a Spark DataFrame (classic or Connect, bare or in narwhals) or a source over one; imports nothing."""
    if isinstance(data, SparkSource):
        return True
    data = _native(data)
    return type(data).__module__.startswith("pyspark.") and hasattr(data, "mapInArrow")


class SparkSource(Source):
    """A Spark DataFrame as a source: its columns and kinds are known here, its rows stay on Spark.

    `batches` raises; what can work on Spark asks for `run`.
    """

    def __init__(self, data: object, name: str | None = None) -> None:
        """Takes the frame's schema; nothing is computed.

        Args:
            data: a Spark DataFrame.
            name: for messages.

        Raises:
            DataError: it is a stream, or has no columns.
        """
        frame: Any = _native(data)
        shown = name or "Spark DataFrame"
        if frame.isStreaming:
            raise DataError(f"{shown} is a stream: check each micro-batch of it (foreachBatch)")
        schema = pa.schema([(f.name, _arrow_type(f.dataType)) for f in frame.schema.fields])

        def read(columns: Sequence[int], size: int) -> Iterator[pa.RecordBatch]:
            raise DataError(
                f"{shown} stays on Spark, where only drift is judged: "
                "for anything else bring it here with .toArrow() (all rows in memory) or write it to parquet"
            )

        super().__init__(shown, schema, read)
        self._frame = frame.toDF(*self.names) if list(self.names) != frame.columns else frame

    @classmethod
    def of(cls, data: object, name: str | None = None) -> SparkSource:
        """The source itself, or one over a Spark DataFrame."""
        return data if isinstance(data, SparkSource) else cls(data, name)

    def run(self, task: Task, schema: str, columns: Sequence[str], present: Sequence[str] = ()) -> Any:
        """A Spark DataFrame of what a task yields for each partition; evaluated when something is asked of it.

        Args:
            task: batches in, batches out; pickled to the workers. Types are in osler's normal form.
            schema: what comes out, in Spark's notation.
            columns: what the task sees.
            present: those of the columns of which it only sees whether there is a value (true) or not (null): they may
                be of types that Arrow does not carry.
        """
        from pyspark.sql import functions as f

        def column(i: int, name: str) -> Any:
            found = f.col("`" + name.replace("`", "``") + "`")
            # mapInArrow does not take names with dots or backticks
            return (f.when(found.isNotNull(), f.lit(True)) if name in present else found).alias(f"c{i}")

        chosen = self._frame.select(*(column(i, name) for i, name in enumerate(columns)))
        return chosen.mapInArrow(_Named(task, columns), schema)

    def count(self) -> int:
        """Rows, counted on Spark."""
        return int(self._frame.count())


class _Named:
    """A task that sees the columns' own names and normal types; a class of this module, so that workers find it."""

    def __init__(self, task: Task, names: Sequence[str]) -> None:
        self._task, self._names = task, list(names)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self._task(pa.record_batch([normalise(c) for c in b.columns], names=self._names) for b in batches)


def collected(frame: Any, name: str) -> pa.Table:
    """The rows of a small Spark DataFrame, here.

    Raises:
        DataError: the query failed, or the workers lack osler.
    """
    from pyspark.errors import PySparkException

    try:
        if hasattr(frame, "toArrow"):
            return frame.toArrow()
        rows = [row.asDict() for row in frame.collect()]
        return pa.Table.from_pylist(
            rows, pa.schema([(n, _arrow_type(frame.schema[n].dataType)) for n in frame.columns])
        )
    except PySparkException as error:
        text = str(error)
        if lacking := re.search(r"ModuleNotFoundError: No module named '([\w.]+)'", text):
            raise DataError(f"Spark's workers lack {lacking[1]}: install osler in their Python environment") from None
        own = re.search(r"DataError: (.+)", text)
        raise DataError(f"{name}: {own[1] if own else first_line(error)}") from None


def _native(data: object) -> object:
    if type(data).__module__.partition(".")[0] == "narwhals":
        import narwhals as nw

        return nw.to_native(data, pass_through=True)
    return data


def _arrow_type(type_: Any) -> pa.DataType:
    name = type_.typeName()
    if name == "decimal":
        return pa.decimal128(type_.precision, type_.scale)
    if name.startswith("interval day") or name in ("daytimeinterval", "interval"):
        return pa.duration("us")
    if name.startswith(("char(", "varchar(")):
        return pa.string()
    return _TYPES.get(name, _OTHER)
