"""Watches the fits and evaluations of a process; results, exceptions and objects stay as they are."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from osler.core.frames import Line, user_line
from osler.core.settings import Settings
from osler.core.sink import Sink
from osler.data.preprocess import patches
from osler.data.preprocess.book import Book, Record
from osler.data.preprocess.callers import Parts, asked_by_validation, workers_started
from osler.data.preprocess.estimators import Estimators
from osler.data.preprocess.judge import LEAK, REUSED, Evaluation, Held, Judge
from osler.data.preprocess.kinds import Learned, carries_on, family, is_composition, is_frozen, is_model, learned, title
from osler.data.preprocess.patches import FITS, JUDGES, Patches
from osler.data.preprocess.states import Chunk, State

_MIB = 1 << 20


@dataclass(slots=True)
class _Call:
    """A method under way."""

    estimator: Any
    name: str
    record: Record | None
    line: Line | None
    target: bool
    opaque: bool
    parts: list[tuple[str, Learned]] = field(default_factory=list)


class _Local(threading.local):
    def __init__(self) -> None:
        self.stack: list[_Call] = []
        self.splitting = False
        self.parts = Parts()


class Watcher:
    """A guard (`osler.core.guard.Guard`) over scikit-learn.

    Args:
        watch: further classes with `fit` and `transform` that do not inherit from scikit-learn's BaseEstimator.
        wrappers: those that are in place already; by default its own.
    """

    def __init__(self, watch: Sequence[type] = (), wrappers: Patches | None = None) -> None:
        self._classes = tuple(watch)
        self._patches = Patches() if wrappers is None else wrappers
        self._local = _Local()
        self._lock = threading.RLock()
        self._estimators = Estimators()
        self._clock = 0
        self._fits = 0  # of transformers that learn something
        self._unseen = 0  # fits whose rows could not be told
        self._closed = True

    # --- the protocol -------------------------------------------------------------------------------------------------

    def attach(self, sink: Sink, settings: Settings, options: Mapping[str, object]) -> None:
        """Patch what has been imported of scikit-learn, and what will be.

        Raises:
            RuntimeError: another guard is at work in this process.
        """
        if patches.current is not None:
            raise RuntimeError("a guard is already at work in this process")
        self._limits = limits = settings.preprocess
        self._began = perf_counter()
        self._spent = 0.0
        self._sink = sink
        self._book = Book(limits.link_rows, int(limits.memory_mb * _MIB))
        self._judge = Judge(sink, settings, self._book.origins)
        from sklearn.base import BaseEstimator

        self._closed = False
        try:
            if not self._patches.installed:
                self._patches.install(BaseEstimator)
            for kind in self._classes:
                self._patches.add(kind)
        except BaseException:
            self._patches.remove()
            raise
        patches.current = self

    def close(self) -> None:
        """Judge what is left, say what could not be judged, take the patches off. A second call does nothing."""
        if self._closed:
            return
        self._detach()
        try:
            self._sink.environment({"preprocess": {"fits": self._fits, "evaluations": self._judge.evaluations}})
            self._judge.rest()
            for rule, why in self._silent():
                self._sink.not_checked(rule, why)
        except Exception as error:
            self._say(error)
        self._book.forget()

    def _detach(self) -> None:
        self._closed = True
        if patches.current is self:
            patches.current = None
        self._patches.remove()

    def _silent(self) -> Iterator[tuple[str, str]]:
        """What could not be judged, and why."""
        if self._book.narrow:
            for rule in (LEAK, REUSED):
                yield (
                    rule,
                    f"rows that were selected by hand were not recognised any more once watching had taken "
                    f"{self._spent:.1f} s, more than the {self._limits.guard_share:.0%} of preprocess.guard_share",
                )
        if self._fits and not self._judge.evaluations:
            yield (
                LEAK,
                f"{self._fits} fits of transformers were seen, and no classifier or regressor of scikit-learn was "
                "evaluated on rows that it was not fitted on",
            )
        if self._unseen:
            yield (
                LEAK,
                f"the rows of {self._unseen} fits could not be told: their input is of a kind that is not looked into",
            )
        if self._judge.unmatched:
            yield (
                LEAK,
                f"the training rows of {self._judge.unmatched} evaluations could not be told from the evaluated ones",
            )
        if workers_started():
            yield LEAK, "what ran in joblib's worker processes was not seen from here; n_jobs=1 shows it"

    def _spend(self, seconds: float) -> None:
        """Keep to the share of the time that the settings allow."""
        self._spent += seconds
        limits = self._limits
        if self._spent > max(limits.guard_s, limits.guard_share * (perf_counter() - self._began)):
            self._book.narrow = True

    def _aside(self, error: Exception) -> None:
        """A fault of ours: the patches come off, the script goes on."""
        self._detach()
        self._say(error)

    def _say(self, error: Exception) -> None:
        line = f"the preprocessing guard stepped aside ({type(error).__name__}: {str(error)[:200]})"
        try:
            self._sink.not_checked(LEAK, line)
            self._sink.note(f"osler: {line}; the script goes on unwatched by it")
        except Exception:
            pass

    # --- hooks --------------------------------------------------------------------------------------------------------

    def method(
        self, original: Callable[..., Any], name: str, owner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """A method of an estimator: what it gives and raises is passed on untouched."""
        call: _Call | None = None
        stack = self._local.stack
        if not stack or not (stack[-1].opaque or stack[-1].estimator is owner):
            began = perf_counter()
            try:
                call = self._before(name, owner, args, kwargs)
            except Exception as error:
                self._aside(error)
            self._spent += perf_counter() - began
        if call is None:
            return original(owner, *args, **kwargs)
        stack.append(call)
        try:
            out = original(owner, *args, **kwargs)
        except BaseException:
            if name in FITS:  # whatever it holds now, it is not what was known
                self._estimators.forget(owner)
            raise
        finally:
            stack.pop()
        began = perf_counter()
        try:
            self._after(call, out)
        except Exception as error:
            self._aside(error)
        self._spend(perf_counter() - began)
        return out

    def selected(self, out: Any, data: Any, rows: Any) -> None:
        """scikit-learn selected rows of an array for a fold or a split."""
        try:
            stack = self._local.stack
            if rows is None or self._closed or (stack and stack[-1].opaque):
                return
            if getattr(data, "ndim", 2) == 1 and getattr(getattr(data, "dtype", None), "kind", "O") != "O":
                return  # a target
            with self._lock:
                record = self._book.look(data) if not stack else self._book.peek(data)
                if record is None:
                    return
                part = self._book.selected(out, record, rows, inner=bool(stack))
                if part is not None and not stack and self._local.parts.is_second(data):
                    line = user_line()
                    self._judge.hold(part.ids, Held(self._tick(), 0, line))
                    self._judge.split(part, line)
        except Exception as error:
            self._aside(error)

    def splits(
        self, pairs: Iterator[tuple[Any, Any]], splitter: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Iterator[tuple[Any, Any]]:
        """The folds of a splitter, each noted as it is given out."""
        data = args[0] if args else kwargs.get("X")
        local = self._local
        inner = local.splitting  # a splitter that asks the one that it inherits from
        record: Record | None = None
        number = 0
        iterator = iter(pairs)
        try:
            while True:
                local.splitting = True
                try:
                    pair = next(iterator)
                except StopIteration:
                    return
                finally:
                    local.splitting = inner
                if not inner and not self._closed:
                    try:
                        if number == 0:
                            record = self._split_record(data)
                        if record is not None:
                            self._fold(record, pair, number)
                    except Exception as error:
                        self._aside(error)
                number += 1
                yield pair
        finally:
            close = getattr(iterator, "close", None)
            if close is not None:
                close()

    def new_class(self, kind: type) -> None:
        """A class of estimators has been defined."""
        try:
            with self._lock:
                self._patches.add(kind)
                self._patches.modules()
        except Exception as error:
            self._aside(error)

    # --- a call -------------------------------------------------------------------------------------------------------

    def _before(self, name: str, estimator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Call | None:
        if is_frozen(estimator) and name in FITS:
            return None
        if name in FITS or name in JUDGES:
            self._patches.modules()
        stack = self._local.stack
        top = stack[-1] if stack else None
        data = args[0] if args else next((kwargs[k] for k in ("X", "raw_documents") if k in kwargs), None)
        target = (args[1] if len(args) > 1 else kwargs.get("y")) is not None
        with self._lock:
            if data is None:
                record = None
            elif top is None:
                record = self._book.look(data)
            else:
                record = self._book.peek(data)
                if record is None and top.record is not None and _length(data) == top.record.n:
                    record = top.record
        return _Call(estimator, name, record, user_line(2), target, not is_composition(estimator))

    def _after(self, call: _Call, out: Any) -> None:
        with self._lock:
            if self._closed:
                return
            if call.name in FITS:
                self._fitted(call, out)
            elif call.name == "transform":
                known = self._estimators.get(call.estimator)
                self._transformed(call, out, known.state if known is not None else None)
            else:
                self._judged(call)

    def _fitted(self, call: _Call, out: Any) -> None:
        known = self._estimators.make(call.estimator)
        if known is None:
            return
        stack = self._local.stack
        record = call.record
        what = self._learned(call)
        name = title(call.estimator, [p for p, _ in call.parts])
        if record is None:
            known.state = None
            self._unseen += what > Learned.NOTHING and hasattr(type(call.estimator), "transform")
            return
        state = known.state
        goes_on = call.name == "partial_fit" or carries_on(call.estimator)
        if state is None or not goes_on:
            state = known.state = State(self._tick(), name, known.owner, what, call.line)
        state.line, state.learned = call.line, max(what, state.learned)
        state.linked |= record.linked
        state.sources |= record.through
        state.add(Chunk(record.ids, self._tick()), record.n)
        if what > Learned.NOTHING and hasattr(type(call.estimator), "transform"):
            self._fits += not stack
            if stack and "BaseSearchCV" not in family(type(stack[-1].estimator)):
                stack[-1].parts.append((type(call.estimator).__name__, what))
        if call.name == "fit_transform":
            self._transformed(call, out, state)

    def _learned(self, call: _Call) -> Learned:
        if not call.opaque:
            return max((w for _, w in call.parts), default=Learned.NOTHING)
        return learned(call.estimator, call.target)

    def _transformed(self, call: _Call, out: Any, state: State | None) -> None:
        if call.record is None:
            return
        through = call.record.through
        if state is not None and state.learned > Learned.NOTHING:
            through |= {state}
        self._book.made(out, call.record, through, inner=bool(self._local.stack))

    def _judged(self, call: _Call) -> None:
        known = self._estimators.get(call.estimator)
        if known is None or known.state is None or call.record is None or not is_model(call.estimator):
            return
        model, record = known.state, call.record
        seen = self._judge.fitted_on(model, record)
        if seen is None:
            self._judge.reused(model, record, call.line)
            return
        held = record.ids[record.ids >= 0][~seen]
        self._judge.evaluation(
            Evaluation(
                type(call.estimator).__name__,
                record,
                held,
                model.sources,
                model.chunks,
                call.line,
                call.name == "score",
                self._tick(),
            )
        )

    # --- splits -------------------------------------------------------------------------------------------------------

    def _split_record(self, data: Any) -> Record | None:
        stack = self._local.stack
        with self._lock:
            self._patches.modules()
            if stack:
                return None if stack[-1].opaque else self._book.peek(data)
            return self._book.look(data)

    def _fold(self, record: Record, pair: tuple[Any, Any], number: int) -> None:
        line = user_line(2)
        with self._lock:
            train, test = (np.asarray(rows) for rows in pair)
            ids = record.ids[test]
            self._judge.hold(ids, Held(self._tick(), number, line))
            if not record.through:
                return
            part = Record(len(ids), ids, record.through, record.linked)
            if not asked_by_validation():
                self._judge.split(part, line)
                return
            trained = [Chunk(record.ids[train], self._clock)]
            held = ids[ids >= 0]
            if len(held):
                self._judge.evaluation(
                    Evaluation("the model", part, held, record.through, trained, line, True, self._clock)
                )

    # --- small things ------------------------------------------------------------------------------------------------

    def _tick(self) -> int:
        self._clock += 1
        return self._clock


def _length(data: Any) -> int:
    shape = getattr(data, "shape", None)
    if shape:
        return int(shape[0])
    return len(data) if isinstance(data, (list, tuple)) else -1
