"""The rows behind a fitted state."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from osler.core.frames import Line
from osler.data.preprocess.kinds import Learned

Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Chunk:
    """The rows of one call of `fit` or `partial_fit`.

    Attributes:
        ids: row numbers, -1 where unknown.
        at: when, on the guard's own clock of calls.
    """

    ids: Ids
    at: int


@dataclass(slots=True, eq=False)
class State:
    """What one estimator holds, from the fit that started it to the next that starts afresh.

    Attributes:
        serial: its number.
        name: its class, for messages.
        owner: number of the estimator object; the same for all its states.
        learned: what the state holds of the rows.
        line: the user's line of the (last) fit.
        rows: how many rows the fits were given together.
        chunks: the rows, call by call.
        sources: fits whose transformers made the input.
        linked: some rows were recognised by their values.
    """

    serial: int
    name: str
    owner: int
    learned: Learned
    line: Line | None
    rows: int = 0
    chunks: list[Chunk] = field(default_factory=list)
    sources: frozenset[State] = frozenset()
    linked: bool = False

    def add(self, chunk: Chunk, rows: int) -> None:
        """Take in the rows of one more call."""
        self.chunks.append(chunk)
        self.rows += rows

    def saw(self, ids: Ids, chunks: list[Chunk] | None = None) -> NDArray[np.bool_]:
        """For each row number whether a fit was given that row; unknown rows were not."""
        chosen = self.chunks if chunks is None else chunks
        if not chosen or not len(ids):
            return np.zeros(len(ids), bool)
        if len(chosen) == 1 and chosen[0].ids is ids:
            return np.asarray(ids >= 0)
        top = int(max(int(c.ids.max(initial=-1)) for c in chosen))
        held = np.zeros(top + 2, bool)
        for chunk in chosen:
            held[chunk.ids] = True
        held[-1] = False  # where -1 points
        return held[np.where(ids <= top, ids, -1)]
