"""How far a long piece of work has come: the parts tell, `app` draws."""

from __future__ import annotations

from collections.abc import Callable

# progress(what, done, total): what is being done, in a few words; how much of it; of how much (None: not known).
Progress = Callable[[str, int, "int | None"], None]


def quiet(what: str, done: int, total: int | None) -> None:
    """Tell nobody."""
