"""Which files are meant, what they hold, and one source over all of them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote

import pyarrow as pa

from osler.data.need import DataError
from osler.data.tables.formats import Format, detect
from osler.data.tables.source import Source, closest
from osler.data.tables.unify import fit, unify

_WILD = re.compile(r"[*?\[]")
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"


class Part(Protocol):
    """One file that holds rows."""

    @property
    def name(self) -> str:
        """For messages."""
        ...

    @property
    def schema(self) -> pa.Schema:
        """Unique names, in the order of the file."""
        ...

    @property
    def rows(self) -> int | None:
        """How many, where that is known without reading."""
        ...

    @property
    def notes(self) -> Sequence[str]:
        """What was done to read it."""
        ...

    def read(self, columns: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
        """These columns, in this order."""
        ...


@dataclass(frozen=True)
class _Found:
    path: Path
    partitions: tuple[tuple[str, str], ...] = ()


def from_paths(paths: Sequence[str | os.PathLike[str]], name: str | None) -> Source:
    """A source over files, globs and folders.

    Raises:
        DataError: nothing there, nothing readable there, or files that do not fit together.
    """
    shown = name or (os.fspath(paths[0]) if len(paths) == 1 else f"{os.fspath(paths[0])} and {len(paths) - 1} more")
    try:
        return _from_paths(paths, shown)
    except OSError as error:
        raise DataError(f"{shown[:200]} cannot be read: {error.strerror or error}") from None


def _from_paths(paths: Sequence[str | os.PathLike[str]], shown: str) -> Source:
    if len(paths) == 1 and _is_delta(path := Path(_local(paths[0]))):
        from osler.data.tables.delta import from_delta

        return from_delta(path, shown)
    found = [file for path in paths for file in _expand(_local(path))]
    formats = {file.path: detect(file.path) for file in found}
    kinds = dict.fromkeys(formats.values())
    if len(kinds) > 1:
        listed = " and ".join(f"{kind.value} ({next(p for p, k in formats.items() if k is kind)})" for kind in kinds)
        raise DataError(f"{shown}: files of different formats: {listed}; name them by a glob such as '*.parquet'")
    kind = next(iter(kinds))
    if kind is Format.NUMPY:
        from osler.data.tables.npy import from_npy

        if len(found) > 1:
            raise DataError(f"{shown}: {len(found)} numpy files: give one of them, or an .npz")
        return from_npy(found[0].path, shown)
    notes: list[str] = []
    if kind is Format.TEXT:
        from osler.data.tables.delimited import KEEP, TextPart, agree

        texts = [TextPart(file.path, keep=KEEP // len(found)) for file in found]
        notes = agree(texts, shown)
        return join(texts, shown, [dict(file.partitions) for file in found], notes)
    return join([_open(file.path, kind) for file in found], shown, [dict(file.partitions) for file in found])


def join(
    parts: Sequence[Part],
    name: str,
    partitions: Sequence[dict[str, str]] | None = None,
    notes: Sequence[str] = (),
) -> Source:
    """One source over several files of one schema.

    Args:
        parts: in the order in which their rows come.
        name: for messages.
        partitions: for each part the values that its folder gives (`year=2026/`), as written there.
        notes: sentences for the user beside those of the parts.
    """
    values = _typed([p or {} for p in partitions] if partitions else [{} for _ in parts])
    schemas = [
        (
            part.name,
            pa.schema([*part.schema, *(pa.field(k, v.type) for k, v in extra.items() if k not in part.schema.names)]),
        )
        for part, extra in zip(parts, values)
    ]
    if len(parts) == 1:
        schema = schemas[0][1]
    else:
        schema, gaps = unify(schemas, name)
        notes = [*notes, *gaps]
    return assemble(parts, values, schema, name, notes)


def assemble(
    parts: Sequence[Part],
    constants: Sequence[dict[str, pa.Scalar]],
    schema: pa.Schema,
    name: str,
    notes: Sequence[str] = (),
) -> Source:
    """A source over files whose common schema is known.

    Args:
        parts: in the order in which their rows come.
        constants: for each part the columns that have one value in all its rows and are not in the file.
        schema: what a column of a file is fitted into; one that a file lacks is null there.
        name: for messages.
        notes: sentences for the user beside those of the parts.
    """
    names = schema.names

    def read(columns: Sequence[int], size: int) -> Iterator[pa.RecordBatch]:
        wanted = [names[i] for i in columns]
        types = [schema.field(i).type for i in columns]
        for part, extra in zip(parts, constants):
            own = [n for n in wanted if n in part.schema.names]
            # a file that has none of them is read by its first column, for the number of rows
            for batch in part.read(own or part.schema.names[:1], size):
                arrays = {n: batch.column(i) for i, n in enumerate(own)}
                out = []
                for column, type_ in zip(wanted, types):
                    if column in arrays:
                        out.append(_fit(arrays[column], type_, part.name, column))
                    elif column in extra:
                        out.append(pa.repeat(extra[column], batch.num_rows).cast(type_))
                    else:
                        out.append(pa.nulls(batch.num_rows, type_))
                yield pa.record_batch(out, names=[str(i) for i in columns])

    counts = [part.rows for part in parts]
    rows = sum(c for c in counts if c is not None) if all(c is not None for c in counts) else None
    return Source(name, schema, read, rows=rows, notes=[*(note for part in parts for note in part.notes), *notes])


def _fit(array: pa.Array, type_: pa.DataType, file: str, column: str) -> pa.Array:
    try:
        return fit(array, type_)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        raise DataError(
            f"{file}: column {column!r} is {array.type} and does not fit into {type_}, the type it has elsewhere"
        ) from None


def _open(path: Path, kind: Format) -> Part:
    if kind is Format.PARQUET:
        from osler.data.tables.parquet import ParquetPart

        return ParquetPart(path)
    from osler.data.tables.ipc import IpcPart

    return IpcPart(path, kind)


def _local(path: str | os.PathLike[str]) -> str:
    text = os.fspath(path)
    if text.startswith("file://"):
        return unquote(text[len("file://") :])
    if "\0" in text:
        raise DataError("a path holds a null character")
    if re.match(r"[a-z][a-z0-9+.-]+://", text):
        raise DataError(f"{text}: osler reads local files: copy it here or mount it first")
    return str(Path(text).expanduser())


def _is_delta(path: Path) -> bool:
    return (path / "_delta_log").is_dir()


def _expand(text: str) -> list[_Found]:
    path = Path(text)
    if path.is_dir():
        return _folder(path)
    if path.exists():
        return [_Found(path)]
    if _WILD.search(text):
        return _glob(text)
    raise DataError(_missing(path))


def _glob(text: str) -> list[_Found]:
    matched = sorted(map(Path, glob(text, recursive=True)))  # noqa: PTH207 (Path.glob takes no absolute pattern)
    base = Path(*_before_wildcard(Path(text)))
    found = []
    for path in matched:
        if path.is_dir():
            found += [_Found(f.path, _hive(f.path, base)) for f in _folder(path, empty_ok=True)]
        else:
            found.append(_Found(path, _hive(path, base)))
    found = [f for f in dict.fromkeys(found) if not f.path.name.startswith(("_", "."))]
    # README and _SUCCESS lie beside the data and are matched by `*` too
    data = [f for f in found if f.path.name.lower().endswith(_DATA_SUFFIXES)]
    if found:
        return data or found
    there = sorted(p.name for p in base.iterdir())[:4] if base.is_dir() else []
    hint = f"; {base} holds {', '.join(there)}" if there else "" if base.is_dir() else f"; there is no folder {base}"
    raise DataError(f"{text}: no file matches{hint}")


def _before_wildcard(path: Path) -> Iterator[str]:
    for part in path.parts[:-1]:
        if _WILD.search(part):
            return
        yield part


def _folder(path: Path, empty_ok: bool = False) -> list[_Found]:
    found = []
    skipped = 0
    for folder, inner, files in os.walk(path):
        if "_delta_log" in inner:
            raise DataError(f"{folder} is a Delta table: give it on its own, by its path")
        inner[:] = sorted(d for d in inner if not d.startswith(("_", ".")))
        for file in sorted(files):
            if file.startswith(("_", ".")):
                continue
            if not file.lower().endswith(_DATA_SUFFIXES):
                skipped += 1
                continue
            found.append(_Found(Path(folder, file), _hive(Path(folder, file), path)))
    if not found and not empty_ok:
        what = f"none of its {skipped} files is one osler reads" if skipped else "it holds no files"
        raise DataError(f"{path} is a folder without data: {what} (.parquet, .csv, .tsv, .arrow, .feather)")
    return found


_DATA_SUFFIXES = tuple(
    f"{suffix}{packed}"
    for suffix in (".parquet", ".parq", ".pq", ".csv", ".tsv", ".tab", ".txt", ".arrow", ".arrows", ".ipc", ".feather")
    for packed in ("", ".gz", ".zst", ".bz2")
)


def _hive(path: Path, base: Path) -> tuple[tuple[str, str], ...]:
    """The `key=value` folders between a base and a file."""
    parts = path.relative_to(base).parts[:-1] if path.is_relative_to(base) else path.parts[:-1]
    pairs = [part.partition("=") for part in parts]
    return tuple((unquote(key), unquote(value)) for key, sep, value in pairs if sep and key)


def _typed(partitions: Sequence[dict[str, str]]) -> list[dict[str, pa.Scalar]]:
    """Folder values as integers, dates or text: the first that fits all values of the key."""
    keys = dict.fromkeys(key for entry in partitions for key in entry)
    out: list[dict[str, pa.Scalar]] = [{} for _ in partitions]
    for key in keys:
        texts = [entry[key] for entry in partitions if key in entry and entry[key] != _HIVE_NULL]
        type_: pa.DataType = pa.string()
        if texts and all(re.fullmatch(r"-?(0|[1-9][0-9]{0,17})", t) for t in texts):
            type_ = pa.int64()
        elif texts and all(re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", t) for t in texts):
            try:
                pa.array(texts).cast(pa.date32())
                type_ = pa.date32()
            except pa.ArrowInvalid:
                pass
        for entry, typed in zip(partitions, out):
            if key in entry:
                typed[key] = pa.scalar(None if entry[key] == _HIVE_NULL else entry[key], pa.string()).cast(type_)
    return out


def _missing(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f"{path}: there is no folder {folder}"
    return f"{path}: there is no such file{closest(path.name, sorted(p.name for p in folder.iterdir()))}"
