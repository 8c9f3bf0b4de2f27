"""The state of a numeric column: count, sum, smallest and largest value per bin of fixed edges.

States over the same edges merge by addition, so a column can be read in batches, in panes of a sliding window, or in
parts on many machines. Everything that drift is judged by comes from it: Kolmogorov–Smirnov and Wasserstein brackets
(`brackets`), quantiles, spread, histograms.

Bin k of B edges holds the values in (edges[k-1], edges[k]]; bin 0 is open to the left, bin B to the right. NaN, +Inf,
-Inf and nulls are counted apart and never reach a bin. Sums are kept as distances to the bin's anchor (its right edge;
the last edge for bin B): they are never negative, small, and exactly 0 where the values repeat an edge, so adding n of
them is off by at most a share n * 2^-53 of the sum. A distance that overflows makes the sum Inf; the brackets then use
the smallest and largest value of that bin instead.

Smallest and largest values cannot be taken away again, so there is no subtraction: a sliding window keeps a ring of
panes and adds them up.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from osler.data.drift.kernels import COUNT, GAP, HIGH, LOW, NAN, NEGATIVE, POSITIVE, Index, accumulate, index_of
from osler.data.need import DataError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SCHEMA = pa.schema(
    [
        ("edges", pa.list_(pa.float64())),
        ("counts", pa.list_(pa.int64())),
        ("gaps", pa.list_(pa.float64())),
        ("lows", pa.list_(pa.float64())),
        ("highs", pa.list_(pa.float64())),
        ("nulls", pa.int64()),
        ("nans", pa.int64()),
        ("neg_inf", pa.int64()),
        ("pos_inf", pa.int64()),
    ]
)


class Edges:
    """Edges of a grid with the table that finds a bin; made once and shared by every grid over them.

    Args:
        values: finite and strictly ascending, at least one; any real dtype.

    Raises:
        DataError: there is none, one is not finite, or they do not ascend.
    """

    def __init__(self, values: ArrayLike) -> None:
        array = np.array(values, dtype=np.float64) + 0.0
        if array.ndim != 1 or array.size == 0:
            raise DataError("a grid needs at least one edge in a one-dimensional array")
        if not np.isfinite(array).all() or (array.size > 1 and not (array[1:] > array[:-1]).all()):
            raise DataError("the edges of a grid must be finite and strictly ascending")
        array.flags.writeable = False
        self.values: Floats = array

    @functools.cached_property
    def index(self) -> Index:
        """The table that finds a bin."""
        return index_of(self.values)

    def __len__(self) -> int:
        return self.values.size

    def thinned(self, count: int) -> Edges:
        """About `count` of these edges, the first and the last among them, and the pairs that fence in one value."""
        size = self.values.size
        if size <= count:
            return self
        pairs = np.flatnonzero(np.nextafter(self.values[:-1], np.inf) == self.values[1:])[: count // 4]
        even = np.linspace(0, size - 1, count).astype(np.int64)
        return Edges(self.values[np.unique(np.concatenate((even, pairs, pairs + 1)))])

    def same(self, other: Edges) -> bool:
        """Whether grids over both can be merged."""
        return self is other or np.array_equal(self.values, other.values)


class Grid:
    """Counts, sums, smallest and largest values over fixed edges; see the module.

    Args:
        edges: `Edges`, or what `Edges` takes.

    Attributes:
        nulls: rows without a value.
    """

    __slots__ = ("_special", "_state", "edge_set", "nulls")

    def __init__(self, edges: Edges | ArrayLike) -> None:
        self.edge_set = edges if isinstance(edges, Edges) else Edges(edges)
        self._state = np.empty((len(self.edge_set) + 1, 4))
        self._state[:] = (0.0, 0.0, np.inf, -np.inf)
        self._special: Ints = np.zeros(3, np.int64)
        self.nulls = 0

    def empty(self) -> Grid:
        """A grid over the same edges that has seen nothing."""
        return Grid(self.edge_set)

    def copy(self) -> Grid:
        """An independent grid with the same contents."""
        other = self.empty()
        other._state[:] = self._state
        other._special[:] = self._special
        other.nulls = self.nulls
        return other

    def update(self, values: ArrayLike, nulls: int = 0) -> Grid:
        """Count values in.

        Args:
            values: one-dimensional; taken as float64 (whole numbers beyond 2^53 are rounded).
            nulls: how many of the NaN in `values` stand for nulls, as `osler.data.tables.floats` writes them.

        Returns:
            This grid.
        """
        array = np.ascontiguousarray(values, dtype=np.float64)
        if array.ndim != 1:
            raise DataError(f"a grid takes one-dimensional values, not {array.ndim} dimensions")
        accumulate(array, self.edges, self.edge_set.index, self._state, self._special)
        self._special[NAN] -= nulls
        self.nulls += nulls
        return self

    @property
    def edges(self) -> Floats:
        """float64[B], ascending; not writable."""
        return self.edge_set.values

    @property
    def counts(self) -> Ints:
        """int64[B + 1], finite values per bin."""
        return self._state[:, COUNT].astype(np.int64)

    @property
    def gaps(self) -> Floats:
        """float64[B + 1], sums of distances to the bin's anchor, ≥ 0; Inf where they overflowed."""
        return _column(self._state, GAP)

    @property
    def lows(self) -> Floats:
        """float64[B + 1], smallest value per bin; +Inf where the bin is empty."""
        return _column(self._state, LOW)

    @property
    def highs(self) -> Floats:
        """float64[B + 1], largest value per bin; -Inf where the bin is empty."""
        return _column(self._state, HIGH)

    @property
    def n(self) -> int:
        """Finite values."""
        return int(self._state[:, COUNT].sum())

    @property
    def nans(self) -> int:
        """NaN that were no nulls."""
        return int(self._special[NAN])

    @property
    def neg_inf(self) -> int:
        """-Inf values."""
        return int(self._special[NEGATIVE])

    @property
    def pos_inf(self) -> int:
        """+Inf values."""
        return int(self._special[POSITIVE])

    @property
    def missing(self) -> int:
        """Nulls and NaN."""
        return self.nulls + self.nans

    @property
    def rows(self) -> int:
        """Everything that was counted."""
        return self.n + self.missing + self.neg_inf + self.pos_inf

    @property
    def low(self) -> float:
        """Smallest finite value; +Inf where there is none."""
        return float(self._state[:, LOW].min())

    @property
    def high(self) -> float:
        """Largest finite value; -Inf where there is none."""
        return float(self._state[:, HIGH].max())

    def __iadd__(self, other: Grid) -> Grid:
        if not self.edge_set.same(other.edge_set):
            raise DataError("grids can only be merged over the same edges")
        mine, theirs = self._state, other._state
        with np.errstate(over="ignore"):
            mine[:, :LOW] += theirs[:, :LOW]
        np.minimum(mine[:, LOW], theirs[:, LOW], out=mine[:, LOW])
        np.maximum(mine[:, HIGH], theirs[:, HIGH], out=mine[:, HIGH])
        self._special += other._special
        self.nulls += other.nulls
        return self

    def __add__(self, other: Grid) -> Grid:
        result = self.copy()
        result += other
        return result

    @classmethod
    def merged(cls, grids: Iterable[Grid]) -> Grid:
        """The sum of grids over the same edges.

        Raises:
            DataError: there is none, or their edges differ.
        """
        items = iter(grids)
        first = next(items, None)
        if first is None:
            raise DataError("there is no grid to merge")
        total = first.copy()
        for grid in items:
            total += grid
        return total

    def coarser(self, edges: Edges) -> Grid:
        """The same values over fewer edges, which must be some of these, the first and the last among them."""
        if self.edge_set.same(edges):
            return self.copy()
        kept = np.searchsorted(self.edges, edges.values)
        inside = np.minimum(kept, self.edges.size - 1)
        ends = kept.size and kept[0] == 0 and kept[-1] == self.edges.size - 1
        if not ends or not np.array_equal(self.edges[inside], edges.values):
            raise DataError("a grid can only be made coarser over some of its own edges, with the outermost two")
        starts = np.concatenate(([0], kept[:-1] + 1))
        result = Grid(edges)
        fine, coarse = self._state[:-1], result._state
        right = np.repeat(edges.values, np.diff(np.append(starts, self.edges.size)))
        with np.errstate(over="ignore", invalid="ignore"):
            moved = np.where(fine[:, COUNT] > 0, fine[:, GAP] + fine[:, COUNT] * (right - self.edges), 0.0)
        coarse[:-1, COUNT] = np.add.reduceat(fine[:, COUNT], starts)
        coarse[:-1, GAP] = np.add.reduceat(moved, starts)
        coarse[:-1, LOW] = np.minimum.reduceat(fine[:, LOW], starts)
        coarse[:-1, HIGH] = np.maximum.reduceat(fine[:, HIGH], starts)
        coarse[-1] = self._state[-1]
        result._special[:] = self._special
        result.nulls = self.nulls
        return result

    def to_arrow(self) -> pa.RecordBatch:
        """One row in `SCHEMA`; rows of many grids stack to a plain table that any engine can move."""

        def row(values: NDArray[np.generic]) -> pa.Array:
            return pa.ListArray.from_arrays(pa.array([0, values.size], pa.int32()), pa.array(values))

        singles = (self.nulls, self.nans, self.neg_inf, self.pos_inf)
        arrays = [row(v) for v in (self.edges, self.counts, self.gaps, self.lows, self.highs)]
        return pa.RecordBatch.from_arrays([*arrays, *(pa.array([v], pa.int64()) for v in singles)], schema=SCHEMA)

    @classmethod
    def from_arrow(cls, data: pa.RecordBatch | pa.Table, row: int = 0, edges: Edges | None = None) -> Grid:
        """The reverse of `to_arrow`; columns beyond those of `SCHEMA` are passed over.

        Args:
            data: rows as `to_arrow` gives them.
            row: which one.
            edges: shared edges to use where they are the same as the row's.

        Raises:
            DataError: a column is missing or the numbers cannot be a grid's state.
        """
        try:
            parts: Sequence[object] = [data.column(name)[row].as_py() for name in SCHEMA.names]
        except (KeyError, IndexError) as error:
            raise DataError(f"this is no grid state: {error}") from None
        return cls._from_parts(parts, edges)

    @classmethod
    def _from_parts(cls, parts: Sequence[object], shared: Edges | None) -> Grid:
        try:
            values, counts, gaps, lows, highs = (np.asarray(p, dtype=np.float64) for p in parts[:5])
            nulls, nans, neg_inf, pos_inf = (int(p) for p in parts[5:])  # type: ignore[call-overload]
            edges = Edges(values)
        except (TypeError, ValueError) as error:
            raise DataError(f"this is no grid state: {error}") from None
        if shared is not None and shared.same(edges):
            edges = shared
        grid = cls(edges)
        if any(a.shape != (len(edges) + 1,) for a in (counts, gaps, lows, highs)):
            raise DataError("this is no grid state: it needs one bin more than edges")
        full = counts > 0
        bounds = np.concatenate(([-np.inf], edges.values, [np.inf]))
        inside = (lows[full] <= highs[full]) & (lows[full] >= bounds[:-1][full]) & (highs[full] <= bounds[1:][full])
        if not (
            min(nulls, nans, neg_inf, pos_inf) >= 0
            and bool((counts >= 0).all() and (counts == np.floor(counts)).all() and counts.sum() < 2**53)
            and bool((gaps >= 0).all() and inside.all())
        ):
            raise DataError("this is no grid state: its counts, sums or bounds contradict each other")
        grid._state[:, COUNT] = counts
        grid._state[full, GAP] = gaps[full]
        grid._state[full, LOW] = lows[full]
        grid._state[full, HIGH] = highs[full]
        grid._special[:] = (nans, neg_inf, pos_inf)
        grid.nulls = nulls
        return grid

    def __repr__(self) -> str:
        return f"Grid({len(self.edge_set)} edges, {self.n} finite of {self.rows} rows)"


def _column(state: Floats, which: int) -> Floats:
    column: Floats = state[:, which].copy()
    return column
