"""A cross-validation splitter for rows in time that keeps what must be apart apart."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from osler.data.need import DataError
from osler.data.splits.instants import is_number, nanoseconds

Rows = npt.NDArray[np.int64]

_WINDOWS = ("expanding", "rolling")


class TimeSplit:
    """Rolling or expanding windows over time, each evaluated on what comes next.

    Every training row of a fold lies before its evaluation by more than `embargo`; rows at the same time are never on
    both sides; a label that is formed until `label_end` is known before evaluation starts; and where `groups` are given,
    no group is on both sides. What cannot be kept is refused with one line. Works wherever scikit-learn takes a
    splitter: `cross_val_score(model, X, y, cv=TimeSplit(time="day"))`, `GridSearchCV`, `clone`.

    Args:
        n_splits: number of folds.
        time: when each row happened: the name of a column of X, the position of a column where X is an array, an array
            (one for each row: datetime64, numbers, or datetimes), or None where the rows are in order of time already
            and one row is one unit of time.
        test_size: evaluation rows of a fold (rounded so that rows of one time stay together), or its length as a
            duration (`7d`, a timedelta); None: rows / (n_splits + 1), as in scikit-learn's TimeSeriesSplit.
        max_train_size: most training rows of a fold, or their length as a duration; the latest are kept.
        embargo: least distance between training and evaluation, both ends excluded: a duration for times, a number for
            times that are numbers, a number of rows where `time` is None.
        window: `expanding` starts every training window at the first row; `rolling` moves it on, with the length
            `max_train_size` or, where that is None, as many rows as the first fold has.
        label_end: when each row's label was known (as `time`: a name, a position or an array); rows whose label was not
            known before evaluation starts are purged from training (López de Prado 2018, chapter 7).
        isolate_groups: with `groups`, drop training rows whose group is in the fold's evaluation; False lets groups recur,
            as in forecasting the same series.

    Example:
        >>> for train, test in TimeSplit(3, time=days, embargo="2d").split(X):
        ...     model.fit(X[train], y[train])
    """

    def __init__(
        self,
        n_splits: int = 5,
        *,
        time: Any = None,
        test_size: Any = None,
        max_train_size: Any = None,
        embargo: Any = None,
        window: str = "expanding",
        label_end: Any = None,
        isolate_groups: bool = True,
    ) -> None:
        self.n_splits = n_splits
        self.time = time
        self.test_size = test_size
        self.max_train_size = max_train_size
        self.embargo = embargo
        self.window = window
        self.label_end = label_end
        self.isolate_groups = isolate_groups

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments, as scikit-learn's `clone` asks for them."""
        names = ("n_splits", "time", "test_size", "max_train_size", "embargo", "window", "label_end", "isolate_groups")
        return {name: getattr(self, name) for name in names}

    def set_params(self, **params: Any) -> TimeSplit:
        """Change arguments.

        Raises:
            ValueError: there is no such argument.
        """
        known = self.get_params()
        for name, value in params.items():
            if name not in known:
                raise ValueError(f"TimeSplit has no argument {name!r}; it has {', '.join(known)}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        """`TimeSplit(n_splits=5, embargo='2d')`: what differs from the defaults."""
        defaults = TimeSplit().get_params()
        shown = []
        for name, value in self.get_params().items():
            if isinstance(value, np.ndarray):
                shown.append(f"{name}=array of {value.size}")
            elif name == "n_splits" or (value is not defaults[name] and value != defaults[name]):
                shown.append(
                    f"{name}={value!r}" if not hasattr(value, "__len__") or isinstance(value, str) else f"{name}=…"
                )
        return f"TimeSplit({', '.join(shown)})"

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Number of folds; the arguments are there for scikit-learn and not looked at."""
        return self.n_splits

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Rows, Rows]]:
        """Training and evaluation rows of each fold, as positions in order of time.

        Args:
            X: the data, n rows (anything with a length; a frame where `time` is a name).
            y: not looked at.
            groups: the entity of each row, n values, or None.

        Raises:
            DataError: an argument makes no sense, a time is missing, or a fold would leak or be left without rows. It is a
                ValueError.
        """
        n = _rows(X)
        self._check(n)
        stamps = _times(self.time, X, n, "time")
        ends = None if self.label_end is None else _times(self.label_end, X, n, "label_end")
        if ends is not None:
            if self.time is None:
                raise DataError("TimeSplit: label_end needs time")
            if ends.dtype.kind != stamps.dtype.kind:
                raise DataError("TimeSplit: label_end and time must both be times or both be numbers")
            early = int((ends < stamps).sum())
            if early:
                raise DataError(f"TimeSplit: label_end lies before time in {early} rows")
        members = None if groups is None else _members(groups, n)
        embargo = _length(self.embargo, stamps, "embargo")
        order = np.argsort(stamps, kind="stable")
        yield from self._folds(stamps, ends, members, order, embargo)

    def _folds(self, stamps: Any, ends: Any, members: Any, order: Rows, embargo: Any) -> Iterator[tuple[Rows, Rows]]:
        ordered = stamps[order]
        most = self._most_rows(ordered)
        previous: int | None = None
        for fold, (low, high) in enumerate(self._windows(ordered), 1):
            start = ordered[low]
            test = order[low:high]
            # everything strictly before evaluation; equal times stay out
            train = order[: np.searchsorted(ordered, start, "left")]
            if embargo is not None:
                train = train[start - stamps[train] > embargo]
            if ends is not None:
                train = train[start - ends[train] > (stamps[:1] - stamps[:1] if embargo is None else embargo)]
            if members is not None and self.isolate_groups:
                train = train[~np.isin(members[train], members[test])]
            if is_number(most):
                train = train[-most:]
            elif most is not None and train.size:
                train = train[stamps[train[-1]] - stamps[train] < most]
            elif self.window == "rolling":
                previous = train.size if previous is None else previous
                train = train[-previous:] if previous else train
            if not train.size:
                raise DataError(
                    f"TimeSplit: fold {fold} of {self.n_splits} has no training row left: "
                    + ("groups are in training and evaluation alike; " if members is not None else "")
                    + "take fewer splits, a smaller test_size or a shorter embargo"
                )
            yield train, test

    def _windows(self, ordered: Any) -> list[tuple[int, int]]:
        """Evaluation windows as ranges of ordered rows; their ends never part rows of one time."""
        n = ordered.size
        if self.test_size is None or is_number(self.test_size):
            size = n // (self.n_splits + 1) if self.test_size is None else int(self.test_size)
            cuts = [n - size * k for k in range(self.n_splits, -1, -1)]
            if size < 1 or cuts[0] < 1:
                raise DataError(
                    f"TimeSplit: {n} rows are too few for {self.n_splits} evaluation windows of {max(size, 1)} rows"
                )
            # a cut inside a run of equal times moves back to its start
            places = [int(np.searchsorted(ordered, ordered[c], "left")) if c < n else n for c in cuts]
        else:
            length = _length(self.test_size, ordered, "test_size")
            edges = [ordered[-1] - length * k for k in range(self.n_splits, 0, -1)]
            places = [int(np.searchsorted(ordered, edge, "right")) for edge in edges] + [n]
        if places[0] < 1:
            raise DataError(
                "TimeSplit: the first evaluation window starts at the first row: take fewer or smaller windows"
            )
        for fold, (low, high) in enumerate(pairwise(places), 1):
            if low >= high:
                raise DataError(
                    f"TimeSplit: evaluation window {fold} of {self.n_splits} is empty: too many rows share a time"
                )
        return list(pairwise(places))

    def _most_rows(self, ordered: Any) -> Any:
        if self.max_train_size is None:
            return None
        if is_number(self.max_train_size):
            return int(self.max_train_size)
        return _length(self.max_train_size, ordered, "max_train_size")

    def _check(self, n: int) -> None:
        if not is_number(self.n_splits) or self.n_splits < 1 or self.n_splits != int(self.n_splits):
            raise DataError(f"TimeSplit: n_splits must be a whole number of at least 1, not {self.n_splits!r}")
        if self.window not in _WINDOWS:
            raise DataError(f"TimeSplit: window must be one of {', '.join(_WINDOWS)}, not {self.window!r}")
        for name in ("test_size", "max_train_size"):
            value = getattr(self, name)
            if isinstance(value, bool) or (is_number(value) and not value >= 1):
                raise DataError(f"TimeSplit: {name} must be at least 1, not {value!r}")
            if isinstance(value, (float, np.floating)):
                raise DataError(f"TimeSplit: {name} must be a number of rows or a duration, not {value!r}")
        if n < 2:
            raise DataError(f"TimeSplit: {n} rows cannot be split")


