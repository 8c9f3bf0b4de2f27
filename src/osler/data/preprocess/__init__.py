"""Fitted preprocessing: which rows each fit saw, and whether the state in use is the one trained with."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from osler.data.preprocess.blocks import Guard as Guard
    from osler.data.preprocess.blocks import guard as guard
    from osler.data.preprocess.compare import check_preprocess as check_preprocess
    from osler.data.preprocess.snapshots import StateSnapshot as StateSnapshot
    from osler.data.preprocess.snapshots import load_snapshot as load_snapshot
    from osler.data.preprocess.snapshots import snapshot as snapshot

_HOMES = {
    "Guard": "blocks",
    "StateSnapshot": "snapshots",
    "check_preprocess": "compare",
    "guard": "blocks",
    "load_snapshot": "snapshots",
    "snapshot": "snapshots",
}
__all__ = ["Guard", "StateSnapshot", "check_preprocess", "guard", "load_snapshot", "snapshot"]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{home}"), name)
