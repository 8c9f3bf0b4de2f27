"""The order of classes, from whatever says it: lists, text, JSON, a transformers config, ONNX, safetensors metadata."""

from __future__ import annotations

import ast
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from osler.data.need import DataError, need

_KEYS = ("id2label", "label2id", "classes", "class_names", "labels", "names", "categories")


@dataclass(frozen=True)
class ClassList:
    """Class names by index.

    Attributes:
        name: where they come from, for messages.
        names: the name at each index; None where an index has none.
        clashes: indices at which `id2label` and `label2id` of the same source disagree.
    """

    name: str
    names: list[str | None]
    clashes: list[int] = field(default_factory=list)


def read_classes(source: Any, name: str = "the list") -> ClassList:
    """Class names by index.

    Args:
        source: a sequence of names; a mapping index → name or name → index; something with `classes_` (a fitted
            scikit-learn classifier or encoder); or a path: `.json` (list, mapping, or with the key `id2label`,
            `label2id`, `classes` …), `.txt` or `.csv` (a name per line), `.npy`, `.onnx`, `.safetensors`, or a folder
            that holds a `config.json`.
        name: for messages, where the source has no path.

    Raises:
        DataError: it cannot be read, holds no class list, repeats a name, or leaves indices out.
    """
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        out = _from_path(path, str(source))
    elif isinstance(source, ClassList):
        out = source
    else:
        out = _from_object(getattr(source, "classes_", source), name)
    if not out.names:
        raise DataError(f"{out.name}: the class list is empty")
    seen: dict[str, int] = {}
    for i, label in enumerate(out.names):
        if label is not None and label in seen:
            raise DataError(f"{out.name}: indices {seen[label]} and {i} have the same name")
        if label is not None:
            seen[label] = i
    return out


def _from_path(path: Path, name: str) -> ClassList:
    if path.is_dir():
        path = path / "config.json"
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    suffix = path.suffix.lower()
    try:
        if suffix == ".json":
            return _from_json(json.loads(path.read_text(encoding="utf-8")), name)
        if suffix in (".txt", ".csv", ".names", ""):
            lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
            return ClassList(name, [line for line in lines if line])
        if suffix == ".npy":
            return _from_object(np.load(path, allow_pickle=False), name)
        if suffix == ".onnx":
            return _from_onnx(path, name)
        if suffix == ".safetensors":
            return _from_metadata(_safetensors_metadata(path), name)
    except DataError:
        raise
    except Exception as error:  # readers raise many kinds; each is one line to the user
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        if "allow_pickle" in text or "pickled" in text:
            text = "it holds Python objects, which would have to be unpickled; save the names as text or JSON"
        raise DataError(f"{path}: cannot be read: {text}") from None
    if suffix in (".pkl", ".pickle", ".joblib", ".pt", ".pth"):
        raise DataError(f"{path}: would have to be unpickled, which can run code; save `list(model.classes_)` as JSON")
    raise DataError(f"{path}: unknown kind of class list; give .json, .txt, .npy, .onnx or .safetensors")


def _from_json(data: Any, name: str) -> ClassList:
    if isinstance(data, list):
        return _from_object(data, name)
    if not isinstance(data, Mapping):
        raise DataError(f"{name}: holds no class list")
    if "id2label" in data or "label2id" in data:
        return _from_config(data, name)
    for key in _KEYS:
        if isinstance(data.get(key), (list, Mapping)):
            return _from_object(data[key], name)
    if all(isinstance(v, (str, int)) for v in data.values()):
        return _from_object(data, name)
    raise DataError(f"{name}: holds no class list (looked for {', '.join(_KEYS)})")


def _from_config(data: Mapping[str, Any], name: str) -> ClassList:
    """A transformers config: `id2label` counts, `label2id` is compared with it."""
    forward, backward = data.get("id2label"), data.get("label2id")
    first = _from_object(forward if forward else backward, name)
    if not forward or not backward:
        return first
    second = _from_object(backward, name)
    width = max(len(first.names), len(second.names))
    one, two = _padded(first.names, width), _padded(second.names, width)
    return ClassList(name, first.names, [i for i in range(width) if one[i] != two[i]])


def _padded(names: list[str | None], width: int) -> list[str | None]:
    return [*names, *[None] * (width - len(names))]


def _from_object(data: Any, name: str) -> ClassList:
    if isinstance(data, Mapping):
        return ClassList(name, _by_index(data, name))
    if hasattr(data, "tolist"):
        data = data.tolist()
    if isinstance(data, (list, tuple)):
        if any(isinstance(v, (list, tuple, Mapping)) for v in data):
            raise DataError(f"{name}: a class list is flat, one name per class")
        return ClassList(name, [None if v is None else str(v) for v in data])
    raise DataError(f"{name}: {type(data).__name__} is no class list")


def _by_index(data: Mapping[Any, Any], name: str) -> list[str | None]:
    """Index → name, or name → index, whichever has whole numbers."""
    keys, values = list(data), list(data.values())
    if all(_whole(v) for v in values) and not all(_whole(k) for k in keys):
        pairs = [(int(v), str(k)) for k, v in data.items()]
    elif all(_whole(k) for k in keys):
        pairs = [(int(k), str(v)) for k, v in data.items()]
    else:
        raise DataError(f"{name}: neither the keys nor the values are indices")
    if len({i for i, _ in pairs}) < len(pairs):
        raise DataError(f"{name}: an index stands for two names")
    if min(i for i, _ in pairs) < 0 or max(i for i, _ in pairs) >= 10 * len(pairs) + 1000:
        raise DataError(f"{name}: the indices reach from {min(pairs)[0]} to {max(pairs)[0]} for {len(pairs)} names")
    out: list[str | None] = [None] * (max(i for i, _ in pairs) + 1)
    for i, label in pairs:
        out[i] = label
    return out


def _whole(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    return isinstance(value, (int, np.integer)) or (isinstance(value, str) and value.strip().lstrip("-").isdigit())


def _from_metadata(metadata: Mapping[str, str], name: str) -> ClassList:
    for key in _KEYS:
        text = metadata.get(key)
        if text is None:
            continue
        try:
            return _from_object(json.loads(text), name)
        except json.JSONDecodeError:
            pass
        try:  # some exporters write a Python literal; only literals are read, nothing is run
            return _from_object(ast.literal_eval(text), name)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return ClassList(name, [part.strip() for part in text.split(",") if part.strip()])
    raise DataError(f"{name}: its metadata hold no class list (looked for {', '.join(_KEYS)})")


def _safetensors_metadata(path: Path) -> dict[str, str]:
    with need("safetensors", "data").safe_open(str(path), framework="numpy") as file:
        return dict(file.metadata() or {})


def _from_onnx(path: Path, name: str) -> ClassList:
    """ZipMap or classifier nodes first: they are what the model does; then the metadata, which only says so."""
    onnx = need("onnx", "onnx", "reading class lists of ONNX files")
    model = onnx.load(str(path), load_external_data=False)
    found: list[str | None] = []
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.name in ("classlabels_strings", "classlabels_string"):
                found = [value.decode("utf-8", "replace") for value in attribute.strings] or found
            elif attribute.name in ("classlabels_int64s", "classlabels_ints") and not found:
                found = [str(value) for value in attribute.ints]
    if found:
        return ClassList(name, found)
    return _from_metadata({entry.key: entry.value for entry in model.metadata_props}, name)
