"""`check_splits`: whether evaluation measures what it should."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from osler.core.finding import Confidence, Finding, Severity
from osler.core.progress import Progress, quiet
from osler.core.report import NotChecked, Report
from osler.core.settings import Settings
from osler.core.settings.splits import Splits
from osler.data.need import DataError
from osler.data.splits import answers, copies, exact, groups, instants, leak, near, order, overlap, pictures, text
from osler.data.splits.columns import Reservoir, Shared, identifying, shared_columns
from osler.data.splits.wording import count
from osler.data.tables import Kind, Source, open_source

_ENTITY = (
    "id",
    "uid",
    "uuid",
    "user",
    "patient",
    "subject",
    "customer",
    "client",
    "device",
    "session",
    "account",
    "group",
)


def check_splits(
    train: Any,
    eval: Any,
    *,
    time: str | None = None,
    group: str | Sequence[str] = (),
    label: str | None = None,
    columns: Sequence[str] | None = None,
    gap: Any = None,
    embargo: Any = None,
    text: str | Sequence[str] = (),
    images: str | Sequence[str] = (),
    label_time: str | None = None,
    feature_times: Mapping[str, str] | Sequence[str] | None = None,
    near: bool = True,
    settings: Settings | None = None,
    progress: Progress = quiet,
) -> Report:
    """Check that evaluation rows are apart from training rows.

    Rules: split-duplicate-rows, eval-on-training-data; with `time`: time-not-monotonic, split-time-overlap; with `group`:
    split-group-overlap; with `label` or `label_time`: target-leak. What was not asked for or cannot be judged is in
    `not_checked`.

    Args:
        train, eval: a path, glob, frame, array or anything else that `open_source` takes; or two folders of image files, or
            two arrays of images (n × h × w or n × h × w × c). Streamed; what can be read once only is held in memory.
        time: column of the time of a row: timestamps, dates, ISO 8601 text, or numbers.
        group: columns whose values must not be on both sides (patient, user, device). With `time`, order and overlap are
            judged within each group.
        label: column of the label, in training at least.
        columns: compare rows by these columns only; None: by all that both sides have.
        gap: least distance of training rows before the start of evaluation: `7d`, `500ms`, a timedelta, or a number for a
            time of numbers.
        embargo: least distance of training rows after the end of evaluation; None: there must be none.
        text: columns of free text, compared for near copies.
        images: columns of images: paths of files, or the bytes of files.
        label_time: column of the time at which the label was known.
        feature_times: columns of the time at which features were written: `{feature: column}`, or columns.
        near: look for near copies of rows too.
        settings: thresholds; `settings.splits`.
        progress: is told.

    Raises:
        DataError: a source cannot be read, a column is unknown, or arguments do not fit together.
    """
    tree = settings if settings is not None else Settings()
    chosen = tree.splits
    if pictures.are_images(train) and pictures.are_images(eval):
        return pictures.check_images(train, eval, chosen, progress)
    left, right = (_held(open_source(data), progress) for data in (train, eval))
    report = Report({"kind": "check", "check": "splits", "train": left.name, "eval": right.name})
    run = _Check(
        left,
        right,
        report,
        chosen,
        progress,
        time,
        _names(group),
        label,
        columns,
        _names(text),
        _names(images),
    )
    run.named_columns(label_time, _by_column(feature_times))
    if train is eval or _one_file(train, eval):
        run.same_data()
        return report
    run.copies(near)
    run.texts_and_images()
    split_by_time = run.order(gap, embargo)
    run.entities(split_by_time)
    run.answers(label_time, _by_column(feature_times))
    return report


class _Check:
    """One call of `check_splits`: what its steps share."""

    def __init__(
        self,
        train: Source,
        eval_: Source,
        report: Report,
        settings: Splits,
        progress: Progress,
        time: str | None,
        group: tuple[str, ...],
        label: str | None,
        columns: Sequence[str] | None,
        texts: tuple[str, ...],
        images: tuple[str, ...],
    ) -> None:
        self.train, self.eval, self.report = train, eval_, report
        self.settings, self.progress = settings, progress
        self.time, self.group, self.label = time, group, label
        self.columns, self.texts, self.images = columns, texts, images
        self.identifiers: tuple[str, ...] = ()
        self.eval_rows = 0
        report.notes.extend((*train.notes, *eval_.notes))

    def missed(self, rule: str, why: str) -> None:
        """Something was not judged."""
        self.report.not_checked.append(NotChecked(rule, why))

    def named_columns(self, label_time: str | None, feature_times: Mapping[str, tuple[str, ...]]) -> None:
        """Refuse unknown names before any long work."""
        for name in (*self.group, *self.texts, *self.images, *((self.time,) if self.time else ())):
            self.train.column(name)
            self.eval.column(name)
        for name in (self.label, label_time, *feature_times, *(f for fs in feature_times.values() for f in fs)):
            if name is not None:
                self.train.column(name)
        if feature_times and label_time is None:
            raise DataError("feature_times needs label_time: the column of the time at which the label was known")
        if self.columns is not None and not len(self.columns):
            raise DataError("columns is empty: name at least one, or leave it out to compare all")

    def same_data(self) -> None:
        """Both sides are one and the same file or object."""
        self.report.findings.append(
            Finding(
                "eval-on-training-data",
                Severity.ERROR,
                Confidence.DEFINITE,
                f"Training and evaluation are the same data, {self.train.name}.",
                evidence={"same_source": True},
                fix="Give the file or table that the model is evaluated on and was not trained on.",
            )
        )
        self.report.subject["rows"] = self.train.rows

    def copies(self, near_too: bool) -> None:
        """split-duplicate-rows and eval-on-training-data over the shared columns."""
        shared = shared_columns(self.train, self.eval, self.columns)
        if not shared.names:
            raise DataError(f"{self.train.name} and {self.eval.name} have no column in common that can be compared")
        self._tell_columns(shared)
        chosen = self.columns is not None
        numbering = () if chosen else identifying(self.train, self.eval, shared)
        self.identifiers = tuple(n for n in numbering if n not in self.texts)
        special = (self.label, self.time, *self.group, *self.identifiers)
        content = tuple(n for n in shared.names if chosen or n not in special)
        whole = tuple(n for n in shared.names if chosen or n != self.label)
        nested = [c for i, c in enumerate((content, whole)) if c and (i == 0 or set(c) != set(content))]
        if not nested:
            nested = [shared.names]
        if self.identifiers:
            self.report.notes.append(
                f"{', '.join(self.identifiers)} numbers the rows and was left out where the contents of rows were compared"
            )
        found = exact.match_rows(self.train, self.eval, shared, nested, self.settings, self.progress)
        self.eval_rows = found.eval_rows
        self.report.subject["rows"] = {"train": found.train_rows, "eval": found.eval_rows}
        if not found.train_rows or not found.eval_rows or found.train_sample is None or found.eval_sample is None:
            side = self.eval if found.train_rows else self.train
            self.missed("split-duplicate-rows", f"{side.name} has no rows")
            return
        self._equal(shared, found, found.train_sample, found.eval_sample)
        if near_too and self.settings.near:
            self._near(shared, found, nested[0], [found.train_sample, found.eval_sample])

    def _equal(self, shared: Shared, found: exact.Pass, train: pa.Table, eval_: pa.Table) -> None:
        open_: list[NotChecked] = []
        for matches in found.matches:
            more = copies.excess(matches, found.train_rows, found.eval_rows, self.settings)
            natural = None
            if matches.rows.size and not more.beyond:
                natural = exact.natural_share(
                    self.train, self.eval, shared, matches, train, eval_, self.settings, self.progress
                )
            finding, missed = copies.judge_equal(
                matches, more, natural, found.train_rows, found.eval_rows, self.settings
            )
            if finding is not None:
                self.report.findings.append(finding)
                return
            if missed is not None:
                open_.append(missed)
        # of two sets of columns the larger says more
        self.report.not_checked.extend(open_[-1:])

    def _near(self, shared: Shared, found: exact.Pass, names: tuple[str, ...], both: Sequence[pa.Table]) -> None:
        chosen = [n for n in names if n not in self.texts and n not in self.images]
        plan = near.make_plan(both, chosen, shared.kinds, found.train_rows, found.eval_rows, self.settings)
        if isinstance(plan, str):
            self.missed("split-duplicate-rows", f"near copies: {plan}")
            return
        matches = found.matches[0]
        if matches.mask.all() or found.train_sample is None:
            return
        close = near.near_rows(
            self.train,
            self.eval,
            shared,
            plan,
            matches.mask,
            found.train_sample,
            found.train_rows,
            self.settings,
            self.progress,
        )
        finding, missed = copies.judge_near(close, int(matches.mask.sum()), found.eval_rows, self.settings)
        if finding is not None:
            self.report.findings.append(finding)
        if missed is not None:
            self.report.not_checked.append(missed)

    def _tell_columns(self, shared: Shared) -> None:
        for name, why in shared.apart.items():
            self.missed("split-duplicate-rows", f"column {name}: {why}")
        others = [n for n in shared.only if n != self.label]
        if others and self.columns is None:
            self.report.notes.append(f"on one side only, and not compared: {_listed(others)}")

    def texts_and_images(self) -> None:
        """split-duplicate-rows over texts and over columns of images."""
        for name in self.texts:
            found = text.near_texts(self.train, self.eval, name, self.settings, self.progress)
            finding, missed = copies.judge_text(found, self.eval_rows, self.settings)
            self.report.findings.extend([finding] if finding else [])
            self.report.not_checked.extend(missed)
        for name in self.images:
            pictures.check_column(self.report, self.train, self.eval, name, self.settings, self.progress)

    def order(self, gap: Any, embargo: Any) -> bool | None:
        """time-not-monotonic and split-time-overlap; whether the split is one by time (None: that cannot be said)."""
        if self.time is None:
            if gap is not None or embargo is not None:
                raise DataError("gap and embargo need time: the column of the time of a row")
            for rule in ("time-not-monotonic", "split-time-overlap"):
                self.missed(rule, "no time column was named")
            return False
        read = {
            side: instants.read_instants(source, self.time, self.group, self.progress)
            for side, source in (("training", self.train), ("evaluation", self.eval))
        }
        for side, values in read.items():
            findings, missed = order.check_order(side, self.time, values, self.settings)
            self.report.findings.extend(findings)
            self.report.not_checked.extend(missed)
        findings, missed, by_time = overlap.check_overlap(
            self.time, read["training"], read["evaluation"], gap, embargo, self.settings
        )
        self.report.findings.extend(findings)
        self.report.not_checked.extend(missed)
        plot = overlap.time_histogram(self.time, read["training"], read["evaluation"])
        if plot is not None:
            self.report.series.append(plot)
        return by_time

    def entities(self, split_by_time: bool | None) -> None:
        """split-group-overlap."""
        if not self.group:
            alike = [c.name for c in self.train.columns if _looks_like_entity(c.name) and c.name in self.eval.names]
            alike = [n for n in alike if n not in self.identifiers and n != self.label]
            hint = f"; {_listed(alike)} may be one" if alike else ""
            self.missed("split-group-overlap", f"no group column was named{hint}")
            return
        for column in self.group:
            found = groups.shared_groups(self.train, self.eval, column, self.progress)
            if found.without:
                self.missed("split-group-overlap", f"{count(found.without, 'row')} without a value in {column}")
            finding = groups.judge_groups(found, split_by_time, self.settings)
            self.report.findings.extend([finding] if finding else [])

    def answers(self, label_time: str | None, feature_times: Mapping[str, tuple[str, ...]]) -> None:
        """target-leak."""
        if feature_times and label_time is not None:
            for late in leak.written_late(self.train, label_time, dict(feature_times), self.settings, self.progress):
                finding = answers.judge_late(late, label_time, self.settings)
                self.report.findings.extend([finding] if finding else [])
                if not late.rows:
                    self.missed("target-leak", f"no row has both {late.column} and {label_time}")
        if self.label is None:
            self.missed("target-leak", "no label column was named")
            return
        kinds = {c.name: c.kind for c in self.train.columns}
        usable = (Kind.NUMBER, Kind.INTEGER, Kind.BOOLEAN, Kind.CATEGORY, Kind.DURATION, Kind.TIME)
        apart = {self.label, self.time, label_time, *self.group, *self.texts, *self.images, *feature_times}
        names = [n for n in (self.columns or self.train.names) if n not in apart and kinds[n] in usable]
        # the text of an identifier says nothing that a model could use
        names = [n for n in names if not (n in self.identifiers and kinds[n] is Kind.CATEGORY)]
        sample = Reservoir(self.settings.leak_rows, 4)
        start = 0
        for batch in self.train.batches([self.label, *names]):
            rows = pa.array(np.arange(start, start + batch.num_rows))
            sample.add(pa.record_batch([*batch.columns, rows], names=[*batch.schema.names, _POSITION]))
            start += batch.num_rows
        table = sample.table()
        if table is None or not names:
            self.missed("target-leak", "there are no rows" if table is None else "there is no feature beside the label")
            return
        positions = table.column(_POSITION).to_numpy().astype(np.float64)
        known = leak.knowledge(
            table,
            self.label,
            kinds[self.label],
            names,
            kinds,
            positions,
            self.settings,
            self.progress,
        )
        if isinstance(known, str):
            self.missed("target-leak", known)
            return
        findings, missed, listed = answers.judge_leaks(known, self.label, self.settings)
        self.report.findings.extend(findings)
        self.report.not_checked.extend(missed)
        self.report.tables.append(listed)


_POSITION = "\0row"


def _held(source: Source, progress: Progress) -> Source:
    """The source itself, or a table where it can be read once only."""
    if source.repeatable:
        return source
    progress(f"reading {source.name}", 0, None)
    return open_source(source.table(), source.name)


def _one_file(train: Any, eval_: Any) -> bool:
    if not all(isinstance(v, (str, Path)) and str(v) != "-" for v in (train, eval_)):
        return False
    a, b = Path(train), Path(eval_)
    return a.exists() and b.exists() and a.resolve() == b.resolve()


def _names(value: str | Sequence[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _by_column(times: Mapping[str, str] | Sequence[str] | None) -> dict[str, tuple[str, ...]]:
    """Columns of feature times, each with its features."""
    if times is None:
        return {}
    if isinstance(times, str):
        times = (times,)
    pairs = times.items() if isinstance(times, Mapping) else [(name, name) for name in times]
    out: dict[str, tuple[str, ...]] = {}
    for feature, column in pairs:
        out[column] = (*out.get(column, ()), feature)
    return out


def _looks_like_entity(name: str) -> bool:
    words = name.lower().replace("-", "_").replace(" ", "_").split("_")
    return words[-1] in _ENTITY or words[0] in _ENTITY


def _listed(names: Sequence[str], most: int = 5) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
