"""Rows of the evaluation that are also training rows, and whether that is more than their columns give by chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from osler.core.progress import Progress
from osler.core.settings.splits import Splits
from osler.data.splits.columns import Reservoir, Rows, Shared, read, take
from osler.data.splits.hashes import Hashes, add_column, mix, same, seed_of
from osler.data.splits.index import KeyIndex
from osler.data.tables import Source

_KEPT = 1 << 24
_NEIGHBOUR_CELLS = 1 << 22
_ENOUGH_NEIGHBOURS = 10


@dataclass(slots=True)
class Matches:
    """Equal rows over one set of columns.

    Attributes:
        columns: what was compared.
        rows: evaluation rows that are also training rows, ascending.
        partners: the first such training row of each.
        distinct: how many different rows they are.
        train_repeats: share of training rows that occur more than once in training.
        collisions: pairs with equal hashes and different values; they are not in `rows`.
        verified: how many pairs were compared value by value.
        mask: for every evaluation row whether it is matched, shape (rows of evaluation,).
    """

    columns: tuple[str, ...]
    rows: Rows
    partners: Rows
    distinct: int
    train_repeats: float
    collisions: int
    verified: int
    mask: npt.NDArray[np.bool_]


@dataclass(slots=True)
class Pass:
    """What one reading of both sides gives.

    Attributes:
        train_rows, eval_rows: how many.
        matches: one for each set of columns.
        train_sample, eval_sample: uniform samples of rows, None where a side is empty.
    """

    train_rows: int
    eval_rows: int
    matches: list[Matches]
    train_sample: pa.Table | None
    eval_sample: pa.Table | None


def match_rows(
    train: Source,
    eval_: Source,
    shared: Shared,
    nested: Sequence[tuple[str, ...]],
    settings: Splits,
    progress: Progress,
) -> Pass:
    """Read both sides once and find equal rows; then verify them value by value.

    Args:
        train, eval_: the two sides; both are read again to verify.
        shared: their columns.
        nested: sets of columns to compare, each a part of the next; the last holds everything that is sampled.
        settings: sizes of samples and caps.
        progress: is told.
    """
    names = nested[-1] if nested else ()
    eval_sample = Reservoir(settings.sample_rows, 1)
    chunks: list[list[Hashes]] = [[] for _ in nested]
    eval_rows = 0
    for _, batch in read(eval_, names, shared, progress, "evaluation rows hashed"):
        eval_sample.add(batch)
        eval_rows += batch.num_rows
        for held, hashes in zip(chunks, _nested_hashes(batch, nested, settings.missing_alike)):
            held.append(hashes)
    sides = [_Side(np.concatenate(c) if c else np.zeros(0, np.uint64)) for c in chunks]

    train_sample = Reservoir(settings.sample_rows, 2)
    train_rows = 0
    for start, batch in read(train, names, shared, progress, "training rows hashed"):
        train_sample.add(batch)
        train_rows += batch.num_rows
        for side, hashes in zip(sides, _nested_hashes(batch, nested, settings.missing_alike)):
            side.see(hashes, start)
    matches = [
        _verified(side, tuple(columns), train, eval_, shared, settings, progress)
        for side, columns in zip(sides, nested)
    ]
    return Pass(train_rows, eval_rows, matches, train_sample.table(), eval_sample.table())


def natural_share(
    train: Source,
    eval_: Source,
    shared: Shared,
    matches: Matches,
    train_sample: pa.Table,
    eval_sample: pa.Table,
    settings: Splits,
    progress: Progress,
) -> float:
    """The share of the matches that would also be there if no row had been copied, between 0 and 1.

    Rows of a few coarse columns are equal by nature, and then there are many more rows that agree in all columns but
    one. Copies have no such neighbours. Two estimates are made from the neighbours, and the larger is returned.

    The first: where A(j) training rows agree with a matched row in every column but j, chance gives about
    A(j) · p / (1 − p) rows that agree in all, p being the share of the row's value in column j. Correlated columns make
    it too small.
    The second allows for correlation. Among all pairs of an evaluation and a training row, A(j) agree in every column but
    j and A(j, k) in every column but these two; chance gives A(j) · A(k) / A(j, k) pairs that agree in all, the log-linear
    model without the highest interaction (Bishop, Fienberg & Holland 1975). Copies are in none of the three counts.
    """
    rng = np.random.default_rng(3)
    first = np.sort(rng.permutation(matches.rows.size)[: settings.natural_rows])
    if not first.size:
        return 0.0
    alike = settings.missing_alike
    rows = take(eval_, matches.columns, shared, matches.rows[first], progress, "evaluation rows read again")
    any_ = eval_sample.take(pa.array(rng.permutation(eval_sample.num_rows)[: settings.natural_rows]))
    both = np.concatenate([_terms(part, matches.columns, alike) for part in (rows, any_)])
    terms, inverse = np.unique(both, axis=0, return_inverse=True)
    matched = np.bincount(inverse[: rows.num_rows], minlength=len(terms))
    random = np.bincount(inverse[rows.num_rows :], minlength=len(terms))
    among = _terms(train_sample, matches.columns, alike)
    frequency = np.stack([_frequency(t, s) for t, s in zip(terms.T, among.T)], axis=1)
    # the columns in which a chance agreement is likeliest say most
    columns = np.argsort(-frequency.mean(axis=0), kind="stable")[: settings.natural_columns]
    tokens = mix(np.arange(1, len(matches.columns) + 1, dtype=np.uint64))
    couples = list(combinations(columns[: settings.natural_couples], 2))
    couple_tokens = mix(np.arange(1 << 32, (1 << 32) + len(couples), dtype=np.uint64))
    total = terms.sum(axis=1)
    whole = _Counter(mix(total))
    singles = [_Counter(mix(total - terms[:, j] + tokens[j])) for j in columns]
    doubles = [
        _Counter(mix(total - terms[:, j] - terms[:, k] + token)) for (j, k), token in zip(couples, couple_tokens)
    ]
    size = max(1024, _NEIGHBOUR_CELLS // max(1, len(matches.columns)))
    for _, batch in read(train, matches.columns, shared, progress, "neighbours of equal rows", size):
        own = _terms(batch, matches.columns, alike)
        sums = own.sum(axis=1)
        whole.see(mix(sums))
        for j, counter in zip(columns, singles):
            counter.see(mix(sums - own[:, j] + tokens[j]))
        for (j, k), token, counter in zip(couples, couple_tokens, doubles):
            counter.see(mix(sums - own[:, j] - own[:, k] + token))
    equal = whole.counts()
    neighbours = np.stack([counter.counts() for counter in singles], axis=1) - equal[:, None]
    p = np.clip(frequency[:, columns], 0.0, 0.999)
    expected = (np.maximum(neighbours, 0) * p / (1 - p)).max(axis=1, initial=0.0)
    by_value = float(np.average(1 - np.exp(-expected), weights=matched))
    pairs: float = float(matched @ equal) * matches.rows.size / rows.num_rows
    # of a column, pairs of the random rows that agree in all others
    summed = {int(j): float(n) for j, n in zip(columns, random @ neighbours)}
    by_chance = 0.0
    for (j, k), counter in zip(couples, doubles):
        neither = float(random @ (counter.counts() - equal)) - summed[int(j)] - summed[int(k)]
        if neither >= _ENOUGH_NEIGHBOURS:
            by_chance = max(by_chance, summed[int(j)] * summed[int(k)] / neither)
    by_couple = by_chance * matches.mask.size / any_.num_rows / max(pairs, 1.0)
    return float(min(1.0, max(by_value, by_couple)))


class _Counter:
    """How often each of a few keys occurs in a stream."""

    def __init__(self, keys: Hashes) -> None:
        unique, self._inverse = np.unique(keys, return_inverse=True)
        self._index = KeyIndex(unique, 1)
        self._counts = np.zeros(unique.size, np.int64)

    def see(self, hashes: Hashes) -> None:
        """More of the stream."""
        self._counts += np.bincount(self._index.pairs(hashes)[1], minlength=self._counts.size)

    def counts(self) -> npt.NDArray[np.int64]:
        """One for each of the keys, in their order."""
        return self._counts[self._inverse]


class _Side:
    """Evaluation's distinct hashes, and what training has shown of them."""

    def __init__(self, hashes: Hashes) -> None:
        self.unique, self.first, self.inverse = np.unique(hashes, return_index=True, return_inverse=True)
        self.index = KeyIndex(self.unique, 1)
        self.partner = np.full(self.unique.size, -1, np.int64)
        self._kept: list[Hashes] = []
        self._mask = 0
        self._held = 0

    def see(self, hashes: Hashes, start: int) -> None:
        """Training rows, in order."""
        probe, found = self.index.pairs(hashes)
        fresh = self.partner[found] < 0
        # of several rows in this batch the last written wins, so write them backwards
        self.partner[found[fresh][::-1]] = start + probe[fresh][::-1]
        kept = hashes[hashes & np.uint64(self._mask) == 0] if self._mask else hashes
        self._kept.append(kept)
        self._held += kept.size
        while self._held > _KEPT:
            # every copy of a row is kept or dropped with it, so the share of repeats stays unbiased
            self._mask = (self._mask << 1) | 1
            whole = np.concatenate(self._kept)
            self._kept = [whole[whole & np.uint64(self._mask) == 0]]
            self._held = self._kept[0].size

    def repeats(self) -> float:
        """Share of training rows that occur more than once."""
        kept = np.concatenate(self._kept) if self._kept else np.zeros(0, np.uint64)
        if not kept.size:
            return 0.0
        kept.sort()
        equal = kept[1:] == kept[:-1]
        twin = np.zeros(kept.size, np.bool_)
        twin[1:] |= equal
        twin[:-1] |= equal
        return float(twin.mean())


