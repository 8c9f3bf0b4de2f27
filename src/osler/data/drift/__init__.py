"""Drift: which columns of new data have moved against a reference, how far, how surely, and since when.

    report = check_drift("last_month.parquet", "today.parquet")
    profile = build_profile("last_month.parquet")     # a few KB a column, in place of the data
    profile.save("reference.profile")

The way of the data: `edges` come from the reference, `kernels` and `grid` count numbers over them, `categorical` counts
categories, `profile` holds the states of all columns and merges them, `store` keeps them; `brackets` and `null` turn two
states into distances and p-values, `judge` decides, `windows` finds when it began, `picture` and `words` make the report.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from osler.data.drift.check import check_drift
    from osler.data.drift.grid import Edges, Grid
    from osler.data.drift.judge import compare
    from osler.data.drift.monitor import DriftMonitor
    from osler.data.drift.profile import Profile, build_profile

__all__ = ["DriftMonitor", "Edges", "Grid", "Profile", "build_profile", "check_drift", "compare"]

_HOME = {
    "DriftMonitor": "monitor",
    "Edges": "grid",
    "Grid": "grid",
    "Profile": "profile",
    "build_profile": "profile",
    "check_drift": "check",
    "compare": "judge",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
