"""The matrix that reconstructions work on: standardised numbers, then one-hot categories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from osler.data.missing.columns import Bools, Floats, Plan

# Rarer categories of a column share the all-zero code: they carry little and would make the matrix wide.
_CATEGORIES = 20


@dataclass(slots=True)
class Design:
    """Maps encoded columns to the matrix and back.

    The first `numbers` columns of the matrix are the number columns that were observed at all, in units of their spread
    around their mean; then, for each category column, one column per category (at most 20). A missing category is spread over
    its columns by frequency, so that only the number block holds NaN.
    """

    plans: Sequence[Plan]
    numeric: list[int] = field(init=False)
    place: dict[int, int] = field(init=False)
    blocks: dict[int, slice] = field(init=False)
    width: int = field(init=False)
    _shares: dict[int, Floats] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.numeric = [j for j, p in enumerate(self.plans) if not p.is_category and p.observed]
        self.place = {j: i for i, j in enumerate(self.numeric)}
        self.blocks = {}
        self.width = len(self.numeric)
        for j, plan in enumerate(self.plans):
            if plan.is_category:
                size = min(len(plan.categories), _CATEGORIES)
                self.blocks[j] = slice(self.width, self.width + size)
                self.width += size

    def learn(self, codes: Floats) -> Design:
        """Take the shares of categories from the rows (n, d)."""
        for j, block in self.blocks.items():
            size = block.stop - block.start
            seen = codes[:, j][~np.isnan(codes[:, j])].astype(np.int64)
            counts = np.bincount(seen, minlength=size)[:size].astype(np.float64)
            self._shares[j] = counts / max(counts.sum(), 1.0)
        return self

    def matrix(self, codes: Floats) -> Floats:
        """(n, width) from encoded columns (n, d); NaN in the number block only."""
        out = np.zeros((len(codes), self.width))
        for i, j in enumerate(self.numeric):
            out[:, i] = (codes[:, j] - self.plans[j].centre) / self.plans[j].spread
        for j, block in self.blocks.items():
            present = ~np.isnan(codes[:, j])
            rows = np.flatnonzero(present)
            code = codes[rows, j].astype(np.int64)
            common = code < block.stop - block.start
            out[rows[common], block.start + code[common]] = 1.0
            out[~present, block] = self._shares[j]
        return out

    def without(self, column: int) -> Bools:
        """(width,): the columns of the matrix that do not belong to a column of the table."""
        keep = np.ones(self.width, np.bool_)
        if column in self.blocks:
            keep[self.blocks[column]] = False
        else:
            keep[self.place[column]] = False
        return keep
