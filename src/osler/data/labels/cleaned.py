"""The verdict on every label as a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from osler.data.need import DataError

if TYPE_CHECKING:
    from osler.data.labels.audit import LabelAudit

COLUMNS = ("given", "suggested", "probability_wrong", "keep")


def write(audit: LabelAudit, path: Path, source: Path | None) -> Path:
    """Write `COLUMNS`, after the source's own columns if there is one.

    Raises:
        DataError: unknown kind of file, or the source has another number of rows.
    """
    suffix = path.suffix.lower()
    if suffix == ".npy":
        kind = [("given", "i4"), ("suggested", "i4"), ("probability_wrong", "f4"), ("keep", "?")]
        out = np.empty(len(audit.given), dtype=kind)
        for name, values in zip(COLUMNS, (audit.given, audit.suggested, audit.suspicion, audit.keep()), strict=True):
            out[name] = values
        np.save(path, out, allow_pickle=False)
        return path
    if suffix not in (".csv", ".parquet"):
        raise DataError(f"{path}: a cleaned file is .csv, .parquet or .npy")
    import pyarrow as pa

    names = pa.array(audit.names)
    given = pa.array(audit.given, mask=audit.given < 0)
    columns: dict[str, Any] = {
        "given": names.take(given),
        "suggested": names.take(pa.array(audit.suggested)),
        "probability_wrong": pa.array(audit.suspicion),
        "keep": pa.array(audit.keep()),
    }
    table = _source(source, len(audit.given)) if source is not None else None
    if table is None:
        table = pa.table(columns)
    else:
        for name, values in columns.items():
            free = name if name not in table.column_names else f"{name}_by_osler"
            table = table.append_column(free, values)
    if suffix == ".csv":
        import pyarrow.csv as csv

        csv.write_csv(table, path)
    else:
        import pyarrow.parquet as pq

        pq.write_table(table, path)
    return path


def _source(source: Path, rows: int) -> Any:
    suffix = source.suffix.lower()
    if suffix == ".csv":
        import pyarrow.csv as csv

        table = csv.read_csv(source)
    elif suffix in (".parquet", ".pq"):
        import pyarrow.parquet as pq

        table = pq.read_table(source)
    elif suffix in (".npy", ".npz"):
        return None  # the labels alone: there is nothing to put the columns beside
    else:
        raise DataError(f"{source}: columns can be put beside those of a .csv or .parquet file only")
    if table.num_rows != rows:
        raise DataError(f"{source} has {table.num_rows:,} rows and there are {rows:,} labels")
    return table
