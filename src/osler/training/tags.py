"""Names that the user gave to tensors with `osler.tag`."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import torch

T = TypeVar("T")

_names: dict[int, tuple[weakref.ref[Any], str]] = {}
_listeners: list[Callable[[torch.Tensor, str], None]] = []


def tag(tensor: T, name: str) -> T:
    """Give a tensor a name that findings and dumps use for it; returns the tensor unchanged.

    Works inside `forward` and outside, under `osler run`, `osler.watch()` and without either (then it does nothing
    beyond remembering the name while the tensor lives).

    Raises:
        TypeError: the name is not a string.
    """
    if not isinstance(name, str):
        raise TypeError(f"a tag is a string, not {type(name).__name__}")
    key = id(tensor)
    try:
        _names[key] = (weakref.ref(tensor, lambda _, key=key: _names.pop(key, None)), name)  # type: ignore[misc]
    except TypeError:  # not a tensor: nothing to remember it by
        return tensor
    for listener in _listeners:
        listener(tensor, name)  # type: ignore[arg-type]
    return tensor


def name_of(tensor: object) -> str | None:
    """The name given to this very tensor object, or None."""
    entry = _names.get(id(tensor))
    return entry[1] if entry is not None and entry[0]() is tensor else None


def listen(listener: Callable[[torch.Tensor, str], None]) -> Callable[[], None]:
    """Call `listener(tensor, name)` at every tag from now on; returns what ends it."""
    _listeners.append(listener)

    def stop() -> None:
        if listener in _listeners:
            _listeners.remove(listener)

    return stop
