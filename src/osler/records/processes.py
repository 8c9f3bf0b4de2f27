"""Which process is which, and whether it still lives. Standard library only: the journal writer imports it."""

from __future__ import annotations

import os
from pathlib import Path


def start_ticks(pid: int) -> int | None:
    """When the process started, in clock ticks since boot (field 22 of `/proc/<pid>/stat`, proc(5)).

    With the pid it names a process for good: a pid that is used again has another start. None where the process is
    gone, a zombie, or the system has no `/proc`.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
        fields = stat.rpartition(b")")[2].split()  # the command's name may hold spaces and parentheses
        return None if fields[0] in (b"Z", b"X") else int(fields[19])
    except (OSError, ValueError, IndexError):
        return None


def alive(pid: object, start: object) -> bool:
    """Whether the process with that pid and start (see `start_ticks`; None: not known) still runs.

    Anything that is no pid is not alive. Without `/proc` the pid alone decides.
    """
    if not isinstance(pid, int) or isinstance(pid, bool) or not 0 < pid < 2**31:
        return False
    now = start_ticks(pid)
    if now is not None:
        return start is None or now == start
    if Path("/proc/self").exists():
        return False
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return True
