"""Array-likes as columns of 64-bit patterns, whatever library made them.

Two rows are taken for the same row when their patterns agree in columns that nearly identify a row. Numbers are compared
as float64, so a table and its `.values` agree; a missing value and 0 have the pattern 0, which identifies nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Patterns = NDArray[np.uint64]
MAX_COLUMNS = 256  # of one array that are looked at; of more, as many, evenly spread
_ODD = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)


class Columns:
    """A view of an array-like.

    Attributes:
        n: rows.
        width: columns.
        numbers: the columns that are looked at.
    """

    def __init__(self, n: int, width: int) -> None:
        self.n = n
        self.width = width
        self.numbers = (
            np.arange(width) if width <= MAX_COLUMNS else np.unique(np.linspace(0, width - 1, MAX_COLUMNS).astype(int))
        )

    def sample(self, rows: NDArray[np.intp]) -> Patterns:
        """Patterns of these rows: shape (columns looked at, rows)."""
        raise NotImplementedError

    def column(self, at: int) -> Patterns:
        """The whole column `numbers[at]`: shape (n,)."""
        raise NotImplementedError

    def mixed(self) -> Patterns:
        """One pattern a row over all columns looked at: shape (n,)."""
        total: Patterns = np.zeros(self.n, np.uint64)
        for at in range(len(self.numbers)):
            total = (total ^ scrambled(self.column(at))) * _ODD
        return total


def scrambled(values: Patterns) -> Patterns:
    """The patterns with their bits spread, so that any of them can choose rows."""
    mixed: Patterns = (values ^ (values >> _SHIFT)) * _ODD
    return np.asarray(mixed ^ (mixed >> _SHIFT))


def patterns(values: NDArray[Any]) -> Patterns:
    """Patterns of any array, element by element; the shape is kept."""
    kind = values.dtype.kind
    if kind in "fiub":
        numbers = values.astype(np.float64)
        numbers += 0.0  # -0.0 and 0.0 are the same number
        out = numbers.view(np.uint64)
        out[np.isnan(numbers)] = 0
        return out
    if kind in "mM":
        return values.astype(np.int64).view(np.uint64)
    flat = [_word(v) for v in values.ravel().tolist()]
    return np.array(flat, np.uint64).reshape(values.shape)


def _word(value: object) -> int:
    if value is None or value != value:
        return 0
    if isinstance(value, (int, float)):
        return int(np.float64(value).view(np.uint64)) if value else 0
    try:
        return hash(value) & 0xFFFF_FFFF_FFFF_FFFF
    except TypeError:
        return hash(repr(value)) & 0xFFFF_FFFF_FFFF_FFFF


class _Dense(Columns):
    def __init__(self, array: NDArray[Any]) -> None:
        super().__init__(len(array), int(np.prod(array.shape[1:], dtype=np.int64)))
        self._array = array

    def sample(self, rows: NDArray[np.intp]) -> Patterns:
        taken = self._array[rows].reshape(len(rows), -1)
        if len(self.numbers) < self.width:
            taken = taken[:, self.numbers]
        return np.ascontiguousarray(patterns(taken).T)

    def column(self, at: int) -> Patterns:
        number = int(self.numbers[at])
        if self._array.ndim <= 2:
            return patterns(self._array if self._array.ndim == 1 else self._array[:, number])
        place: list[Any] = [slice(None), *(int(i) for i in np.unravel_index(number, self._array.shape[1:]))]
        return patterns(self._array[tuple(place)])


class _Pandas(Columns):
    def __init__(self, frame: Any) -> None:
        super().__init__(len(frame), 1 if frame.ndim == 1 else frame.shape[1])
        self._frame = frame

    def _series(self, at: int) -> Any:
        return self._frame if self._frame.ndim == 1 else self._frame.iloc[:, int(self.numbers[at])]

    def sample(self, rows: NDArray[np.intp]) -> Patterns:
        out = np.zeros((len(self.numbers), len(rows)), np.uint64)
        for at in range(len(out)):
            out[at] = patterns(_plain(self._series(at).iloc[rows]))
        return out

    def column(self, at: int) -> Patterns:
        return patterns(_plain(self._series(at)))


def _plain(series: Any) -> NDArray[Any]:
    dtype = series.dtype
    kind = getattr(dtype, "kind", "O")
    if kind in "fiub" and not isinstance(dtype, np.dtype):  # nullable and Arrow-backed numbers
        return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan))
    return np.asarray(series.to_numpy())


class _Polars(Columns):
    def __init__(self, frame: Any) -> None:
        super().__init__(len(frame), frame.width if hasattr(frame, "width") else 1)
        self._frame = frame

    def _series(self, at: int) -> Any:
        return self._frame.to_series(int(self.numbers[at])) if hasattr(self._frame, "width") else self._frame

    def sample(self, rows: NDArray[np.intp]) -> Patterns:
        chosen = rows.tolist()
        out = np.zeros((len(self.numbers), len(rows)), np.uint64)
        for at in range(len(out)):
            out[at] = patterns(np.asarray(self._series(at)[chosen].to_numpy()))
        return out

    def column(self, at: int) -> Patterns:
        return patterns(np.asarray(self._series(at).to_numpy()))


class _Sparse(Columns):
    """Rows of a CSR matrix as one column: what stands where in the row."""

    def __init__(self, matrix: Any) -> None:
        super().__init__(matrix.shape[0], 1)
        self._matrix = matrix

    def sample(self, rows: NDArray[np.intp]) -> Patterns:
        return _row_patterns(self._matrix[rows])[None, :]

    def column(self, at: int) -> Patterns:
        return _row_patterns(self._matrix)


def _row_patterns(matrix: Any) -> Patterns:
    data = scrambled(patterns(np.asarray(matrix.data)))
    cells = data * (scrambled(matrix.indices.astype(np.uint64) + np.uint64(1)) | np.uint64(1))
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(cells, dtype=np.uint64)])
    out: Patterns = sums[matrix.indptr[1:]] - sums[matrix.indptr[:-1]]  # modulo 2⁶⁴, so the difference is exact
    return out


class _Listed(Columns):
    def __init__(self, items: Sequence[object]) -> None:
        super().__init__(len(items), 1)
        self._items = items

    def sample(self, rows: NDArray[np.intp]) -> Patterns:
        return np.array([[_word(self._items[i]) for i in rows.tolist()]], np.uint64)

    def column(self, at: int) -> Patterns:
        return np.array([_word(item) for item in self._items], np.uint64)


def columns(data: Any) -> Columns | None:
    """A view of an array, a frame, a sparse matrix or a list; None for anything else. Nothing is copied or consumed."""
    if isinstance(data, np.ndarray):
        if data.ndim == 0 or data.dtype.kind not in "fiubmMOUS":
            return None
        return _Dense(data)
    if isinstance(data, (list, tuple)):
        if data and isinstance(data[0], (list, tuple, np.ndarray)):
            array = np.asarray(data) if len({len(row) for row in data}) == 1 else None
            return None if array is None or array.dtype.kind not in "fiub" else _Dense(array)
        return _Listed(data)
    if hasattr(data, "iloc"):
        return _Pandas(data)
    if getattr(data, "format", None) in ("csr", "csc", "coo", "lil") and hasattr(data, "tocsr"):
        csr = data.tocsr()
        return _Sparse(csr) if csr.ndim == 2 else None
    polars = sys.modules.get("polars")
    if polars is not None and isinstance(data, (polars.DataFrame, polars.Series)):
        return _Polars(data)
    return None
