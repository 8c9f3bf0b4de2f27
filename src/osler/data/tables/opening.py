"""`open_source`: whatever the user has, as a source."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from osler.data.need import DataError
from osler.data.tables.source import Source


def open_source(data: Any, name: str | None = None) -> Source:
    """A source over files, frames or arrays.

    Args:
        data: a path; a glob; a list of paths; a folder (parquet with `key=value` folders, CSV, a Delta table); `-` for
            standard input; a frame of pandas, polars (eager or lazy), pyarrow, narwhals or anything with
            `__arrow_c_stream__`; a Spark DataFrame (its rows stay there); a pyarrow dataset or record batch reader; a numpy array of one or two dimensions or
            with fields; a torch tensor; a dict of columns; a list of dicts, of rows or of numbers; a `Source`.
        name: how it is called in messages; by default the path, or what sort of frame it is.

    Raises:
        DataError: it is missing, empty, damaged, of no known format, or no table.
    """
    if isinstance(data, Source):
        return data
    if data is None:
        raise DataError(f"{name or 'the table'} is None: give a path, a frame or an array")
    if isinstance(data, bytes):
        raise DataError(f"{name or 'the table'} is bytes: give a path, a frame or an array")
    if isinstance(data, (str, os.PathLike)):
        if data == "-":
            from osler.data.tables.stdin import from_stdin

            return from_stdin(name)
        if not os.fspath(data):
            raise DataError("the path of the table is empty")
        return _files([data], name)
    if isinstance(data, Sequence) and data and all(isinstance(item, (str, os.PathLike)) for item in data):
        return _files(list(data), name)
    from osler.data.tables.frames import from_frame

    found = from_frame(data, name)
    if found is None:
        raise DataError(
            f"{name or 'the table'} is a {type(data).__name__}: give a path, a frame, an array or a dict of columns"
        )
    return found


def _files(paths: list[Any], name: str | None) -> Source:
    from osler.data.tables.files import from_paths

    return from_paths(paths, name)
