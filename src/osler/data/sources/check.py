"""`check_sources`: whether two or more sources line up in their ids, clocks and rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from osler.core.finding import Confidence, Finding, Severity
from osler.core.progress import Progress, quiet
from osler.core.report import NotChecked, Report, Series, Table
from osler.core.settings import Settings, Sources
from osler.data.need import DataError
from osler.data.sources.durations import parse_duration, parse_rate
from osler.data.sources.judge_clocks import judge_clocks
from osler.data.sources.judge_ids import judge_duplicates, judge_ids
from osler.data.sources.judge_rates import judge_arrival, judge_declared, judge_rates, measure
from osler.data.sources.pair import RULE, Pair, finding
from osler.data.sources.rates import Arrival, Rate
from osler.data.sources.read import Roles, Stream, named, open_all, read_stream
from osler.data.sources.reuse import judge_reuse


def check_sources(
    sources: Sequence[object],
    *,
    id: object = (),
    time: object = None,
    tolerance: object = None,
    values: object = None,
    rates: object = None,
    static: object = None,
    names: Sequence[str] | None = None,
    settings: Settings | None = None,
    progress: Progress = quiet,
) -> Report:
    """Whether sources that are to be joined agree in their ids, clocks and rates.

    The first source is the reference; each of the others is compared with it.

    Args:
        sources: two or more of whatever `open_source` takes: paths, frames, arrays.
        id: the columns that identify a row, an entity or a series: a name, several names (or one text with commas),
            `a_id=b_id` where the sources name it differently, or a mapping from a source's name or position to names.
        time: the column that holds the time, likewise. Timestamps, dates, numbers since 1970 or since a start, text.
        tolerance: how far the times of one event may lie apart: `500ms`, `2s`, `1h`, `PT0.5S`, a timedelta, seconds.
            Without one, only what no tolerance would excuse is a warning: zones, units, exchanged days and months, and
            clear drifts.
        values: a column with a quantity that the sources all measure; clocks without common ids are compared by it.
        rates: how often each source has a row: `{"a.parquet": "10Hz", "b.parquet": "1Hz"}`, or a list (or a text with
            commas) in their order.
            Rates that are declared may differ; each source is then held to its own.
        static: columns that never change for one entity; without it they are found by themselves.
        names: names of the sources in messages.
        settings: the settings tree; `settings.sources` steers this check.
        progress: told how many rows have been read.

    Returns:
        a report with findings of `source-misaligned`, tables `sources` and `pairs`, and curves of the clocks' offsets.

    Raises:
        DataError: fewer than two sources, an unknown column, a duration or rate that is none.
    """
    if isinstance(sources, (str, bytes)) or not isinstance(sources, Sequence) or len(sources) < 2:
        raise DataError("check sources compares two or more sources; give a list of them")
    chosen = (settings or Settings()).sources
    slack = None if tolerance is None else parse_duration(tolerance, "the tolerance")
    if slack is not None and slack < 0:
        raise DataError(f"the tolerance {tolerance!r} is negative")
    opened = open_all(sources, names)
    declared = _rates(rates, [name for name, _ in opened])
    roles = _roles(id, time, values, static, [name for name, _ in opened])
    streams = [read_stream(name, source, role, progress) for (name, source), role in zip(opened, roles)]
    report = Report(
        subject={
            "kind": "check",
            "check": "sources",
            "reference": streams[0].name,
            "current": streams[1].name,
            "sources": [stream.name for stream in streams],
            "rows": sum(stream.rows for stream in streams),
        },
        notes=[note for stream in streams for note in stream.source.notes],
    )
    empty = [stream for stream in streams if not stream.rows]
    if empty:
        report.not_checked.append(NotChecked(RULE, f"{empty[0].name} has no rows"))
        report.tables.append(_sources_table(streams, {}, {}))
        return report
    _judge_all(streams, slack, declared, chosen, report, progress)
    return report


def _judge_all(
    streams: list[Stream],
    slack: int | None,
    declared: list[float | None],
    chosen: Sources,
    report: Report,
    progress: Progress,
) -> None:
    for stream in streams:
        report.findings.extend(_columns(stream, chosen))
    pairs: list[Pair] = []
    known: dict[str, tuple[Rate, Arrival]] = {}
    for i, right in enumerate(streams[1:], 1):
        progress("comparing", i - 1, len(streams) - 1)
        pair = Pair.of(streams[0], right, slack, chosen)
        pairs.append(pair)
        tallies = pair.tallies or (None, None)
        for at, stream, counted in ((0, pair.left, tallies[0]), (i, pair.right, tallies[1])):
            if stream.name in known:
                continue
            copies = judge_duplicates(pair, stream, counted) if counted is not None else np.zeros(0, np.intp)
            if stream.clock is None:
                continue
            series = counted is not None and counted.repeated > chosen.duplicate
            rate, arrival = known[stream.name] = measure(stream, counted, series, copies, pair.slack, chosen)
            report.findings.extend(judge_arrival(stream, arrival, slack, pair.shape in ("none", "many"), chosen))
            if (interval := declared[at]) is not None:
                report.findings.extend(judge_declared(stream, rate, interval, chosen))
        rate_pair = [known[stream.name][0] for stream in (pair.left, pair.right) if stream.name in known]
        judge_clocks(pair, any(rate.regular(chosen.regular) for rate in rate_pair))
        judge_ids(pair)
        judge_reuse(pair)
        if len(rate_pair) == 2:
            judge_rates(pair, rate_pair[0], rate_pair[1], declared[0] is not None and declared[i] is not None)
        report.findings.extend(pair.findings)
        report.not_checked.extend(pair.skipped)
    progress("comparing", len(streams) - 1, len(streams) - 1)
    _say_what_was_left_out(streams, report)
    report.tables.extend([_sources_table(streams, known, _tallies(pairs)), _pairs_table(pairs)])
    report.series.extend(_curve(pair) for pair in pairs if pair.clocks is not None and len(pair.clocks.at) > 1)


def _tallies(pairs: list[Pair]) -> dict[str, tuple[int, int]]:
    """Distinct ids and rows without one, by source."""
    out: dict[str, tuple[int, int]] = {}
    for pair in pairs:
        if pair.tallies is not None:
            for stream, counted in zip((pair.left, pair.right), pair.tallies):
                out[stream.name] = (len(counted.ids), counted.nulls)
    return out


def _roles(id: object, time: object, values: object, static: object, names: list[str]) -> list[Roles]:
    count = len(names)
    ids = named(id, count, "id", names)
    times = named(time, count, "time", names)
    measured = named(values, count, "values", names)
    fixed = named(static, count, "static", names)
    if len({len(columns) for columns in ids}) > 1:
        raise DataError("every source needs as many id columns as the others")
    for what, columns in (("time", times), ("values", measured)):
        if any(len(c) > 1 for c in columns):
            raise DataError(f"{what} takes one column a source")
    if not any(ids) and not any(times):
        raise DataError("name what the sources share: an id column (--id), a time column (--time), or both")
    return [
        Roles(i, t[0] if t else None, v[0] if v else None, s if static is not None else None)
        for i, t, v, s in zip(ids, times, measured, fixed)
    ]


def _rates(rates: object, names: list[str]) -> list[float | None]:
    """The declared interval of each source, ns."""
    if rates is None:
        return [None] * len(names)
    if isinstance(rates, Mapping):
        table = {name: i for i, name in enumerate(names)} | {i: i for i in range(len(names))}
        out: list[float | None] = [None] * len(names)
        for key, value in rates.items():
            if key not in table:
                raise DataError(f"rates names a source {key!r}; the sources are {', '.join(map(repr, names))}")
            out[table[key]] = parse_rate(value, f"the rate of {key}")
        return out
    if isinstance(rates, str) and "," in rates:
        rates = [part.strip() for part in rates.split(",")]
    given = (
        [rates] * len(names)
        if isinstance(rates, (str, int, float))
        else list(rates)
        if isinstance(rates, Sequence)
        else []
    )
    if len(given) != len(names):
        raise DataError(f"rates needs one rate a source ({len(names)}), not {len(given)}")
    return [None if rate is None else parse_rate(rate, "the rate") for rate in given]


def _columns(stream: Stream, settings: Sources) -> list[Finding]:
    """What is wrong with one source's columns by themselves: ids and times that are not there, mixed zones."""
    out = []
    nulls = [("null-ids", stream.keys.valid, stream.keys.name)] if stream.keys is not None else []
    if stream.clock is not None:
        nulls.append(("null-times", stream.clock.valid, stream.clock.column))
    for kind, valid, column in nulls:
        lost = stream.rows - int(valid.sum())
        share = lost / stream.rows
        if share > settings.null_ids:
            what = "id" if kind == "null-ids" else "time"
            beyond = stream.clock.outside if kind == "null-times" and stream.clock is not None else 0
            why = f" ({beyond:,} of them lie outside the years 1678–2262)" if beyond else ""
            out.append(
                finding(
                    Severity.WARNING,
                    Confidence.DEFINITE,
                    f"{lost:,} of {stream.rows:,} rows of {stream.name} ({share:.1%}) have no {what} in `{column}`{why}: they "
                    "can join nothing",
                    f"drop or fill them before the join, and look at what writes rows without a {what}",
                    column,
                    {"kind": kind, "source": stream.name, "count": lost, "share": share, "outside_range": beyond},
                )
            )
    if stream.clock is not None and stream.clock.bare:
        out.append(
            finding(
                Severity.WARNING,
                Confidence.DEFINITE,
                f"`{stream.clock.column}` of {stream.name} has {stream.clock.bare:,} times without an offset among "
                f"{stream.rows:,}, the others have one: nothing says in which zone they are",
                "write every time with its offset (isoformat() of a datetime with tzinfo), best in UTC",
                stream.clock.column,
                {"kind": "mixed-zones", "source": stream.name, "count": stream.clock.bare, "of": stream.rows},
            )
        )
    return out


