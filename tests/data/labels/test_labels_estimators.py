"""Each estimator on what it should get right, and the shared pieces against plain numpy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from osler.data.labels.audit import top
from osler.data.labels.dependence import wilson
from osler.data.labels.estimators import ccc, channel, confident, em, vote
from osler.data.labels.sample import Sample, draw, held_out, positions, thin

T = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.0, 0.4, 0.6]])


def sample_of(given: np.ndarray, probs: np.ndarray) -> Sample:
    order = np.argsort(given, kind="stable")
    return Sample(np.ascontiguousarray(probs[order].T), given[order], positions(given[order], probs.shape[1]))


def test_deconvolution_undoes_the_channel() -> None:
    q = np.random.default_rng(0).dirichlet([0.5] * 3, 500).astype(np.float32)
    seen = np.ascontiguousarray((q @ T).T, dtype=np.float32)
    assert np.abs(channel.deconvolve(seen, T).T - q).max() < 5e-3


def test_deconvolution_under_a_matrix_that_cannot_be_inverted() -> None:
    flat = np.full((3, 3), 1 / 3)
    out = channel.deconvolve(np.full((3, 4), 1 / 3, dtype=np.float32), flat)
    np.testing.assert_allclose(out.sum(axis=0), 1, atol=1e-5)


def test_posterior_is_bayes() -> None:
    q = np.array([[0.6], [0.3], [0.1]], dtype=np.float32)
    r = channel.weigh(q, T, np.array([1]))
    want = np.array([0.6 * 0.2, 0.3 * 0.8, 0.1 * 0.4])
    np.testing.assert_allclose(r[:, 0], want / want.sum(), rtol=1e-5)


def test_temper() -> None:
    p = np.array([[0.8], [0.2]], dtype=np.float32)
    assert channel.temper(p, 1.0) is p
    np.testing.assert_allclose(channel.temper(p, 2.0)[:, 0], [0.64 / 0.68, 0.04 / 0.68], rtol=1e-5)


def test_confident_joint_by_hand() -> None:
    # thresholds: class 0 mean(0.9, 0.7, 0.2) = 0.6, class 1 mean(0.8, 0.6) = 0.7
    block = np.array([[0.9, 0.7, 0.2, 0.2, 0.4], [0.1, 0.3, 0.8, 0.8, 0.6]], dtype=np.float32)
    given = np.array([0, 0, 0, 1, 1])
    joint = confident.confident_joint(block, given)
    assert joint.tolist() == [[2, 1], [0, 1]]
    cut = confident.cuts(block, given, joint)
    np.testing.assert_allclose(cut, [0.2, 0.0], atol=1e-6)
    assert confident.prune(block, given, cut).argmax(axis=0).tolist() == [0, 0, 1, 1, 1]


def test_em_recovers_the_matrix_where_it_starts_far_off(made: Callable[..., tuple]) -> None:
    given, probs, _, matrix = made(rows=20_000, noise=0.3)
    s = sample_of(given, probs)
    start = confident.joint_matrix(confident.confident_joint(s.block, s.given), s.given)
    assert np.array_equal(em.fit(s.block, s.starts, start, 0), start)
    found = em.fit(s.block, s.starts, start)
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-6)
    assert np.abs(found - matrix).sum() < 0.5
    assert np.abs(ccc.anchored(s.block, s.given) - matrix).sum() < 0.5


def test_calibration_finds_the_sharpness() -> None:
    rng = np.random.default_rng(1)
    q = rng.dirichlet([0.4] * 4, 8000)
    given = (q.cumsum(axis=1) < rng.random(8000)[:, None]).sum(axis=1).clip(0, 3)
    blurred = np.sqrt(q)
    blurred /= blurred.sum(axis=1, keepdims=True)
    fitted = ccc.calibrate(np.ascontiguousarray(blurred.T, dtype=np.float32), given, np.eye(4))
    assert fitted.sharpness == pytest.approx(2, rel=0.1)
    assert np.abs(fitted.bias).max() < 0.2


def test_vote_counts_every_contradiction() -> None:
    block = np.array([[0.9, 0.6, 0.3], [0.1, 0.4, 0.7]], dtype=np.float32)
    np.testing.assert_allclose(vote.vote_matrix(block, np.array([0, 1, 1])), [[0.5, 0.5], [0, 1]])


def test_a_class_that_was_never_given() -> None:
    block = np.random.default_rng(0).dirichlet([1] * 3, 200).T.astype(np.float32)
    given = np.sort(np.random.default_rng(1).integers(0, 2, 200))
    joint = confident.confident_joint(block, given)
    start = confident.joint_matrix(joint, given)
    found = em.fit(block, positions(given, 3), start, 3)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-6)
    assert np.isfinite(confident.prune(block, given, confident.cuts(block, given, joint))).all()


def test_top_is_argmax_with_the_first_of_equals() -> None:
    block = np.round(np.random.default_rng(0).random((7, 999)), 1).astype(np.float32)
    assert np.array_equal(top(block), block.argmax(axis=0))


def test_a_sample_keeps_every_class_and_passes_over_rows_without_label() -> None:
    given = np.array([0] * 5000 + [1] * 20 + [-1] * 100)
    rows = draw(given, 3, 1000)
    assert (given[rows] == 1).sum() == 20
    assert (given[rows] >= 0).all()
    assert len(np.unique(rows)) == len(rows)
    s = Sample(np.zeros((3, len(rows)), np.float32), given[rows], positions(given[rows], 3))
    folds = np.stack([held_out(s, k) for k in range(5)])
    assert (folds.sum(axis=0) == 1).all()
    assert abs(len(thin(s, 100).given) - 100) <= 3


def test_wilson() -> None:
    low, high = wilson(10, 100)
    assert (round(low, 3), round(high, 3)) == (0.055, 0.174)
    assert wilson(0, 0) == (0.0, 1.0)
