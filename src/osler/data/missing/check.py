"""Missing values, weighed by how much the model leans on the feature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from osler.core.progress import Progress, quiet
from osler.core.report import NotChecked, Report
from osler.core.settings import Settings
from osler.core.settings.missing import Missing
from osler.data.missing.coded import Coded, as_missing, coded
from osler.data.missing.columns import Floats, Plan, Raw, encode, learn
from osler.data.missing.effect import Effect, by_model, by_quick_model
from osler.data.missing.fill import Filler
from osler.data.missing.given import Given, inputs_of, table_for
from osler.data.missing.judge import Feature, findings, tables
from osler.data.missing.models import known_labels
from osler.data.missing.patterns import block_probability, rise_probability, tie_to_label
from osler.data.missing.scan import Scan, scan
from osler.data.missing.sensitivity import Sensitivity, sensitivity
from osler.data.need import DataError
from osler.data.tables import Source, closest, open_source

RULE = "missing-sensitive"
# The imputer tries its autoencoder as well; a check should not take as long.
METHODS = ("iterative", "trees", "knn")


def check_missing(
    data: Any,
    *,
    reference: Any = None,
    label: str | Sequence[Any] | npt.NDArray[Any] | None = None,
    model: Any = None,
    columns: Sequence[str] | None = None,
    settings: Settings | None = None,
    progress: Progress = quiet,
) -> Report:
    """Missing values in features that the model leans on.

    Args:
        data: the table to look at; whatever `open_source` takes.
        reference: the table that the model was trained on. With it, a share of missing values that is no larger than it was
            in training is no fault.
        label: name of the label's column (in `reference`, `data` or both), or the labels of the rows of `data`.
        model: the fitted model; without it a quick model of the label says which features matter.
        columns: features to look at, in the order that the model takes them; otherwise all but the label.
        settings: thresholds; section `missing`.
        progress: told how far it is.

    Returns:
        A report with rule `missing-sensitive`; tables `features` (share missing, sensitivity, proposed imputation with its
        error on hidden cells) and, where it could be measured, `effect` (loss with the mean, with the proposed imputation and
        with the true values).

    Raises:
        DataError: a table cannot be read, a column is unknown, or the model does not fit the columns.
    """
    settings = settings or Settings()
    s = settings.missing
    current = open_source(data)
    before = None if reference is None else open_source(reference)
    report = Report(
        subject={
            "kind": "check",
            "check": "missing",
            "current": current.name,
            "reference": before.name if before is not None else None,
        }
    )
    label_name = label if isinstance(label, str) else None
    names = _features(current, label_name, columns)
    if model is not None:
        names = inputs_of(model, names, columns)
    now = scan(current, _with(current, names, label_name), s.sample_rows, progress)
    report.subject["rows"] = now.rows
    then = None
    if before is not None:
        absent = [n for n in names if n not in before.names]
        for name in absent:
            report.not_checked.append(
                NotChecked(
                    f"column {name}", f"{before.name} has no such column, so nothing is known of its training", False
                )
            )
        then = scan(before, _with(before, [n for n in names if n not in absent], label_name), s.sample_rows, progress)
    given = None if label is None or isinstance(label, str) else _labels(label, now)
    work = _Work(now, then, names, label_name, given, model, s, report)
    work.run(progress)
    return report


def _features(source: Source, label: str | None, columns: Sequence[str] | None) -> list[str]:
    if columns is not None:
        if isinstance(columns, str):
            raise DataError("columns is a list of names, not one text")
        return [source.column(name).name for name in columns if name != label]
    return [name for name in source.names if name != label]


def _with(source: Source, names: Sequence[str], label: str | None) -> list[str]:
    return [*names, label] if label is not None and label in source.names and label not in names else list(names)


def _labels(label: Any, now: Scan) -> npt.NDArray[Any]:
    y = np.asarray(label)
    if y.ndim != 1 or len(y) != now.rows:
        raise DataError(f"label has shape {y.shape}; it needs one value for each of the {now.rows} rows of {now.name}")
    return np.asarray(y[now.positions])


class _Work:
    """The steps of one check; they share the sampled rows."""

    def __init__(
        self,
        now: Scan,
        then: Scan | None,
        names: Sequence[str],
        label: str | None,
        labels: npt.NDArray[Any] | None,
        model: Any,
        settings: Missing,
        report: Report,
    ) -> None:
        self.now = now
        self.then = then
        self.label = label
        self.model = model
        self.s = settings
        self.report = report
        values = {c.name for c in now.columns}
        self.names = [n for n in names if n in values]
        for name in names:
            if name not in values:
                report.not_checked.append(
                    NotChecked(
                        f"column {name}",
                        f"it holds {now.kinds[name].value} values: only counted, not weighed or imputed",
                        False,
                    )
                )
        if label is not None and label not in now.kinds and (then is None or label not in then.kinds):
            raise DataError(f"no column {label!r} for the label{closest(label, list(now.kinds))}")
        self.y = labels if labels is not None else self._label_of(now)

    def _label_of(self, table: Scan | None) -> npt.NDArray[Any] | None:
        if table is None or self.label is None or not any(c.name == self.label for c in table.columns):
            return None
        return table.raw(self.label).values

    def run(self, progress: Progress) -> None:
        """Fill the report."""
        basis, y = self._basis()
        names = [n for n in self.names if any(c.name == n for c in basis.columns)]
        if not names:
            self.report.not_checked.append(NotChecked(RULE, "no column of numbers or categories to weigh"))
            return
        suspects = coded([self.now.raw(n) for n in self.names], self.s)
        known = coded([basis.raw(n) for n in names], self.s) if basis is not self.now else []
        raws = [as_missing(basis.raw(n), suspects if basis is self.now else known) for n in names]
        plans = learn(raws)
        codes = encode(raws, plans)
        progress("weighing the features", 0, None)
        lean = self._lean([basis.raw(n) for n in names], y)
        features = self._count(lean, suspects, known)
        wanted = [
            f.name
            for f in features
            if f.sensitive and f.effective * f.sensitivity >= self.s.exposure and f.name in names
        ]
        targets = [names.index(n) for n in wanted if plans[names.index(n)].observed]
        effect = None
        if targets:
            filler = Filler(plans, targets, METHODS, 0, self.s).fit(codes, progress)
            for j in targets:
                next(f for f in features if f.name == names[j]).choice = filler.choices[j]
            progress("measuring the effect on the task", 0, None)
            effect = self._effect(codes, plans, raws, y, targets, features)
        self.report.findings.extend(
            findings(features, suspects, lean, effect, self.then is not None, self.now.rows, self.s)
        )
        self.report.tables.extend(tables(features, lean, effect, self.now.rows))

    def _basis(self) -> tuple[Scan, npt.NDArray[Any] | None]:
        """The rows that sensitivities and imputations are learned from: the reference, unless only the data has labels."""
        if self.then is None:
            return self.now, self.y
        y = self._label_of(self.then)
        if self.model is not None and any(n not in self.then.holes for n in self.names):
            # the model cannot be asked about rows without one of its features
            return self.now, self.y
        if y is None and self.model is None and self.y is not None:
            return self.now, self.y
        return self.then, y

    def _lean(self, raws: Sequence[Raw], y: npt.NDArray[Any] | None) -> Sensitivity | None:
        plans = learn(raws)
        names = [p.name for p in plans]
        codes = encode(raws, plans)
        if self.model is not None:
            try:
                X = table_for(self.model, codes, plans)
                return sensitivity(self.model, X, names=names)
            except DataError:
                raise
            except Exception as error:
                text = str(error).strip().splitlines()
                raise DataError(
                    f"the model could not predict from these columns: {text[0] if text else type(error).__name__}"
                ) from error
        if y is None:
            self.report.not_checked.append(
                NotChecked(RULE, "neither a model nor a label was given, so it is not known which features matter")
            )
            return None
        rows = known_labels(y)
        try:
            return sensitivity(None, codes[rows], y[rows], names=names)
        except DataError as error:
            self.report.not_checked.append(NotChecked(RULE, f"which features matter could not be learned: {error}"))
            return None

    def _count(self, lean: Sensitivity | None, suspects: Sequence[Coded], known: Sequence[Coded]) -> list[Feature]:
        s = self.s
        out = []
        above = (
            set() if lean is None else {n for n, yes in zip(lean.names, lean.above(s.sensitivity, s.even_share)) if yes}
        )
        for name in self.names:
            holes = self.now.holes[name]
            feature = Feature(name, holes.count, self.now.rows)
            feature.sensitivity = lean.of(name) if lean is not None else 0.0
            feature.sensitive = name in above
            feature.coded = sum(c.share for c in suspects if c.column == name and c.certain)
            feature.coded_before = sum(c.share for c in known if c.column == name and c.certain)
            if (
                holes.longest >= s.block_rows
                and block_probability(self.now.rows, holes.count, holes.longest) < s.block_level
            ):
                feature.block, feature.block_start = holes.longest, holes.start
            if self.then is not None and name in self.then.holes:
                old = self.then.holes[name]
                feature.before = old.count / self.then.rows
                feature.rise_p = rise_probability(holes.count, self.now.rows, old.count, self.then.rows)
            if self.y is not None and holes.count:
                rows = known_labels(self.y)
                feature.tie = tie_to_label(self.now.raw(name).missing[rows], self.y[rows], s.min_cells)
            out.append(feature)
        return out

    def _effect(
        self,
        codes: Floats,
        plans: Sequence[Plan],
        raws: Sequence[Raw],
        y: npt.NDArray[Any] | None,
        targets: Sequence[int],
        features: Sequence[Feature],
    ) -> Effect | None:
        shares = {j: next(f for f in features if f.name == plans[j].name).effective for j in targets}
        # fitted anew in each fold: the slower candidates and a second comparison would add minutes, not insight
        s = replace(self.s, mask_folds=1)
        methods = ("iterative", "trees")
        if len(codes) > self.s.fit_rows:
            chosen = np.sort(np.random.default_rng(0).choice(len(codes), self.s.fit_rows, replace=False))
            codes, y = codes[chosen], None if y is None else y[chosen]
        if self.model is not None:
            return by_model(Given(self.model, plans), codes, plans, shares, methods, s)
        if y is None:
            return None
        rows = known_labels(y)
        return by_quick_model(codes[rows], plans, y[rows], shares, methods, s)
