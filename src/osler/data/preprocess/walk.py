"""Reading the fitted attributes of a transformer, and hashing them so that equal states have equal hashes."""

from __future__ import annotations

import functools
import hashlib
import sys
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osler.data.preprocess.snapshots import Attribute, Step

MAX_VALUES = 4096  # numbers of one attribute that are kept; larger arrays keep range and hash
MAX_WORDS = 20_000  # hashes of words that are kept
MAX_PARTS = 256  # estimators or arrays of one list that are looked into
_DEPTH = 6
_INERT_PARAMS = {"n_jobs", "verbose", "copy", "memory", "copy_X", "cache_size", "verbose_feature_names_out", "cv"}
_PARTS = {"steps", "transformers", "transformer_list", "remainder", "estimator", "base_estimator"}
_INERT = {"n_features_in_", "feature_names_in_", "named_transformers_", "sparse_output_", "output_indices_"}


_CODE = (types.FunctionType, types.MethodType, types.BuiltinFunctionType, functools.partial, np.ufunc)


def versions() -> dict[str, str]:
    """Versions of the libraries whose code uses the state."""
    names = [n for n in ("sklearn", "numpy") if n in sys.modules]
    return {name: str(getattr(sys.modules[name], "__version__", "?")) for name in names}


def steps_of(obj: Any, show_values: bool, path: str = "") -> Iterator[Step]:
    """The transformer and all that it is made of, from the outside in."""
    walk = _Walk(show_values)
    walk.step(obj, path, 0)
    yield from walk.steps


@dataclass(slots=True)
class _Found:
    attributes: dict[str, Attribute] = field(default_factory=dict)
    opaque: list[str] = field(default_factory=list)


