"""Find equal keys between two sides without sorting the larger one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from osler.data.splits import compiled
from osler.data.splits.hashes import Hashes

Rows = npt.NDArray[np.int64]


class KeyIndex:
    """The rows of one side by their keys; the other side is streamed past it.

    Attributes:
        cap: a key that more rows than this have is left out of the pairs: it says nothing about them.
        skipped: probes so far that met such a key.
    """

    def __init__(self, keys: Hashes, cap: int, *, fast: bool | None = None) -> None:
        """Index keys.

        Args:
            keys: shape (n,), mixed so that any of their bits are as good as random.
            cap: most rows with one key.
            fast: compiled or not; None decides by the number of rows.
        """
        self.cap = cap
        self.skipped = 0
        self._keys = keys
        self._fast = compiled.worth(keys.size) if fast is None else fast
        if self._fast:
            slots = 1 << max(4, int(keys.size * 2 - 1).bit_length())
            self._heads = np.full(slots, -1, np.int32)
            self._chain = np.empty(keys.size, np.int32)
            self._filter = np.zeros(max(1, slots * 4 // 64), np.uint64)
            compiled.build_index(keys, self._heads, self._chain, self._filter)
        else:
            self._order = np.argsort(keys, kind="stable")
            self._sorted = keys[self._order]

    def pairs(self, probe: Hashes) -> tuple[Rows, Rows]:
        """All pairs with equal keys: positions in `probe`, ascending, and rows of the index."""
        if self._fast:
            counts = np.zeros(probe.size, np.int32)
            compiled.count_pairs(probe, self._keys, self._heads, self._chain, self._filter, self.cap, counts)
        else:
            starts = np.searchsorted(self._sorted, probe, "left")
            counts = np.searchsorted(self._sorted, probe, "right") - starts
        over = counts > self.cap
        self.skipped += int(over.sum())
        counts[over] = 0
        total = int(counts.sum())
        left, right = np.empty(total, np.int64), np.empty(total, np.int64)
        if not total:
            return left, right
        if self._fast:
            compiled.fill_pairs(probe, self._keys, self._heads, self._chain, counts, left, right)
            return left, right
        left = np.repeat(np.arange(probe.size), counts)
        within = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
        return left, self._order[np.repeat(starts, counts) + within]
