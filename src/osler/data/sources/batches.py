"""`check_batches`: sequences of unequal length where a batch needs one shape."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from osler.core.finding import Confidence, Finding, Severity, Where
from osler.core.progress import Progress, quiet
from osler.core.report import NotChecked, Report, Series, Table
from osler.core.settings import Settings, Sources
from osler.data.need import DataError
from osler.data.sources import ragged as findings
from osler.data.sources.ragged import RULE, Field
from osler.data.sources.samples import Batch, Batches, Shape, gather

_QUANTILES = (0.0, 0.25, 0.5, 0.75, 0.95, 1.0)


def check_batches(
    batches: object,
    *,
    axis: int | None = None,
    column: str | None = None,
    batch_size: int | None = None,
    collate_fn: Any = None,
    batched: bool | None = None,
    limit: int | None = None,
    name: str | None = None,
    settings: Settings | None = None,
    progress: Progress = quiet,
) -> Report:
    """Whether the samples of each batch have one shape, so that they can be stacked.

    Lengths that differ between batches are fine; lengths that differ within one are not, unless something pads them.

    Args:
        batches: a list of samples (arrays, tensors, lists, tuples or dicts of them); a list of such lists, a generator or
            another iterable of batches; a map-style or iterable data set or a loader of PyTorch (or what looks like one);
            a table or file with a list column; a `.npy` or `.npz` file without Python objects.
        axis: the axis of a sample along which lengths may differ because it will be padded; None: the first.
        column: the list column of a table.
        batch_size: samples in a batch, taken in order. None: all samples of a list and any rows of a table may meet in
            one batch; data sets are cut into batches of `settings.sources.batch_size`.
        collate_fn: what makes a batch of the samples of a data set; only what it gives is judged. A data set's own
            attribute `collate_fn` counts too.
        batched: whether the items of an iterable are batches; None: lists hold samples unless they hold lists of arrays,
            generators give batches.
        limit: batches that are looked at; None: `settings.sources.batch_limit`.
        name: of the data, for messages.
        settings: the settings tree. progress: told how many batches have been looked at.

    Returns:
        a report with findings of `ragged-batch`, a table of lengths by field, and their histograms.

    Raises:
        DataError: no samples, an unknown column, a file that only unpickling could read.
    """
    chosen = (settings or Settings()).sources
    for what, number in (("batch_size", batch_size), ("limit", limit)):
        if number is not None and number < 1:
            raise DataError(f"{what} must be at least 1, not {number}")
    found = gather(batches, column, batch_size, collate_fn, batched, chosen.batch_size)
    found.name = name or found.name
    fields: dict[str, Field] = {}
    failures: list[Batch] = []
    most, seen, samples = limit or chosen.batch_limit, 0, 0
    stopped = False
    for batch in found.batches:
        if seen >= most:
            stopped = True
            break
        seen += 1
        samples += max((len(v) for v in batch.fields.values()), default=0)
        if batch.error:
            failures.append(batch)
        for key, shapes in batch.fields.items():
            _look(fields.setdefault(key, Field(key, axis)), batch, shapes)
        progress("looking at batches", seen, min(most, found.total) if found.total else None)
    report = Report(
        subject={"kind": "check", "check": "batches", "reference": found.name, "batches": seen, "rows": samples}
    )
    if not samples and not failures:
        report.not_checked.append(NotChecked(RULE, f"{found.name} has no samples"))
    if stopped:
        report.not_checked.append(NotChecked("later batches", f"only the first {most:,} were looked at", is_rule=False))
    shared: dict[str, list[int]] = {}
    if found.assumed == "any rows" or found.assumed == "all of them":
        shared = {key: f.lengths for key, f in fields.items()}
    for key, seen_field in fields.items():
        report.findings.extend(_judge(found, seen_field, failures, shared.get(key), chosen))
    if failures and not report.findings:
        report.findings.append(_failed(found, failures))
    report.tables.append(_table(fields))
    report.series.extend(_histogram(f) for f in fields.values() if len(set(f.lengths)) > 1)
    return report


def _look(seen: Field, batch: Batch, shapes: list[Shape]) -> None:
    seen.batches += 1
    seen.stacked += batch.stacked
    seen.dtypes["NoneType"] += (absent := sum(s.dtype == "NoneType" for s in shapes))
    if absent and seen.absent is None:
        seen.absent = batch.sample(next(i for i, s in enumerate(shapes) if s.dtype == "NoneType"))
    arrays = [(i, s) for i, s in enumerate(shapes) if s.dtype != "NoneType"]
    if not arrays:
        return
    rank = Counter(len(s.size) for _, s in arrays).most_common(1)[0][0]
    usual = Counter(s.size for _, s in arrays if len(s.size) == rank).most_common(1)[0][0]
    axis = (seen.axis or 0) % rank if rank else 0
    for i, shape in arrays:
        seen.dtypes[shape.dtype] += 1
        if shape.pad:
            seen.padded[shape.pad] += 1
            seen.inside[shape.pad] += shape.inside
            seen.tails += shape.tail
        if len(shape.size) != rank:
            seen.dimensions.append((batch.index, batch.sample(i), shape.size, usual))
            continue
        if not rank:
            continue
        seen.lengths.append(shape.size[axis])
        seen.area += shape.size[0]
        rest = shape.size[:axis] + shape.size[axis + 1 :]
        if rest != usual[:axis] + usual[axis + 1 :]:
            seen.features.append((batch.index, batch.sample(i), shape.size, usual))
        elif shape.size[axis] != usual[axis]:
            seen.ragged.append((batch.index, batch.sample(i), shape.size[axis], usual[axis]))
    kinds = {s.dtype for _, s in arrays if s.dtype != "empty"}
    seen.mixed += len(kinds) > 1


def _judge(
    found: Batches, seen: Field, failures: list[Batch], together: list[int] | None, settings: Sources
) -> list[Finding]:
    if together is not None and len(set(together)) > 1 and not seen.ragged:
        # rows of one length within each part that was read, of others in another part: any of them may meet
        usual = Counter(together).most_common(1)[0][0]
        first = next(i for i, n in enumerate(together) if n != usual)
        seen.ragged.append((0, first, together[first], usual))
    out = []
    failed = failures[0].error if failures else ""
    if seen.dimensions:
        out.append(findings.odd(found, seen, "dimensions", seen.dimensions, failed))
    if seen.features:
        out.append(findings.odd(found, seen, "features", seen.features, failed))
    if "ragged" in seen.dtypes:
        out.append(findings.inner(found, seen))
    if seen.ragged and not (found.collated and not failures and seen.stacked):
        out.append(findings.ragged(found, seen, failed, settings))
    if seen.dtypes["NoneType"] and seen.lengths:
        out.append(findings.absent(found, seen))
    if seen.mixed:
        out.extend(findings.mixed(found, seen))
    if not seen.ragged and not seen.dimensions and not seen.features:
        out.extend(findings.padding(found, seen, settings))
    return out


def _failed(found: Batches, failures: list[Batch]) -> Finding:
    first = failures[0]
    return Finding(
        RULE,
        Severity.ERROR,
        Confidence.PROBABLE,
        f"batch {first.index:,} of {found.name} cannot be made: {first.error}",
        where=Where(batch=first.index),
        evidence={"kind": "collate", "count": len(failures), "error": first.error.partition(":")[0]},
        fix="run the collate function on the samples of this batch by hand, and compare their shapes and types",
    )


def _table(fields: dict[str, Field]) -> Table:
    rows: list[list[str | int | float | bool | None]] = []
    for seen in fields.values():
        lengths = np.asarray(seen.lengths) if seen.lengths else None
        spread = (
            [float(q) for q in np.quantile(lengths, _QUANTILES)] if lengths is not None else [None] * len(_QUANTILES)
        )
        rows.append(
            [
                seen.name or "sample",
                sum(seen.dtypes.values()),
                ", ".join(kind for kind, _ in seen.dtypes.most_common(3) if seen.dtypes[kind]),
                *spread,
                len(seen.ragged) + len(seen.features) + len(seen.dimensions),
            ]
        )
    columns = ["field", "samples", "dtypes", *(f"length {q:.0%}" for q in _QUANTILES), "odd samples"]
    return Table(
        "lengths", columns, rows, "length: of the axis that may be padded; shares of the samples lie at or below"
    )


def _histogram(seen: Field) -> Series:
    counts, edges = np.histogram(np.asarray(seen.lengths), bins=min(40, len(set(seen.lengths))))
    shares: list[float | None] = [float(c) / len(seen.lengths) for c in counts]
    return Series(
        f"length of {seen.name or 'samples'}",
        "histogram",
        [],
        [shares],
        rows=["length"],
        edges=[float(e) for e in edges],
    )
