"""One source read into what the comparisons need: ids, instants, values, and attributes as 32-bit codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from osler.core.progress import Progress, quiet
from osler.data.need import DataError, need
from osler.data.sources.clock import Clock, read_clock
from osler.data.sources.keys import Keys, read_keys
from osler.data.tables import Kind, Source, open_source

_ATTRIBUTES = 6


@dataclass(frozen=True, slots=True)
class Roles:
    """Which columns of one source play which part."""

    id: tuple[str, ...] = ()
    time: str | None = None
    values: str | None = None
    static: tuple[str, ...] | None = None


@dataclass(slots=True)
class Stream:
    """One source.

    Attributes:
        name: for messages, different for each source.
        rows: how many.
        keys: its ids, None where no id column is named. clock: its times, None where no time column is named.
        values: float64 [rows] of a measured quantity, NaN where missing; None where none is named.
        attributes: name → uint32 [rows], a code of the value, 0 where missing; only where there are ids.
    """

    name: str
    source: Source
    roles: Roles
    rows: int
    keys: Keys | None
    clock: Clock | None
    values: np.ndarray[Any, np.dtype[np.float64]] | None
    attributes: dict[str, np.ndarray[Any, np.dtype[np.uint32]]] = field(default_factory=dict)


def open_all(sources: Sequence[object], names: Sequence[str] | None) -> list[tuple[str, Source]]:
    """Open the sources and give each a name of its own.

    Raises:
        DataError: one cannot be opened, or there are as many names as sources not.
    """
    if names is not None and len(names) != len(sources):
        raise DataError(f"{len(sources)} sources need as many names, not {len(names)}")
    opened: list[tuple[str, Source]] = []
    for i, data in enumerate(sources):
        source = open_source(data, names[i] if names is not None else None)
        opened.append((source.name, source))
    plain = [name for name, _ in opened]
    return [
        (f"{name} ({plain[: i + 1].count(name)})" if plain.count(name) > 1 else name, source)
        for i, (name, source) in enumerate(opened)
    ]


def per_source(text: str, count: int, what: str) -> list[str]:
    """A column's name in each source: `id`, or `a_id=b_id=c_id` where the names differ.

    Raises:
        DataError: the number of names is neither one nor the number of sources.
    """
    parts = [part.strip() for part in text.split("=")]
    if len(parts) == 1:
        return parts * count
    if len(parts) != count or not all(parts):
        raise DataError(f"{what} {text!r} gives {len(parts)} names for {count} sources; write one, or one a source")
    return parts


def named(role: object, count: int, what: str, names: Sequence[str]) -> list[tuple[str, ...]]:
    """The columns of one part for every source.

    Args:
        role: None, a name, several names, or a mapping from a source's name or position to either.
        count: number of sources. what: the option, for messages. names: the sources' names.

    Raises:
        DataError: it is none of these, or names a source that there is not.
    """
    if role is None:
        return [()] * count
    if isinstance(role, Mapping):
        table = {name: i for i, name in enumerate(names)} | {i: i for i in range(count)}
        unknown = [key for key in role if key not in table]
        if unknown:
            raise DataError(f"{what} names a source {unknown[0]!r}; the sources are {', '.join(map(repr, names))}")
        given = {table[key]: value for key, value in role.items()}
        return [_texts(given.get(i, ()), what) for i in range(count)]
    parts = [per_source(text, count, what) for text in _texts(role, what)]
    return [tuple(part[i] for part in parts) for i in range(count)]


def _texts(value: object, what: str) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",")) if value.strip() else ()
    if isinstance(value, Sequence) and all(isinstance(part, str) for part in value):
        return tuple(value)
    raise DataError(f"{what} takes names of columns, not {value!r}")


def read_stream(name: str, source: Source, roles: Roles, progress: Progress = quiet) -> Stream:
    """Read a source once, batch by batch.

    Raises:
        DataError: a column is not there or not of a kind that its part needs.
    """
    attributes = _attributes(source, roles) if roles.id else ()
    wanted = list(dict.fromkeys([*roles.id, *([roles.time] if roles.time else []),
                                 *([roles.values] if roles.values else []), *attributes]))  # fmt: skip
    for column in wanted:
        source.column(column)
    for column in roles.id:
        if source.column(column).kind is Kind.NESTED:
            raise DataError(f"{source.name}: column {column!r} holds lists or structs and cannot be an id")
    if not wanted:
        raise DataError("name what the sources share: an id column, a time column, or both")
    kept: list[pa.RecordBatch] = []
    codes: dict[str, list[np.ndarray[Any, Any]]] = {column: [] for column in attributes}
    first = [column for column in wanted if column not in attributes]
    done = 0
    for batch in source.batches(wanted):
        kept.append(batch.select(first))
        for column in attributes:
            codes[column].append(_attribute(batch.column(column)))
        done += batch.num_rows
        progress(f"reading {name}", done, source.rows)
    schema = pa.schema([(column, source.column(column).type) for column in first])
    table = pa.Table.from_batches(kept, schema)
    keys = read_keys([table.column(c) for c in roles.id], roles.id) if roles.id else None
    clock = read_clock(table.column(roles.time), roles.time, name) if roles.time else None
    values = _values(table.column(roles.values), roles.values, name) if roles.values else None
    found = {c: np.concatenate(parts) if parts else np.zeros(0, np.uint32) for c, parts in codes.items()}
    return Stream(name, source, roles, table.num_rows, keys, clock, values, found)


def _attributes(source: Source, roles: Roles) -> tuple[str, ...]:
    taken = {*roles.id, roles.time, roles.values}
    if roles.static is not None:
        return tuple(column for column in roles.static if column not in taken)
    plain = (Kind.CATEGORY, Kind.INTEGER, Kind.BOOLEAN)
    return tuple(c.name for c in source.columns if c.kind in plain and c.name not in taken)[:_ATTRIBUTES]


def _attribute(array: pa.Array) -> np.ndarray[Any, np.dtype[np.uint32]]:
    pl = need("polars", "data", "comparing ids")
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    part = pl.from_arrow(array)
    if part.dtype.is_integer() and part.dtype != pl.UInt64:
        part = part.cast(pl.Int64)
    elif part.dtype != pl.String:
        part = part.cast(pl.String)
    code: np.ndarray[Any, np.dtype[np.uint32]]
    code = (np.asarray(part.hash(seed=0).to_numpy()) >> np.uint64(32)).astype(np.uint32) | np.uint32(1)
    code[np.asarray(part.is_null().to_numpy())] = 0
    return code


def _values(array: pa.ChunkedArray, column: str, name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    if not (pa.types.is_integer(array.type) or pa.types.is_floating(array.type) or pa.types.is_decimal(array.type)):
        raise DataError(
            f"{name}: column {column!r} holds {array.type}; --values needs numbers that both sources measure"
        )
    return np.asarray(array.cast(pa.float64(), safe=False).to_numpy(), np.float64)
