"""The columns of a stream as symbols, each with its sequential test."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from osler.core.settings.monitor import Monitor
from osler.data.drift.profile import Profile
from osler.data.drift.sequential import Binning, SequentialTest
from osler.data.tables import Kind, Source, floats

Ints = NDArray[np.int64]


class Numbers:
    """Numbers by quantile bins."""

    def __init__(self, edges: Sequence[float]) -> None:
        self._binning = Binning(np.array(edges, dtype=np.float64))

    @classmethod
    def of(cls, values: pa.Array, bins: int) -> Numbers:
        """Bins of about equal counts over the values."""
        return cls(Binning.of(floats(values), bins).edges.tolist())

    @property
    def size(self) -> int:
        """Number of symbols."""
        return self._binning.size

    def symbols(self, values: pa.Array) -> Ints:
        """The symbol of each value, shape [n]."""
        return self._binning.symbols(floats(values))

    def state(self) -> dict[str, Any]:
        """JSON-ready."""
        return {"edges": self._binning.edges.tolist()}


class Texts:
    """Categories by their most frequent ones; then one symbol for all others and one for missing ones.

    Categories are held as 64-bit hashes, so that no value of the data is written into a saved state.
    """

    def __init__(self, keys: Sequence[int]) -> None:
        self._keys = list(keys)
        self._index = {key: i for i, key in enumerate(self._keys)}

    @classmethod
    def of(cls, values: pa.Array, bins: int) -> Texts:
        """The most frequent categories of the values."""
        texts, at = _encoded(values)
        counts = np.bincount(at[at >= 0], minlength=len(texts))
        order = np.argsort(-counts, kind="stable")[:bins]
        return cls([_hash(texts[i]) for i in order])

    @property
    def size(self) -> int:
        """Number of symbols."""
        return len(self._keys) + 2

    def symbols(self, values: pa.Array) -> Ints:
        """The symbol of each value, shape [n]."""
        texts, at = _encoded(values)
        known = [self._index.get(_hash(text), len(self._keys)) for text in texts]
        return np.array([*known, len(self._keys) + 1], dtype=np.int64)[at]

    def state(self) -> dict[str, Any]:
        """JSON-ready."""
        return {"keys": self._keys}


def _encoded(values: pa.Array | pa.ChunkedArray) -> tuple[list[str], Ints]:
    """Distinct texts, and the index of each value's; -1 where it is missing."""
    if pa.types.is_null(values.type):
        return [], np.full(len(values), -1, dtype=np.int64)
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if not pa.types.is_dictionary(values.type):
        values = pc.dictionary_encode(values)
    at: Ints = values.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    texts = values.dictionary.to_pylist()
    if None in texts:
        at = np.where(np.array([text is None for text in [*texts, None]])[at], -1, at)
    return [str(text) for text in texts], at


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


class SequentialTests:
    """One test a column, together at the false-alarm probability `alpha`.

    Attributes:
        alpha: of all columns together; each is tested at alpha / columns.
        tests: by column.
    """

    def __init__(self, alpha: float, columns: dict[str, tuple[Numbers | Texts, SequentialTest]]) -> None:
        self.alpha = alpha
        self._columns = columns

    @property
    def tests(self) -> dict[str, SequentialTest]:
        """The test of every column."""
        return {name: test for name, (_, test) in self._columns.items()}

    @classmethod
    def of(cls, source: Source, profile: Profile, settings: Monitor) -> SequentialTests:
        """Tests for the numbers and categories of a profile, from the reference rows of a source that can be read again.

        Times move on by themselves and texts that are nearly all different are no categories; neither is tested.
        """
        names = [
            name
            for name, state in profile.columns.items()
            if name in source and state.form != "none" and state.kind not in (Kind.TIME, Kind.NULL)
        ]
        rows = _drawn(source, names, settings.reference_rows)
        order = np.random.default_rng(0).permutation(rows.num_rows)
        half = rows.num_rows // 2
        first, second = rows.take(pa.array(order[:half])), rows.take(pa.array(order[half:]))
        columns: dict[str, tuple[Numbers | Texts, SequentialTest]] = {}
        for i, name in enumerate(names):
            values, rest = first.column(name), second.column(name)
            to: Numbers | Texts
            if profile.columns[name].form == "number":
                to = Numbers.of(values, settings.bins)
            else:
                texts, at = _encoded(values)
                if len(texts) > max(2, len(at) // 10):
                    continue
                to = Texts.of(values, settings.bins)
            urn = np.bincount(to.symbols(rest), minlength=to.size).astype(np.int64)
            columns[name] = (to, SequentialTest(urn, settings.restart, seed=i))
        return cls(settings.alpha, columns)

    def update(self, batch: pa.RecordBatch) -> None:
        """Take the rows of a batch into account, in their order; columns that it lacks count as missing."""
        here = set(batch.schema.names)
        for name, (to, test) in self._columns.items():
            values = batch.column(name) if name in here else pa.nulls(batch.num_rows)
            test.update(to.symbols(values))

    @property
    def log_threshold(self) -> float:
        """The logarithm of the e-value at which a column's test alarms."""
        return math.log(max(len(self._columns), 1) / self.alpha)

    def crossed(self) -> list[str]:
        """Columns whose test has ever alarmed, strongest first."""
        hits = [
            (test.log_peak, name) for name, (_, test) in self._columns.items() if test.log_peak >= self.log_threshold
        ]
        return [name for _, name in sorted(hits, reverse=True)]

    def state(self) -> dict[str, Any]:
        """JSON-ready; `SequentialTests.from_state` continues from it exactly."""
        columns = {name: {"to": to.state(), "test": test.state()} for name, (to, test) in self._columns.items()}
        return {"alpha": self.alpha, "columns": columns}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> SequentialTests:
        """The tests that `state` was taken from.

        Raises:
            KeyError, TypeError, ValueError: it is no such state.
        """
        columns: dict[str, tuple[Numbers | Texts, SequentialTest]] = {}
        for name, one in state["columns"].items():
            to = Numbers(one["to"]["edges"]) if "edges" in one["to"] else Texts(one["to"]["keys"])
            test = SequentialTest.of(one["test"])
            if len(test.urn) != to.size:
                raise ValueError("an urn does not fit its symbols")
            columns[str(name)] = (to, test)
        return cls(float(state["alpha"]), columns)


def _drawn(source: Source, names: Sequence[str], most: int) -> pa.Table:
    """A uniform sample of the rows, at most `most` of them."""
    rng = np.random.default_rng(1)
    parts: list[pa.RecordBatch] = []
    keys: list[NDArray[np.float64]] = []
    for batch in source.batches(list(names)):
        parts.append(batch)
        keys.append(rng.random(batch.num_rows))
        if sum(p.num_rows for p in parts) > 4 * most:
            parts, keys = _smallest(parts, keys, most)
    parts, keys = _smallest(parts, keys, most)
    schema = pa.schema([(name, source.column(name).type) for name in names])
    return pa.Table.from_batches(parts, schema).combine_chunks().unify_dictionaries()


def _smallest(
    parts: list[pa.RecordBatch], keys: list[NDArray[np.float64]], most: int
) -> tuple[list[pa.RecordBatch], list[NDArray[np.float64]]]:
    drawn = np.concatenate(keys) if keys else np.empty(0)
    if len(drawn) <= most:
        return parts, keys
    limit = np.partition(drawn, most - 1)[most - 1]
    kept = [k <= limit for k in keys]
    return [p.filter(pa.array(k)) for p, k in zip(parts, kept)], [k[at] for k, at in zip(keys, kept)]
