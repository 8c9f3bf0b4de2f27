"""Rows of the evaluation that are training rows with a little noise.

Values become spreads from the middle of their column. A band takes some of the columns and cuts them into cells with a
random shift; rows in the same cell of a band are candidates, and the candidates' true distance decides. With noise s and
cells of width w a value leaves its cell with probability of about E|s| / w, so a band of k columns keeps a pair with
p = (1 − 0.8 s / w)^k and b bands find it with 1 − (1 − p)^b: the scheme of Datar et al. 2004 (p-stable hashing), on
single columns in place of projections. Columns of few values add nothing to a band, so their bits decide which columns
a band takes and how many.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from osler.core.progress import Progress
from osler.core.settings.splits import Splits
from osler.data.splits import compiled
from osler.data.splits.columns import Rows, Shared, read
from osler.data.splits.hashes import M1, M2, Hashes, add_column, mix, seed_of
from osler.data.splits.index import KeyIndex
from osler.data.splits.surprise import surprising
from osler.data.tables import Kind, Source, floats

Floats = npt.NDArray[np.float64]
Single = npt.NDArray[np.float32]

_WIDTHS = tuple(2.0**-i for i in range(1, 10))
"""Widths of a cell that are tried, in spreads: the widest that separates the rows serves best."""


@dataclass(frozen=True, slots=True)
class Band:
    """Some columns, and where their cells begin (in cells, in [0, 1))."""

    columns: npt.NDArray[np.int64]
    shifts: Floats


@dataclass(frozen=True, slots=True)
class Plan:
    """How near rows are looked for.

    Attributes:
        numbers: columns of many values, which noise may change.
        discrete: columns that must be equal.
        centres, scales: middle and spread of `numbers`.
        width: of a cell, in spreads.
        bands: the bands.
    """

    numbers: tuple[str, ...]
    discrete: tuple[str, ...]
    centres: Floats
    scales: Floats
    width: float
    bands: tuple[Band, ...]

    def recall(self, noise: float) -> float:
        """Lower estimate of the share of pairs found whose values differ by Gaussian noise of that many spreads."""
        stays = max(0.0, 1 - math.sqrt(2 / math.pi) * noise / self.width)
        missed = math.prod(1 - stays ** len(band.columns) for band in self.bands)
        return 1 - missed


@dataclass(slots=True)
class NearMatches:
    """Near rows.

    Attributes:
        plan: how they were looked for.
        count: evaluation rows that are near copies: that lie closer to a training row than rows of these data otherwise
            do, and equal none. An estimate where fewer were `judged` than `close` are.
        rows: those of them that were judged, ascending.
        partners: the nearest training row of each.
        distances: root mean square difference in spreads.
        close: evaluation rows within `near_distance` of a training row, near copies or not, ascending.
        judged: how many of them were judged.
        skipped: rows that met a cell holding too many rows.
        examined: how many evaluation rows were searched.
    """

    plan: Plan
    count: int
    rows: Rows
    partners: Rows
    distances: Floats
    close: Rows
    judged: int
    skipped: int
    examined: int


def make_plan(
    samples: Sequence[pa.Table],
    names: Sequence[str],
    kinds: dict[str, Kind],
    train_rows: int,
    eval_rows: int,
    settings: Splits,
) -> Plan | str:
    """Choose columns, cells and bands from samples of both sides; a text says why near rows cannot be told apart."""
    half = max(1, settings.sample_rows // len(samples))
    rng = np.random.default_rng(7)
    parts = [s.take(pa.array(rng.permutation(s.num_rows)[:half])) for s in samples]
    numbers, discrete = _roles(parts, names, kinds, settings)
    if not numbers:
        return "no column holds numbers of many values, and rows of few values are compared exactly"
    scaled = [_scale(_values(parts, name)) for name in numbers]
    centres, scales = (np.array(side) for side in zip(*scaled))
    z = np.concatenate([project(part, numbers, centres, scales) for part in parts])
    start = np.concatenate([discrete_hashes(part, discrete) for part in parts])
    # a row that is there many times would make its cells look crowded
    once = np.unique(z.view(np.dtype((np.void, z.itemsize * z.shape[1]))).ravel(), return_index=True)[1]
    z, start = z[once], start[once]
    allowed = settings.candidates * max(eval_rows, 1_000) / (max(train_rows, 1) * max(eval_rows, 1))
    rng = np.random.default_rng(11)
    best: tuple[float, float] | None = None
    for width in _WIDTHS:
        used = _columns_needed(z, start, width, allowed, rng, settings)
        if used is None:
            continue
        stays = max(0.0, 1 - 0.8 * settings.noise / width) ** used
        if best is None or stays > best[1] + 0.02:
            best = (width, stays)
        if used <= max(1, len(numbers) // 2):
            break
    if best is None:
        return "the columns together do not tell rows apart: every row has many others in its cell"
    width = best[0]
    bands: list[Band] = []
    while len(bands) < settings.bands:
        shifts = rng.random(len(numbers))
        order = _order(z, width, rng)
        k = _prefix(z, start, order, width, shifts, allowed, settings)
        bands.append(Band(order[:k], shifts))
    return Plan(tuple(numbers), tuple(discrete), centres, scales, width, tuple(bands))


def near_rows(
    train: Source,
    eval_: Source,
    shared: Shared,
    plan: Plan,
    exact: npt.NDArray[np.bool_],
    sample: pa.Table,
    train_rows: int,
    settings: Splits,
    progress: Progress,
) -> NearMatches:
    """Search every evaluation row that equals no training row.

    Args:
        train, eval_: the two sides.
        shared: their columns.
        plan: from `make_plan`.
        exact: evaluation rows that are known to equal a training row.
        sample: a sample of training rows, against which distances are judged.
        train_rows: rows of training.
        settings: caps.
        progress: is told.
    """
    names = (*plan.numbers, *plan.discrete)
    most = max(1, settings.near_cells // len(plan.numbers))
    held: list[Single] = []
    starts: list[Hashes] = []
    for start, batch in read(eval_, names, shared, progress, "evaluation rows placed"):
        if start >= most:
            break
        held.append(project(batch, plan.numbers, plan.centres, plan.scales))
        starts.append(discrete_hashes(batch, plan.discrete))
    z = np.concatenate(held)[:most]
    tokens = np.concatenate(starts)[:most]
    searched = np.flatnonzero(~exact[: z.shape[0]])
    if searched.size < z.shape[0]:
        z, tokens = z[searched], tokens[searched]
    indexes = [KeyIndex(cell_keys(z, band, plan.width, tokens), settings.bucket_cap) for band in plan.bands]

    limit = settings.near_distance
    nearest = np.full(z.shape[0], np.inf)
    partner = np.full(z.shape[0], -1, np.int64)
    for start, batch in read(train, names, shared, progress, "training rows searched"):
        own = project(batch, plan.numbers, plan.centres, plan.scales)
        own_tokens = discrete_hashes(batch, plan.discrete)
        for band, index in zip(plan.bands, indexes):
            left, right = index.pairs(cell_keys(own, band, plan.width, own_tokens))
            if not left.size:
                continue
            same = own_tokens[left] == tokens[right]
            left, right = left[same], right[same]
            far = distances(own, left, z, right, limit)
            close = np.flatnonzero(far < np.minimum(nearest[right], limit))
            # the closest last, so that it is the one that stays written
            close = close[np.argsort(-far[close], kind="stable")]
            nearest[right[close]] = far[close]
            partner[right[close]] = start + left[close]
    found = np.flatnonzero(partner >= 0)
    share, judged = surprising(
        z[found], nearest[found], project(sample, plan.numbers, plan.centres, plan.scales), train_rows, settings
    )
    certain = found[judged.kept]
    return NearMatches(
        plan,
        certain.size if judged.all_judged else round(share * found.size),
        searched[certain],
        partner[certain],
        nearest[certain],
        searched[found],
        judged.count,
        sum(index.skipped for index in indexes),
        z.shape[0],
    )


def project(rows: pa.Table | pa.RecordBatch, names: Sequence[str], centres: Floats, scales: Floats) -> Single:
    """Values in spreads from the middle of their column, logarithmic beyond four spreads; shape (n, columns)."""
    out = np.empty((rows.num_rows, len(names)), np.float32)
    fast = compiled.worth(rows.num_rows)
    for j, name in enumerate(names):
        values = floats(rows.column(name))
        if fast:
            compiled.compress(values, centres[j], scales[j], out, j)
            continue
        u = (values - centres[j]) / scales[j]
        size = np.abs(u)
        with np.errstate(divide="ignore", invalid="ignore"):
            tail = np.sign(u) * (4.0 + 4.0 * np.log(size / 4.0))
        out[:, j] = np.where(size > 4.0, tail, u)
    return out


def discrete_hashes(rows: pa.Table | pa.RecordBatch, names: Sequence[str]) -> Hashes:
    """Hash of the columns that must be equal, shape (n,)."""
    total = np.zeros(rows.num_rows, np.uint64)
    for name in names:
        add_column(total, rows.column(name), seed_of(name), missing_alike=True)
    return mix(total)


def cell_keys(z: Single, band: Band, width: float, start: Hashes) -> Hashes:
    """Key of the cell of each row in a band, shape (n,)."""
    shifts = band.shifts[band.columns]
    out = np.empty(z.shape[0], np.uint64)
    if compiled.worth(z.shape[0]):
        compiled.cell_keys(z, band.columns, width, shifts, start, M1, M2, out)
        return out
    out[:] = start
    for j, shift in zip(band.columns, shifts):
        values = z[:, j].astype(np.float64)
        missing = np.isnan(values)
        with np.errstate(invalid="ignore"):
            cells = np.floor(values / width + shift)
        # infinities lie in the outermost cells
        cells = np.clip(np.where(missing, 0, cells), -(2.0**39), 2.0**39).astype(np.int64)
        cells[missing] = 1 << 40
        out = (out ^ cells.view(np.uint64)) * M1
        out ^= out >> np.uint64(29)
    out = out * M2
    mixed: Hashes = out ^ (out >> np.uint64(32))
    return mixed


def distances(a: Single, left: Rows, b: Single, right: Rows, limit: float) -> Floats:
    """Root mean square difference of paired rows; infinite beyond `limit` and where one side alone is missing."""
    out = np.empty(left.size)
    if compiled.worth(left.size):
        compiled.distances(a, left, b, right, limit, out)
        return out
    for start in range(0, left.size, 65_536):
        part = slice(start, start + 65_536)
        x, y = a[left[part]].astype(np.float64), b[right[part]].astype(np.float64)
        with np.errstate(invalid="ignore"):
            difference = np.square(x - y)
        difference[np.isnan(x) & np.isnan(y)] = 0
        difference[(x == y)] = 0
        difference[np.isnan(difference)] = np.inf
        out[part] = np.sqrt(difference.mean(axis=1))
    out[out > limit] = np.inf
    return out


def _values(parts: Sequence[pa.Table], name: str) -> Floats:
    return np.concatenate([floats(part.column(name)) for part in parts])


def _roles(
    parts: Sequence[pa.Table], names: Sequence[str], kinds: dict[str, Kind], settings: Splits
) -> tuple[list[str], list[str]]:
    numbers: list[str] = []
    discrete: list[str] = []
    for name in names:
        kind = kinds[name]
        if kind in (Kind.NUMBER, Kind.INTEGER):
            values = _values(parts, name)
            values = values[np.isfinite(values)]
            different = np.unique(values).size
            if different > settings.few_values:
                numbers.append(name)
            elif different > 1:
                discrete.append(name)
        elif kind in (Kind.BOOLEAN, Kind.CATEGORY):
            discrete.append(name)
    return numbers, discrete


def _scale(values: Floats) -> tuple[float, float]:
    """Middle and spread: the narrowest pair of quantiles that differ, as standard deviations of a normal."""
    values = values[np.isfinite(values)]
    levels = (0.25, 0.75, 0.1, 0.9, 0.01, 0.99, 0.0, 1.0)
    q = np.quantile(values, levels)
    for (low, high), per_sd in zip(q.reshape(4, 2), (1.349, 2.563, 4.653, 8.0)):
        if high > low:
            return float(np.median(values)), float((high - low) / per_sd)
    return float(q[0]), 1.0


def _order(z: Single, width: float, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """The columns in a random order that favours those with more bits (Efraimidis & Spirakis 2006)."""
    bits = np.array([_bits(column, width) for column in z.T])
    with np.errstate(divide="ignore"):
        keys = np.log(rng.random(bits.size)) / np.maximum(bits, 1e-9)
    order = np.argsort(-keys)
    return order[bits[order] > 0.05] if (bits > 0.05).any() else order


def _bits(values: Single, width: float) -> float:
    """−log2 of the probability that two rows share a cell of the column."""
    cells = np.floor(values[np.isfinite(values)] / width)
    if not cells.size:
        return 0.0
    shares = np.unique(cells, return_counts=True)[1] / cells.size
    return float(-np.log2(np.square(shares).sum()))


def _columns_needed(
    z: Single, start: Hashes, width: float, allowed: float, rng: np.random.Generator, settings: Splits
) -> int | None:
    order = _order(z, width, rng)
    return _prefix(z, start, order, width, np.asarray(rng.random(z.shape[1])), allowed, settings)


def _prefix(
    z: Single,
    start: Hashes,
    order: npt.NDArray[np.int64],
    width: float,
    shifts: Floats,
    allowed: float,
    settings: Splits,
) -> int | None:
    """How many columns of the order a band needs until few pairs of unrelated rows share its cells."""
    total = z.shape[0] * (z.shape[0] - 1) / 2
    low, high = 0, order.size
    if _unrelated(z, start, Band(order, shifts), width, settings) / total > allowed:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        if _unrelated(z, start, Band(order[:middle], shifts), width, settings) / total > allowed:
            low = middle
        else:
            high = middle
    # where the sample is too small to see what is allowed, the columns' own bits say how many more are due
    seen = total * allowed
    bits = 0.0
    for j in order[:high]:
        bits += _bits(z[:, j], width)
    while high < order.size and seen < 1 and bits < -math.log2(allowed):
        bits += _bits(z[:, order[high]], width)
        high += 1
    return high


def _unrelated(z: Single, start: Hashes, band: Band, width: float, settings: Splits) -> float:
    """Pairs of the sample that share a cell and are not near: copies must not count against a band."""
    keys = cell_keys(z, band, width, start)
    counts = np.unique(keys, return_counts=True)[1]
    total = float((counts * (counts - 1.0) / 2).sum())
    if total > 32 * z.shape[0]:
        return total
    left, right = KeyIndex(keys, z.shape[0]).pairs(keys)
    twice = left < right
    far = distances(z, left[twice], z, right[twice], settings.near_distance)
    return float(np.isinf(far).sum())
