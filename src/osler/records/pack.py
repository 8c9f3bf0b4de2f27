"""Curves and heat maps of a process that has ended, as Parquet.

They lie in the run's folder as `series/curves-<pid>-<start>.parquet` and `series/maps-<pid>-<start>.parquet`. Curves
are as thinned as `read` has them (the journal keeps every point), heat maps are whole.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from osler.records import parse
from osler.records.read import Process, columns

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_ROW_SETS = b"osler.row_sets"
_SERIES = b"osler.series"  # the names before they were made encodable


def curves_file(process: Process) -> Path:
    """Where the curves of a process are packed: columns `series`, `step`, `value`."""
    return process.journal.parent / "series" / f"curves-{process.pid}-{process.start}.parquet"


def maps_file(process: Process) -> Path:
    """Where its heat maps are packed: columns `series`, `step`, `row_set`, `values`.

    `values` is a list of float32; its names are entry `row_set` of the JSON list in the schema's `osler.row_sets`.
    """
    return process.journal.parent / "series" / f"maps-{process.pid}-{process.start}.parquet"


def pack(process: Process) -> None:
    """Write both files, each under another name first; one that is there already is left as it is.

    Raises:
        OSError: the disk does not take it.
    """
    if process.curves and not curves_file(process).exists():
        _write(curves_file(process), _curves(process))
    if process.blocks and process.arrays.exists() and not maps_file(process).exists():
        _write(maps_file(process), _maps(process))


def _write(path: Path, batches: Iterator[Any]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    first = next(batches, None)
    if first is None:
        return
    path.parent.mkdir(mode=0o700, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(fd, "wb") as f:  # noqa: PTH123 - from a descriptor
            with pq.ParquetWriter(f, first.schema, compression="zstd") as writer:
                writer.write_batch(first)
                for batch in batches:
                    writer.write_batch(batch)
            f.flush()
            os.fsync(fd)
        temporary.rename(path)
    except pa.ArrowException as error:
        raise OSError(0, str(error)) from error
    finally:
        temporary.unlink(missing_ok=True)


def _curves(process: Process) -> Iterator[Any]:
    import pyarrow as pa

    schema = pa.schema([("series", pa.string()), ("step", pa.int64()), ("value", pa.float64())])
    for name, curve in process.curves.items():
        steps, values = curve.result()
        names = pa.array([_utf8(name)] * len(steps), pa.string())
        yield pa.record_batch([names, pa.array(steps, pa.int64()), pa.array(values, pa.float64())], schema=schema)


def _maps(process: Process) -> Iterator[Any]:
    import numpy as np
    import pyarrow as pa

    row_sets = {rows: i for i, rows in enumerate(dict.fromkeys(b.rows for b in process.blocks))}
    originals = list(dict.fromkeys(b.series for b in process.blocks))
    schema = pa.schema(
        [
            ("series", pa.string()),
            ("step", pa.int64()),
            ("row_set", pa.int32()),
            ("values", pa.list_(pa.float32())),
        ],
        metadata={_ROW_SETS: json.dumps(list(row_sets)).encode(), _SERIES: json.dumps(originals).encode()},
    )
    for name, rows, steps, values in columns(process):
        n, width = values.shape
        offsets = pa.array(np.arange(n + 1, dtype=np.int32) * width, pa.int32())
        cells = pa.ListArray.from_arrays(offsets, pa.array(values.ravel().astype(np.float32, copy=False)))
        names = pa.array([_utf8(name)] * n, pa.string())
        kinds = pa.array([row_sets[rows]] * n, pa.int32())
        yield pa.record_batch([names, pa.array(steps, pa.int64()), kinds, cells], schema=schema)


def packed_columns(path: Path) -> Iterator[tuple[str, tuple[str, ...], list[int], NDArray[np.float32]]]:
    """The columns of a packed file, as `read.columns` gives them.

    Raises:
        OSError: it is no such file, or cannot be read.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as f:
            metadata = f.schema_arrow.metadata or {}
            row_sets = [tuple(map(str, rows)) for rows in json.loads(metadata.get(_ROW_SETS, b"[]"))]
            originals = {_utf8(str(name)): str(name) for name in json.loads(metadata.get(_SERIES, b"[]"))}
            for batch in f.iter_batches(batch_size=1024):
                names = batch.column("series").to_pylist()
                steps, kinds = batch.column("step").to_pylist(), batch.column("row_set").to_pylist()
                cells = batch.column("values")
                for a, b in _stretches(list(zip(names, kinds, strict=True))):
                    rows = row_sets[kinds[a]]
                    values = np.asarray(cells.slice(a, b - a).flatten(), dtype=np.float32)
                    yield (
                        originals[names[a]],
                        rows,
                        [parse.whole(s) or 0 for s in steps[a:b]],
                        values.reshape(b - a, len(rows)),
                    )
    except (pa.ArrowException, ValueError, KeyError, IndexError, TypeError) as error:
        raise OSError(0, f"no readable Parquet file ({type(error).__name__})") from error


def _stretches(keys: list[Any]) -> Iterator[tuple[int, int]]:
    """The longest ranges in which all keys are equal."""
    start = 0
    for i in range(1, len(keys) + 1):
        if i == len(keys) or keys[i] != keys[start]:
            yield start, i
            start = i


def _utf8(name: str) -> str:
    """Names come from the user's program and may hold lone surrogates, which Arrow cannot store."""
    return name.encode("utf-8", "backslashreplace").decode()