class _Walk:
    def __init__(self, show_values: bool) -> None:
        self._show = show_values
        self._seen: set[int] = set()
        self.steps: list[Step] = []

    def step(self, obj: Any, path: str, depth: int) -> None:
        """Add the step for `obj`, then those inside it."""
        if id(obj) in self._seen or depth > _DEPTH:
            return
        self._seen.add(id(obj))
        found = _Found()
        inside: list[tuple[str, Any]] = []
        for name, part, columns in _parts(obj):
            inside.append((name, part))
            if columns is not None:
                found.attributes[f"columns of {name}"] = Attribute("value", _digest(columns), values=(columns,))
        for name, value in _state(obj):
            self._visit(name, value, found, inside, depth)
        features = getattr(obj, "feature_names_in_", ())
        count = getattr(obj, "n_features_in_", None)
        kind = type(obj)
        self.steps.append(
            Step(
                path,
                f"{kind.__module__.partition('.')[0]}.{kind.__qualname__}",
                _params(obj),
                tuple(str(f) for f in features),
                int(count) if isinstance(count, (int, np.integer)) else None,
                dict(sorted(found.attributes.items())),
                tuple(sorted(found.opaque)),
            )
        )
        for name, part in inside:
            self.step(part, f"{path}.{name}" if path else name, depth + 1)

    def _visit(self, name: str, value: Any, found: _Found, inside: list[tuple[str, Any]], depth: int) -> None:
        if isinstance(value, (np.random.RandomState, np.random.Generator, types.ModuleType)):
            return  # no state of the data
        if _is_estimator(value):
            inside.append((name, value))
            return
        attribute = self._attribute(value)
        if attribute is not None:
            # what is kept behind an underscore may be the training rows themselves: of these the hash is enough
            kept = replace(attribute, values=None) if name.startswith("_") else attribute
            found.attributes[name] = kept
        elif isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.dtype.kind == "O"):
            if len(value) > MAX_PARTS or depth > _DEPTH:
                found.opaque.append(name)
                return
            for i, item in enumerate(value):
                self._visit(f"{name}[{i}]", item, found, inside, depth + 1)
        elif isinstance(value, Mapping):
            for i, key in enumerate(sorted(value, key=str)):
                self._visit(f"{name}[{i}]", value[key], found, inside, depth + 1)
        elif isinstance(value, _CODE):
            return
        elif depth < _DEPTH and getattr(value, "__dict__", None):
            inside.append((name, value))
        else:
            found.opaque.append(name)

    def _attribute(self, value: Any) -> Attribute | None:
        if value is None or isinstance(value, (bool, np.bool_)):
            return Attribute("value", _digest(repr(value)), values=(repr(value),))
        if isinstance(value, (str, bytes, np.str_)):
            return Attribute("value", _digest(repr(value)), values=(str(value),) if self._show else None)
        if isinstance(value, (type, np.dtype)):
            return Attribute("value", _digest(str(value)), values=(str(value),))
        if isinstance(value, (int, float, np.number)):
            return _numbers(np.asarray(value))
        if hasattr(value, "tocsr") and hasattr(value, "nnz"):
            return _numbers(value.toarray()) if np.prod(value.shape) <= MAX_VALUES else _sparse(value.tocsr())
        if hasattr(value, "iloc") and hasattr(value, "index"):
            return self._labelled(value)
        if isinstance(value, Mapping):
            return self._mapping(value)
        if isinstance(value, (set, frozenset)):
            return self._words(np.array(sorted(value, key=str), object))
        return self._array(value)

    def _array(self, value: Any) -> Attribute | None:
        if isinstance(value, (list, tuple)):
            if not value or not all(isinstance(v, (int, float, str, np.number, np.str_)) for v in value):
                return None
            value = np.asarray(value, object if any(isinstance(v, str) for v in value) else None)
        if not isinstance(value, np.ndarray):
            return None
        if value.dtype.kind in "fiubcmM":
            return _numbers(value)
        if value.dtype.kind in "US" or (value.ndim == 1 and all(_is_word(v) for v in value.tolist())):
            return self._words(value)
        return None

    def _labelled(self, value: Any) -> Attribute | None:
        """A pandas Series or frame: its numbers, with a hash of each row's label."""
        numbers = value.to_numpy()
        if numbers.dtype.kind not in "fiub":
            return self._words(numbers.ravel().astype(object))
        return _numbers(numbers, tuple(_short(label) for label in value.index.tolist()[:MAX_WORDS]))

    def _mapping(self, value: Mapping[Any, Any]) -> Attribute | None:
        if not value or not all(isinstance(v, (int, float, np.number)) for v in value.values()):
            return None
        places = list(value.values())
        if sorted(places) == list(range(len(places))):
            words = [key for key, _ in sorted(value.items(), key=lambda item: item[1])]
            found = self._words(np.array([*words, None], object)[:-1])
            return Attribute("vocabulary", found.hash, "", found.shape, found.values, None, None, found.words)
        keys = sorted(value, key=lambda key: (str(key), str(type(key))))
        return _numbers(np.array([value[k] for k in keys], np.float64), tuple(_short(k) for k in keys[:MAX_WORDS]))

    def _words(self, array: NDArray[Any]) -> Attribute:
        items = array.ravel().tolist()
        whole = hashlib.sha256(repr(array.shape).encode())
        for item in items:
            whole.update(_short(item).encode())
        words = tuple(_short(item) for item in items) if len(items) <= MAX_WORDS else ()
        shown = tuple(str(item) for item in items) if self._show and len(items) <= MAX_WORDS else None
        return Attribute("words", whole.hexdigest(), "", array.shape, shown, None, None, words)


def _parts(obj: Any) -> Iterator[tuple[str, Any, str | None]]:
    """Named transformers inside a Pipeline, ColumnTransformer or FeatureUnion; of the second the columns as well."""
    fitted = getattr(obj, "transformers_", None)
    if isinstance(fitted, list):
        for name, part, columns in fitted:
            yield str(name), part if not isinstance(part, str) else _Word(part), _listed(columns)
        return
    for attribute in ("steps", "transformer_list"):
        named = getattr(obj, attribute, None)
        if isinstance(named, list) and all(isinstance(n, tuple) and len(n) == 2 for n in named):
            for name, part in named:
                yield str(name), part if part is not None and not isinstance(part, str) else _Word(str(part)), None
            return


class _Word:
    """`passthrough` or `drop` in the place of a transformer."""

    def __init__(self, what: str) -> None:
        self._what = what

    def get_params(self, deep: bool = False) -> dict[str, object]:
        """The word as a setting."""
        return {"does": self._what}


