"""Whether two rows are closer than rows of the data otherwise are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from osler.core.settings.splits import Splits

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Judged:
    """Which pairs were judged.

    Attributes:
        count: how many.
        kept: positions of those found surprising.
        all_judged: whether every pair was judged, and not a sample.
    """

    count: int
    kept: npt.NDArray[np.int64]
    all_judged: bool


def surprising(
    rows: npt.NDArray[np.float32],
    nearest: Floats,
    sample: npt.NDArray[np.float32],
    population: int,
    settings: Splits,
) -> tuple[float, Judged]:
    """The share of pairs so close that chance would hardly put any row there.

    The number of rows within r of a row grows as r^d for small r, d being the local dimension of the data. For each row
    the K nearest rows of the sample give d (from the radii that hold K/2 and K of them, after Pettis et al. 1979; its
    lower 97.5 % limit is used, which makes closeness less surprising) and the count within their radius; extrapolated
    down to the pair's own distance they give the number of rows expected there. Dense clusters, grids and repeated
    states have close neighbours in the sample too and so expect them.

    Args:
        rows: evaluation rows that have a near training row, shape (m, columns).
        nearest: its distance, root mean square over columns, shape (m,).
        sample: a uniform sample of training rows, shape (s, columns).
        population: number of training rows.
        settings: `surprise`, `judged_rows`.

    Returns:
        the share, and what it rests on.
    """
    # many rows at one and the same point are one place, and say nothing of how the places lie
    whole = np.ascontiguousarray(sample)
    points = np.unique(whole.view(np.dtype((np.void, whole.itemsize * whole.shape[1]))).ravel(), return_index=True)[1]
    population = max(1, round(population * points.size / max(1, sample.shape[0])))
    sample = sample[points]
    few = rows.shape[0] <= settings.judged_rows
    chosen = np.arange(rows.shape[0])
    if not few:
        chosen = np.sort(np.random.default_rng(5).permutation(rows.shape[0])[: settings.judged_rows])
    k = min(settings.neighbours, sample.shape[0] // 4)
    if k < 8 or not chosen.size:
        return 0.0, Judged(0, np.zeros(0, np.int64), few)
    kept: list[int] = []
    for start in range(0, chosen.size, 64):
        part = chosen[start : start + 64]
        square = np.partition(_squares(rows[part], sample), k - 1, axis=1)[:, :k]
        d = np.sqrt(np.sort(square, axis=1))
        for i, near in zip(part, d):
            if _expected(near, float(nearest[i]), population / sample.shape[0], rows.shape[1]) <= settings.surprise:
                kept.append(int(i))
    positions = np.array(kept, np.int64)
    return positions.size / chosen.size, Judged(chosen.size, positions, few)


def _squares(a: npt.NDArray[np.float32], b: npt.NDArray[np.float32]) -> Floats:
    """Mean square differences of all pairs, shape (m, s); a value missing on one side alone is one spread away."""
    no_a, no_b = np.isnan(a), np.isnan(b)
    x, y = (np.clip(np.nan_to_num(side.astype(np.float64)), -1e3, 1e3) for side in (a, b))
    out: Floats = np.square(x).sum(axis=1)[:, None] + np.square(y).sum(axis=1)[None, :] - 2 * (x @ y.T)
    if no_a.any() or no_b.any():
        # a missing value stands as 0, so the other's square is in the sum: 1 belongs there
        out += no_a.astype(np.float64) @ np.where(no_b, 0.0, 1 - np.square(y)).T
        out += np.where(no_a, 0.0, 1 - np.square(x)) @ no_b.astype(np.float64).T
    means: Floats = np.maximum(out / a.shape[1], 0.0)
    return means


def _expected(d: Floats, r: float, per_sampled: float, columns: int) -> float:
    """Rows expected within r of a row by chance, from its K nearest distances in a sample, ascending."""
    k = d.size
    half = k // 2
    outer, inner = float(d[-1]), float(d[half - 1])
    if outer <= 0:
        return k * per_sampled
    # half of K rows lie within `inner`, K within `outer`: the two give the growth between them
    dimension = np.log(k / half) / np.log(outer / inner) if 0 < inner < outer else float(columns if inner else 0)
    dimension = min(dimension, float(columns))
    # (inner / outer)^d is a Beta(K/2, K/2) variable, so the estimate's relative standard error is 1 / (ln 2 · √K)
    low = dimension * max(0.2, 1 - 2 / (np.log(2) * np.sqrt(k)))
    return float(k * per_sampled * min(1.0, r / outer) ** low)
