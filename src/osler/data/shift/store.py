"""A fitted reference as a file: numpy arrays and JSON in a `.npz`, nothing that is executed when it is read."""

from __future__ import annotations

import io
import json
import os
import zipfile
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np

from osler.core.settings.shift import Shift
from osler.data.need import DataError
from osler.data.shift.fourier import FeatureSum, FourierFeatures
from osler.data.shift.gaussian import Moments
from osler.data.shift.null import Null
from osler.data.shift.reference import Reference, State
from osler.data.shift.scaler import Scaler

FORMAT = "osler-shift-reference"
VERSION = 1


def save(reference: Reference, path: str | Path, extra: dict[str, Any] | None = None) -> None:
    """Write a reference; the file is replaced as a whole, so that a reader never sees half of it.

    It holds sums, quantiles and directions, no row of the data.

    Args:
        reference: what to write.
        path: of the file.
        extra: JSON-ready facts to keep beside it.
    """
    r = reference
    about = {
        "format": FORMAT,
        "version": VERSION,
        "names": list(r.names),
        "window": r.window,
        "bandwidth": r.bandwidth,
        "time": r.time,
        "weight": r.whitener.weight,
        "count": r.state.moments.size,
        "own": [r.own_kl, r.own_mmd],
        "settings": asdict(r.settings),
        "extra": extra or {},
    }
    arrays = {
        "about": np.frombuffer(json.dumps(about).encode(), dtype=np.uint8),
        "scaler": np.stack([r.scaler.low, r.scaler.high, r.scaler.mean, r.scaler.scale]),
        "frequencies": r.random.frequencies,
        "moments_total": r.state.moments.total,
        "moments_outer": r.state.moments.outer,
        "features_total": r.state.features.total,
        "total": r.state.total,
        "square": r.state.square,
        "kl_null": r.kl_null.draws,
        "mmd_null": r.mmd_null.draws,
    }
    if r.basis is not None:
        arrays["basis"] = r.basis
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    target = Path(path)
    beside = target.with_name(f"{target.name}.{os.getpid()}.part")
    beside.write_bytes(buffer.getvalue())
    beside.replace(target)


def load(path: str | Path) -> tuple[Reference, dict[str, Any]]:
    """The reference in a file that `save` wrote, and its `extra`.

    Raises:
        DataError: the file is missing, or is no such file, or is damaged.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            about = json.loads(bytes(file["about"]))
            if about["format"] != FORMAT:
                raise KeyError("format")
            if about["version"] != VERSION:
                raise DataError(
                    f"{path} is of format version {about['version']}, this osler reads {VERSION}: fit it again"
                )
            return _built(about, {name: file[name] for name in file.files if name != "about"}), about["extra"]
    except DataError:
        raise
    except FileNotFoundError:
        raise DataError(f"{path} does not exist") from None
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, np.linalg.LinAlgError):
        raise DataError(f"{path} is no reference that osler saved, or is damaged: fit it again") from None


def _built(about: dict[str, Any], arrays: dict[str, Any]) -> Reference:
    count = int(about["count"])
    state = State(
        Moments(count, arrays["moments_total"], arrays["moments_outer"]),
        FeatureSum(count, arrays["features_total"]),
        arrays["total"],
        arrays["square"],
    )
    random = FourierFeatures.with_frequencies(arrays["frequencies"])
    names = tuple(map(str, about["names"]))
    basis = arrays.get("basis")
    features = len(names)
    projected = features if basis is None else basis.shape[1]
    fits = (
        arrays["scaler"].shape == (4, features)
        and random.frequencies.shape[0] == features
        and state.moments.outer.shape == (projected, projected)
        and state.moments.total.shape == (projected,)
        and state.features.total.shape == (random.size,)
        and state.total.shape == state.square.shape == (features,)
        and all(np.isfinite(a).all() for a in arrays.values())
    )
    if not fits:
        raise ValueError("arrays do not fit together")
    return Reference(
        names=names,
        scaler=Scaler(*arrays["scaler"]),
        basis=basis,
        random=random,
        state=state,
        weight=float(about["weight"]),
        bandwidth=float(about["bandwidth"]),
        window=int(about["window"]),
        time=float(about["time"]),
        kl_null=Null(arrays["kl_null"]),
        mmd_null=Null(arrays["mmd_null"]),
        own_kl=float(about["own"][0]),
        own_mmd=float(about["own"][1]),
        # a setting that this version no longer has is passed over, a new one has its default
        settings=Shift(**{k: v for k, v in about["settings"].items() if k in {f.name for f in fields(Shift)}}),
    )
