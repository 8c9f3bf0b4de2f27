"""The rows from which the noise channel is estimated, ordered by given label, and those held out to judge it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from osler.data.labels.estimators.channel import Floats, Ints

_FEWEST = 50  # rows of a class that are drawn where it has them
FOLDS = 5  # one row of so many is held out


@dataclass(frozen=True, eq=False)
class Sample:
    """Columns ordered by given label.

    Attributes:
        block: K × n float32 predictions.
        given: n labels, ascending.
        starts: K + 1 positions; class j was given to the columns `starts[j]:starts[j + 1]`.
    """

    block: Floats
    given: Ints
    starts: NDArray[np.int64]

    def at(self, chosen: NDArray[np.bool_]) -> Sample:
        """The chosen columns."""
        given = self.given[chosen]
        return Sample(np.ascontiguousarray(self.block[:, chosen]), given, positions(given, len(self.block)))


def positions(given: Ints, classes: int) -> NDArray[np.int64]:
    """Where each class begins among ascending labels, and the end."""
    return np.searchsorted(given, np.arange(classes + 1)).astype(np.int64)


def draw(given: Ints, classes: int, rows: int, seed: int = 0) -> NDArray[np.int64]:
    """Positions of at most about `rows` rows, class by class in proportion, ordered by label and within a label at random.

    Args:
        given: N labels in 0 … K - 1; negative ones are passed over.
        classes: K.
        rows: rows wanted.
        seed: of the draw.
    """
    rng = np.random.default_rng(seed)
    order = np.argsort(given, kind="stable")
    starts = np.searchsorted(given[order], np.arange(classes + 1))
    total = int(starts[-1] - starts[0])
    parts = []
    for j in range(classes):
        mine = order[starts[j] : starts[j + 1]]
        take = len(mine)
        if total > rows:
            take = min(len(mine), max(_FEWEST, round(rows * len(mine) / total)))
        parts.append(rng.permutation(mine)[:take])
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def held_out(sample: Sample, fold: int = 0) -> NDArray[np.bool_]:
    """Every fifth column of each class, five ways."""
    within = np.arange(len(sample.given)) - sample.starts[sample.given]
    out: NDArray[np.bool_] = within % FOLDS == fold
    return out


def thin(sample: Sample, rows: int) -> Sample:
    """About `rows` columns of the sample, class by class in proportion."""
    n = len(sample.given)
    if n <= rows:
        return sample
    within = np.arange(n) - sample.starts[sample.given]
    return sample.at(np.floor(within * rows / n) < np.floor((within + 1) * rows / n))
