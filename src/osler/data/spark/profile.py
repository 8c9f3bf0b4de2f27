"""Drift profiles of Spark DataFrames.

Every partition is counted into the same `Profile` that a local table is counted into; the states of a column are then
merged in the order of the partitions. Counts, smallest and largest values and categories (up to their cap) are those of
a local run over the same edges, bit for bit. Sums are too where there is one partition; with more, each is the sum of
the partitions' sums and so may differ in the last bits. The same partitions always give the same sums.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from osler.core.progress import Progress, quiet
from osler.core.settings import Settings
from osler.data.drift.categorical import Categories
from osler.data.drift.edges import STORED, Sampler
from osler.data.drift.grid import Edges, Grid
from osler.data.drift.profile import ColumnState, Profile, form_of
from osler.data.need import DataError
from osler.data.spark.frame import SparkSource, collected
from osler.data.tables import floats

_PER_EDGE = 48
"""Values drawn for each edge; the edges themselves take part of them."""
_OUTERMOST = 32
_BATCH = 65_536
_DRAWN_BYTES = 256 << 20

_STATES = "column string, part int, state binary"
_DRAWS = "column string, part int, drawn array<double>, ends array<double>"


def profile_spark(
    data: object,
    *,
    edges: int = STORED,
    columns: Sequence[str] | None = None,
    categorical: Sequence[str] = (),
    numeric: Sequence[str] = (),
    profile_of: Profile | None = None,
    settings: Settings | None = None,
    progress: Progress = quiet,
    name: str | None = None,
) -> Profile:
    """Count a Spark DataFrame into a profile, on Spark.

    With `profile_of` the frame is evaluated once. Without, it is evaluated three times (rows, edges, counts): cache it
    if it is expensive or random. Edges come from all values where there are at most 48 an edge, else from a seeded
    draw.

    Args:
        data: a Spark DataFrame, or `open_source` of one.
        edges: edges per column of numbers: 256 to keep, 4096 to compare at once.
        columns: columns to take; None: all.
        categorical: columns to count as categories whatever their type.
        numeric: columns to judge as numbers: booleans and times.
        profile_of: the profile whose edges to use.
        settings: the settings tree; `drift` and `data.show_values` are used.
        progress: told of the passes.
        name: of the data, for messages.

    Raises:
        DataError: an unknown column, one that cannot be what was asked for, a query that fails, workers without osler.
    """
    source = SparkSource.of(data, name)
    if profile_of is not None:
        return count_spark(profile_of.matching(source, columns), source, progress)
    settings = settings or Settings()
    chosen = list(source.columns) if columns is None else [source.column(n) for n in columns]
    for asked in (*categorical, *numeric):
        if source.column(asked) not in chosen:
            raise DataError(f"column {asked!r} is not among the columns that were chosen")
    forms = {c.name: form_of(c, source, categorical, numeric) for c in chosen}
    found = _edges(source, [n for n, form in forms.items() if form == "number"], edges, progress)
    states = []
    for column in chosen:
        form = forms[column.name]
        state: Grid | Categories | None = None
        if form == "number":
            state = Grid(found[column.name])
        elif form == "category":
            state = Categories(settings.drift.max_categories, settings.data.show_values)
        asked_for = column.name in categorical or column.name in numeric
        states.append(ColumnState(column.name, column.kind, form, state, asked_for))
    profile = Profile(source.name, states)
    profile.notes += source.notes
    return count_spark(profile, source, progress)


def count_spark(profile: Profile, source: SparkSource, progress: Progress = quiet) -> Profile:
    """Count the rows of a Spark DataFrame into a profile that matches it.

    Returns:
        The profile.

    Raises:
        DataError: the query fails, or the workers lack osler.
    """
    what = f"counting {profile.name} on Spark"
    progress(what, 0, None)
    if not profile.columns:
        profile.rows = source.count()
        return profile
    unjudged = [state.name for state in profile.columns.values() if state.form == "none"]
    partial = source.run(_Count(profile), _STATES, list(profile.columns), unjudged)
    merged = partial.repartition("column").mapInArrow(_merge, _STATES)
    for state in collected(merged, profile.name).column("state").to_pylist():
        part = _unpacked(state)
        (only,) = part.columns.values()
        profile.columns[only.name] += only
        profile.rows = max(profile.rows, part.rows)
    progress(what, profile.rows, profile.rows)
    return profile


class _Count:
    """Counts a partition; what goes to the workers is the empty profile."""

    def __init__(self, profile: Profile) -> None:
        self._packed = [_packed(Profile(profile.name, [state])) for state in profile.columns.values()]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        states = [state for packed in self._packed for state in _unpacked(packed).columns.values()]
        profile = Profile("partition", states)
        for batch in _larger(batches):
            profile.update(batch)
        if profile.rows:
            yield from _states(profile.columns.values(), profile.rows)


def _merge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """One state a column, its parts added in the order of the partitions."""
    packed: dict[str, list[tuple[int, bytes]]] = {}
    for batch in batches:
        for row in batch.to_pylist():
            packed.setdefault(row["column"], []).append((row["part"], row["state"]))
    for parts in packed.values():
        first, *others = (_unpacked(state) for _, state in sorted(parts))
        for other in others:
            first += other
        yield from _states(first.columns.values(), first.rows)


def _states(states: Any, rows: int) -> Iterator[pa.RecordBatch]:
    part = _partition()
    for state in states:
        packed = _packed(Profile("partition", [state], rows))
        yield pa.record_batch(
            [pa.array([state.name]), pa.array([part], pa.int32()), pa.array([packed])],
            names=["column", "part", "state"],
        )


def _packed(profile: Profile) -> bytes:
    table = profile.to_arrow()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_table(table)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def _unpacked(packed: bytes) -> Profile:
    return Profile.from_arrow(pa.ipc.open_stream(packed).read_all())


def _larger(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Spark's batches (10,000 rows by default) put together: counting pays once a batch."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows >= _BATCH:
            yield from pa.Table.from_batches(held).combine_chunks().to_batches()
            held, rows = [], 0
    if held:
        yield from pa.Table.from_batches(held).combine_chunks().to_batches()


def _edges(source: SparkSource, columns: Sequence[str], count: int, progress: Progress) -> dict[str, Edges]:
    """Edges for these columns, from values drawn on the workers and their outermost ones."""
    if not columns:
        return {}
    name = source.name
    progress(f"reading {name} on Spark for its edges", 0, None)
    wanted = _PER_EDGE * count
    rows = source.count()
    rate = min(1.0, wanted / rows) if rows else 1.0
    group = max(1, _DRAWN_BYTES // (8 * wanted))
    out = {}
    for start in range(0, len(columns), group):
        some = list(columns[start : start + group])
        drawn = collected(source.run(_Draw(rate), _DRAWS, some), name).sort_by(
            [("column", "ascending"), ("part", "ascending")]
        )
        values: dict[str, list[npt.NDArray[np.float64]]] = {column: [] for column in some}
        ends: dict[str, list[npt.NDArray[np.float64]]] = {column: [] for column in some}
        for row in range(drawn.num_rows):
            column = drawn.column("column")[row].as_py()
            values[column].append(drawn.column("drawn")[row].values.to_numpy())
            ends[column].append(drawn.column("ends")[row].values.to_numpy())
        for column in some:
            sampler = Sampler(count)
            for part in values[column]:
                sampler.add(part)
            if ends[column]:
                sampler.add(_outermost(np.concatenate(ends[column])))
            out[column] = sampler.edges()
        progress(f"reading {name} on Spark for its edges", start + len(some), len(columns))
    return out


class _Draw:
    """Draws values of a partition, and its outermost ones where not all are drawn."""

    def __init__(self, rate: float, seed: int = 0) -> None:
        self._rate, self._seed = rate, seed

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        part = _partition()
        rng = np.random.default_rng((self._seed, part))
        drawn: dict[str, list[npt.NDArray[np.float64]]] = {}
        ends: dict[str, npt.NDArray[np.float64]] = {}
        for batch in batches:
            for name, array in zip(batch.schema.names, batch.columns):
                values = floats(array)
                values = values[np.isfinite(values)]
                if self._rate < 1.0:
                    ends[name] = _outermost(np.concatenate((ends.get(name, values[:0]), values)))
                    values = values[rng.random(values.size) < self._rate]
                drawn.setdefault(name, []).append(values)
        for name, parts in drawn.items():
            yield pa.record_batch(
                [
                    pa.array([name]),
                    pa.array([part], pa.int32()),
                    pa.array([np.concatenate(parts)], pa.list_(pa.float64())),
                    pa.array([ends.get(name, np.zeros(0))], pa.list_(pa.float64())),
                ],
                names=["column", "part", "drawn", "ends"],
            )


def _outermost(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The smallest and the largest values, each once where they overlap."""
    if values.size <= 2 * _OUTERMOST:
        return values
    split = np.partition(values, (_OUTERMOST - 1, values.size - _OUTERMOST))
    return np.concatenate((split[:_OUTERMOST], split[-_OUTERMOST:]))


def _partition() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    return int(context.partitionId()) if context is not None else 0
