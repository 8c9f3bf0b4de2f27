"""Which line of the user's code is running.

The line of a finding is the innermost frame outside the standard library, site-packages and osler. Under `-m` the named
package counts as the user's even where it is installed.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from types import FrameType
from typing import NamedTuple


class Line(NamedTuple):
    """A place in a source file: path as the interpreter knows it, 1-based line, function name."""

    file: str
    line: int
    function: str


_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_CASEBOOK = os.path.join(_OWN, "casebook") + os.sep
_verdicts: dict[str, bool] = {}
_user_roots: list[str] = []


def _library_roots() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    roots = {paths[k] for k in ("stdlib", "platstdlib", "purelib", "platlib") if paths.get(k)}
    torch = sys.modules.get("torch")
    file = getattr(torch, "__file__", None)
    if file:
        roots.add(os.path.dirname(file))
    return tuple(os.path.abspath(r) + os.sep for r in roots)


_LIBRARIES = _library_roots()


def claim(folder: str) -> None:
    """Count files under `folder` as the user's, wherever they are installed (for `-m package`)."""
    _user_roots.append(os.path.abspath(folder) + os.sep)
    _verdicts.clear()


def is_user(filename: str) -> bool:
    """Whether a code object's file name is the user's."""
    verdict = _verdicts.get(filename)
    if verdict is None:
        verdict = _verdicts[filename] = _judge(filename)
    return verdict


def _judge(filename: str) -> bool:
    if filename.startswith("<"):
        # Notebook cells and interactive input have no file but are the user's; import machinery is not.
        return not filename.startswith(("<frozen", "<string", "<eval_with_key", "<attrs", "<__array"))
    path = os.path.abspath(filename)
    if any(path.startswith(root) for root in _user_roots):
        return True
    if path.startswith(_CASEBOOK):
        return True
    if path.startswith(_OWN) or f"{os.sep}site-packages{os.sep}" in path or f"{os.sep}dist-packages{os.sep}" in path:
        return False
    return not path.startswith(_LIBRARIES)


def user_frame(frame: FrameType | None) -> FrameType | None:
    """The innermost user frame at or above `frame`."""
    while frame is not None and not is_user(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def line_of(frame: FrameType | None) -> Line | None:
    """The place at which `frame` is."""
    if frame is None:
        return None
    return Line(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)


def user_line(skip: int = 1) -> Line | None:
    """The innermost user line above the caller, `skip` frames up to start with."""
    return line_of(user_frame(sys._getframe(skip + 1)))
