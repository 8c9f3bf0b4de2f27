"""Wraps the methods of scikit-learn's classes, and takes the wrappers off again.

Classes are patched, never objects: what is pickled, cloned or compared is as without. A wrapper holds nothing but the
original function, so a user's class that is pickled by value (cloudpickle, loky) takes nothing of osler along; where
osler is absent it calls the original.
"""

from __future__ import annotations

import copy
import functools
import sys
from _thread import RLock
from types import FunctionType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Protocol

    class Hooks(Protocol):
        """What the wrappers call."""

        def method(
            self, original: Callable[..., Any], name: str, owner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
        ) -> Any:
            """A method of an estimator is called: call `original` and give what it gives."""

        def selected(self, out: Any, data: Any, rows: Any) -> None:
            """scikit-learn selected rows of `data`."""

        def splits(
            self, pairs: Iterator[tuple[Any, Any]], splitter: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
        ) -> Iterator[tuple[Any, Any]]:
            """A splitter is asked for its folds: give them on."""

        def new_class(self, kind: type) -> None:
            """A class of estimators has been defined."""


FITS = frozenset({"fit", "fit_transform", "fit_predict", "partial_fit"})
JUDGES = frozenset({"predict", "predict_proba", "predict_log_proba", "decision_function", "score"})
METHODS = (*sorted(FITS), "transform", *sorted(JUDGES))
_HERE = __name__
_INDEXERS = ("sklearn.model_selection._split", "sklearn.utils.metaestimators")
_SPLITTERS = "sklearn.model_selection._split"


current: Hooks | None = None  # where the calls go; None: straight to the originals