def _state(obj: Any) -> Iterator[tuple[str, Any]]:
    attributes: dict[str, Any] = dict(getattr(obj, "__dict__", {}))
    sklearn_like = hasattr(obj, "get_params")
    for name, value in sorted(attributes.items()):
        if name in _INERT or name == "transformers_":
            continue
        public = name.endswith("_") and not name.startswith("_")
        held = name.startswith("_") and (_is_estimator(value) or isinstance(value, np.ndarray))
        if (public or held) if sklearn_like else not name.startswith("__"):
            yield name, value


def _params(obj: Any) -> dict[str, str]:
    ask = getattr(obj, "get_params", None)
    if ask is None:
        return {}
    try:
        params = ask(deep=False)
    except Exception:  # a class whose __init__ does not keep to the convention
        return {}
    return {str(k): _setting(v) for k, v in sorted(params.items()) if k not in _INERT_PARAMS and k not in _PARTS}


def _setting(value: Any) -> str:
    if value is None or isinstance(value, (bool, int, float, str, np.number, np.bool_)):
        return repr(value.item() if isinstance(value, np.generic) else value)
    if isinstance(value, (list, tuple)) and len(value) <= 8 and all(isinstance(v, (int, float)) for v in value):
        return repr(list(value))
    if isinstance(value, (list, tuple, set, dict, np.ndarray)):
        array = np.asarray(sorted(value, key=str) if isinstance(value, set) else list(value), dtype=object)
        items = repr(value.tolist() if isinstance(value, np.ndarray) else array.tolist())
        return f"{type(value).__name__} of {len(value)} ({_digest(items)[:12]})"
    if isinstance(value, type) or callable(value):
        return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', type(value).__name__)}"
    return type(value).__name__


def _listed(columns: Any) -> str:
    if isinstance(columns, str):
        return columns
    if isinstance(columns, slice) or callable(columns):
        return repr(columns) if isinstance(columns, slice) else "chosen by a function"
    return ", ".join(str(c) for c in columns)


def _is_estimator(value: Any) -> bool:
    return (
        not isinstance(value, type)
        and hasattr(value, "fit")
        and (hasattr(value, "transform") or hasattr(value, "predict"))
    )


def _is_word(value: Any) -> bool:
    return value is None or isinstance(value, (str, bytes, int, float, bool))


def _numbers(array: NDArray[Any], words: tuple[str, ...] = ()) -> Attribute:
    plain = np.ascontiguousarray(array)
    if plain.dtype.kind in "mM":
        plain = plain.astype(np.int64)
    little = plain.astype(plain.dtype.newbyteorder("<"))
    if little.dtype.kind == "f":
        little[np.isnan(little)] = np.nan
    text = hashlib.sha256(f"{array.dtype.str[1:]}{array.shape}{words}".encode())
    text.update(little.tobytes())
    values: tuple[float, ...] | None = None
    low = high = None
    if plain.dtype.kind in "fiub":
        real = plain.astype(np.float64).ravel()
        values = tuple(real.tolist()) if real.size <= MAX_VALUES else None
        finite = real[np.isfinite(real)]
        if finite.size:
            low, high = float(finite.min()), float(finite.max())
    return Attribute("numbers", text.hexdigest(), array.dtype.str[1:], array.shape, values, low, high, words)


def _sparse(matrix: Any) -> Attribute:
    matrix = matrix.copy()
    matrix.sum_duplicates()
    text = hashlib.sha256(f"{matrix.dtype.str[1:]}{matrix.shape}".encode())
    for part in (matrix.indptr.astype("<i8"), matrix.indices.astype("<i8"), matrix.data):
        text.update(np.ascontiguousarray(part).tobytes())
    low, high = (float(matrix.data.min()), float(matrix.data.max())) if matrix.nnz else (None, None)
    return Attribute("numbers", text.hexdigest(), matrix.dtype.str[1:], matrix.shape, None, low, high)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _short(word: object) -> str:
    if isinstance(word, np.generic):
        word = word.item()
    if isinstance(word, float) and word != word:
        word = None
    return _digest(f"{type(word).__name__}:{word!r}")[:16]