def _verified(
    side: _Side,
    columns: tuple[str, ...],
    train: Source,
    eval_: Source,
    shared: Shared,
    settings: Splits,
    progress: Progress,
) -> Matches:
    mask = (side.partner >= 0)[side.inverse]
    rows = np.flatnonzero(mask)
    partners = side.partner[side.inverse[rows]]
    checked = rows[: settings.verify_rows]
    collisions = 0
    if checked.size:
        wanted, where = np.unique(partners[: checked.size], return_inverse=True)
        left = take(eval_, columns, shared, checked, progress, "equal rows compared")
        right = take(train, columns, shared, wanted, progress, "equal rows compared").take(pa.array(where))
        equal = np.ones(checked.size, np.bool_)
        for name in columns:
            equal &= same(_one(left, name), _one(right, name), missing_alike=settings.missing_alike)
        collisions = int((~equal).sum())
        if collisions:
            kept = np.concatenate([equal, np.ones(rows.size - checked.size, np.bool_)])
            rows, partners = rows[kept], partners[kept]
            mask = np.zeros(mask.size, np.bool_)
            mask[rows] = True
    distinct = int(np.unique(side.inverse[rows]).size)
    return Matches(columns, rows, partners, distinct, side.repeats(), collisions, checked.size, mask)


def _one(table: pa.Table, name: str) -> pa.Array:
    column = table.column(name)
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.unify_dictionaries().chunks)


def _nested_hashes(batch: pa.RecordBatch, nested: Sequence[tuple[str, ...]], alike: bool) -> list[Hashes]:
    total = np.zeros(batch.num_rows, np.uint64)
    done: set[str] = set()
    out: list[Hashes] = []
    for columns in nested:
        for name in columns:
            if name not in done:
                add_column(total, batch.column(name), seed_of(name), missing_alike=alike)
                done.add(name)
        out.append(mix(total))
    return out


def _terms(rows: pa.RecordBatch | pa.Table, columns: Sequence[str], alike: bool) -> Hashes:
    out = np.zeros((rows.num_rows, len(columns)), np.uint64)
    for j, name in enumerate(columns):
        term = np.zeros(rows.num_rows, np.uint64)
        add_column(term, rows.column(name), seed_of(name), missing_alike=alike)
        out[:, j] = term
    return out


def _frequency(values: Hashes, among: Hashes) -> npt.NDArray[np.float64]:
    """The share of `among` that equals each value."""
    unique, counts = np.unique(among, return_counts=True)
    at = np.minimum(np.searchsorted(unique, values), unique.size - 1)
    shares: npt.NDArray[np.float64] = np.where(unique[at] == values, counts[at] / among.size, 0.0)
    return shares
