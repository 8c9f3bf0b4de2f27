"""Loops over rows that numba compiles. Each has a twin in numpy with the same results, beside its caller.

Compiling takes about a second and is cached on disk, so callers come here only for many rows.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import numpy as np

ENOUGH = 100_000
"""Rows in one piece from which on loading numba pays: its import takes as long as numpy needs for about that many."""
LOADED = 2_000
"""The same once numba is loaded."""

_F = TypeVar("_F", bound=Callable[..., Any])


@cache
def available() -> bool:
    """Whether numba is installed; nothing is imported."""
    return importlib.util.find_spec("numba") is not None


def worth(rows: int) -> bool:
    """Whether the compiled loop should be taken for that many rows."""
    return rows >= (LOADED if "numba" in sys.modules else ENOUGH) and available()


def lazily(function: _F) -> _F:
    """Compile at the first call, so that importing this module does not import numba."""
    compiled: list[Any] = []

    def call(*args: Any) -> Any:
        if not compiled:
            import numba

            compiled.append(numba.njit(cache=True, nogil=True)(function))
        return compiled[0](*args)

    call.__name__ = function.__name__
    call.__doc__ = function.__doc__
    return call  # type: ignore[return-value]


@lazily
def add_codes(codes: Any, salts: Any, m1: Any, m2: Any, total: Any) -> None:
    """`total[i] += mix(codes[i] + salts[i % len(salts)])`; `salts` holds one salt, or one for each row. All uint64."""
    one = salts.size == 1
    for i in range(codes.size):
        z = codes[i] + (salts[0] if one else salts[i])
        z = (z ^ (z >> np.uint64(30))) * m1
        z = (z ^ (z >> np.uint64(27))) * m2
        total[i] += z ^ (z >> np.uint64(31))


@lazily
def add_floats(values: Any, bits: Any, salts: Any, m1: Any, m2: Any, total: Any) -> None:
    """As `add_codes`, for float64 without nulls; `salts` by kind: whole number, other number, NaN, above int64."""
    for i in range(values.size):
        v = values[i]
        if v != v:
            z = salts[2]
        elif v == np.floor(v) and v >= -9223372036854775808.0 and v < 18446744073709551616.0:
            if v < 9223372036854775808.0:
                z = np.uint64(np.int64(v)) + salts[0]
            else:
                z = np.uint64(v) + salts[3]
        else:
            z = bits[i] + salts[1]
        z = (z ^ (z >> np.uint64(30))) * m1
        z = (z ^ (z >> np.uint64(27))) * m2
        total[i] += z ^ (z >> np.uint64(31))


@lazily
def polynomial(symbols: Any, offsets: Any, base: Any, out: Any) -> None:
    """Polynomial hash of each run of symbols, modulo 2**64."""
    for i in range(offsets.size - 1):
        h = np.uint64(0)
        for k in range(offsets[i], offsets[i + 1]):
            h = h * base + np.uint64(symbols[k]) + np.uint64(1)
        out[i] = h


@lazily
def build_index(keys: Any, heads: Any, chain: Any, filter_: Any) -> None:
    """Chain rows by slot, the lowest row first; set the filter's bits."""
    slots = np.uint64(heads.size - 1)
    bits = np.uint64(filter_.size * 64 - 1)
    for j in range(keys.size):
        i = keys.size - 1 - j
        slot = keys[i] & slots
        chain[i] = heads[slot]
        heads[slot] = i
        bit = (keys[i] >> np.uint64(20)) & bits
        filter_[bit >> np.uint64(6)] |= np.uint64(1) << (bit & np.uint64(63))


@lazily
def count_pairs(probe: Any, keys: Any, heads: Any, chain: Any, filter_: Any, cap: int, counts: Any) -> None:
    """How many rows of the index have the probe's key, at most `cap` + 1."""
    slots = np.uint64(heads.size - 1)
    bits = np.uint64(filter_.size * 64 - 1)
    for i in range(probe.size):
        key = probe[i]
        bit = (key >> np.uint64(20)) & bits
        if (filter_[bit >> np.uint64(6)] >> (bit & np.uint64(63))) & np.uint64(1) == 0:
            continue
        at = heads[key & slots]
        n = 0
        while at >= 0 and n <= cap:
            if keys[at] == key:
                n += 1
            at = chain[at]
        counts[i] = n


@lazily
def fill_pairs(probe: Any, keys: Any, heads: Any, chain: Any, counts: Any, left: Any, right: Any) -> None:
    """The pairs themselves, probe by probe, the index's rows ascending."""
    slots = np.uint64(heads.size - 1)
    out = 0
    for i in range(probe.size):
        n = counts[i]
        at = heads[probe[i] & slots] if n else -1
        while n:
            if keys[at] == probe[i]:
                left[out] = i
                right[out] = at
                out += 1
                n -= 1
            at = chain[at]


@lazily
def compress(values: Any, centre: float, scale: float, out: Any, column: int) -> None:
    """`out[:, column]` = the value in spreads from the centre, logarithmic beyond four spreads."""
    for i in range(values.size):
        u = (values[i] - centre) / scale
        if u > 4.0:
            u = 4.0 + 4.0 * np.log(u / 4.0)
        elif u < -4.0:
            u = -4.0 - 4.0 * np.log(-u / 4.0)
        out[i, column] = u


@lazily
def cell_keys(z: Any, columns: Any, width: float, shifts: Any, start: Any, m1: Any, m2: Any, out: Any) -> None:
    """Key of the cell in which each row lies, over some of the columns; NaN is a cell of its own."""
    for i in range(z.shape[0]):
        h = start[i]
        for j in range(columns.size):
            v = z[i, columns[j]]
            if v != v:
                cell = np.int64(1 << 40)
            else:
                cell = np.int64(np.floor(np.float64(v) / width + shifts[j]))
            h = (h ^ np.uint64(cell)) * m1
            h ^= h >> np.uint64(29)
        h = h * m2
        out[i] = h ^ (h >> np.uint64(32))


@lazily
def distances(a: Any, left: Any, b: Any, right: Any, limit: float, out: Any) -> None:
    """Root mean square difference of paired rows; infinite where a value is missing on one side or beyond `limit`."""
    d = a.shape[1]
    most = limit * limit * d
    for i in range(left.size):
        p, q = left[i], right[i]
        total = 0.0
        for j in range(d):
            x, y = np.float64(a[p, j]), np.float64(b[q, j])
            if x != x or y != y:
                if x == x or y == y:
                    total = np.inf
                    break
            else:
                total += (x - y) * (x - y)
                if total > most:
                    total = np.inf
                    break
        out[i] = np.sqrt(total / d)


@lazily
def minhash(symbols: Any, offsets: Any, width: int, a: Any, b: Any, m1: Any, out: Any, counts: Any) -> None:
    """MinHash signature of each text over its shingles of `width` symbols; `counts` holds the number of shingles."""
    k = a.size
    low = np.empty(k, np.uint32)
    for i in range(offsets.size - 1):
        n = offsets[i + 1] - offsets[i] - width + 1
        counts[i] = max(n, 0)
        for j in range(k):
            low[j] = np.uint32(4294967295)
        for s in range(offsets[i], offsets[i] + max(n, 0)):
            h = np.uint64(0)
            for t in range(width):
                h = (h ^ np.uint64(symbols[s + t])) * m1
                h ^= h >> np.uint64(29)
            x = np.uint32(h >> np.uint64(32))
            for j in range(k):
                v = np.uint32(a[j] * x + b[j])
                if v < low[j]:
                    low[j] = v
        for j in range(k):
            out[i, j] = low[j]
