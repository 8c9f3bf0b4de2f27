"""Keeps warnings where they were: a function that is called through a function mode of osler counts frames that the user
does not have, so that a warning with a `stacklevel` would name osler's file, and be shown once there and once at home."""

from __future__ import annotations

import functools
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any

from osler.training.recorder import Recorder

_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def attach(recorder: Recorder) -> Callable[[], None]:
    """Start watching; returns what takes it off again."""
    original = warnings.warn

    @functools.wraps(original)
    def warn(message: Any, category: Any = None, stacklevel: int = 1, source: Any = None, **more: Any) -> None:
        return original(message, category, stacklevel + 1 + _between(stacklevel), source, **more)

    warnings.warn = warn

    def undo() -> None:
        if warnings.warn is warn:
            warnings.warn = original

    return undo


def _between(stacklevel: int) -> int:
    """How many frames of osler's function modes lie between the warning function and the frame it means."""
    frame = sys._getframe(2)
    wanted, extra = stacklevel - 1, 0
    outer = False  # the function that handed itself over to the mode stands a second time behind it
    while wanted > 0 and frame.f_back is not None:
        frame = frame.f_back
        handing_over = frame.f_code.co_name == "handle_torch_function"
        if frame.f_code.co_filename.startswith(_OWN) or (extra and handing_over) or outer:
            extra += 1
            outer = handing_over
        else:
            wanted -= 1
    return extra
