"""Which labels are wrong, by predictions that never saw them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osler.core.progress import Progress, quiet
from osler.core.report import Report
from osler.core.settings import Settings
from osler.core.settings.labels import Labels
from osler.data.labels import fold_check
from osler.data.labels.choose import Choice, Fit, choose
from osler.data.labels.estimators.channel import Channel, Floats
from osler.data.labels.inputs import MISSING, Inputs, join
from osler.data.labels.intervals import intervals
from osler.data.labels.read import read_labels, read_probs
from osler.data.labels.sample import Sample, draw, positions
from osler.data.need import DataError

_PER_CLASS = 5  # labels for each column of predictions


@dataclass(frozen=True, eq=False)
class Ranked:
    """The most suspicious labels, most suspicious first; four arrays of the same length.

    Attributes:
        index: positions in the data, int64.
        given: given classes, int32.
        suggested: the likeliest class instead, int32.
        probability: probability that the given label is wrong, float32.
    """

    index: NDArray[np.int64]
    given: NDArray[np.int32]
    suggested: NDArray[np.int32]
    probability: NDArray[np.float32]


class LabelAudit:
    """What out-of-fold predictions say about given labels.

    Nothing of size N × K is kept: every estimator is a small model that is run over the predictions block by block.

    Attributes:
        names: K class names for reports.
        chosen: name of the estimator to correct with, if labels are to be corrected.
        best: name of the noise channel that foretells held-out labels best, whether it fits or not.
        noisy: label noise that depends on the class alone is there, beyond what the model's own errors explain.
        fits: (the channel model fits, why or why not).
        estimates: by name (`argmax`, `confident-joint`, `em`, `ccc`, `em+ccc`), the estimators side by side.
        noise_matrix: T of the channel that foretells held-out labels best, K × K float64, true class by given class.
        intervals: lower and upper ends of its entries, each K × K.
        noise_rate: share of wrong labels by `noise_matrix`.
        noise_rate_interval: lower and upper end of it.
        suspicion: N float32, the probability that each given label is wrong by the chosen estimator; 0 without a label.
        suggested: N int32, the likeliest class of each row by the chosen estimator.
        agreement: share of given labels that are the predicted class.
    """

    def __init__(self, inputs: Inputs, settings: Labels, choice: Choice, sample: Sample, progress: Progress) -> None:
        self._inputs, self._settings, self._choice = inputs, settings, choice
        self.names = inputs.names
        self.notes = list(inputs.notes)
        self.chosen = choice.chosen
        self.best = choice.best
        self.noisy = choice.channel_fits
        self.fits: tuple[bool, str] = (choice.channel_fits, choice.why)
        self.estimates: dict[str, Fit] = choice.fits
        best = choice.fits[choice.best]
        self.noise_matrix = best.matrix
        self.noise_rate = best.noise_rate
        progress("intervals of the noise matrix", 0, 1)
        deconvolving = best.channel if best.channel is not None and best.channel.deconvolve else None
        ends = intervals(
            sample,
            deconvolving or Channel(best.matrix),
            best.prior,
            choice.rounds,
            settings.resamples,
            settings.coverage,
        )
        self.intervals = (ends.low, ends.high)
        self.noise_rate_interval = (ends.rate_low, ends.rate_high)
        progress("intervals of the noise matrix", 1, 1)
        self.suspicion, self.suggested, self.agreement = self._judge(progress)

    @property
    def choice(self) -> Choice:
        """Everything that the choice of the estimator rests on."""
        return self._choice

    @property
    def given(self) -> NDArray[np.int32]:
        """N int32 given classes, -1 without a label."""
        return self._inputs.codes

    def _judge(self, progress: Progress) -> tuple[NDArray[np.float32], NDArray[np.int32], float]:
        given, fit, n = self._inputs.codes, self.estimates[self.chosen], len(self._inputs.codes)
        suspicion = np.zeros(n, dtype=np.float32)
        suggested = np.empty(n, dtype=np.int32)
        agreeing = 0
        for where, block in self._inputs.blocks(self._settings.block):
            labels = given[where]
            agreeing += int((top(block) == labels).sum())
            posterior = _posterior(fit, block, labels)
            suggested[where] = top(posterior)
            there = labels >= 0
            own = posterior[np.where(there, labels, 0), np.arange(len(labels))]
            suspicion[where] = np.where(there, 1 - own, 0)
            progress("judging labels", where.stop, n)
        return suspicion, suggested, agreeing / max(1, int((given >= 0).sum()))

    def ranked(self, n: int | None = None) -> Ranked:
        """The labels that another class fits better, most suspicious first; at most n of them."""
        given = self._inputs.codes
        where = np.flatnonzero((self.suggested != given) & (given >= 0))
        score = self.suspicion[where]
        if n is not None and n < len(where):
            limit = np.partition(score, len(score) - n)[len(score) - n]
            keep = score >= limit  # ties are cut by position below, so that the answer does not depend on the partition
            where, score = where[keep], score[keep]
        order = np.argsort(-score, kind="stable")[:n]
        index = where[order]
        return Ranked(index.astype(np.int64), given[index], self.suggested[index], self.suspicion[index])

    def labels(self, estimator: str) -> NDArray[np.int32]:
        """N int32 labels after correction by one estimator.

        Raises:
            DataError: there is no such estimator.
        """
        if estimator == self.chosen:
            return self.suggested
        fit = self._fit(estimator)
        out = np.empty(len(self._inputs.codes), dtype=np.int32)
        for where, block in self._inputs.blocks(self._settings.block):
            out[where] = top(_posterior(fit, block, self._inputs.codes[where]))
        return out

    def corrected(self, estimator: str | None = None) -> NDArray[np.int32]:
        """Labels to train on, N int32; -1 stays where there is no label.

        Args:
            estimator: the one to correct with. None corrects with `chosen` where label noise was shown (`noisy`), and
                leaves every label as it was where it was not: a model's errors are no label noise. If you know that
                labels are wrong although the channel model does not fit, `corrected(audit.chosen)` is the safest.

        Raises:
            DataError: there is no such estimator.
        """
        given = self._inputs.codes
        if estimator is None and not self.noisy:
            return np.array(given)
        out = self.labels(self.chosen if estimator is None else estimator)
        corrected: NDArray[np.int32] = np.where(given >= 0, out, MISSING).astype(np.int32)
        return corrected

    def soft_targets(self, estimator: str | None = None, out: NDArray[np.float32] | None = None) -> NDArray[np.float32]:
        """P(true class | row, given label), N × K float32: better targets than corrected labels, as doubt stays in them.

        Args:
            estimator: as for `corrected`; None gives the given labels as one-hot rows where no label noise was shown.
            out: where to write them, e.g. a mapped file.

        Raises:
            DataError: there is no such estimator, or `out` has another shape.
        """
        given, shape = self._inputs.codes, self._inputs.probs.shape
        target = np.zeros(shape, dtype=np.float32) if out is None else out
        if target.shape != shape:
            raise DataError(f"out has shape {target.shape}; soft targets have {shape}")
        if estimator is None and not self.noisy:
            target[:] = 0
            there = np.flatnonzero(given >= 0)
            target[there, given[there]] = 1
            return target
        fit = self._fit(self.chosen if estimator is None else estimator)
        for where, block in self._inputs.blocks(self._settings.block):
            target[where] = _posterior(fit, block, given[where]).T
        return target

    def keep(self) -> NDArray[np.bool_]:
        """N booleans: the given label is likelier right than wrong and is the one that the chosen estimator suggests.

        Where no label noise was shown, every label is kept.
        """
        if not self.noisy:
            return self._inputs.codes >= 0
        agrees = self.suggested == self._inputs.codes
        kept: NDArray[np.bool_] = agrees & (self.suspicion < self._settings.keep_confident)
        return kept

    def write_cleaned(self, path: str | Path, source: str | Path | None = None) -> Path:
        """Write the verdict on every label, and the source's own columns beside it if it is a table.

        Adds the columns `given`, `suggested` (class names), `probability_wrong` and `keep`; of `.npy`, the structured array
        of these. The labels of the source are never overwritten.

        Args:
            path: `.csv`, `.parquet` or `.npy`.
            source: a CSV or parquet file with one row per label.

        Raises:
            DataError: the kind of file is unknown, or the source has another number of rows.
        """
        from osler.data.labels.cleaned import write

        return write(self, Path(path), Path(source) if source is not None else None)

    def report(self) -> Report:
        """The findings, the noise matrix, the estimators, the most suspicious positions and a histogram."""
        from osler.data.labels.report import report

        return report(self, self._settings)

    def _fit(self, estimator: str) -> Fit:
        if estimator not in self.estimates:
            raise DataError(f"no estimator {estimator!r}; there are {', '.join(self.estimates)}")
        return self.estimates[estimator]


def audit_labels(
    labels: Any,
    pred_probs: Any,
    *,
    classes: Sequence[object] | None = None,
    out_of_fold: bool | None = None,
    folds: Any = None,
    logits: bool = False,
    ignore_index: int | None = -100,
    settings: Settings | None = None,
    progress: Progress = quiet,
) -> LabelAudit:
    """Judge given labels by out-of-fold predictions.

    Args:
        labels: N given labels, an array or a file (`osler.data.labels.read`).
        pred_probs: N × K predicted probabilities, an array or a file. They must be out of fold: each row predicted by a
            model that was not trained on it (`cross_validated_probs`).
        classes: names of the K columns.
        out_of_fold: True if you know that they are; False is refused; None: judged by how much they look memorised.
        folds: N fold numbers, of the cross-validation that made the predictions; each fold is then checked by itself.
        logits: `pred_probs` are logits.
        ignore_index: label of rows that have none.
        settings: thresholds.
        progress: told how far it has come.

    Raises:
        DataError: input that cannot be used, predictions that are not out of fold, too few labels, scipy not installed.
    """
    tree = settings or Settings()
    own = tree.labels
    inputs = join(
        read_labels(labels),
        read_probs(pred_probs),
        classes,
        logits=logits,
        ignore_index=ignore_index,
        show_values=tree.data.show_values,
        progress=progress,
    )
    few = too_few(int((inputs.codes >= 0).sum()), inputs.classes, own)
    if few:
        raise DataError(few)
    rows = draw(inputs.codes, inputs.classes, own.sample)
    given = inputs.codes[rows]
    sample = Sample(inputs.columns(rows), given, positions(given, inputs.classes))
    note = fold_check.judge(inputs, sample, out_of_fold, None if folds is None else np.asarray(folds), own)
    audit = LabelAudit(inputs, own, choose(sample, own, progress), sample, progress)
    if note:
        audit.notes.append(note)
    return audit


def too_few(labelled: int, classes: int, settings: Labels) -> str:
    """Why there are too few labels to judge label noise; empty where there are enough."""
    needed = max(settings.smallest, _PER_CLASS * classes)
    if labelled >= needed:
        return ""
    return f"{labelled:,} labels of {classes} classes are too few to judge label noise; {needed:,} are needed"


def top(block: Floats) -> NDArray[np.int32]:
    """The likeliest class of each column of a K × B block, the first of equals; faster than argmax along axis 0."""
    best = block[0].copy()
    at = np.zeros(block.shape[1], dtype=np.int32)
    above = np.empty(block.shape[1], dtype=bool)
    for k in range(1, len(block)):
        np.greater(block[k], best, out=above)
        np.copyto(at, k, where=above)
        np.maximum(best, block[k], out=best)
    return at


def _posterior(fit: Fit, block: Floats, labels: NDArray[np.int32]) -> Floats:
    """The estimator's posterior; rows without a label keep what is known without one."""
    there = labels >= 0
    if there.all():
        return fit.posterior(block, labels)
    out: Floats = block.copy() if fit.channel is None else fit.channel.clean(block).copy()
    out[:, there] = fit.posterior(np.ascontiguousarray(block[:, there]), labels[there])
    return out
