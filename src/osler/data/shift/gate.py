"""A gate that a service asks before it trusts its model."""

from __future__ import annotations

import threading
import time


class Frozen(RuntimeError):
    """The gate is closed; the message says since when and why."""


class Gate:
    """Open while the model may be used.

    `if gate.open:` is one read of an attribute: it takes no lock, cannot block and costs some tens of nanoseconds
    (`gate` in benchmarks/shift.py). The attribute is a bool that is replaced as a whole, so readers in other threads see
    either the old or the new value, with and without the GIL. Opening and closing take a lock, so that `open`, `reason`
    and `since` change together for those who change it.

    It lives in one process. Processes that share a model each have their own.

    Attributes:
        open: whether the model may be used.
        reason: why it was closed; empty while it is open.
        since: when it was last opened or closed, seconds since 1970.
    """

    __slots__ = ("_lock", "open", "reason", "since")

    def __init__(self) -> None:
        self.open = True
        self.reason = ""
        self.since = time.time()
        self._lock = threading.Lock()

    def close(self, reason: str) -> bool:
        """Close it. True where it was open; a gate that is closed keeps its first reason."""
        with self._lock:
            if not self.open:
                return False
            self.reason, self.since = reason, time.time()
            self.open = False
            return True

    def reopen(self) -> bool:
        """Open it, e.g. when a newly trained model is in place. True where it was closed."""
        with self._lock:
            if self.open:
                return False
            self.reason, self.since = "", time.time()
            self.open = True
            return True

    def require(self) -> None:
        """Raise Frozen where the gate is closed."""
        if not self.open:
            raise Frozen(f"the model is frozen: {self.reason}")
