"""`osler check drift`: which columns of new data have moved against a reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from osler.core.progress import Progress, quiet
from osler.core.report import Report
from osler.core.settings import Settings
from osler.data.drift import picture
from osler.data.drift.judge import DRIFT, compare
from osler.data.drift.profile import Profile, build_profile
from osler.data.drift.store import is_profile
from osler.data.drift.windows import Windows, cut, names_of
from osler.data.need import DataError
from osler.data.spark.frame import is_spark
from osler.data.tables import Source, open_source


def check_drift(
    reference: object,
    current: object,
    *,
    columns: Sequence[str] | None = None,
    categorical: Sequence[str] = (),
    numeric: Sequence[str] = (),
    time: str | None = None,
    window: object = None,
    settings: Settings | None = None,
    progress: Progress = quiet,
) -> Report:
    """Say which columns have moved, how far, and since when.

    Args:
        reference: the data to compare with: anything that `open_source` takes, a `Profile`, or the path of a saved one.
            Data are read twice (once for the edges), a stream once.
        current: the data to judge, likewise; read once.
        columns: columns to compare; None: all that both have.
        categorical: columns to compare as categories whatever their type.
        numeric: columns to compare as numbers: booleans, and times, which otherwise are not judged.
        time: column of `current` by which it is cut into windows; with `window`.
        window: length of a window: `1h`, `7d`, a timedelta; a number where `time` holds numbers; a number of rows
            without `time`. For every column that drifted the report then says since when.
        settings: the settings tree; `drift` and `data` are used.
        progress: told of the rows done.

    Returns:
        A report with a finding of `feature-drift` for each column that drifted, a table `features`, a histogram for
        each drifted column and some others, a curve for each drifted column where there are windows.

    Raises:
        DataError: data cannot be read, a column is unknown or cannot be what was asked for, windows make no sense.
    """
    settings = settings or Settings()
    known, fresh = _opened(reference, "reference"), _opened(current, "current")
    before = _reference(known, fresh, columns, categorical, numeric, settings, progress)
    windows = None
    if isinstance(fresh, Source):
        now = before.matching(fresh, columns)
        windows = cut(before, fresh, time, window, settings)
        _count(now, fresh, windows, progress)
    elif time is not None or window is not None:
        raise DataError("a profile has no rows to cut into windows: give the current data themselves")
    else:
        now = fresh.only(before.columns)
        now.changed = {name: (is_, was) for name, (was, is_) in before.changed.items()}
    if columns is None:
        had, has = _names(known), _names(fresh)
        now.absent = [name for name in had if name not in set(has)]
        now.extra = [name for name in has if name not in set(had)]
    if windows is None:
        return picture.report(before, now, compare(before, now, settings, numeric=numeric), settings)
    # half of the level for the data as a whole, half for what only the last windows show
    half = replace(settings, drift=replace(settings.drift, level=settings.drift.level / 2))
    verdicts = compare(before, now, half, numeric=numeric)
    moved = [v.name for v in verdicts if v.verdict == DRIFT]
    recent = {name: late for name, late in windows.recent(half, numeric).items() if name not in moved}
    for verdict in verdicts:
        if verdict.name in recent:
            verdict.verdict, verdict.reasons = DRIFT, recent[verdict.name].verdict.reasons
    onsets = windows.judge([*moved, *recent], settings, numeric)
    return picture.report(before, now, verdicts, settings, windows, onsets, recent)


def _reference(
    known: Source | Profile,
    fresh: Source | Profile,
    columns: Sequence[str] | None,
    categorical: Sequence[str],
    numeric: Sequence[str],
    settings: Settings,
    progress: Progress,
) -> Profile:
    """The profile to compare with: as it is, or counted over the edges of the other, or over edges of its own."""
    for name in columns or ():
        _has(fresh, name)
    if isinstance(known, Profile) or isinstance(fresh, Profile):
        given = known if isinstance(known, Profile) else fresh
        assert isinstance(given, Profile)
        for name, form in [*((n, "category") for n in categorical), *((n, "number") for n in numeric)]:
            if given.known(name).form != form:
                raise DataError(
                    f"the profile of {given.name} holds {name!r} as a {given.columns[name].form}: make it anew with "
                    f"{name!r} as a {form}"
                )
        if isinstance(known, Profile):
            return known.only(columns) if columns is not None else known
        return build_profile(known, profile_of=given, columns=columns, progress=progress)
    shared = columns if columns is not None else [name for name in known.names if name in fresh]
    if not shared:
        raise DataError(f"{known.name} and {fresh.name} have no column in common")
    for name in (*categorical, *numeric):
        known.column(name)
        fresh.column(name)
    return build_profile(
        known,
        edges=settings.drift.computing_edges,
        columns=shared,
        categorical=categorical,
        numeric=numeric,
        settings=settings,
        progress=progress,
    )


def _has(data: Source | Profile, name: str) -> None:
    if isinstance(data, Source):
        data.column(name)
    else:
        data.known(name)


def _names(data: Source | Profile) -> Sequence[str]:
    return data.names if isinstance(data, Source) else list(data.columns)


def _opened(data: object, what: str) -> Source | Profile:
    if isinstance(data, Profile):
        return data
    if is_profile(data):
        assert isinstance(data, (str, Path))
        profile = Profile.load(data)
        profile.name = str(data)
        return profile
    return open_source(data, None if isinstance(data, (str, Path)) else _named(data, what))


def _named(data: object, what: str) -> str | None:
    return data.name if isinstance(data, Source) else what


def _count(profile: Profile, source: Source, windows: Windows | None, progress: Progress) -> None:
    if is_spark(source):
        from osler.data.spark import SparkSource, count_spark

        if windows is not None:
            raise DataError(f"{source.name}: windows are not cut on Spark: check each of them by itself")
        count_spark(profile, SparkSource.of(source), progress)
        return
    names = list(names_of(windows, profile))
    what = f"counting {source.name}"
    progress(what, 0, source.rows)
    for batch in source.batches(names):
        profile.update(batch)
        if windows is not None:
            windows.update(batch, profile)
        progress(what, profile.rows, source.rows)
