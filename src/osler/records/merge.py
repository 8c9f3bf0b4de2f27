"""Joining what several processes, or several calls, said about the same thing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from osler.core.report import NotChecked
from osler.records import parse


def not_checked(pairs: Iterable[tuple[str, str]]) -> list[NotChecked]:
    """Each pair of what and why once, in the order in which they came; rules are known by their names."""
    from osler.catalogue import RULES

    return [NotChecked(what, why, is_rule=what in RULES) for what, why in dict.fromkeys(pairs)]


def cells(columns: Sequence[Sequence[float | None]]) -> list[list[float | None]]:
    """The cells of a heat map, with None where a negative number says that there was none (see `core.sink`)."""
    return [[None if v is None or v < 0 else v for v in column] for column in columns]


def overhead(figures: Sequence[dict[str, object]]) -> dict[str, object]:
    """One set of figures: those of the process with the worst ratio, with the steps and seconds of all of them."""
    if not figures:
        return {}
    out = max(figures, key=_ratio).copy()
    for name in ("steps", "seconds"):
        known = [v for f in figures if (v := parse.real(f.get(name))) is not None]
        if known:
            total = sum(known)
            out[name] = int(total) if name == "steps" and abs(total) < 2**63 else total
    return out


def _ratio(figures: dict[str, object]) -> float:
    ratio = parse.real(figures.get("ratio"))
    return float("-inf") if ratio is None or ratio != ratio else ratio


class Labels:
    """The names of a run's processes: `main`, `rank N`, `pid N`.

    Args:
        parent: pid of the supervising parent, whose own child is `main`; None where it is not known, then the first
            process without a rank is.
    """

    def __init__(self, parent: int | None) -> None:
        self._parent = parent
        self._given: set[str] = set()

    def name(self, pid: int, ppid: int | None, rank: int | None) -> str:
        """The label of a process; no label is given twice."""
        if rank is not None:
            label = f"rank {rank}"
        elif (self._parent is None or ppid == self._parent) and "main" not in self._given:
            label = "main"
        else:
            label = f"pid {pid}"
        if label in self._given:
            label = f"{label} (pid {pid})"
        self._given.add(label)
        return label
