"""Equal rows of Spark DataFrames, by the hashes that are also taken locally."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from osler.data.need import DataError
from osler.data.spark.frame import SparkSource, collected
from osler.data.splits.hashes import row_hashes


@dataclass(frozen=True, slots=True)
class RowOverlap:
    """Rows that two frames share, over the same columns.

    Attributes:
        train_rows: rows of the first frame.
        eval_rows: rows of the second frame.
        shared_rows: rows of the second that also stand in the first.
        shared_distinct: how many different rows these are.
    """

    train_rows: int
    eval_rows: int
    shared_rows: int
    shared_distinct: int


class _Hash:
    def __init__(self, columns: Sequence[str], missing_alike: bool) -> None:
        self._columns, self._missing_alike = list(columns), missing_alike

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            hashes = row_hashes(batch, self._columns, missing_alike=self._missing_alike)
            yield pa.record_batch([pa.array(hashes.view(np.int64))], names=["row_hash"])


def row_hashes_spark(data: object, columns: Sequence[str] | None = None, *, missing_alike: bool = False) -> Any:
    """A Spark DataFrame with one column `row_hash` (bigint): the 64 bits of `osler.data.splits.hashes.row_hashes`.

    Args:
        data: a Spark DataFrame.
        columns: names; None: all. Order does not matter.
        missing_alike: take NaN for null.

    Raises:
        DataError: an unknown column.
    """
    source = SparkSource.of(data)
    chosen = [source.column(n).name for n in (source.names if columns is None else columns)]
    return source.run(_Hash(chosen, missing_alike), "row_hash bigint", chosen)


def overlap_spark(
    train: object, eval_: object, columns: Sequence[str] | None = None, *, missing_alike: bool = False
) -> RowOverlap:
    """How many rows of the second frame also stand in the first; counted on Spark.

    Two different rows share a hash with a probability of 2^-64.

    Args:
        train: a Spark DataFrame.
        eval_: another.
        columns: names; None: the columns that both have.
        missing_alike: take NaN for null.

    Raises:
        DataError: an unknown column, no common one, a query that fails.
    """
    from pyspark.sql import functions as f

    if columns is None:
        there = set(SparkSource.of(eval_).names)
        columns = [n for n in SparkSource.of(train).names if n in there]
    if not columns:
        raise DataError("the two Spark DataFrames have no column in common")
    sides = []
    for data, count in ((train, "train_rows"), (eval_, "eval_rows")):
        hashes = row_hashes_spark(data, columns, missing_alike=missing_alike)
        sides.append(hashes.groupBy("row_hash").agg(f.count(f.lit(1)).alias(count)))
    both = f.col("train_rows").isNotNull() & f.col("eval_rows").isNotNull()
    total = (
        sides[0]
        .join(sides[1], "row_hash", "full_outer")
        .agg(
            f.coalesce(f.sum("train_rows"), f.lit(0)).alias("train_rows"),
            f.coalesce(f.sum("eval_rows"), f.lit(0)).alias("eval_rows"),
            f.coalesce(f.sum(f.when(both, f.col("eval_rows"))), f.lit(0)).alias("shared_rows"),
            f.count(f.when(both, f.lit(1))).alias("shared_distinct"),
        )
    )
    (row,) = collected(total, "the Spark DataFrames").to_pylist()
    return RowOverlap(**row)
