"""Curves and the per-layer heat map, thinned as the training goes on and handed to the sink in batches."""

from __future__ import annotations

import math

from osler.core.sink import Sink
from osler.training.naming import Names
from osler.training.optimizers import OptimizerWatch, StepRecord


class SeriesWriter:
    """Thins what the optimizers' watches have kept.

    Every step up to 512 is kept, then of every 8, after 4,096 of every 64 the largest norm: the size stays in proportion
    to the logarithm of the run, and a spike is never lost. Of the curves every eighth point is kept from 512 on, and each
    that is not finite.
    """

    def __init__(self, sink: Sink, names: Names) -> None:
        self._sink = sink
        self._names = names
        self._rows: dict[int, list[str]] = {}
        self._bucket: dict[int, tuple[int, list[float]]] = {}

    def rename(self) -> None:
        """The names of parameters may have changed."""
        self._rows.clear()

    def take(self, watch: OptimizerWatch) -> None:
        """Hand on what a watch has kept since the last time."""
        kept, watch.kept = watch.kept, []
        peaks, watch.peaks = watch.peaks, []
        suffix = "" if watch.number == 0 else f" ({watch.label})"
        if peaks:
            rows = watch.names(self._names)
            good = [(step, values) for step, values in peaks if len(values) == len(rows)]
            self._sink.matrix("gradient_magnitude_peak" + suffix, rows, [s for s, _ in good], [v for _, v in good])
        if not kept:
            return
        steps: list[int] = []
        losses: tuple[list[int], list[float]] = ([], [])
        norms: list[float] = []
        rates: list[float] = []
        columns: tuple[list[int], list[list[float]]] = ([], [])
        for record, row in kept:
            self._curves(record, steps, losses, norms, rates)
            self._column(watch.number, record.step, row, columns)
        if losses[0]:
            self._sink.points("loss" + suffix, *losses)
        if steps:
            self._sink.points("gradient_norm" + suffix, steps, norms)
            self._sink.points("learning_rate" + suffix, steps, rates)
        if columns[0]:
            known = self._rows.get(watch.number)
            if known is None or len(known) != len(columns[1][0]):
                known = self._rows[watch.number] = watch.names(self._names)
            if all(len(column) == len(known) for column in columns[1]):
                self._sink.matrix("gradient_norm_by_parameter" + suffix, known, *columns)

    @staticmethod
    def _curves(
        record: StepRecord,
        steps: list[int],
        losses: tuple[list[int], list[float]],
        norms: list[float],
        rates: list[float],
    ) -> None:
        finite = math.isfinite(record.norm) and (record.loss is None or math.isfinite(record.loss))
        if finite and record.step >= 512 and record.step % 8:
            return
        if record.loss is not None:
            losses[0].append(record.step)
            losses[1].append(record.loss)
        steps.append(record.step)
        norms.append(record.norm)
        rates.append(record.lr)

    def _column(self, number: int, step: int, row: list[float], columns: tuple[list[int], list[list[float]]]) -> None:
        stride = 1 if step < 512 else 8 if step < 4096 else 64
        started, peak = self._bucket.pop(number, (step, row))
        if len(peak) != len(row):
            started, peak = step, row
        elif peak is not row:
            # NaN is kept: it compares false with everything
            peak = [b if a <= b else a for a, b in zip(peak, row)]
        if step - started >= stride - 1:
            columns[0].append(started)
            columns[1].append(peak)
        else:
            self._bucket[number] = (started, peak)

    def flush(self) -> None:
        """Write out what is buffered."""
        self._sink.flush()
