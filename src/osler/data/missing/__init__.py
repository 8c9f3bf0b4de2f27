"""Missing values, how much they matter, how to fill them in; and rows that training never saw the like of.

Everything is imported when it is asked for: `SensitivityImputer` needs scikit-learn, its autoencoder torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from osler.data.missing.check import check_missing
    from osler.data.missing.imputer import SensitivityImputer
    from osler.data.missing.outliers import check_outliers
    from osler.data.missing.sensitivity import Sensitivity

__all__ = ["Sensitivity", "SensitivityImputer", "check_missing", "check_outliers"]

_HOME = {
    "Sensitivity": "sensitivity",
    "SensitivityImputer": "imputer",
    "check_missing": "check",
    "check_outliers": "outliers",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"osler.data.missing.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
