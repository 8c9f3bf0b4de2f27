"""Frames in their own library: columns out as Arrow, rows picked by number, without a round trip of the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from osler.data.need import DataError
from osler.data.sources.ids import Rows
from osler.data.tables import open_source


class Native:
    """A frame of pandas, polars or pyarrow; anything else that `open_source` takes is read into a pyarrow table.

    Attributes:
        frame: the frame. kind: `pandas`, `polars` or `pyarrow`. name: for messages.
    """

    def __init__(self, data: object, name: str) -> None:
        if type(data).__module__.partition(".")[0] == "narwhals":
            import narwhals.stable.v2 as nw

            data = nw.to_native(data, pass_through=True)
        module = type(data).__module__.partition(".")[0]
        if module == "polars" and hasattr(data, "collect"):
            data = data.collect()
        self.frame: Any
        if module in ("pandas", "polars") and hasattr(data, "columns"):
            self.kind, self.frame = module, data
        elif isinstance(data, pa.Table):
            self.kind, self.frame = "pyarrow", data
        else:
            self.kind, self.frame = "pyarrow", open_source(data).table()
        self.name = name

    @property
    def columns(self) -> list[str]:
        """The columns' names."""
        return list(self.frame.column_names if self.kind == "pyarrow" else self.frame.columns)

    def arrow(self, columns: list[str]) -> pa.Table:
        """These columns as Arrow.

        Raises:
            DataError: a column is not there, or there twice.
        """
        names = self.columns
        for column in columns:
            if names.count(column) > 1:
                raise DataError(
                    f"the {self.name} table has {names.count(column)} columns called {column!r}: rename them"
                )
        source = open_source(self.frame, f"the {self.name} table")
        return source.table(list(dict.fromkeys(columns)))

    def join(self, other: Native, rows: Rows, columns: list[str], names: list[str]) -> Any:
        """This frame with columns of another one beside it.

        Args:
            other: a frame; it is turned into this one's library where it is of another.
            rows: [rows of this frame], rows of the other one, -1 where there is none.
            columns: columns of the other frame. names: what they are called in the result.
        """
        found = rows >= 0
        if self.kind == "pandas":
            import pandas as pd

            table: Any = other.frame if other.kind == "pandas" else other.to_arrow().to_pandas()
            picked = table[columns].reset_index(drop=True)
            picked = picked.take(rows) if found.all() else picked.reindex(np.where(found, rows, -1))
            picked.index, picked.columns = pd.RangeIndex(len(rows)), names
            return pd.concat([self.frame.reset_index(drop=True), picked], axis=1)
        if self.kind == "polars":
            import polars as pl

            theirs: Any = other.frame if other.kind == "polars" else pl.from_arrow(other.to_arrow())
            index = pl.Series(rows).cast(pl.Int64).set(pl.Series(~found), None)
            picked = theirs.select([theirs[c].gather(index).alias(n) for c, n in zip(columns, names)])
            return pl.concat([self.frame, picked], how="horizontal") if columns else self.frame
        index = pa.array(rows, pa.int64(), mask=~found)
        arrow = other.to_arrow()
        out = self.frame
        for column, name in zip(columns, names):
            out = out.append_column(name, arrow.column(column).take(index))
        return out

    def to_arrow(self) -> pa.Table:
        """The whole frame as Arrow."""
        if self.kind == "pandas":
            return pa.Table.from_pandas(self.frame, preserve_index=False)
        found: pa.Table = self.frame.to_arrow() if self.kind == "polars" else self.frame
        return found
