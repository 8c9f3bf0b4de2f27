"""The state of a categorical column: how often each category occurs, capped, mergeable.

Categories are kept as 64-bit BLAKE2b hashes of their text, so that a profile can be passed on without the values in it
(two of 1,000 categories share a hash with probability 3e-14). Names are kept only where asked for.

Up to `cap` categories all counts are exact. Beyond, the state is a Misra–Gries summary: the (cap + 1)-th largest count is
taken from all, what falls to 0 is dropped, and what was taken is added to `error`. Every count is then too small by at
most `error`, which is at most n / (cap + 1), also after merging (Agarwal et al. 2012, Mergeable summaries, PODS). What
was taken away is the tally of `other`.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from osler.data.need import DataError

CAP = 1000


class Categories:
    """Counts of categories; see the module.

    Args:
        cap: categories that are counted one by one.
        named: keep the names of the categories that are counted.

    Attributes:
        counts: hash of a category → rows, each too small by at most `error`.
        names: hash → text, where names are kept.
        n: rows with a category.
        nulls: rows without a value, NaN included.
        error: how much too small a count may be; 0: all counts are exact.
    """

    __slots__ = ("cap", "counts", "error", "n", "named", "names", "nulls")

    def __init__(self, cap: int = CAP, named: bool = False) -> None:
        self.cap = cap
        self.named = named
        self.counts: dict[int, int] = {}
        self.names: dict[int, str] = {}
        self.n = 0
        self.nulls = 0
        self.error = 0

    def empty(self) -> Categories:
        """A state that has seen nothing, made the same way."""
        return Categories(self.cap, self.named)

    @property
    def missing(self) -> int:
        """Rows without a value."""
        return self.nulls

    @property
    def rows(self) -> int:
        """Everything that was counted."""
        return self.n + self.nulls

    @property
    def other(self) -> int:
        """Rows whose category is not counted by itself."""
        return self.n - sum(self.counts.values())

    def update(self, values: pa.Array | pa.ChunkedArray) -> Categories:
        """Count values in: text, dictionaries of it, booleans or numbers.

        Numbers are told apart by six digits after the point and six in all, so that 3, 3.0 and 2.9999999 are one code; true and false are
        1 and 0.

        Returns:
            This state.
        """
        if isinstance(values, pa.ChunkedArray):
            for chunk in values.chunks:
                self.update(chunk)
            return self
        tally = pc.value_counts(values)
        keys, counts = tally.field(0), tally.field(1).to_numpy(zero_copy_only=False)
        if isinstance(keys, pa.DictionaryArray):
            keys = keys.dictionary_decode()
        absent = np.asarray(keys.is_null(nan_is_null=True))
        if absent.any():
            self.nulls += int(counts[absent].sum())
            keys, counts = keys.filter(pa.array(~absent)), counts[~absent]
        self.n += int(counts.sum())
        if counts.size > self.cap:  # most would be dropped: hash only what stays
            counts, self.error = _reduced(counts, self.cap, self.error)
            keys, counts = keys.filter(pa.array(counts > 0)), counts[counts > 0]
        for text, count in zip(_texts(keys), counts.tolist()):
            key = _hash(text)
            self.counts[key] = self.counts.get(key, 0) + count
            if self.named:
                self.names[key] = text
        self._shrink()
        return self

    def __iadd__(self, other: Categories) -> Categories:
        for key, count in other.counts.items():
            self.counts[key] = self.counts.get(key, 0) + count
        self.names.update(other.names)
        self.n += other.n
        self.nulls += other.nulls
        self.error += other.error
        self._shrink()
        return self

    def copy(self) -> Categories:
        """An independent state with the same contents."""
        result = self.empty()
        result += self
        return result

    def _shrink(self) -> None:
        if len(self.counts) > self.cap:
            keys = list(self.counts)
            counts, self.error = _reduced(np.fromiter(self.counts.values(), np.int64, len(keys)), self.cap, self.error)
            self.counts = {key: count for key, count in zip(keys, counts.tolist()) if count > 0}
            self.names = {key: self.names[key] for key in self.counts if key in self.names}

    @classmethod
    def of(
        cls,
        counts: Mapping[int, int],
        n: int,
        nulls: int,
        error: int = 0,
        names: Mapping[int, str] | None = None,
        cap: int = CAP,
    ) -> Categories:
        """A state from its parts.

        Raises:
            DataError: the numbers contradict each other.
        """
        state = cls(max(cap, len(counts)), bool(names))
        state.counts, state.names = dict(counts), dict(names or {})
        state.n, state.nulls, state.error = n, nulls, error
        exact = error > 0 or state.other == 0
        if min([n, nulls, error, *state.counts.values()]) < 0 or state.other < 0 or not exact:
            raise DataError("this is no state of categories: its counts contradict each other")
        return state


def ranked(counts: Mapping[int, int]) -> list[int]:
    """Hashes by falling count; ties by hash, so that every machine ranks the same way."""
    return sorted(counts, key=lambda key: (-counts[key], key))


def aligned(states: Iterable[Categories]) -> tuple[list[int], list[NDArray[np.int64]]]:
    """The categories of several states in the order of the first, then of the next, and the counts of each state."""
    order: dict[int, None] = {}
    held = list(states)
    for state in held:
        order.update(dict.fromkeys(ranked(state.counts)))
    keys = list(order)
    return keys, [np.array([state.counts.get(k, 0) for k in keys], np.int64) for state in held]


def _reduced(counts: NDArray[np.int64], cap: int, error: int) -> tuple[NDArray[np.int64], int]:
    taken = int(np.partition(counts, counts.size - cap - 1)[counts.size - cap - 1])
    return counts - taken, error + taken


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def _texts(keys: pa.Array) -> list[str]:
    if pa.types.is_boolean(keys.type):
        return ["1" if key else "0" for key in keys.to_pylist()]
    if pa.types.is_integer(keys.type):
        return [str(key) for key in keys.to_pylist()]
    if pa.types.is_floating(keys.type) or pa.types.is_decimal(keys.type):
        return [_digits(float(key)) for key in keys.to_pylist()]
    return [str(key) for key in keys.to_pylist()]


def _digits(value: float) -> str:
    if math.isfinite(value):
        value = round(value, 6)
    if abs(value) < 2**53 and value == round(value):
        return str(int(value))
    return f"{value + 0.0:.6g}"
