"""Training and evaluation rows that must be apart: copies, near copies, time, groups, features that know the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from osler.data.splits.check import check_splits
    from osler.data.splits.splitter import TimeSplit

__all__ = ["TimeSplit", "check_splits"]

_HOME = {"check_splits": "osler.data.splits.check", "TimeSplit": "osler.data.splits.splitter"}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOME[name]), name)
