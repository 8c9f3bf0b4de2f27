"""Sets of labels with known truth: clouds of points, their exact posteriors, and noise put on the labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest


class Made(NamedTuple):
    """Given labels, out-of-fold predictions of them, true labels, noise matrix (or None)."""

    given: np.ndarray
    probs: np.ndarray
    true: np.ndarray
    matrix: np.ndarray | None


def softmax(z: np.ndarray) -> np.ndarray:
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def make(
    rows: int = 6000,
    classes: int = 5,
    noise: float = 0.2,
    kind: str = "class",
    apart: float = 3.5,
    seed: int = 0,
) -> Made:
    """Gaussian clouds; the predictions are the exact P(given | x) but for an error of the logits, as a trained model's are.

    kind: `class`: the label goes to the next class or evenly anywhere; `instance`: to the second likeliest class, where the
    row is near the border; `none`: no noise.
    """
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(classes, 6)) * apart / np.sqrt(2)
    true = rng.integers(0, classes, rows)
    x = centres[true] + rng.normal(size=(rows, 6))
    logits = -0.5 * ((x[:, None] - centres) ** 2).sum(axis=2)
    clean = softmax(logits)
    given, matrix = true.copy(), None
    seen = clean
    if kind == "class":
        matrix = np.eye(classes) * (1 - noise) + noise * (
            0.5 * np.roll(np.eye(classes), 1, axis=1) + 0.5 * (1 - np.eye(classes)) / (classes - 1)
        )
        given = (matrix[true].cumsum(axis=1) < rng.random(rows)[:, None]).sum(axis=1).clip(0, classes - 1)
        seen = clean @ matrix
    elif kind == "instance":
        rough = softmax(logits * 0.25)  # how people see it: less sharply
        odds = rough / rough.sum(axis=1, keepdims=True)
        given = (odds.cumsum(axis=1) < rng.random(rows)[:, None]).sum(axis=1).clip(0, classes - 1)
        seen = odds
    probs = softmax(np.log(np.maximum(seen, 1e-6)) * 1.2 + 0.2 * rng.normal(size=seen.shape))
    return Made(given, probs.astype(np.float32), true, matrix)


@pytest.fixture(scope="session")
def made() -> Callable[..., Made]:
    """`make`."""
    return make