def _rows(data: Any) -> int:
    shape = getattr(data, "shape", None)
    if shape is not None and len(shape):
        return int(shape[0])
    try:
        return len(data)
    except TypeError:
        raise DataError("TimeSplit: X has no length; give the data, or an array with as many rows") from None


def _times(time: Any, data: Any, n: int, what: str) -> Any:
    """Times as datetime64[ns] or numbers, one for each row."""
    if time is None:
        return np.arange(n)
    if isinstance(time, str):
        columns = getattr(data, "columns", None)
        names = list(getattr(data, "column_names", columns if columns is not None else []))
        if time not in names:
            from osler.data.tables.source import closest

            kind = type(data).__name__
            raise DataError(f"TimeSplit: X ({kind}) has no column {time!r}{closest(time, [str(c) for c in names])}")
        values = data[time]
    elif is_number(time):
        shape: tuple[int, ...] = tuple(getattr(data, "shape", ()))
        if len(shape) != 2 or not -shape[1] <= time < shape[1]:
            raise DataError(f"TimeSplit: {what}={time} is no column of X with shape {shape}")
        values = data.iloc[:, time] if hasattr(data, "iloc") else np.asarray(data)[:, time]
    else:
        values = time
    stamps = _stamps(values, what)
    if stamps.shape != (n,):
        raise DataError(
            f"TimeSplit: {what} has shape {stamps.shape} and X has {n} rows; inside another cross-validation name a column of "
            "X in place of an array"
        )
    missing = np.isnat(stamps) if stamps.dtype.kind == "M" else ~np.isfinite(stamps)
    if missing.any():
        raise DataError(
            f"TimeSplit: {what} is missing in {int(missing.sum())} rows, first at row {int(np.flatnonzero(missing)[0])}: "
            "drop or fill them"
        )
    return stamps


