"""A profile as an Arrow table and as a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from osler.data.drift.categorical import Categories
from osler.data.drift.grid import SCHEMA as GRID
from osler.data.drift.grid import Grid
from osler.data.drift.profile import ColumnState, Profile
from osler.data.need import DataError
from osler.data.tables import Kind

VERSION = 1
KEY = b"osler.profile"

SCHEMA = pa.schema(
    [
        ("column", pa.string()),
        ("kind", pa.string()),
        ("form", pa.string()),
        ("asked", pa.bool_()),
        ("rows", pa.int64()),
        ("missing", pa.int64()),
        *((f.name, f.type) for f in GRID),
        ("keys", pa.list_(pa.uint64())),
        ("tallies", pa.list_(pa.int64())),
        ("names", pa.list_(pa.string())),
        ("valued", pa.int64()),
        ("error", pa.int64()),
        ("cap", pa.int64()),
    ]
)
_LARGEST = 1 << 30
_MOST_EDGES = 1 << 16


def to_arrow(profile: Profile) -> pa.Table:
    """One row a column in `SCHEMA`; the profile's name and rows stand in the schema's metadata."""
    rows = [_row(state) for state in profile.columns.values()]
    arrays = [pa.array([row.get(f.name) for row in rows], f.type) for f in SCHEMA]
    about = {"version": VERSION, "name": profile.name, "rows": profile.rows}
    return pa.Table.from_arrays(arrays, schema=SCHEMA.with_metadata({KEY: json.dumps(about).encode()}))


def from_arrow(table: pa.Table | pa.RecordBatch) -> Profile:
    """The profile that `to_arrow` wrote; without metadata its rows are those of its first column.

    Raises:
        DataError: it is no table of a profile, of a later version, or its numbers contradict each other.
    """
    missing = [f.name for f in SCHEMA if f.name not in table.schema.names]
    if missing:
        raise DataError(f"this is no profile: it lacks {missing[0]!r}")
    about = _about(table.schema.metadata)
    states = []
    for row in table.select(SCHEMA.names).to_pylist():
        try:
            states.append(_state(row))
        except (TypeError, ValueError, OverflowError) as error:
            raise DataError(f"this profile is damaged in column {row.get('column')!r}: {error}") from None
    if len({state.name for state in states}) < len(states):
        raise DataError("this profile is damaged: a column occurs twice")
    rows = about.get("rows", states[0].rows if states else 0)
    return Profile(str(about.get("name", "profile")), states, int(rows))


def save(profile: Profile, path: str | Path) -> None:
    """Write a profile as one Parquet file.

    Raises:
        DataError: it cannot be written there.
    """
    import pyarrow.parquet as pq

    table = to_arrow(profile)
    floats = [f"{f.name}.list.element" for f in SCHEMA if f.type == pa.list_(pa.float64())]
    try:
        pq.write_table(
            table,
            str(path),
            compression="zstd",
            use_dictionary=False,
            write_statistics=False,
            column_encoding=dict.fromkeys(floats, "BYTE_STREAM_SPLIT"),
        )
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"the profile cannot be written to {path}: {_line(error)}") from None


def load(path: str | Path) -> Profile:
    """Read a profile that `save` wrote.

    Raises:
        DataError: there is no such file, or it holds no profile.
    """
    import pyarrow.parquet as pq

    if not Path(path).is_file():
        raise DataError(f"{path}: there is no such file")
    try:
        with pq.ParquetFile(str(path)) as file:
            meta = file.metadata
            size = sum(meta.row_group(i).total_byte_size for i in range(meta.num_row_groups))
            if KEY not in (file.schema_arrow.metadata or {}):
                raise DataError(f"{path} is a Parquet file but no profile of osler")
            if size > _LARGEST:
                raise DataError(f"{path}: a profile of {size >> 20} MiB is larger than osler reads")
            table = file.read()
        return from_arrow(table)
    except DataError as error:
        prefix = "" if str(path) in str(error) else f"{path}: "
        raise DataError(f"{prefix}{error}") from None
    except (OSError, pa.ArrowException, ValueError, MemoryError) as error:
        raise DataError(f"{path} is no profile of osler: {_line(error)}") from None


def is_profile(path: object) -> bool:
    """Whether a path names a file that `save` wrote, or one that calls itself `.profile`."""
    if not isinstance(path, (str, Path)) or not Path(path).is_file():
        return False
    if Path(path).suffix == ".profile":
        return True
    import pyarrow.parquet as pq

    try:
        with Path(path).open("rb") as file:
            if file.read(4) != b"PAR1":
                return False
        return KEY in (pq.read_schema(str(path)).metadata or {})
    except (OSError, pa.ArrowException, ValueError):
        return False


def _about(metadata: dict[bytes, bytes] | None) -> dict[str, Any]:
    raw = (metadata or {}).get(KEY)
    if raw is None:
        return {}
    try:
        about = json.loads(raw)
        version = int(about["version"])
        int(about["rows"])
    except (ValueError, KeyError, TypeError):
        raise DataError("this profile is damaged: its header cannot be read") from None
    if version > VERSION:
        raise DataError(f"this profile has format {version}, newer than this osler reads ({VERSION}): upgrade osler")
    return dict(about)


def _row(state: ColumnState) -> dict[str, object]:
    row: dict[str, object] = {
        "column": state.name,
        "kind": state.kind.value,
        "form": state.form,
        "asked": state.asked,
        "rows": state.rows,
        "missing": state.missing,
    }
    if state.grid is not None:
        batch = state.grid.to_arrow()
        row.update({name: batch.column(name)[0] for name in GRID.names})
    elif (found := state.categories) is not None:
        row |= {
            "keys": list(found.counts),
            "tallies": list(found.counts.values()),
            "names": [found.names.get(key, "") for key in found.counts] if found.named else None,
            "nulls": found.nulls,
            "valued": found.n,
            "error": found.error,
            "cap": found.cap,
        }
    return row


def _state(row: dict[str, Any]) -> ColumnState:
    kind, form = Kind(row["kind"]), str(row["form"])
    rows, missing = int(row["rows"]), int(row["missing"])
    held: Grid | Categories | None = None
    if form == "number":
        if len(row["edges"]) > _MOST_EDGES:
            raise DataError(f"{len(row['edges'])} edges are more than osler reads")
        values = {f.name: pa.array([row[f.name]], f.type) for f in GRID}
        held = Grid.from_arrow(pa.record_batch(values))
    elif form == "category":
        keys, tallies = row["keys"], row["tallies"]
        if len(keys) != len(tallies) or len(set(keys)) < len(keys):
            raise DataError("its categories contradict each other")
        names = dict(zip(keys, row["names"])) if row["names"] is not None else None
        held = Categories.of(
            dict(zip(keys, tallies)), row["valued"], row["nulls"], row["error"], names, max(2, int(row["cap"]))
        )
    elif form != "none":
        raise DataError(f"{form!r} is no form of a column")
    if missing < 0 or missing > rows or (held is not None and held.rows != rows):
        raise DataError("its rows contradict each other")
    return ColumnState(str(row["column"]), kind, form, held, bool(row["asked"]), rows, missing)


def _line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
