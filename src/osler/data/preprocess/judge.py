"""From the rows of fits and evaluations to findings."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from osler.core.finding import Confidence, Finding, Severity, Where
from osler.core.frames import Line
from osler.core.settings import Settings
from osler.core.sink import Sink
from osler.data.preprocess.book import Record
from osler.data.preprocess.kinds import Learned
from osler.data.preprocess.states import Chunk, Ids, State

LEAK = "preprocess-leak"
REUSED = "model-reused-across-folds"
_SEVERITY = {
    Learned.VOCABULARY: Severity.INFO,
    Learned.STATISTICS: Severity.WARNING,
    Learned.TARGET: Severity.ERROR,
}
_FOLDS = 512  # held-out parts that are remembered
_ALL = 0.99
_MOST = 0.5
_SAMPLE = 4096  # training rows that are looked up

Signature = tuple[int, int, int]


def signature(ids: Ids) -> Signature:
    """The same for the same rows in any order."""
    wide = ids.astype(np.uint64)
    return len(ids), int(wide.sum()), int((wide * wide).sum())


@dataclass(frozen=True, slots=True)
class Held:
    """A part that a splitter held out.

    Attributes:
        at: when, on the guard's clock of calls.
        number: 0-based fold of its splitter's round.
        line: the user's line.
    """

    at: int
    number: int
    line: Line | None


@dataclass(slots=True)
class Tally:
    """How much of what was evaluated one fit has seen."""

    rows: int = 0
    seen: int = 0


@dataclass(slots=True)
class Evaluation:
    """One call that judges an estimator, or a split that scikit-learn's cross-validation makes for it.

    Attributes:
        model: what is evaluated, for messages.
        record: the evaluated rows.
        held: those of them that the estimator was not fitted on.
        sources: fits that made the estimator's own training input.
        trained: rows that the estimator was fitted on, as chunks.
        line: the user's line.
        sure: it is an evaluation, and no mere use of the model.
        at: when, on the guard's clock of calls.
    """

    model: str
    record: Record
    held: Ids
    sources: frozenset[State]
    trained: list[Chunk]
    line: Line | None
    sure: bool
    at: int


@dataclass(slots=True)
class Judge:
    """Findings about fits that saw evaluation rows; each goes to the sink once, then is counted.

    Attributes:
        origins: for row numbers the arrays in which they were first seen.
        evaluations: how many were judged.
        unmatched: how many could not be, because nothing tells that the training rows are known.
    """

    sink: Sink
    settings: Settings
    origins: Callable[[Ids], Ids]
    evaluations: int = 0
    unmatched: int = 0
    _tallies: dict[int, Tally] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=dict)
    _held: dict[Signature, Held] = field(default_factory=dict)
    _order: deque[Signature] = field(default_factory=deque)
    _judged: set[int] = field(default_factory=set)
    _split: list[tuple[State, int, int, Line | None, bool]] = field(default_factory=list)

    # --- what was held out --------------------------------------------------------------------------------------------

    def hold(self, ids: Ids, held: Held) -> None:
        """Remember a part that a splitter held out."""
        key = signature(ids)
        if key not in self._held:
            self._order.append(key)
            if len(self._order) > _FOLDS:
                self._held.pop(self._order.popleft(), None)
        self._held[key] = held

    def split(self, test: Record, line: Line | None) -> None:
        """A user's split of rows that went through transformers: a leak if the part is ever used to evaluate."""
        for state in test.through:
            seen = int(state.saw(test.ids).sum())
            if not self._enough(seen, len(test.ids)) or _only_rows_of(state, test.ids):
                continue
            if state.learned >= Learned.STATISTICS and len(self._split) < _FOLDS:
                self._split.append((state, seen, len(test.ids), line, test.linked))

    # --- judging ------------------------------------------------------------------------------------------------------

    def fitted_on(self, model: State, record: Record) -> NDArray[np.bool_] | None:
        """For each known row of an evaluation whether the model was fitted on it; None where it is no evaluation."""
        known = record.ids[record.ids >= 0]
        if not len(known):
            return None
        seen = model.saw(known)
        return seen if seen.mean() <= self.settings.preprocess.train_share else None

    def evaluation(self, what: Evaluation) -> None:
        """Judge every fit that the evaluated rows went through."""
        self.evaluations += 1
        for state in what.record.through:
            self._judged.add(state.serial)
            if state.learned is Learned.NOTHING or (_only_rows_of(state, what.held) and not _refitted(state, what)):
                continue
            chunks = _before(state, what.held)
            seen = state.saw(what.held, chunks)
            if seen.any() and not self._matched(state, what):
                self.unmatched += 1
                continue
            tally = self._tallies.setdefault(state.serial, Tally())
            tally.rows += len(what.held)
            tally.seen += int(seen.sum())
            if self._enough(tally.seen, tally.rows):
                whole = tally.rows == len(what.held)
                found = self._leak(state, what, int(seen.sum()) if whole else tally.seen, tally.rows)
                self._emit(found)

    def reused(self, model: State, record: Record, line: Line | None) -> None:
        """Judge whether a model that goes on learning is evaluated on a fold that it has learned before."""
        ids = record.ids[record.ids >= 0]
        held = self._held.get(signature(ids)) if len(ids) and len(model.chunks) > 1 else None
        if held is None or held.number == 0:
            return
        before = [c for c in model.chunks if c.at < held.at]
        after = [c for c in model.chunks if c.at > held.at]
        if not before or not after or model.saw(ids, after).any():
            return
        seen = int(model.saw(ids, before).sum())
        if seen < _ALL * len(ids):
            return
        self._emit(
            Finding(
                REUSED,
                Severity.ERROR,
                Confidence.DEFINITE,
                f"{model.name} was not started afresh: {seen:,} of the {len(ids):,} rows of fold {held.number + 1}, on "
                f"which it is evaluated{_at(line)}, are rows that it learned in an earlier fold",
                _where(model.line),
                {
                    "rows_evaluated": len(ids),
                    "rows_already_learned": seen,
                    "fold": held.number,
                    "fits": len(model.chunks),
                    **_evaluated(line, model.line),
                },
                f"make a new {model.name.partition(' ')[0]} in every fold, or `sklearn.base.clone` one that was never "
                "fitted; `partial_fit` and `warm_start` keep what earlier folds taught",
            )
        )

    def rest(self) -> None:
        """What is only worth knowing: transformed rows that were split and never seen to be evaluated."""
        for state, seen, rows, line, linked in self._split:
            if state.serial in self._judged:
                continue
            finding = self._split_only(state, seen, rows, line, linked)
            if finding.key not in self._counts:
                self._emit(finding)

    # --- inside -------------------------------------------------------------------------------------------------------

    def _matched(self, state: State, what: Evaluation) -> bool:
        """Whether the training rows are known well enough to say that the evaluated ones are not among them.

        A model that was trained on a copy in another precision, or on a selection that cannot be recognised, seems to
        know none of the rows there are.
        """
        trained = np.concatenate([c.ids for c in what.trained]) if what.trained else np.zeros(0, np.int64)
        trained = trained[:: max(1, len(trained) // _SAMPLE)]
        if not len(trained):
            return False
        states = [state, *(s for s in what.sources if s.owner == state.owner)]
        if any(s.saw(trained).mean() >= _MOST for s in states):
            return True
        train, held = self.origins(trained), self.origins(what.held)
        return bool(np.isin(train, held).mean() >= _MOST and np.isin(held, train).mean() >= _MOST)

    def _enough(self, seen: int, rows: int) -> bool:
        limits = self.settings.preprocess
        return seen >= limits.leak_rows and seen >= limits.leak_share * rows

    def _emit(self, finding: Finding) -> None:
        key = finding.key
        self._counts[key] = self._counts.get(key, 0) + 1
        if self._counts[key] == 1:
            self.sink.finding(finding)
        else:
            self.sink.again(key, self._counts[key], None)

    def _leak(self, state: State, what: Evaluation, seen: int, rows: int) -> Finding:
        how, fix = _story(state, what)
        severity = _SEVERITY[state.learned]
        certain = what.sure and not what.record.linked and not state.linked
        return Finding(
            LEAK,
            severity,
            Confidence.DEFINITE if certain else Confidence.PROBABLE,
            f"{state.name} {how}: {seen:,} of the {rows:,} rows on which {what.model} is evaluated{_at(what.line)} are "
            f"among the {state.rows:,} rows that it was fitted on",
            _where(state.line),
            {
                "rows_fitted": state.rows,
                "rows_evaluated": rows,
                "rows_shared": seen,
                "learned": state.learned.name.lower(),
                "rows_by": "value" if what.record.linked or state.linked else "position",
                **_evaluated(what.line, state.line),
            },
            fix,
        )

    def _split_only(self, state: State, seen: int, rows: int, line: Line | None, linked: bool) -> Finding:
        return Finding(
            LEAK,
            Severity.INFO,
            Confidence.PROBABLE,
            f"{state.name} was fitted on {state.rows:,} rows before they were split{_at(line)}: {seen:,} of the {rows:,} "
            "rows held out are among them; no evaluation on these was seen",
            _where(state.line),
            {
                "rows_fitted": state.rows,
                "rows_held_out": rows,
                "rows_shared": seen,
                "learned": state.learned.name.lower(),
                "rows_by": "value" if linked or state.linked else "position",
                **({"split_line": line.line} if line is not None else {}),
            },
            "split first; fit it on the training rows and only `transform` the rest",
        )


def _before(state: State, held: Ids) -> list[Chunk]:
    """The calls that count: a batch of a stream may be taken in just before it is predicted."""
    chunks = state.chunks
    if len(chunks) > 1 and state.saw(held, chunks[-1:]).mean() >= _ALL:
        return chunks[:-1]
    return chunks


def _only_rows_of(state: State, held: Ids) -> bool:
    """Whether it was fitted on evaluation rows alone."""
    if len(state.chunks) != 1:
        return False
    ids = state.chunks[0].ids
    ids = ids[ids >= 0]
    if not len(ids) or len(ids) > 1.01 * len(held):
        return False
    return bool(np.isin(ids, held).mean() >= _ALL)


def _refitted(state: State, what: Evaluation) -> bool:
    """Whether the training input came from one other fit of the same object.

    A table may be standardised group by group, each group by itself: then there are several, or another object.
    """
    return sum(s.owner == state.owner for s in what.sources) == 1 and state not in what.sources


def _story(state: State, what: Evaluation) -> tuple[str, str]:
    """How it came about, and what to do."""
    name = state.name.partition(" ")[0]
    if _only_rows_of(state, what.held):
        return (
            "was fitted anew on the evaluation rows",
            f"call `transform`, not `fit_transform`, on them: the model was trained on what the first fit of {name} made",
        )
    trained = [c.ids for c in what.trained]
    shares = [float(state.saw(ids[ids >= 0]).mean()) for ids in trained if (ids >= 0).any()]
    if len(state.chunks) > 1:
        last = state.chunks[-1:]
        if trained and not state.saw(what.held, last).any():
            before = len(state.chunks) - 1
            return (
                f"kept what {'an earlier fit' if before == 1 else f'{before} earlier fits'} left in it",
                f"make a new {name} in every fold, or `clone` one that was never fitted: `partial_fit` and `warm_start` "
                "go on from the folds before",
            )
    if shares and min(shares) >= _ALL:
        return (
            "was fitted before the rows were split",
            f"split first, then fit {name} on the training rows only; in `make_pipeline({name}(…), model)` "
            "`cross_val_score` and `GridSearchCV` do so in every fold",
        )
    return (
        "was fitted on evaluation rows",
        f"fit {name} on the rows that the model is trained on, in every fold anew; a Pipeline does both",
    )


def _where(line: Line | None) -> Where:
    return Where() if line is None else Where(file=line.file, line=line.line, function=line.function)


def _at(line: Line | None) -> str:
    return "" if line is None else f" (line {line.line})"


def _evaluated(line: Line | None, fitted: Line | None) -> dict[str, object]:
    if line is None:
        return {}
    elsewhere = {} if fitted is not None and fitted.file == line.file else {"evaluated_file": line.file}
    return {"evaluated_line": line.line, **elsewhere}
