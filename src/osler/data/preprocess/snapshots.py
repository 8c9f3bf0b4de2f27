"""The fitted state of a transformer as plain data: what it is, its settings, its numbers, and a hash of all of it.

Numbers that a fit learned (means, spreads, components) are aggregates and are kept. Words and categories are not: of them
there are counts, order and hashes, unless their texts are asked for.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from osler.core.jsonable import strict
from osler.data.need import DataError

SCHEMA = 1
KIND = "osler-preprocess-state"


@dataclass(frozen=True, slots=True)
class Attribute:
    """One fitted attribute.

    Attributes:
        kind: `numbers` (an array or a number), `words` (categories, in order), `vocabulary` (words with their places),
            `value` (text, truth values, None) or `other` (told apart by its hash only).
        hash: SHA-256 over type, shape and content.
        dtype: of an array, byte order left out.
        shape: of an array or list.
        values: numbers in row-major order where there are few enough, words where they were asked for, else None.
        low, high: of the finite numbers; None where there are none.
        words: a hash of each word, in order; of a vocabulary, in the order of its places.
    """

    kind: str
    hash: str
    dtype: str = ""
    shape: tuple[int, ...] = ()
    values: tuple[float, ...] | tuple[str, ...] | None = None
    low: float | None = None
    high: float | None = None
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """One transformer, of a Pipeline or a ColumnTransformer or alone.

    Attributes:
        path: names down to it, joined by points; empty for the transformer itself.
        type: module (its first part) and class.
        params: settings as text.
        features: names of the input columns, where they were given.
        n_features: how many input columns; None where it is not told.
        attributes: fitted attributes by name; of several categories one each, `categories_[2]`.
        opaque: attributes that could not be read.
    """

    path: str
    type: str
    params: dict[str, str] = field(default_factory=dict)
    features: tuple[str, ...] = ()
    n_features: int | None = None
    attributes: dict[str, Attribute] = field(default_factory=dict)
    opaque: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StateSnapshot:
    """The fitted state of a transformer.

    Attributes:
        name: its class.
        libraries: versions in use (`sklearn`, `numpy`); not part of the hash.
        steps: from the outside in.
    """

    name: str
    libraries: dict[str, str]
    steps: tuple[Step, ...]

    @property
    def hash(self) -> str:
        """SHA-256 of classes, settings, column names and fitted state; the same wherever the state is the same."""
        text = hashlib.sha256()
        for step in self.steps:
            body = {
                "path": step.path,
                "type": step.type,
                "params": step.params,
                "features": list(step.features),
                "attributes": {name: a.hash for name, a in step.attributes.items()},
            }
            text.update(json.dumps(body, sort_keys=True).encode())
        return text.hexdigest()

    def save(self, path: str | Path) -> Path:
        """Write it as JSON and return the path.

        Raises:
            OSError: it cannot be written.
        """
        path = Path(path)
        body = strict({"kind": KIND, "schema": SCHEMA, "hash": self.hash, **asdict(self)})
        assert isinstance(body, dict)
        text = json.dumps({**body, "checksum": _checksum(body)}, indent=1, sort_keys=True, allow_nan=False)
        path.write_text(text + "\n", encoding="utf-8")
        return path


def snapshot(transformer: object, *, show_values: bool = False) -> StateSnapshot:
    """The fitted state of a transformer, Pipeline, ColumnTransformer, or any object whose attributes hold its state.

    Args:
        transformer: fitted; it is only read.
        show_values: keep the texts of categories and vocabularies, not only their hashes.

    Raises:
        DataError: it has no fitted state.
    """
    from osler.data.preprocess.walk import steps_of, versions

    steps = tuple(steps_of(transformer, show_values))
    if not any(step.attributes or step.features for step in steps):
        raise DataError(f"{type(transformer).__name__} holds no fitted state: fit it before taking a snapshot")
    return StateSnapshot(type(transformer).__name__, versions(), steps)


def load_snapshot(path: str | Path) -> StateSnapshot:
    """Read a snapshot that `save` wrote.

    Raises:
        DataError: the file cannot be read, is no snapshot, or its content does not fit its hash.
    """
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        raise DataError(f"{path} is no JSON; `osler.snapshot(transformer).save(…)` writes the file") from None
    if not isinstance(data, dict) or data.get("kind") != KIND:
        raise DataError(f"{path} is no snapshot of a fitted state; `osler.snapshot(transformer).save(…)` writes one")
    if data.get("schema") != SCHEMA:
        raise DataError(f"{path} is a snapshot of schema {data.get('schema')!r}; this osler reads {SCHEMA}")
    try:
        read = StateSnapshot(
            str(data["name"]),
            {str(k): str(v) for k, v in data["libraries"].items()},
            tuple(_step(step) for step in data["steps"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"{path} is a damaged snapshot ({type(error).__name__}: {error})") from None
    if data.pop("checksum", None) != _checksum(data) or read.hash != data.get("hash"):
        raise DataError(f"{path} was changed after it was written: its content does not fit its hash")
    return read


def _checksum(body: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def _step(data: dict[str, Any]) -> Step:
    count = data["n_features"]
    return Step(
        str(data["path"]),
        str(data["type"]),
        {str(k): str(v) for k, v in data["params"].items()},
        tuple(str(f) for f in data["features"]),
        None if count is None else int(count),
        {str(k): _attribute(v) for k, v in data["attributes"].items()},
        tuple(str(o) for o in data["opaque"]),
    )


def _attribute(data: dict[str, Any]) -> Attribute:
    kind = str(data["kind"])
    values: tuple[float, ...] | tuple[str, ...] | None = None
    if data["values"] is not None:
        values = tuple(float(v) for v in data["values"]) if kind == "numbers" else tuple(str(v) for v in data["values"])
    return Attribute(
        kind,
        str(data["hash"]),
        str(data["dtype"]),
        tuple(int(n) for n in data["shape"]),
        values,
        None if data["low"] is None else float(data["low"]),
        None if data["high"] is None else float(data["high"]),
        tuple(str(w) for w in data["words"]),
    )
