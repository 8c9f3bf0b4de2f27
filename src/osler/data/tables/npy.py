"""Numpy's own files; object arrays, which would have to be unpickled, are refused."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from osler.data.need import DataError
from osler.data.tables.arrays import from_array, from_arrays
from osler.data.tables.source import Source


def from_npy(path: Path, name: str) -> Source:
    """A source over an `.npy` (mapped, not loaded) or an `.npz` (one column an array).

    Raises:
        DataError: an object array, a damaged file, arrays of different length.
    """
    try:
        loaded: Any = np.load(path, mmap_mode="r", allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return from_array(loaded, name)
        with loaded:
            return from_arrays({key: loaded[key] for key in loaded.files}, name)
    except DataError:
        raise
    except ValueError as error:
        if "pickle" in str(error) or "Python objects" in str(error):
            raise DataError(
                f"{name} holds Python objects, which osler does not load, as unpickling can run any code: "
                "save plain numbers or text (array.astype(float), array.astype(str))"
            ) from None
        raise DataError(f"{name} is a damaged numpy file: {error}") from None
    except (OSError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise DataError(f"{name} is a damaged numpy file: {error}") from None
