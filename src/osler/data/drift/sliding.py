"""Sums over a window that moves pane by pane, at a constant number of merges a step."""

from __future__ import annotations

from collections.abc import Mapping

from osler.data.drift.profile import Profile


class SlidingSum:
    """The sum of the panes of a window that only moves forward, one pane at a time.

    Smallest and largest values cannot be taken away again, so panes are never subtracted. Sums of panes up to a middle
    pane are kept for every beginning, and one sum of those after it; when the window has left the middle behind, its
    last pane becomes the middle. Every pane is added twice on average (a queue made of two stacks).
    """

    def __init__(self, empty: Profile) -> None:
        self._empty = empty
        self._forget()

    def _forget(self) -> None:
        self._upto: dict[int, Profile] = {}
        self._after: Profile | None = None
        self._middle = self._last = -(1 << 62)

    def window(self, begin: int, last: int, panes: Mapping[int, Profile]) -> Profile | None:
        """The sum of the panes from `begin` to `last`, both included; None where there are none. Not to be changed."""
        if begin > self._middle or last != self._last + 1:
            self._forget()
            self._middle = last
            total: Profile | None = None
            for pane in range(last, begin - 1, -1):
                if pane in panes:
                    total = self._sum(panes[pane], total)
                if total is not None:
                    self._upto[pane] = total
        elif last in panes:
            if self._after is None:
                self._after = self._sum(panes[last], None)
            else:
                self._after += panes[last]
        self._last = last
        self._upto.pop(begin - 1, None)
        one = self._upto.get(begin)
        if one is None or self._after is None:
            return one or self._after
        return self._sum(one, self._after)

    def _sum(self, one: Profile, other: Profile | None) -> Profile:
        total = self._empty.empty(self._empty.name)
        total += one
        if other is not None:
            total += other
        return total