def _say_what_was_left_out(streams: list[Stream], report: Report) -> None:
    if any(stream.keys is None for stream in streams):
        report.not_checked.append(NotChecked("ids", "no id column is named", is_rule=False))
    if any(stream.clock is None for stream in streams):
        report.not_checked.append(NotChecked("clocks and rates", "no time column is named", is_rule=False))


def _sources_table(
    streams: list[Stream], known: dict[str, tuple[Rate, Arrival]], ids: dict[str, tuple[int, int]]
) -> Table:
    rows: list[list[str | int | float | bool | None]] = []
    for stream in streams:
        distinct, nulls = ids.get(stream.name, (None, None))
        rate, arrival = known.get(stream.name, (None, None))
        rows.append(
            [
                stream.name,
                stream.rows,
                distinct,
                nulls,
                None if stream.clock is None else int((~stream.clock.valid).sum()),
                rate.interval / 1e9 if rate and rate.count else None,
                rate.spread if rate and rate.count else None,
                rate.gaps if rate and rate.count else None,
                arrival.late if arrival else None,
            ]
        )
    columns = ["source", "rows", "ids", "no id", "no time", "interval s", "interval spread", "gaps", "late rows"]
    return Table("sources", columns, rows)


def _pairs_table(pairs: list[Pair]) -> Table:
    rows: list[list[str | int | float | bool | None]] = []
    for pair in pairs:
        clocks, shared = pair.clocks, pair.shared
        sloped = clocks is not None and clocks.drift_high - clocks.drift_low < float("inf")
        rows.append(
            [
                pair.left.name,
                pair.right.name,
                len(shared.left) if shared else None,
                len(shared.missing) if shared else None,
                len(shared.extra) if shared else None,
                clocks.offset / 1e9 if clocks else None,
                clocks.low / 1e9 if clocks else None,
                clocks.high / 1e9 if clocks else None,
                clocks.jitter / 1e9 if clocks else None,
                clocks.drift * 1e6 if clocks and sloped else None,
                clocks.drift_low * 1e6 if clocks and sloped else None,
                clocks.drift_high * 1e6 if clocks and sloped else None,
            ]
        )
    columns = ["reference", "source", "shared ids", "only reference", "only source", "offset s", "offset low s",
               "offset high s", "jitter s", "drift ppm", "drift low ppm", "drift high ppm"]  # fmt: skip
    return Table("pairs", columns, rows, "offset: the source's clock minus the reference's")


def _curve(pair: Pair) -> Series:
    assert pair.clocks is not None
    name = f"clock offset of {pair.right.name} against {pair.left.name}"
    return Series(
        name, "curve", list(range(len(pair.clocks.at))), [float(v) / 1e9 for v in pair.clocks.block], unit="s"
    )
