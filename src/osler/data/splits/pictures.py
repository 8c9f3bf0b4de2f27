"""`check_splits` on images: two folders, two arrays, or a column of a table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from osler.core.progress import Progress
from osler.core.report import NotChecked, Report
from osler.core.settings.splits import Splits
from osler.data.need import DataError
from osler.data.splits import copies, images
from osler.data.tables import Kind, Source


def check_images(train: Any, eval_: Any, settings: Splits, progress: Progress) -> Report:
    """Two folders of image files, or two arrays of images."""
    names = [f"array {v.shape}" if isinstance(v, np.ndarray) else str(v) for v in (train, eval_)]
    report = Report({"kind": "check", "check": "splits", "train": names[0], "eval": names[1]})
    sides = []
    for data, name in zip((train, eval_), names):
        stream, total = images.each(data)
        sides.append(images.reduce_images(stream, total, settings, progress, f"images of {name}"))
    report.subject["rows"] = {"train": int(sides[0].hashes.size), "eval": int(sides[1].hashes.size)}
    _judge(report, sides[0], sides[1], None, settings, progress)
    for rule in ("time-not-monotonic", "split-time-overlap", "split-group-overlap", "target-leak"):
        report.not_checked.append(NotChecked(rule, "images alone have no time, group or label"))
    return report


def _judge(
    report: Report, train: images.Images, eval_: images.Images, column: str | None, settings: Splits, progress: Progress
) -> None:
    found = images.near_images(train, eval_, settings, progress)
    unreadable = len(train.unreadable) + len(eval_.unreadable)
    finding, missed = copies.judge_images(found, int(eval_.hashes.size), unreadable, column, settings)
    report.findings.extend([finding] if finding else [])
    report.not_checked.extend(missed)


def are_images(data: Any) -> bool:
    """Whether data are an array of images, or a folder that holds image files."""
    if images.is_image_array(data):
        return True
    if not isinstance(data, (str, Path)) or not Path(data).is_dir():
        return False
    return any(p.suffix.lower() in images.SUFFIXES for p in Path(data).rglob("*"))


def _pictures(source: Source, column: str) -> Iterator[str | bytes]:
    kind = source.column(column).kind
    if kind not in (Kind.CATEGORY, Kind.BINARY):
        raise DataError(f"{source.name}: column {column!r} is {kind.value}; images are paths or the bytes of files")
    for batch in source.batches([column], 256):
        for value in batch.column(0).to_pylist():
            yield b"" if value is None else value


def check_column(
    report: Report, train: Source, eval_: Source, column: str, settings: Splits, progress: Progress
) -> None:
    """The images of a column, paths of files or the bytes of files, on both sides."""
    left, right = (
        images.reduce_images(_pictures(side, column), side.rows, settings, progress, f"images of {side.name}")
        for side in (train, eval_)
    )
    _judge(report, left, right, column, settings, progress)
