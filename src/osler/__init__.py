"""osler finds what is wrong with a machine-learning model and says why.

Importing this package imports neither torch nor numpy: each public name is fetched when it is first asked for (PEP 562).
"""

from __future__ import annotations

__version__ = "0.1.0"

# typing.TYPE_CHECKING without importing typing: this module is loaded in every watched process
TYPE_CHECKING = False

if TYPE_CHECKING:
    from osler.app.watch import Watch as Watch
    from osler.app.watch import watch as watch
    from osler.core.finding import Confidence as Confidence
    from osler.core.finding import Finding as Finding
    from osler.core.finding import Severity as Severity
    from osler.core.finding import Where as Where
    from osler.core.report import Report as Report
    from osler.core.rule import Rule as Rule
    from osler.core.settings import Settings as Settings
    from osler.training.tags import tag as tag

_HOMES = {
    "Confidence": "osler.core.finding",
    "Finding": "osler.core.finding",
    "Report": "osler.core.report",
    "Rule": "osler.core.rule",
    "Settings": "osler.core.settings",
    "Severity": "osler.core.finding",
    "Watch": "osler.app.watch",
    "Where": "osler.core.finding",
    "tag": "osler.training.tags",
    "watch": "osler.app.watch",
}

__all__ = [  # noqa: RUF022 - the order people meet them in
    "watch",
    "tag",
    "Watch",
    "Report",
    "Finding",
    "Where",
    "Severity",
    "Confidence",
    "Rule",
    "Settings",
    "__version__",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'osler' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
