"""The same states on Spark: counted where the data are, merged, judged here.

Workers run osler's own code on Arrow batches (`mapInArrow`), so osler must be installed on them. What comes back is a
few states of some KB a column, never rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from osler.data.spark.frame import SparkSource, is_spark
    from osler.data.spark.profile import count_spark, profile_spark
    from osler.data.spark.rows import RowOverlap, overlap_spark, row_hashes_spark

__all__ = [
    "RowOverlap",
    "SparkSource",
    "count_spark",
    "is_spark",
    "overlap_spark",
    "profile_spark",
    "row_hashes_spark",
]

_HOME = {
    "RowOverlap": "rows",
    "SparkSource": "frame",
    "count_spark": "profile",
    "is_spark": "frame",
    "overlap_spark": "rows",
    "profile_spark": "profile",
    "row_hashes_spark": "rows",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
