"""Labels and predictions from files and objects. Nothing is unpickled, nothing is run."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osler.data.need import DataError, need

Array = NDArray[Any]
LABEL_NAMES = ("labels", "label", "given", "given_label", "y", "target", "targets", "class")
PROB_NAMES = ("pred_probs", "probs", "probabilities", "predictions", "p", "logits")
_PICKLES = {".pkl", ".pickle", ".joblib", ".pt", ".pth", ".bin", ".ckpt"}


def read_labels(source: Any, key: str | None = None) -> Array:
    """One label per row, as a 1-D array of whatever type it was stored in.

    Args:
        source: a path (`.npy`, `.npz`, `.csv`, `.tsv`, `.txt`, `.parquet`, `.arrow`, `.feather`, `.safetensors`), also
            `file.npz:key`; or an array, a list, a pandas, polars or pyarrow column, a torch tensor.
        key: array or column to take where there are several; the usual names (`labels`, `given`, `y` …) are known.

    Raises:
        DataError: it cannot be read, would have to be unpickled, or is no single column.
    """
    array = _load(source, key, LABEL_NAMES, "labels", single=True)
    if array.ndim == 2 and 1 in array.shape:
        array = array.reshape(-1)
    if array.ndim != 1:
        raise DataError(
            f"the labels have {array.ndim} dimensions, shape {array.shape}; give one label a row "
            "(of one-hot rows, their argmax)"
        )
    return array


def read_probs(source: Any, key: str | None = None) -> Array:
    """Predicted probabilities, one row per label and one column per class, as a 2-D array of floats.

    A `.npy` file is mapped, not read. One column of numbers in [0, 1] is the probability of the second of two classes.

    Args:
        source: as for `read_labels`; of a table, every column of floats, in order (or those that begin with `key`).
        key: array to take, or how the columns begin.

    Raises:
        DataError: it cannot be read, would have to be unpickled, or is no table of numbers.
    """
    array = _load(source, key, PROB_NAMES, "predictions", single=False)
    if array.dtype.kind in "iub" or array.dtype.kind == "f":
        if array.ndim == 1:
            column = array.astype(np.float32)
            return np.stack([1 - column, column], axis=1)
        if array.ndim == 2:
            return array if array.dtype.kind == "f" else array.astype(np.float32)
    raise DataError(
        f"the predictions have shape {array.shape} and type {array.dtype}; give a table of numbers, one row per label, "
        "one column per class"
    )


def _load(source: Any, key: str | None, names: Sequence[str], what: str, single: bool) -> Array:
    if isinstance(source, (str, os.PathLike)):
        return _from_file(Path(source), key, names, what, single)
    if isinstance(source, Mapping):
        return plain(_pick(source, key, names, what, "the mapping"), what)
    return plain(source, what)


def plain(value: Any, what: str) -> Array:
    """A numpy array of any array-like: tensors come off their device, bfloat16 becomes float32.

    Raises:
        DataError: it is none.
    """
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        if str(value.dtype) == "torch.bfloat16":
            value = value.float()
    if hasattr(value, "combine_chunks"):
        value = value.combine_chunks()
    for name in ("to_numpy", "numpy"):
        if hasattr(value, name) and not isinstance(value, np.ndarray):
            value = _numpy(getattr(value, name))
            break
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise DataError(f"the {what} are no array: {error}") from None
    if array.ndim == 0:
        raise DataError(f"the {what} are a single value; give one per row")
    return array


def _numpy(method: Callable[..., Any]) -> Any:
    try:
        return method(zero_copy_only=False)  # pyarrow
    except TypeError:
        return method()


def _from_file(path: Path, key: str | None, names: Sequence[str], what: str, single: bool) -> Array:
    if not path.exists() and ":" in path.name:
        stem, _, inner = path.name.rpartition(":")
        path, key = path.with_name(stem), key or inner
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    suffix = path.suffix.lower()
    if suffix in _PICKLES:
        raise DataError(f"{path}: a {suffix} file would have to be unpickled, which can run code; save it as .npy")
    try:
        if suffix == ".npy":
            return np.asarray(np.load(path, mmap_mode="r" if not single else None, allow_pickle=False))
        if suffix == ".npz":
            with np.load(path, allow_pickle=False) as archive:
                return np.asarray(_pick(archive, key, names, what, str(path)))
        if suffix == ".safetensors":
            return _safetensors(path, key, names, what)
        return _table(path, suffix, key, names, what, single)
    except DataError:
        raise
    except Exception as error:  # readers raise many kinds; each is one line to the user
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        if "allow_pickle" in text or "pickled" in text:
            text = "it holds Python objects, which would have to be unpickled; save plain numbers or strings"
        raise DataError(f"{path}: cannot be read: {text}") from None


def _pick(archive: Any, key: str | None, names: Sequence[str], what: str, where: str) -> Any:
    keys = list(archive)
    if key is not None:
        if key not in keys:
            raise DataError(f"{where} has no {key!r}; it has {', '.join(map(str, keys))}")
        return archive[key]
    for name in names:
        if name in keys:
            return archive[name]
    if len(keys) == 1:
        return archive[keys[0]]
    listed = ", ".join(map(str, keys))
    raise DataError(f"{where} holds {listed}: say which are the {what} (`{where}:NAME`)")


def _safetensors(path: Path, key: str | None, names: Sequence[str], what: str) -> Array:
    safe_open = need("safetensors", "data").safe_open
    with safe_open(str(path), framework="numpy") as file:
        keys = {name: name for name in file.keys()}  # noqa: SIM118 (safe_open is no mapping)
        return np.asarray(file.get_tensor(_pick(keys, key, names, what, str(path))))


def _table(path: Path, suffix: str, key: str | None, names: Sequence[str], what: str, single: bool) -> Array:
    import pyarrow as pa

    if suffix in (".parquet", ".pq"):
        import pyarrow.parquet as pq

        table = pq.read_table(path)
    elif suffix in (".arrow", ".feather", ".ipc"):
        import pyarrow.feather as feather

        table = feather.read_table(path)
    elif suffix in (".csv", ".tsv", ".txt"):
        import pyarrow.csv as csv

        parse = csv.ParseOptions(delimiter="\t" if suffix == ".tsv" else ",")
        headed = _headed(path)
        table = csv.read_csv(path, csv.ReadOptions(autogenerate_column_names=not headed), parse)
    else:
        raise DataError(f"{path}: unknown kind of file; give .npy, .npz, .csv, .parquet, .arrow or .safetensors")
    if single:
        columns = {name: name for name in table.column_names}
        chosen = _pick(columns, key, names, what, str(path))
        column = table.column(chosen)
        if column.null_count and pa.types.is_integer(column.type):
            column = column.cast(pa.float64())
        return np.asarray(column.to_numpy())
    wanted = [
        field.name
        for field in table.schema
        if (pa.types.is_floating(field.type) if key is None else field.name.startswith(key))
    ]
    if not wanted and key is None and all(pa.types.is_integer(field.type) for field in table.schema):
        wanted = table.column_names
    if not wanted:
        raise DataError(f"{path}: no columns of {'floats' if key is None else f'names that begin with {key!r}'}")
    return np.stack([table.column(name).to_numpy().astype(np.float32) for name in wanted], axis=1)


def _headed(path: Path) -> bool:
    """Whether the first line of a text file is a heading: a field that is no number, or the only one that is none."""
    with path.open(encoding="utf-8", errors="replace") as file:
        first, second = file.readline(), file.readline()

    def number(text: str) -> bool:
        try:
            float(text.strip().strip('"'))
        except ValueError:
            return False
        return True

    heads = [number(t) for t in first.replace("\t", ",").split(",")]
    values = [number(t) for t in second.replace("\t", ",").split(",")]
    if all(heads):
        return False
    # a file of words: the first is a heading only when it is one of the usual names
    return any(values) or first.strip().strip('"').lower() in LABEL_NAMES or len(heads) > 1
