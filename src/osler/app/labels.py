"""`osler check labels`: the report, and files of the verdict on each label."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from osler.app.check import Wishes, check
from osler.app.errors import UserError


@dataclass(frozen=True, slots=True)
class Files:
    """Files to write.

    Attributes:
        ranked: the suspicious labels, worst first.
        soft: soft targets.
        cleaned: every label with its verdict.
        beside: the table whose columns stand beside those of `cleaned`.
    """

    ranked: Path | None = None
    soft: Path | None = None
    cleaned: Path | None = None
    beside: Path | None = None


def look(
    labels: str,
    pred_probs: str | None,
    *,
    features: str | None,
    classes: str | None,
    out_of_fold: bool | None,
    logits: bool,
    ignore_index: int,
    files: Files,
    wishes: Wishes,
) -> int:
    """Check labels, show the report, write the files; the exit code.

    Raises:
        UserError: input that cannot be used, or a file that cannot be written.
    """
    for path in astuple(files)[:3]:
        if path is not None and not path.absolute().parent.is_dir():
            raise UserError(f"{path} cannot be written: there is no folder {path.parent}")
    if pred_probs is None and features is None and any(astuple(files)[:3]):
        raise UserError("--ranked, --soft and --cleaned need predictions: give --pred-probs or --features")
    audits: list[Any] = []

    def make(settings: Any, progress: Any) -> Any:
        from osler.data.labels.check import judge_labels

        report, audit = judge_labels(
            labels,
            pred_probs,
            features=_features(features),
            classes=_classes(classes),
            out_of_fold=out_of_fold,
            logits=logits,
            ignore_index=ignore_index,
            settings=settings,
            progress=progress,
        )
        if audit is None and any(astuple(files)[:3]):
            report.notes.append("no file was written: label noise was not judged")
        elif audit is not None:
            _write(audit, files)
        audits.append(audit)
        return report

    return check(make, wishes)


def _features(file: str | None) -> Any:
    """A table of features as pandas-free columns; None without a file."""
    if file is None:
        return None
    from osler.data.tables import open_source

    return open_source(file).table()


def _classes(text: str | None) -> list[str] | None:
    """Class names out of `a,b,c`, or of a file that holds a list of them."""
    if text is None:
        return None
    if Path(text).is_file():
        from osler.data.labels.classlists import read_classes

        return [str(name) for name in read_classes(text, "--classes").names]
    return [name.strip() for name in text.split(",") if name.strip()]


def _write(audit: Any, files: Files) -> None:
    """Write what was asked for."""
    import numpy as np

    try:
        if files.ranked is not None:
            _write_ranked(audit, files.ranked)
        if files.soft is not None:
            np.save(files.soft, audit.soft_targets(), allow_pickle=False)
        if files.cleaned is not None:
            audit.write_cleaned(files.cleaned, files.beside)
    except OSError as error:
        raise UserError(f"a file cannot be written: {error}") from None


def _write_ranked(audit: Any, path: Path) -> None:
    import pyarrow as pa
    from pyarrow import csv, parquet

    ranked = audit.ranked()
    names = pa.array(audit.names)
    table = pa.table(
        {
            "index": ranked.index,
            "given": names.take(pa.array(ranked.given)),
            "suggested": names.take(pa.array(ranked.suggested)),
            "probability_wrong": ranked.probability,
        }
    )
    if path.suffix.lower() == ".parquet":
        parquet.write_table(table, path)
    else:
        csv.write_csv(table, path)
