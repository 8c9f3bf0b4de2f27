"""The book of rows: every row that a fit or an evaluation sees has a number, whatever array carries it.

An array is found again, in this order: as the same object with the same values; as a view into one that is known; as
what scikit-learn selected from, or a transformer made of, one that is known; as a table whose columns stand in the same
order in known ones; by the values of columns that nearly identify a row. What is found by none of these is new.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from osler.data.preprocess import prints
from osler.data.preprocess.arrays import Columns, columns
from osler.data.preprocess.links import Link, other_order, same_order
from osler.data.preprocess.prints import Print

if TYPE_CHECKING:
    from osler.data.preprocess.states import State

Ids = NDArray[np.int64]
_ENOUGH = 0.99  # share of rows found after which no further array is asked
_LOOKS = 12  # arrays whose rows are looked up in another order
_ROOTS = 24  # arrays from outside that are held ready
_MADE = 16  # likewise what transformers made
_AGAIN = 32  # selections that are held ready
_BASES = 8  # how deep views of views are followed


@dataclass(slots=True, eq=False)
class Record:
    """What is known of one array.

    Attributes:
        n: rows.
        ids: the number of each row, int64 of shape (n,); -1 where it is not known.
        through: fits whose transformers made some of its columns.
        linked: some rows were recognised by their values.
        print: None for what only lives inside a composition.
    """

    n: int
    ids: Ids
    through: frozenset[State] = frozenset()
    linked: bool = False
    print: Print | None = None
    ref: weakref.ref[Any] | None = None


class Book:
    """Row numbers of the arrays seen so far.

    Args:
        link_rows: rows kept of each key column.
        memory: bytes for prints; the oldest are forgotten beyond it.
    """

    def __init__(self, link_rows: int, memory: int) -> None:
        self._limit = link_rows
        self._memory = memory
        self._live: dict[int, Record] = {}
        # Those that others can be recognised by, last used last: what came from outside, what transformers made of it.
        self._roots: deque[Record] = deque()
        self._made: deque[Record] = deque()
        self._again: OrderedDict[tuple[int, int, bytes], Record] = OrderedDict()  # selections that were recognised
        self._bytes = 0
        self._next = 0
        self._starts: list[int] = []  # first number of each array that was new
        self.unknown = 0  # array-likes of a kind that is not looked into
        self.narrow = False  # selections that only their values could tell are not recognised any more

    # --- asking -------------------------------------------------------------------------------------------------------

    def peek(self, data: object) -> Record | None:
        """The record of that very object, unchecked."""
        record = self._live.get(id(data))
        return record if record is not None and record.ref is not None and record.ref() is data else None

    def look(self, data: Any) -> Record | None:
        """The record of an array that a user's call was given; None for what is no array."""
        view = columns(data)
        if view is None or view.n == 0:
            self.unknown += view is None
            return None
        taken = self._print(view)
        known = self.peek(data)
        if known is not None and known.n == view.n and (known.print is None or known.print.same_values(taken)):
            known.print = taken if known.print is None else known.print
            return known
        record = self._of_view(data) if known is None else None
        if record is None:
            record = self._selected_again(view, taken)
        record.print = taken
        self._keep(data, record)
        return record

    # --- telling ------------------------------------------------------------------------------------------------------

    def made(self, data: Any, source: Record, through: frozenset[State], inner: bool) -> None:
        """`data` has the rows of `source` in the same order.

        Args:
            data: what a transformer gave.
            source: the record of what it was given.
            through: fits that made it.
            inner: nobody but the composition around the transformer sees it.
        """
        view = columns(data)
        if view is None or view.n != source.n:
            return
        record = Record(source.n, source.ids, through, source.linked)
        if not inner:
            record.print = self._print(view)
            self._remember(record, view, self._made)
        self._keep(data, record)

    def selected(self, data: Any, source: Record, rows: Any, inner: bool) -> Record | None:
        """`data` is what was selected from `source` by row numbers, a slice or a mask."""
        ids = source.ids[rows if isinstance(rows, slice) else np.asarray(rows)]
        if ids.ndim != 1:
            return None
        record = Record(len(ids), ids, source.through, source.linked)
        if not inner and len(ids) and (view := columns(data)) is not None:
            record.print = self._print(view)
        self._keep(data, record)
        return record

    def origins(self, ids: Ids) -> Ids:
        """For each row number the number of the array in which it was first seen."""
        return np.searchsorted(np.array(self._starts, np.int64), ids, side="right").astype(np.int64)

    def forget(self) -> None:
        """Let go of everything."""
        self._live.clear()
        self._roots.clear()
        self._made.clear()
        self._again.clear()

    # --- inside -------------------------------------------------------------------------------------------------------

    def _keep(self, data: Any, record: Record) -> None:
        key = id(data)
        live = self._live

        def gone(ref: weakref.ref[Any]) -> None:
            held = live.get(key)
            if held is not None and held.ref is ref:
                del live[key]

        try:
            record.ref = weakref.ref(data, gone)
        except TypeError:  # a list: it is recognised by its values
            return
        live[key] = record

    def _remember(self, record: Record, view: Columns, among: deque[Record]) -> None:
        if record.print is None:
            return
        if not self.narrow:
            prints.add_keys(record.print, view, self._limit)
        among.append(record)
        self._bytes += record.print.bytes
        while len(self._roots) > _ROOTS:
            self._drop(self._roots)
        while len(self._made) > _MADE or (self._bytes > self._memory and len(self._made) > 1):
            self._drop(self._made)
        while self._bytes > self._memory and len(self._roots) > 1:
            self._drop(self._roots)

    def _drop(self, among: deque[Record]) -> None:
        oldest = among.popleft()
        self._bytes -= oldest.print.bytes if oldest.print is not None else 0

    def _used(self, record: Record) -> None:
        among = self._roots if record in self._roots else self._made
        among.remove(record)
        among.append(record)

    def _print(self, view: Columns) -> Print:
        return prints.take(view, self._limit)

    def _fresh(self, count: int) -> Ids:
        first, self._next = self._next, self._next + count
        self._starts.append(first)
        return np.arange(first, self._next, dtype=np.int64)

    def _of_view(self, data: Any) -> Record | None:
        """Rows of an array that is known, by where they lie in memory."""
        if not isinstance(data, np.ndarray) or data.ndim == 0:
            return None
        base = data.base
        for _ in range(_BASES):
            if not isinstance(base, np.ndarray):
                return None
            known = self.peek(base)
            if known is not None:
                return self._rows_of_view(data, base, known)
            base = base.base
        return None

    def _rows_of_view(self, data: NDArray[Any], base: NDArray[Any], known: Record) -> Record | None:
        stride = base.strides[0] if base.ndim else 0
        if stride <= 0 or base.ndim < 2 or len(base) != known.n or len(data) > known.n:
            return None
        view = columns(base)
        if view is None or (known.print is not None and not known.print.same_values(self._print(view))):
            return None
        offset = data.__array_interface__["data"][0] - base.__array_interface__["data"][0]
        step, rest = divmod(data.strides[0], stride)
        first = offset // stride
        last = first + step * (len(data) - 1)
        if rest or not 0 <= first < known.n or not 0 <= last < known.n or (step == 0 and len(data) > 1):
            return None
        rows = first + step * np.arange(len(data))
        return Record(len(data), known.ids[rows], known.through, known.linked)

    def _selected_again(self, view: Columns, taken: Print) -> Record:
        """As `_linked`; the same selection made once more (`X[train]` in a loop) is only compared at its anchors."""
        key = (taken.n, taken.width, taken.patterns.tobytes())
        before = self._again.get(key)
        if before is not None:
            self._again.move_to_end(key)
            return Record(before.n, before.ids, before.through, before.linked)
        fresh = self._next
        record = self._linked(view, taken)
        if self._next == fresh and taken.telling.any():
            self._again[key] = record
            if len(self._again) > _AGAIN:
                self._again.popitem(last=False)
        return record

    def _linked(self, view: Columns, taken: Print) -> Record:
        """By values: the array that explains most columns says which rows these are; all that explain some, what made them."""
        ids = np.full(view.n, -1, np.int64)
        through: frozenset[State] = frozenset()
        links = sorted(self._links(view, taken), key=_by_fit(taken))
        explained: set[int] = set()
        looked_up = 0
        for known, link in links:
            new_columns = link.columns - explained
            rows = np.arange(view.n) if link.rows is None else link.rows
            open_rows = (ids < 0) & (rows >= 0)
            if not new_columns and open_rows.mean() < 1 - _ENOUGH:
                continue
            explained |= link.columns
            self._used(known)
            ids[open_rows] = known.ids[rows[open_rows]]
            through |= known.through
            looked_up = max(looked_up, int((rows >= 0).sum()))
        missing = ids < 0
        if prints.level(view.n, self._limit) and looked_up and not missing.all():
            # Rows that were not looked up stay unknown: counting them as new would thin what others saw.
            return Record(view.n, ids, through, linked=True)
        if missing.any():
            ids[missing] = self._fresh(int(missing.sum()))
            record = Record(view.n, ids, through, linked=bool(links), print=taken)
            self._remember(record, view, self._roots)
            return record
        return Record(view.n, ids, through, linked=True)

    def _links(self, view: Columns, taken: Print) -> list[tuple[Record, Link]]:
        known = [*reversed(self._roots), *reversed(self._made)]
        out: list[tuple[Record, Link]] = []
        for record in known:
            if record.print is not None and (link := same_order(taken, record.print)) is not None:
                out.append((record, link))
        if out or self.narrow:
            return out
        for record in known:
            link = None if record.print is None else other_order(taken, view, record.print, self._limit)
            if link is None or record.print is None:
                continue
            out.append((record, link))
            whole = len(link.columns) == int(taken.telling.sum()) and record.print.width == taken.width
            if len(out) >= _LOOKS or (whole and link.rows is not None and (link.rows >= 0).mean() >= _ENOUGH):
                break
        return out


def _by_fit(taken: Print) -> Any:
    """The most columns explained first, then the array most like it in width, then the one that fewest fits made."""

    def rank(entry: tuple[Record, Link]) -> tuple[int, int, int]:
        record, link = entry
        width = record.print.width if record.print is not None else 0
        return (-len(link.columns), abs(width - taken.width), len(record.through))

    return rank
