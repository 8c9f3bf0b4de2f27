"""Curves and the per-layer heat map, thinned as the training goes on and handed to the sink in batches."""

from __future__ import annotations

from osler.core.sink import Sink
from osler.training.naming import Names
from osler.training.optimizers import OptimizerWatch


class SeriesWriter:
    """Buffers points between flushes.

    The heat map keeps every step up to 512, then the largest norm of every 8, after 4,096 of every 64: its size stays in
    proportion to the logarithm of the run, and a spike is never lost.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._points: dict[str, tuple[list[int], list[float]]] = {}
        self._columns: dict[int, tuple[list[int], list[list[float]]]] = {}
        self._bucket: dict[int, tuple[int, list[float]]] = {}
        self._rows: dict[int, list[str]] = {}

    def rename(self, number: int) -> None:
        """The names of an optimizer's parameters may have changed."""
        self._flush_columns(number)
        self._rows.pop(number, None)

    def step(
        self, watch: OptimizerWatch, norm: float, lr: float, loss: float | None, row: list[float], names: Names
    ) -> None:
        """One step of an optimizer."""
        suffix = "" if watch.number == 0 else f" ({watch.label})"
        step = watch.steps
        stride = 1 if step < 512 else 8 if step < 4096 else 64
        if stride == 1 or step % min(stride, 8) == 0 or norm - norm != 0:
            if loss is not None:
                self._point("loss" + suffix, step, loss)
            self._point("gradient_norm" + suffix, step, norm)
            self._point("learning_rate" + suffix, step, lr)
        number = watch.number
        if number not in self._rows or len(self._rows[number]) != len(row):
            self._flush_columns(number)
            self._rows[number] = watch.names(names)
            self._bucket.pop(number, None)
        if stride == 1:
            self._column(number, step, row)
            return
        started, peak = self._bucket.get(number, (step, row))
        if peak is not row:
            peak = [a if a > b or a != a else b for a, b in zip(peak, row)]
        if step - started >= stride - 1:
            self._column(number, started, peak)
            self._bucket.pop(number, None)
        else:
            self._bucket[number] = (started, peak)

    def _point(self, name: str, step: int, value: float) -> None:
        steps, values = self._points.setdefault(name, ([], []))
        steps.append(step)
        values.append(value)

    def _column(self, number: int, step: int, row: list[float]) -> None:
        steps, columns = self._columns.setdefault(number, ([], []))
        steps.append(step)
        columns.append(row)

    def flush(self) -> None:
        """Hand everything to the sink."""
        for name, (steps, values) in self._points.items():
            if steps:
                self._sink.points(name, steps, values)
        self._points = {}
        for number in list(self._columns):
            self._flush_columns(number)

    def _flush_columns(self, number: int) -> None:
        steps, columns = self._columns.pop(number, ([], []))
        if steps:
            name = "gradient_norm_by_parameter" + ("" if number == 0 else f" (optimizer {number})")
            self._sink.matrix(name, self._rows[number], steps, columns)
