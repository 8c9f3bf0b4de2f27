"""Optional packages, and the one line that says how to get them."""

from __future__ import annotations

import importlib
from typing import Any


class DataError(ValueError):
    """Data or arguments that cannot be used; the message is one clear line that says what to do."""


def need(module: str, extra: str = "data", why: str = "") -> Any:
    """Import an optional module.

    Args:
        module: dotted name, e.g. `scipy.stats`.
        extra: the extra of osler that installs it.
        why: what needs it, as the beginning of the sentence.

    Raises:
        DataError: the package is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name is not None and error.name.partition(".")[0] != package:
            raise
        raise DataError(f"{why or 'this check'} needs {package}: pip install 'osler[{extra}]'") from None