def _stamps(values: Any, what: str) -> Any:
    if hasattr(values, "to_pylist"):
        values = values.to_pylist()
    dtype = getattr(values, "dtype", None)
    if getattr(dtype, "tz", None) is not None:
        values = values.tz_convert("UTC") if hasattr(values, "tz_convert") else values.dt.tz_convert("UTC")
        values = values.tz_localize(None) if hasattr(values, "tz_localize") else values.dt.tz_localize(None)
    array = np.asarray(values)
    if array.dtype.kind == "O":
        array = _objects(array, what)
    if array.dtype.kind == "M":
        years = array.astype("datetime64[Y]").astype(np.int64) + 1970
        if bool((~np.isnat(array) & ((years < 1678) | (years > 2261))).any()):
            raise DataError(
                f"TimeSplit: {what} has years outside 1678 to 2261: a date that stands for never is no time"
            )
        return array.astype("datetime64[ns]")
    if array.dtype.kind in "iu":
        return array.astype(np.int64)
    if array.dtype.kind == "f":
        return array.astype(np.float64)
    raise DataError(f"TimeSplit: {what} must be times or numbers, not {array.dtype}: parse text to datetimes first")


def _objects(array: Any, what: str) -> Any:
    """datetimes and dates as datetime64; times with a zone in UTC."""
    aware = [getattr(v, "tzinfo", None) is not None for v in array if v is not None]
    if any(aware) and not all(aware):
        raise DataError(f"TimeSplit: some values of {what} have a time zone and others have none: convert all to UTC")
    out: list[Any] = []
    for value in array:
        if value is None or (isinstance(value, float) and np.isnan(value)):
            out.append(np.datetime64("NaT", "us"))
        elif isinstance(value, datetime.datetime):
            plain = value.astimezone(datetime.timezone.utc).replace(tzinfo=None) if value.tzinfo else value
            out.append(np.datetime64(plain, "us"))
        elif isinstance(value, (datetime.date, np.datetime64)):
            out.append(np.datetime64(value).astype("datetime64[us]"))
        else:
            raise DataError(f"TimeSplit: {what} holds {type(value).__name__}: parse it to datetimes first")
    return np.array(out, "datetime64[us]")


def _members(groups: Any, n: int) -> Rows:
    array = np.asarray(groups.to_pylist() if hasattr(groups, "to_pylist") else groups)
    if array.shape != (n,):
        raise DataError(f"TimeSplit: groups has shape {array.shape} and X has {n} rows")
    if array.dtype.kind == "O":
        codes: dict[Any, int] = {}
        if any(v is None or v != v for v in array):
            raise DataError("TimeSplit: groups has missing values: give every row a group of its own, or drop them")
        return np.array([codes.setdefault(v, len(codes)) for v in array], np.int64)
    if (array.dtype.kind == "f" and np.isnan(array).any()) or (array.dtype.kind == "M" and np.isnat(array).any()):
        raise DataError("TimeSplit: groups has missing values: give every row a group of its own, or drop them")
    inverse: Rows = np.unique(array, return_inverse=True)[1]
    return inverse


def _length(value: Any, stamps: Any, what: str) -> Any:
    """A length of time that can be compared with differences of `stamps`; None where none is asked for."""
    if value is None:
        return None
    if stamps.dtype.kind != "M":
        if not is_number(value):
            raise DataError(f"TimeSplit: {what} {value!r} is a duration, but time is counted in numbers: give a number")
        if not np.isfinite(value) or value < 0:
            raise DataError(f"TimeSplit: {what} must be at least 0, not {value!r}")
        return value
    length = np.timedelta64(nanoseconds(value, f"TimeSplit: {what}"), "ns")
    if what == "test_size" and length <= np.timedelta64(0, "ns"):
        raise DataError("TimeSplit: test_size must be longer than 0")
    return length
