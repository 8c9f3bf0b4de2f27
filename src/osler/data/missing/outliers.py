"""Values and rows outside what training saw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from osler.core.finding import Confidence, Finding, Severity, Where
from osler.core.progress import Progress, quiet
from osler.core.report import NotChecked, Report, Table
from osler.core.settings import Settings
from osler.core.settings.missing import Missing
from osler.data.missing.ranges import Outside, counts_on, judged, outside
from osler.data.missing.rows import Flagged, fewest, flag
from osler.data.missing.scan import Scan, scan
from osler.data.need import DataError
from osler.data.tables import Kind, Source, open_source

RULE = "outlier"


@dataclass(frozen=True, slots=True)
class _Whole:
    """Rows judged as a whole: by whom, on which columns, and which of the sampled rows they are."""

    flagged: list[Flagged]
    names: list[str]
    places: npt.NDArray[np.int64]


def check_outliers(
    reference: Any,
    current: Any,
    *,
    columns: Sequence[str] | None = None,
    settings: Settings | None = None,
    progress: Progress = quiet,
) -> Report:
    """Values and rows outside what training saw.

    Three looks: each column against the extrapolated tail of the reference (with changes of unit recognised), whole rows by an
    isolation forest, and whole rows by how well each column follows from the others. The last two are calibrated on reference
    rows that they were not fitted on.

    Args:
        reference: the table that the model was trained on; whatever `open_source` takes.
        current: the table to look at.
        columns: the columns to look at; otherwise all number columns that both have.
        settings: thresholds; section `missing`.
        progress: told how far it is.

    Returns:
        A report with rule `outlier`: one finding a column and one for rows that are odd only as a whole; tables `columns` and
        `rows` (positions, never values).

    Raises:
        DataError: a table cannot be read, has no rows, or a column is unknown.
    """
    settings = settings or Settings()
    s = settings.missing
    old, new = open_source(reference), open_source(current)
    report = Report(
        subject={"kind": "check", "check": "outliers", "reference": old.name, "current": new.name},
    )
    names = _columns(old, new, columns, report)
    if not names:
        report.not_checked.append(NotChecked(RULE, "the two tables share no column of numbers"))
        return report
    was = scan(old, names, s.sample_rows, progress)
    now = scan(new, names, s.sample_rows, progress)
    report.subject["rows"] = now.rows
    if was.rows < s.outlier_rows:
        report.not_checked.append(
            NotChecked(RULE, f"{was.rows} reference rows say too little: {s.outlier_rows} are needed")
        )
        return report
    for table in (was, now):
        if table.rows > len(table.positions):
            report.notes.append(
                f"{table.name}: a random sample of {len(table.positions)} of {table.rows} rows was looked at."
            )
    names = _features(names, was, report)
    found = {}
    for done, name in enumerate(names):
        progress("columns", done, len(names))
        seen = outside(was.raw(name).values, now.raw(name).values, len(names), s)
        if seen is not None:
            found[name] = seen
            report.findings.append(_finding(name, seen, now, s))
        elif not judged(np.sort(was.raw(name).values[np.isfinite(was.raw(name).values)])):
            report.not_checked.append(
                NotChecked(
                    f"column {name}", "the reference has too few different values in a tail to extrapolate it", False
                )
            )
    progress("rows", 0, None)
    whole = _rows(names, was, now, found, report, s)
    report.tables.extend(_tables(found, whole, now, s))
    return report


def _columns(old: Source, new: Source, asked: Sequence[str] | None, report: Report) -> list[str]:
    if isinstance(asked, str):
        raise DataError("columns is a list of names, not one text")
    wanted = [n for n in old.names if n in new.names] if asked is None else list(asked)
    out = []
    for name in wanted:
        before, after = old.column(name), new.column(name)
        if before.kind in (Kind.NUMBER, Kind.INTEGER) and after.kind in (Kind.NUMBER, Kind.INTEGER):
            out.append(name)
        elif Kind.NULL not in (before.kind, after.kind) and before.kind is not Kind.BOOLEAN:
            why = f"it holds {after.kind.value} values; outliers are looked for in numbers"
            if before.kind is not after.kind:
                why = f"it held {before.kind.value} values in the reference and holds {after.kind.value} values now"
            report.not_checked.append(NotChecked(f"column {name}", why, False))
    return out


def _features(names: Sequence[str], was: Scan, report: Report) -> list[str]:
    out = []
    for name in names:
        values = was.raw(name).values
        if counts_on(values):
            report.not_checked.append(
                NotChecked(f"column {name}", "it numbers the rows, so later rows are always outside", False)
            )
        elif not np.isfinite(values).any():
            report.not_checked.append(NotChecked(f"column {name}", "it has no value in the reference", False))
        elif np.ptp(values[np.isfinite(values)]) == 0:
            report.not_checked.append(
                NotChecked(f"column {name}", "it is constant in the reference: there is no spread to measure by", False)
            )
        else:
            out.append(name)
    return out


def _rows(
    names: Sequence[str], was: Scan, now: Scan, found: dict[str, Outside], report: Report, settings: Missing
) -> _Whole | None:
    # columns that are off altogether would make every row odd and hide what else is
    names = [n for n in names if n not in found or not (found[n].whole or found[n].moved)]
    thin = [n for n in names if max(was.share(n), now.share(n)) > settings.whole_missing]
    names = [n for n in names if n not in thin]
    if len(names) < 2:
        report.not_checked.append(
            NotChecked("rows as a whole", "fewer than two columns of numbers are left to combine", False)
        )
        return None
    old = np.stack([was.raw(n).values for n in names], axis=1)
    new = np.stack([now.raw(n).values for n in names], axis=1)
    old = old[np.isfinite(old).all(1)]
    whole = np.isfinite(new).all(1)
    if len(old) < settings.outlier_rows or not whole.any():
        report.not_checked.append(NotChecked("rows as a whole", "too few rows have a value in every column", False))
        return None
    if thin:
        report.not_checked.append(
            NotChecked(
                "rows as a whole",
                f"without {_list(thin)}: missing in more than {settings.whole_missing:.0%} of the rows",
                False,
            )
        )
    if not whole.all():
        why = f"{int((~whole).sum())} rows with missing values are left out"
        report.not_checked.append(NotChecked("rows as a whole", why, False))
    flagged = flag(old, new[whole], settings)
    held = flagged[0].held
    need = fewest(held, int(whole.sum()), settings.outlier_fdr / len(flagged))
    if need > settings.outlier_least:
        report.notes.append(
            f"With {held} reference rows to calibrate on, fewer than {need} odd rows among {int(whole.sum())} cannot be told "
            "from chance."
        )
    places = np.flatnonzero(whole)
    known = np.zeros(len(new), np.bool_)
    for seen in found.values():
        known[seen.rows] = True
    odd = np.any([f.hit for f in flagged], axis=0) & ~known[whole]
    if odd.any():
        report.findings.append(_odd_rows(odd, flagged, names, now.positions[places], held, settings))
    return _Whole(flagged, names, places)


def _odd_rows(
    odd: npt.NDArray[np.bool_],
    flagged: Sequence[Flagged],
    names: Sequence[str],
    positions: npt.NDArray[np.int64],
    held: int,
    settings: Missing,
) -> Finding:
    count = int(odd.sum())
    best = np.argmin([np.where(f.hit, f.p, 2.0) for f in flagged], axis=0)
    columns = np.array([f.column for f in flagged])[best, np.arange(len(odd))][odd]
    places, counts = np.unique(columns, return_counts=True)
    main = names[int(places[counts.argmax()])]
    share = counts.max() / count
    first = positions[np.flatnonzero(odd)[:5]].tolist()
    message = f"{count} of {len(odd)} rows ({count / len(odd):.2%}) are unlike the {held} held-out reference rows as a whole, "
    message += f"though no value of theirs alone is; {main} is the oddest column in {share:.0%} of them (first rows: {_list(first)})."
    methods = " and ".join(sorted({f.scorer for f in flagged if (f.hit & odd).any()}))
    return Finding(
        RULE,
        Severity.WARNING if count >= settings.outlier_least else Severity.INFO,
        Confidence.PROBABLE,
        message,
        Where(column=main if share >= 0.5 else None),
        {
            "rows": count,
            "share": count / len(odd),
            "false_discovery_rate": settings.outlier_fdr,
            "held_out_rows": held,
            "by": methods,
            "smallest_p": float(min(f.p[odd].min() for f in flagged)),
            "first_rows": first,
        },
        "Look at these rows (table `rows`): two columns that no longer fit each other mean a join gone wrong, a shifted column or "
        "a sensor that sticks. Keep them out of training, and let the service fall back where it meets one.",
        touches=frozenset({f"column:{names[int(p)]}" for p, c in zip(places, counts) if c >= 0.1 * count}),
    )


def _finding(name: str, seen: Outside, now: Scan, settings: Missing) -> Finding:
    rows = len(seen.rows)
    total = len(now.positions)
    first = now.positions[seen.rows[:5]].tolist()
    evidence: dict[str, object] = {
        "rows_outside": rows,
        "share_outside": rows / total,
        "spreads_beyond": seen.distance,
        "p": seen.p,
        "first_rows": first,
        "infinite": seen.infinite,
    }
    fix = (
        f"Look at the rows named in the table: a wrong entry is mended at its source or removed; if such values of {name} are real, "
        "the model has never seen them: collect and train on them, or clip the input to the range of training and say so."
    )
    if seen.unit is not None:
        evidence |= {"unit_factor": seen.unit.factor, "unit_offset": seen.unit.offset}
        fix = f"Convert {name} back to the unit of training where it is read, and check the unit at the door of the service."
    if seen.whole and seen.unit is not None:
        message = f"The whole column {name} looks like training's in another unit: {seen.unit.text}."
    else:
        message = f"{rows} of {total} values of {name} ({rows / total:.2%}) lie outside what training saw"
        message += f", up to {_spreads(seen.distance)} beyond its range" if seen.distance > 0 else ""
        message += f", {seen.infinite} of them infinite" if seen.infinite else ""
        message += f" (first rows: {_list(first)})"
        if seen.unit is not None:
            message += f"; they would be ordinary in another unit: {seen.unit.text}"
        elif seen.moved:
            message += "; the column as a whole has moved, see the drift check"
        message += "."
    return Finding(
        RULE,
        Severity.WARNING,
        Confidence.PROBABLE,
        message,
        Where(column=name),
        evidence,
        fix,
        touches=frozenset({f"column:{name}"}),
    )


def _spreads(distance: float) -> str:
    return f"{distance:,.0f} spreads" if distance >= 10 else f"{distance:.1f} spreads"


def _list(items: Sequence[object]) -> str:
    return ", ".join(map(str, items))


def _tables(found: dict[str, Outside], whole: _Whole | None, now: Scan, settings: Missing) -> list[Table]:
    out = []
    if found:
        out.append(
            Table(
                "columns",
                ["column", "rows outside", "share", "spreads beyond", "unit"],
                [
                    [n, len(s.rows), len(s.rows) / len(now.positions), s.distance, s.unit.text if s.unit else None]
                    for n, s in sorted(found.items(), key=lambda item: (-len(item[1].rows), item[0]))
                ],
                note="A spread is the interquartile range of the reference over 1.349.",
            )
        )
    ranked = _ranked(found, whole)
    if ranked:
        out.append(
            Table(
                "rows",
                ["row", "p", "by", "column"],
                [[int(now.positions[i]), p, by, column] for i, p, by, column in ranked[: settings.outlier_shown]],
                note=(
                    f"The {min(len(ranked), settings.outlier_shown)} oddest of {len(ranked)} rows, counted from 0. p is the share of "
                    "held-out reference rows at least as odd; for a value outside its column's range, the chance of it under the "
                    "extrapolated tail."
                ),
            )
        )
    return out


def _ranked(found: dict[str, Outside], whole: _Whole | None) -> list[tuple[int, float, str, str]]:
    best: dict[int, tuple[int, float, str, str]] = {}
    for name, seen in sorted(found.items(), key=lambda item: -item[1].distance):
        # of a column that is off as a whole no row is worth a look of its own
        for i in [] if seen.whole or seen.moved else seen.rows.tolist():
            best.setdefault(i, (i, seen.p, "range", name))
    for f in whole.flagged if whole else ():
        for k in np.flatnonzero(f.hit).tolist():
            assert whole is not None
            i = int(whole.places[k])
            if i not in best or (best[i][2] != "range" and f.p[k] < best[i][1]):
                best[i] = (i, float(f.p[k]), f.scorer, whole.names[int(f.column[k])])
    return sorted(best.values(), key=lambda item: (item[2] != "range", item[1], item[0]))
