"""Every estimator side by side, and the one to use, without looking at a corrected label.

The estimators are fitted on four fifths of a sample and judged by the likelihood that they give to the labels of the fifth
that was held out. A noise channel is only believed where the confident rows show noise that depends on the class alone
(`dependence`): the likelihood cannot tell noise from doubt, as predictions that are calibrated to noisy labels foretell
them as well as any channel does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from osler.core.progress import Progress, quiet
from osler.core.settings.labels import Labels
from osler.data.labels.dependence import Dependence, measure
from osler.data.labels.estimators import ccc, confident, em, vote
from osler.data.labels.estimators.channel import Channel, Floats, log_likelihood, temper
from osler.data.labels.sample import FOLDS, Sample, held_out, thin

_JUDGED_ROWS = 50
_JUDGED_SHARE = 0.5
_SEARCH_CELLS = 1_000_000
_SEARCH_ROWS = 20_000
_SEARCH_ROUNDS = 8
_CALIBRATION_CELLS = 300_000
_SMALL = 10_000
_SHARPER = (1.5, 2.0, 3.0)
_FLATTER = (0.7, 0.5)


@dataclass(frozen=True, eq=False)
class Fit:
    """One estimator.

    Attributes:
        name: `argmax`, `confident-joint`, `em`, `ccc` or `em+ccc`.
        matrix: its noise matrix, true class by given class.
        prior: shares of the true classes by it, K float64.
        channel: how it corrects, for those that model the channel.
        cut: for `confident-joint`, the self-confidence of each given class within which a label is called wrong.
        likelihood: mean log-likelihood of the held-out given labels in nats, None where it foretells none.
    """

    name: str
    matrix: NDArray[np.float64]
    prior: NDArray[np.float64]
    channel: Channel | None = None
    cut: NDArray[np.float64] | None = None
    likelihood: float | None = None

    @property
    def noise_rate(self) -> float:
        """Share of labels that are wrong by this estimator."""
        return float(1 - (self.prior * np.diag(self.matrix)).sum())

    def posterior(self, block: Floats, given: NDArray[np.integer]) -> Floats:
        """P(true | what is known), K × B float32, of rows with K × B predictions and B given labels."""
        if self.channel is not None:
            return self.channel.posterior(block, given)
        return block if self.cut is None else confident.prune(block, given, self.cut)


@dataclass(frozen=True, eq=False)
class Choice:
    """The estimators, which of them to use, and whether the channel model fits.

    Attributes:
        fits: by name, in the order of the report.
        chosen: name of the estimator to correct with.
        best: the channel that foretells held-out labels best, whether it fits or not.
        rounds: rounds of EM that were worth their while.
        channel_fits: noise that depends on the class alone is there.
        why: one sentence: why it fits or why not.
        dependence: what the confident rows say.
        gain: nats per held-out label by which the best channel beats the calibrated predictions.
        gain_error: its standard error.
    """

    fits: dict[str, Fit]
    chosen: str
    best: str
    rounds: int
    channel_fits: bool
    why: str
    dependence: Dependence
    gain: float
    gain_error: float


def choose(sample: Sample, settings: Labels, progress: Progress = quiet) -> Choice:
    """Fit every estimator and choose one.

    Raises:
        DataError: scipy is not installed.
    """
    steps = 5
    progress("estimating label noise", 0, steps)
    dependence = measure(sample, settings.confident_share, settings.recall_floor)
    joint = confident.confident_joint(sample.block, sample.given)
    start = confident.joint_matrix(joint, sample.given)
    folds = FOLDS if len(sample.given) <= _SMALL else 1
    foretold: dict[str, list[NDArray[np.float64]]] = {}
    for fold in range(folds):
        progress("estimating label noise", 1, steps)
        out = held_out(sample, fold)
        fitted, judged = sample.at(~out), sample.at(out)
        sharpness, rounds = _variant(fitted, judged, start, settings.adapting_gain)
        for name, channel in {"argmax": _alone(fitted), **_channels(fitted, start, sharpness, rounds // 2)}.items():
            foretold.setdefault(name, []).append(_foretold(channel, judged))
    progress("estimating label noise", 3, steps)
    likelihood = {name: np.concatenate(parts) for name, parts in foretold.items()}
    best = max((name for name in likelihood if name != "argmax"), key=lambda name: float(likelihood[name].mean()))
    ahead = likelihood[best] - likelihood["argmax"]
    gain, error = float(ahead.mean()), float(ahead.std() / max(1, len(ahead)) ** 0.5)
    channels = _channels(sample, start, sharpness, rounds)
    fits = {"argmax": _fit("argmax", vote.vote_matrix(sample.block, sample.given), sample, likelihood["argmax"])}
    fits["confident-joint"] = replace(
        _fit("confident-joint", start, sample), cut=confident.cuts(sample.block, sample.given, joint)
    )
    for name, channel in channels.items():
        fits[name] = _fit(name, channel.matrix, sample, likelihood[name], channel)
    agreement = float((sample.block.argmax(axis=0) == sample.given).mean())
    fitting, why = _verdict(dependence, agreement, settings)
    progress("estimating label noise", steps, steps)
    return Choice(fits, best if fitting else "argmax", best, rounds, fitting, why, dependence, gain, error)


def _variant(fitted: Sample, judged: Sample, start: NDArray[np.float64], needed: float) -> tuple[float, int]:
    """The power of the predictions, and the rounds of EM, under which the held-out labels are foretold best.

    As given and without a round, unless another variant is ahead by `needed` nats a label.
    """
    rows = min(_SEARCH_ROWS, _SEARCH_CELLS // len(fitted.block))
    small, test = thin(fitted, rows), thin(judged, rows // 4)

    def score(power: float, rounds: int) -> float:
        matrix = em.fit(temper(small.block, power), small.starts, start, rounds)
        return float(_foretold(Channel(matrix, power), test).mean())

    def both(power: float) -> tuple[float, int]:
        still, moved = score(power, 0), score(power, _SEARCH_ROUNDS)
        return (moved, em.ROUNDS) if moved >= still + needed else (still, 0)

    best, (top, rounds) = 1.0, both(1.0)
    for direction in (_SHARPER, _FLATTER):
        for power in direction:
            reached, with_rounds = both(power)
            if reached < top + needed:
                break
            best, top, rounds = power, reached, with_rounds
        if best != 1.0:
            break
    return best, rounds


def _foretold(channel: Channel, judged: Sample) -> NDArray[np.float64]:
    """Log-likelihood of each held-out label."""
    return log_likelihood(channel.matrix.T.astype(np.float32) @ channel.clean(judged.block), judged.given)


def _few(sample: Sample) -> Sample:
    """As much of the sample as a calibration needs."""
    return thin(sample, max(2_000, _CALIBRATION_CELLS // len(sample.block)))


def _alone(sample: Sample) -> Channel:
    """The predictions themselves, calibrated: no noise."""
    few = _few(sample)
    return ccc.calibrate(few.block, few.given, np.eye(len(sample.block)))


def _channels(sample: Sample, start: NDArray[np.float64], sharpness: float, rounds: int) -> dict[str, Channel]:
    few = _few(sample)
    matrix = em.fit(temper(sample.block, sharpness), sample.starts, start, rounds)
    return {
        "em": Channel(matrix, sharpness),
        "ccc": ccc.calibrate(few.block, few.given, ccc.anchored(sample.block, sample.given)),
        "em+ccc": ccc.calibrate(few.block, few.given, matrix),
    }


def _fit(
    name: str,
    matrix: NDArray[np.float64],
    sample: Sample,
    likelihood: NDArray[np.float64] | None = None,
    channel: Channel | None = None,
) -> Fit:
    mean = float(likelihood.mean()) if likelihood is not None and len(likelihood) else None
    if channel is not None:
        prior = channel.clean(sample.block).mean(axis=1, dtype=np.float64)
    elif name == "argmax":
        counts = np.bincount(sample.block.argmax(axis=0), minlength=len(matrix)).astype(np.float64)
        prior = counts / max(1.0, counts.sum())
    else:
        # the calibrated joint sums over true classes to the given ones: solve for the mixture of rows that does
        given = np.diff(sample.starts) / max(1, len(sample.given))
        prior = np.maximum(np.linalg.lstsq(matrix.T, given, rcond=None)[0], 0)
        prior /= max(prior.sum(), 1e-12)
    return Fit(name, matrix, prior, channel, None, mean)


def unjudged(d: Dependence) -> bool:
    """The model knows too little for its silence to mean anything."""
    return d.rows < _JUDGED_ROWS or d.covered < _JUDGED_SHARE


def _verdict(d: Dependence, agreement: float, settings: Labels) -> tuple[bool, str]:
    share = f"{d.share:.1%} of the labels given to confidently predicted rows contradict the prediction"
    if unjudged(d):
        return (
            False,
            f"the model knows the classes of {d.covered:.0%} of the labels only, and {d.rows:,} rows of them confidently",
        )
    if d.low <= settings.noise_floor:
        return False, f"{share}: no more than a model's own errors explain"
    if d.share >= settings.noise_ceiling:
        return False, f"{share}: labels and predictions have too little in common"
    if d.ties > settings.ties:
        return False, f"{share}, and the predictions are too coarse ({d.ties:.0%} ties) to tell noise from model error"
    if agreement < settings.model_floor * (1 - d.share):
        return False, f"{share}, and the model errs too often besides (it repeats {agreement:.1%} of all labels)"
    if not d.auroc + 1.96 * d.error <= settings.dependence:
        return False, (
            f"{share}, and they fall where the model half expects the given class (AUROC {d.auroc:.2f}, 0.50 for noise that "
            "depends on the class alone): model errors and wrong labels of look-alikes cannot be told apart"
        )
    return True, f"{share}, whatever the row looks like (AUROC {d.auroc:.2f})"
