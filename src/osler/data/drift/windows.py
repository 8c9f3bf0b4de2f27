"""When a drift began: current data cut into windows of time or of rows, each compared with the reference."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from osler.core.settings import Settings
from osler.data.drift.edges import STORED
from osler.data.drift.judge import DRIFT, NOT_JUDGED, ColumnVerdict, compare
from osler.data.drift.profile import ColumnState, Profile
from osler.data.need import DataError
from osler.data.tables import NAT, Kind, Source, times

NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Onset:
    """When a column left the reference.

    Attributes:
        curve: KS distance (Jensen–Shannon for categories) per window; NaN where a window could not be judged.
        out: whether the column was out, per window that could be judged.
        begin: position in `judged` of the first window from which it stays out to the last; None where it does not.
        judged: numbers of the windows that could be judged, ascending.
    """

    curve: list[float]
    out: list[bool]
    begin: int | None
    judged: list[int]

    @property
    def run(self) -> int:
        """Judged windows in a row, up to the last, in which it is out."""
        return len(self.judged) - self.begin if self.begin is not None else 0


class Recent(NamedTuple):
    """A column that is out in each of the last windows: the verdict on the last, and the states it is on."""

    verdict: ColumnVerdict
    before: ColumnState
    now: ColumnState


class Windows:
    """Profiles of the current data per window.

    Args:
        reference: the profile to compare with; windows are counted over at most 256 of its edges.
        source: the current data.
        time: column of time (or of ascending numbers); None cuts by rows in the order of the data.
        window: length: `1h`, `7d`, a timedelta; a number in the time column's own unit where that is a number; whole rows
            where there is no time.
        most: windows allowed.

    Raises:
        DataError: the arguments do not fit together.
    """

    def __init__(self, reference: Profile, source: Source, time: str | None, window: object, most: int) -> None:
        self.reference = coarser(reference)
        self.time = time
        self.most = most
        self.untimed = 0
        self._source = source.name
        self._rows = 0
        self._panes: dict[int, Profile] = {}
        self._kind = source.column(time).kind if time is not None else None
        self.length = _length(window, time, self._kind)

    def update(self, batch: pa.RecordBatch, template: Profile) -> None:
        """Count a batch in; `template` says which columns are counted."""
        numbers, valid = self._numbers(batch)
        if not valid.all():
            self.untimed += int(valid.size - valid.sum())
            kept = np.flatnonzero(valid)
            batch, numbers = batch.take(pa.array(kept)), numbers[kept]
        if not numbers.size:
            return
        if (numbers[1:] < numbers[:-1]).any():
            order = np.argsort(numbers, kind="stable")
            batch, numbers = batch.take(pa.array(order)), numbers[order]
        starts = np.flatnonzero(np.concatenate(([True], numbers[1:] != numbers[:-1])))
        for start, end in zip(starts.tolist(), [*starts[1:].tolist(), numbers.size]):
            self._pane(int(numbers[start]), template).update(batch.slice(start, end - start))

    def _numbers(self, batch: pa.RecordBatch) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        if self.time is None:
            rows = np.arange(self._rows, self._rows + batch.num_rows)
            self._rows += batch.num_rows
            return (rows // int(self.length)).astype(np.int64), np.ones(rows.size, np.bool_)
        column = batch.column(self.time)
        if self._kind is Kind.TIME:
            stamps = times(column)
            return stamps // int(self.length), stamps != NAT
        from osler.data.tables import floats

        values = floats(column)
        valid = np.isfinite(values)
        return np.floor(np.where(valid, values, 0.0) / self.length).astype(np.int64), valid

    def _pane(self, number: int, template: Profile) -> Profile:
        pane = self._panes.get(number)
        if pane is None:
            if len(self._panes) >= self.most:
                raise DataError(
                    f"{self._source}: windows of this length are more than {self.most}; choose longer ones "
                    "(or raise drift.max_windows)"
                )
            states = [self.reference.columns[name].empty(s.kind) for name, s in template.columns.items()]
            pane = self._panes[number] = Profile(self._source, states)
        return pane

    @property
    def count(self) -> int:
        """Windows from the first to the last that holds rows, empty ones between them included."""
        return max(self._panes) - min(self._panes) + 1 if self._panes else 0

    def begin_of(self, position: int) -> str:
        """When the window at this position begins: a UTC time, a number, or a row."""
        number = min(self._panes) + position
        if self.time is None:
            return f"row {number * int(self.length)}"
        if self._kind is Kind.TIME:
            seconds = number * int(self.length) // NS
            moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds)
            return moment.isoformat(timespec="seconds") + "Z"
        return f"{number * self.length:g}"

    def judge(self, names: Sequence[str], settings: Settings, numeric: Sequence[str]) -> dict[str, Onset]:
        """Column → onset, for these columns, at the level divided by the windows: a chance alarm would move it forward."""
        tree = _for_windows(settings)
        tree = replace(tree, drift=replace(tree.drift, level=tree.drift.level / max(1, len(self._panes))))
        before = self.reference.only(names)
        curves: dict[str, list[float]] = {name: [float("nan")] * self.count for name in names}
        judged: dict[str, list[int]] = {name: [] for name in names}
        out: dict[str, list[bool]] = {name: [] for name in names}
        first = min(self._panes, default=0)
        for number in sorted(self._panes):
            for verdict in compare(before, self._panes[number].only(names), tree, numeric=numeric):
                position = number - first
                if verdict.verdict == NOT_JUDGED and not verdict.reasons:
                    continue
                curves[verdict.name][position] = height(verdict)
                judged[verdict.name].append(position)
                out[verdict.name].append(verdict.verdict == DRIFT)
        return {
            name: Onset(curves[name], out[name], _begin(out[name], settings.drift.stays_out), judged[name])
            for name in names
        }

    def recent(self, settings: Settings, numeric: Sequence[str]) -> dict[str, Recent]:
        """Columns that are out in each of the last `drift.stays_out` full windows, however the whole data look.

        The probability that identical data are out in all of them is at most that of being out in one, so the
        family-wise level holds for this as it does for one comparison.
        """
        tree = _for_windows(settings)
        full = [n for n in sorted(self._panes) if self._panes[n].rows >= tree.drift.min_values]
        last = full[-settings.drift.stays_out :]
        if len(last) < settings.drift.stays_out:
            return {}
        out: dict[str, Recent] = {}
        names = list(self._panes[last[0]].columns)
        for number in last:
            pane = self._panes[number].only(names)
            verdicts = compare(self.reference.only(names), pane, tree, numeric=numeric)
            out = {
                v.name: Recent(v, self.reference.columns[v.name], pane.columns[v.name])
                for v in verdicts
                if v.verdict == DRIFT
            }
            names = list(out)
        return out


def _for_windows(settings: Settings) -> Settings:
    least = max(settings.drift.min_values, settings.drift.window_rows)
    return replace(settings, drift=replace(settings.drift, min_values=least))


def height(verdict: ColumnVerdict) -> float:
    """The one number a curve shows: KS of numbers, Jensen–Shannon of categories, else the change of the missing share."""
    if verdict.ks is not None:
        return verdict.ks.low
    return verdict.js if verdict.js is not None else abs(verdict.missing[1] - verdict.missing[0])


def coarser(profile: Profile, edges: int = STORED) -> Profile:
    """The profile over at most about that many edges a column."""
    result = Profile(profile.name, rows=profile.rows)
    for name, state in profile.columns.items():
        held = state.grid.coarser(state.grid.edge_set.thinned(edges)) if state.grid is not None else state.state
        result.columns[name] = ColumnState(name, state.kind, state.form, held, state.asked, state.rows, state.missing)
    return result


def _begin(out: Sequence[bool], least: int) -> int | None:
    run = next((i for i, flag in enumerate(reversed(out)) if not flag), len(out))
    return len(out) - run if run >= least else None


def _length(window: object, time: str | None, kind: Kind | None) -> float:
    if time is None:
        rows = int(window) if isinstance(window, str) and window.isdigit() else window
        if not isinstance(rows, int) or isinstance(rows, bool) or rows < 1:
            raise DataError(f"window {window!r} without a time column must be a whole number of rows, at least 1")
        return rows
    if kind is Kind.TIME:
        from osler.data.sources.durations import parse_duration

        length: float = parse_duration(window, "window")
    elif kind in (Kind.INTEGER, Kind.NUMBER):
        try:
            length = float(window)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise DataError(f"window {window!r} must be a number, as the time column {time!r} holds numbers") from None
    else:
        raise DataError(
            f"column {time!r} is {kind.value if kind else 'nothing'}, not times: give --time a column of times"
        )
    if not length > 0 or length == float("inf"):
        raise DataError(f"window {window!r} must be longer than 0")
    return length


def cut(reference: Profile, source: Source, time: str | None, window: object, settings: Settings) -> Windows | None:
    """The windows that were asked for; None where none were.

    Raises:
        DataError: a time column without a window.
    """
    if window is None:
        if time is not None:
            source.column(time)
            raise DataError("a time column alone does not say how long a window is: give window too, e.g. 1d")
        return None
    return Windows(reference, source, time, window, settings.drift.max_windows)


def names_of(windows: Windows | None, profile: Profile) -> Iterator[str]:
    """Columns to read for a profile and its windows."""
    yield from profile.columns
    if windows is not None and windows.time is not None and windows.time not in profile.columns:
        yield windows.time
