"""A profile: what a data set looks like, column by column, in states that merge.

A profile of the reference stands in for the reference: it is saved, shipped, merged with that of another part, and
compared with new data, which are then counted over its edges. It holds counts, sums and extremes of numbers and hashes
of categories, never rows.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pyarrow as pa

from osler.core.progress import Progress, quiet
from osler.core.settings import Settings
from osler.data.drift.categorical import Categories
from osler.data.drift.edges import COMPUTING, STORED, Sampler
from osler.data.drift.grid import Edges, Grid
from osler.data.need import DataError
from osler.data.spark.frame import is_spark
from osler.data.tables import Column, Kind, Source, closest, floats, open_source, validity

NUMBERS = frozenset({Kind.NUMBER, Kind.INTEGER, Kind.DURATION, Kind.TIME})
CODES = frozenset({Kind.CATEGORY, Kind.BOOLEAN})
_COUNTABLE = frozenset({Kind.CATEGORY, Kind.BOOLEAN, Kind.INTEGER, Kind.NUMBER})
_MEASURABLE = NUMBERS | {Kind.BOOLEAN}


@dataclass(slots=True)
class ColumnState:
    """One column of a profile.

    Attributes:
        name: of the column.
        kind: as the data have it.
        form: `number`, `category`, or `none` where nothing but missing values is counted.
        state: a `Grid`, `Categories`, or None for `none`.
        asked: the form was asked for by name.
        rows: rows seen.
        missing: rows without a value: nulls and NaN.
    """

    name: str
    kind: Kind
    form: str
    state: Grid | Categories | None
    asked: bool = False
    rows: int = 0
    missing: int = 0

    @property
    def grid(self) -> Grid | None:
        """The state of a number."""
        return self.state if isinstance(self.state, Grid) else None

    @property
    def categories(self) -> Categories | None:
        """The state of a category."""
        return self.state if isinstance(self.state, Categories) else None

    def empty(self, kind: Kind | None = None) -> ColumnState:
        """A state like this one that has seen nothing, for data of that kind."""
        state = self.state.empty() if self.state is not None else None
        return ColumnState(self.name, kind or self.kind, self.form, state, self.asked)

    def fits(self, kind: Kind) -> bool:
        """Whether data of that kind can be counted in."""
        if kind is Kind.NULL or self.form == "none":
            return True
        if Kind.TIME in (kind, self.kind) and kind is not self.kind:
            return False
        return kind in (_MEASURABLE if self.form == "number" else _COUNTABLE)

    def update(self, values: pa.Array) -> None:
        """Count an array in."""
        self.rows += len(values)
        if pa.types.is_null(values.type):
            absent = len(values)
        elif isinstance(self.state, Grid):
            nulls = values.null_count
            if pa.types.is_dictionary(values.type):
                nulls = int(len(values) - validity(values).sum())
            self.state.update(floats(values), nulls)
            absent = 0
        elif isinstance(self.state, Categories):
            self.state.update(values)
            absent = 0
        else:
            absent = values.null_count
        if self.state is None:
            self.missing += absent
        else:
            self.state.nulls += absent
            self.missing = self.state.missing

    def __iadd__(self, other: ColumnState) -> ColumnState:
        if self.form != other.form:
            raise DataError(f"column {self.name!r} is a {self.form} in one profile and a {other.form} in the other")
        try:
            if isinstance(self.state, Grid):
                self.state += cast(Grid, other.state)
            elif isinstance(self.state, Categories):
                self.state += cast(Categories, other.state)
        except DataError as error:
            raise DataError(f"column {self.name!r}: {error}") from None
        self.rows += other.rows
        self.missing += other.missing
        return self


class Profile:
    """The states of a data set's columns.

    Attributes:
        name: of the data, for messages.
        columns: name → state, in the order of the data.
        rows: rows seen.
        notes: what was done to make the data readable.
        absent: columns of the profile it was made after that these data lack.
        extra: columns of these data that the profile it was made after lacks.
        changed: column → (kind it had, kind it has) where the two cannot be compared.
    """

    def __init__(self, name: str, columns: Iterable[ColumnState] = (), rows: int = 0) -> None:
        self.name = name
        self.columns: dict[str, ColumnState] = {state.name: state for state in columns}
        self.rows = rows
        self.notes: list[str] = []
        self.absent: list[str] = []
        self.extra: list[str] = []
        self.changed: dict[str, tuple[Kind, Kind]] = {}

    def __repr__(self) -> str:
        return f"Profile({self.name!r}, {len(self.columns)} columns, {self.rows} rows)"

    def empty(self, name: str | None = None) -> Profile:
        """A profile over the same edges that has seen nothing: for a window, a batch, a partition."""
        return Profile(name or self.name, [state.empty() for state in self.columns.values()])

    def copy(self) -> Profile:
        """An independent profile with the same contents."""
        return copy.deepcopy(self)

    def matching(self, source: Source, columns: Sequence[str] | None = None) -> Profile:
        """An empty profile for data of that source, over these edges.

        What the source lacks, has beyond this profile, or holds as another kind is written down in `absent`, `extra`
        and `changed` and not counted.

        Raises:
            DataError: an unknown name in `columns`.
        """
        wanted = list(self.columns) if columns is None else [self.known(name).name for name in columns]
        profile = Profile(source.name)
        profile.notes += source.notes
        for name in wanted:
            state = self.columns[name]
            if name not in source:
                profile.absent.append(name)
                continue
            kind = source.column(name).kind
            if state.fits(kind):
                profile.columns[name] = state.empty(kind)
            else:
                profile.changed[name] = (state.kind, kind)
        if columns is None:
            profile.extra = [name for name in source.names if name not in self.columns]
        return profile

    def known(self, name: str) -> ColumnState:
        """The column of that name.

        Raises:
            DataError: there is none; the message names the closest ones.
        """
        if name not in self.columns:
            raise DataError(f"the profile of {self.name} has no column {name!r}{closest(name, list(self.columns))}")
        return self.columns[name]

    def only(self, names: Iterable[str]) -> Profile:
        """These columns of the profile, in this order, those it lacks left out; the states are shared, not copied."""
        return Profile(self.name, [self.columns[n] for n in names if n in self.columns], self.rows)

    def update(self, batch: pa.RecordBatch) -> Profile:
        """Count a batch in; it must hold the profile's columns, others are passed over.

        Returns:
            This profile.
        """
        for state in self.columns.values():
            state.update(batch.column(state.name))
        self.rows += batch.num_rows
        return self

    def __iadd__(self, other: Profile) -> Profile:
        if list(self.columns) != list(other.columns):
            raise DataError(f"the profiles of {self.name} and {other.name} have different columns")
        for name, state in self.columns.items():
            state += other.columns[name]
        self.rows += other.rows
        return self

    def __add__(self, other: Profile) -> Profile:
        result = self.copy()
        result += other
        return result

    def to_arrow(self) -> pa.Table:
        """One row a column, as a plain table that any engine can move; see `osler.data.drift.store`."""
        from osler.data.drift.store import to_arrow

        return to_arrow(self)

    @classmethod
    def from_arrow(cls, table: pa.Table | pa.RecordBatch) -> Profile:
        """The reverse of `to_arrow`.

        Raises:
            DataError: it is no table of a profile.
        """
        from osler.data.drift.store import from_arrow

        return from_arrow(table)

    def save(self, path: str | Path) -> None:
        """Write it to one file, a few KB a column with 256 edges."""
        from osler.data.drift.store import save

        save(self, path)

    @classmethod
    def load(cls, path: str | Path) -> Profile:
        """Read a saved profile.

        Raises:
            DataError: there is no such file, or it holds no profile.
        """
        from osler.data.drift.store import load

        return load(path)


def build_profile(
    data: object,
    *,
    edges: int = STORED,
    columns: Sequence[str] | None = None,
    categorical: Sequence[str] = (),
    numeric: Sequence[str] = (),
    profile_of: Profile | None = None,
    settings: Settings | None = None,
    progress: Progress = quiet,
) -> Profile:
    """Count a data set into a profile.

    The data are read twice, once for the edges and once to count; once only where `profile_of` gives the edges or the
    data are a stream (its edges then come from the first rows, the brackets hold all the same).

    Args:
        data: anything that `open_source` takes.
        edges: edges per column of numbers: 256 to keep, 4096 to compare at once.
        columns: columns to take; None: all.
        categorical: columns to count as categories whatever their type (not times, durations, nested ones).
        numeric: columns to judge as numbers: booleans, and times, which otherwise are counted but not judged.
        profile_of: the profile whose edges to use.
        settings: the settings tree; `drift` and `data.show_values` are used.
        progress: told of the rows done.

    Raises:
        DataError: the data cannot be read, a column is unknown or cannot be what was asked for.
    """
    source = open_source(data)
    if is_spark(source):
        from osler.data.spark import profile_spark

        return profile_spark(
            source,
            edges=edges,
            columns=columns,
            categorical=categorical,
            numeric=numeric,
            profile_of=profile_of,
            settings=settings,
            progress=progress,
        )
    if profile_of is not None:
        return count(profile_of.matching(source, columns), source, progress)
    settings = settings or Settings()
    chosen = _columns(source, columns)
    forms = {c.name: form_of(c, source, categorical, numeric) for c in chosen}
    _known(source, forms, [*categorical, *numeric])
    asked = {*categorical, *numeric}
    measured = [name for name, form in forms.items() if form == "number"]
    samplers = {name: Sampler(edges, source.rows) for name in measured}
    held: list[pa.RecordBatch] = []
    if source.repeatable:
        for batch in _told(source, measured, progress, "reading the reference for its edges"):
            _sample(samplers, batch)
        rest = None
    else:
        rest = source.batches(list(forms))
        for batch in rest:
            held.append(batch)
            _sample(samplers, batch)
            if sum(b.num_rows for b in held) >= 4 * COMPUTING * 32:
                break
    states = []
    for column in chosen:
        form = forms[column.name]
        state: Grid | Categories | None = None
        if form == "number":
            state = Grid(samplers[column.name].edges())
        elif form == "category":
            state = Categories(settings.drift.max_categories, settings.data.show_values)
        states.append(ColumnState(column.name, column.kind, form, state, column.name in asked))
    profile = Profile(source.name, states)
    profile.notes += source.notes
    if rest is None:
        return count(profile, source, progress)
    for batch in held:
        profile.update(batch)
    held.clear()
    for batch in rest:
        profile.update(batch)
        progress(f"counting {source.name}", profile.rows, source.rows)
    return profile


def count(profile: Profile, source: Source, progress: Progress = quiet) -> Profile:
    """Count a source into a profile that matches it."""
    if profile.columns:
        for batch in _told(source, list(profile.columns), progress, f"counting {source.name}"):
            profile.update(batch)
    elif source.rows is not None:
        profile.rows = source.rows
    return profile


def form_of(column: Column, source: Source, categorical: Sequence[str] = (), numeric: Sequence[str] = ()) -> str:
    """`number`, `category` or `none`, from a column's kind and what was asked for.

    Integers are numbers however few of them there are, and text is never taken for numbers.

    Raises:
        DataError: the column cannot be what was asked for.
    """
    if column.name in categorical:
        if column.name in numeric:
            raise DataError(f"column {column.name!r} is asked for as a category and as a number")
        if column.kind not in _COUNTABLE and column.kind is not Kind.NULL:
            raise DataError(f"{source.name}: column {column.name!r} is {column.kind.value}, it has no categories")
        return "category"
    if column.name in numeric:
        if column.kind not in _MEASURABLE and column.kind is not Kind.NULL:
            raise DataError(
                f"{source.name}: column {column.name!r} is {column.kind.value}, not numbers: convert it when the data are made"
            )
        return "number"
    if column.kind in NUMBERS:
        return "number"
    return "category" if column.kind in CODES else "none"


def _columns(source: Source, columns: Sequence[str] | None) -> list[Column]:
    return list(source.columns) if columns is None else [source.column(name) for name in columns]


def _known(source: Source, forms: dict[str, str], names: Sequence[str]) -> None:
    for name in names:
        source.column(name)
        if name not in forms:
            raise DataError(f"column {name!r} is not among the columns that were chosen")


def _told(source: Source, columns: Sequence[str], progress: Progress, what: str) -> Iterable[pa.RecordBatch]:
    done = 0
    if not columns:
        return
    progress(what, 0, source.rows)
    for batch in source.batches(columns):
        yield batch
        done += batch.num_rows
        progress(what, done, source.rows)


def _sample(samplers: dict[str, Sampler], batch: pa.RecordBatch) -> None:
    for name, sampler in samplers.items():
        values = batch.column(name)
        if not pa.types.is_null(values.type):
            sampler.add(floats(values))


def edges_of(profile: Profile) -> dict[str, Edges]:
    """Column → edges, for every column of numbers."""
    return {name: state.grid.edge_set for name, state in profile.columns.items() if state.grid is not None}