class Late:
    """Stands in for a guard until an estimator is first used, so that a script that only imports pays next to nothing.

    Args:
        patches: the wrappers that are in place.
        start: makes the guard and lets the calls go to it; what goes wrong there it tells the user itself.
    """

    def __init__(self, patches: Patches, start: Callable[[Patches], None]) -> None:
        self._patches = patches
        self._start = start
        self._lock = RLock()

    def _hooks(self) -> Hooks | None:
        global current
        with self._lock:
            if current is self:
                current = None  # what starting calls is not watched
                self._start(self._patches)
                if current is None:
                    self._patches.remove()
        return current

    def method(
        self, original: Callable[..., Any], name: str, owner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Start, and hand the call on."""
        hooks = self._hooks()
        return original(owner, *args, **kwargs) if hooks is None else hooks.method(original, name, owner, args, kwargs)

    def selected(self, out: Any, data: Any, rows: Any) -> None:
        """Start, and hand the call on."""
        hooks = self._hooks()
        if hooks is not None:
            hooks.selected(out, data, rows)

    def splits(
        self, pairs: Iterator[tuple[Any, Any]], splitter: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Iterator[tuple[Any, Any]]:
        """Start, and hand the call on."""
        hooks = self._hooks()
        return pairs if hooks is None else hooks.splits(pairs, splitter, args, kwargs)

    def new_class(self, kind: type) -> None:
        """Wrap it."""
        with self._lock:
            self._patches.add(kind)
            self._patches.modules()


def install_late(base: type, start: Callable[[Patches], None]) -> None:
    """Put the wrappers in place and make the guard when an estimator is first used (see `Late`).

    Args:
        base: the class that all estimators inherit from.
        start: called once, with the wrappers.
    """
    global current
    if current is not None:
        return
    patches = Patches()
    patches.install(base)
    current = Late(patches, start)


class Patches:
    """The wrappers that are in place."""

    def __init__(self) -> None:
        self._undo: list[tuple[Any, str, Any, Any]] = []
        self._done: set[tuple[type, str]] = set()
        self._modules: set[str] = set()

    @property
    def installed(self) -> bool:
        """Whether any wrapper is in place."""
        return bool(self._undo)

    def install(self, base: type) -> None:
        """Wrap every class that inherits from `base`, now and when it is defined."""
        for kind in _family(base):
            self.add(kind)
        self._announce(base)
        self.modules()

    def add(self, kind: type) -> None:
        """Wrap the methods of one class and of what it inherits them from."""
        for owner in kind.__mro__:
            if owner is object:
                continue
            for name in METHODS:
                if name in owner.__dict__ and (owner, name) not in self._done:
                    self._done.add((owner, name))
                    self._put(owner, name, _wrapper(owner.__dict__[name], name))

    def modules(self) -> None:
        """Wrap what stands in modules, as far as they have been imported."""
        if len(self._modules) == len(_INDEXERS):
            return
        for name in _INDEXERS:
            module = sys.modules.get(name)
            if module is None or name in self._modules or not hasattr(module, "_safe_indexing"):
                continue
            if getattr(getattr(module, "__spec__", None), "_initializing", False):
                continue
            self._modules.add(name)
            self._put(module, "_safe_indexing", _indexer(module._safe_indexing))
            if name == _SPLITTERS:
                for kind in list(vars(module).values()):
                    if isinstance(kind, type) and isinstance(kind.__dict__.get("split"), FunctionType):
                        self._put(kind, "split", _splitter(kind.__dict__["split"]))

    def remove(self) -> None:
        """Put every original back."""
        while self._undo:
            place, name, original, ours = self._undo.pop()
            there = place.__dict__.get(name)
            if there is ours:
                if original is None:
                    delattr(place, name)
                else:
                    setattr(place, name, original)
            elif isinstance(there, FunctionType):
                _unwrap(there, original, ours)
        self._done.clear()
        self._modules.clear()

    def _put(self, place: Any, name: str, ours: Any) -> None:
        if ours is None:
            return
        original = place.__dict__.get(name)
        try:
            setattr(place, name, ours)
        except (AttributeError, TypeError):  # a class that is closed
            return
        self._undo.append((place, name, original, ours))

    def _announce(self, base: type) -> None:
        before = base.__dict__.get("__init_subclass__")

        def __init_subclass__(cls: Any, /, **kwargs: Any) -> None:
            if before is None:
                super(base, cls).__init_subclass__(**kwargs)  # type: ignore[arg-type]
            else:
                before.__get__(None, cls)(**kwargs)
            if current is not None:
                current.new_class(cls)

        self._put(base, "__init_subclass__", classmethod(__init_subclass__))


def _family(base: type) -> list[type]:
    seen: dict[type, None] = {}
    waiting = [base]
    while waiting:
        kind = waiting.pop()
        if kind not in seen:
            seen[kind] = None
            waiting += type.__subclasses__(kind)
    return list(seen)


def _wrapper(original: Any, name: str) -> Any:
    """A function, or a method that is there under a condition (`available_if`), wrapped; None for anything else."""
    if getattr(original, "__isabstractmethod__", False):
        return None
    if isinstance(original, FunctionType):
        return _method(original, name)
    inner = getattr(original, "fn", None)
    if isinstance(inner, FunctionType) and hasattr(original, "check") and hasattr(type(original), "__get__"):
        conditional = copy.copy(original)
        conditional.fn = _method(inner, name)
        return conditional
    return None


def _method(original: FunctionType, name: str) -> FunctionType:
    @functools.wraps(original)
    def method(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        here = sys.modules.get(_HERE)
        hooks = None if here is None else here.current
        if hooks is None:
            return original(self, *args, **kwargs)
        return hooks.method(original, name, self, args, kwargs)

    return method  # type: ignore[return-value]


def _indexer(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def _safe_indexing(X: Any, indices: Any, *args: Any, **kwargs: Any) -> Any:
        out = original(X, indices, *args, **kwargs)
        if current is not None and not args and kwargs.get("axis", 0) == 0:
            current.selected(out, X, indices)
        return out

    return _safe_indexing


def _splitter(original: FunctionType) -> FunctionType:
    @functools.wraps(original)
    def split(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        pairs = original(self, *args, **kwargs)
        here = sys.modules.get(_HERE)
        hooks = None if here is None else here.current
        return pairs if hooks is None else hooks.splits(pairs, self, args, kwargs)

    return split  # type: ignore[return-value]


def _unwrap(outer: FunctionType, original: Any, ours: Any) -> None:
    """Where somebody has wrapped our wrapper (`set_output` does), put the original into that wrapper."""
    for cell in outer.__closure__ or ():
        try:
            if cell.cell_contents is ours:
                cell.cell_contents = original
        except ValueError:  # an empty cell
            continue
    if getattr(outer, "__wrapped__", None) is ours:
        outer.__wrapped__ = original  # type: ignore[attr-defined]
