"""What is known of each estimator object, for as long as it lives."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

from osler.data.preprocess.states import State


@dataclass(slots=True)
class Known:
    """One estimator.

    Attributes:
        ref: to the object.
        owner: its number.
        state: what its fits left in it; None where that is not known.
    """

    ref: weakref.ref[Any]
    owner: int
    state: State | None = None


class Estimators:
    """Estimators by identity; nothing is added to the objects themselves."""

    def __init__(self) -> None:
        self._held: dict[int, Known] = {}
        self._count = 0

    def get(self, estimator: Any) -> Known | None:
        """What is known of it; None where nothing is."""
        known = self._held.get(id(estimator))
        return known if known is not None and known.ref() is estimator else None

    def make(self, estimator: Any) -> Known | None:
        """As `get`, with a new entry where there is none; None for objects that cannot be referred to weakly."""
        known = self.get(estimator)
        if known is not None:
            return known
        key = id(estimator)
        held = self._held

        def gone(ref: weakref.ref[Any]) -> None:
            entry = held.get(key)
            if entry is not None and entry.ref is ref:
                del held[key]

        try:
            ref = weakref.ref(estimator, gone)
        except TypeError:
            return None
        self._count += 1
        known = held[key] = Known(ref, self._count)
        return known

    def forget(self, estimator: Any) -> None:
        """Its state is not known any more."""
        self._held.pop(id(estimator), None)
