"""The vote: the predicted class, whatever label was given."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from osler.data.labels.estimators.channel import Floats, Ints, row_normalised


def vote_matrix(block: Floats, given: Ints) -> NDArray[np.float64]:
    """How often each label was given per predicted class; model errors count as noise here."""
    classes = len(block)
    pairs = block.argmax(axis=0) * classes + given
    return row_normalised(np.bincount(pairs, minlength=classes * classes).reshape(classes, classes).astype(np.float64))
