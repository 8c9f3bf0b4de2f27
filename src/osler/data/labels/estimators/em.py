"""EM on the channel: the noise matrix and the clean posteriors of the rows, in turn.

The predictions estimate P(given | x). With T fixed, each row's P(true | x) is what remains when T is taken out of them
(`channel.deconvolve`); with those fixed, T is the expected count of given labels per true class.

Its likelihood has flat directions: predictions that are less sure than they should be let it drift towards T = I. So it is
only run where it foretells held-out labels better than the matrix that it starts from (`choose`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from osler.data.labels.estimators.channel import Floats, advance, row_normalised

ROUNDS = 16
_LEAST = 1e-4  # share of a row that no entry falls below: from 0 a multiplicative update never returns
_TINY = np.float32(1e-9)


def fit(
    block: Floats,
    starts: NDArray[np.int64],
    matrix: NDArray[np.float64],
    rounds: int = ROUNDS,
) -> NDArray[np.float64]:
    """The noise matrix, K × K float64, after that many rounds.

    Args:
        block: K × n float32 predictions, columns ordered by given label.
        starts: K + 1 ascending positions; the columns `starts[j]:starts[j + 1]` were given class j.
        matrix: T to start from, K × K.
        rounds: rounds of EM; 0 gives the matrix that it starts from.
    """
    classes = len(block)
    if not rounds:
        return matrix
    q = np.maximum(block, _TINY)
    t = matrix.astype(np.float32)
    counts = np.diff(starts)
    for _ in range(rounds):
        q = advance(advance(q, block, t), block, t)
        r = np.repeat(t, counts, axis=1)
        r *= q
        share = np.maximum(r.sum(axis=0), _TINY)
        r /= share
        expected = np.zeros((classes, classes))
        for j in range(classes):
            if counts[j]:
                expected[:, j] = r[:, starts[j] : starts[j + 1]].sum(axis=1, dtype=np.float64)
        t = _shrunk(expected).astype(np.float32)
    return t.astype(np.float64)


def _shrunk(expected: NDArray[np.float64]) -> NDArray[np.float64]:
    """The expected counts as a matrix, K rows' worth drawn towards noise that is even over the classes.

    Where each of many entries rests on a few labels, the even spread foretells better than the counts; where they rest on
    hundreds it changes nothing.
    """
    classes = len(expected)
    matrix = row_normalised(expected)
    kept = np.diag(matrix)
    even = np.repeat(((1 - kept) / max(1, classes - 1))[:, None], classes, axis=1)
    np.fill_diagonal(even, kept)
    return row_normalised(expected + classes * np.maximum(even, _LEAST))
