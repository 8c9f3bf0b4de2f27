"""What wakes up inside the user's process: waits for `import torch`, then starts a Session.

Standard library only, and of that next to nothing, because every Python process of a watched run comes through here.
"""

from __future__ import annotations

import sys

from osler.core.guard import when_imported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType
    from typing import TypeAlias

    from osler.core.settings import Settings
    from osler.core.sink import Sink

    Watched: TypeAlias = tuple[Sink, Settings, Mapping[str, object]]

_PYTORCH = ("__version__", "Tensor", "nn", "autograd", "optim")  # what a module called torch must have to be PyTorch

_waiting = False


def install(sink: Sink, settings: Settings, options: Mapping[str, object]) -> None:
    """Start a Session as soon as torch is there: at once if it is imported already. A second call does nothing.

    Args:
        sink: where the Session sends what it finds.
        settings: thresholds and budget.
        options: the plan's options (`docs/design.md`).
    """
    wait(lambda: (sink, settings, options))


def wait(prepare: Callable[[], Watched]) -> None:
    """As `install`, with what it needs made only when torch arrives, so that other processes do not pay for it.

    Args:
        prepare: gives sink, settings and options; called at most once.
    """
    global _waiting
    if _waiting:
        return
    _waiting = True
    when_imported("torch", lambda torch: _start(torch, prepare))


def step_aside(what: str, sink: Sink | None = None) -> None:
    """Tell the user in one line that osler stops watching, and why. Never raises.

    Args:
        what: what went wrong, without a full stop.
        sink: takes the line to the parent, which shows it and keeps it; without one it goes to this process's stderr.
    """
    line = f"{' '.join(what.split())}; the training goes on unwatched"
    try:
        if sink is not None:
            sink.not_checked("training", line)
            sink.note(line)
            sink.flush()
        elif sys.__stderr__ is not None:
            sys.__stderr__.write(f"osler: {line.encode('ascii', 'backslashreplace').decode()}\n")
            sys.__stderr__.flush()
    except Exception:
        pass  # a closed stderr or a sink at fault: nothing is left to say it with


def _start(torch: ModuleType, prepare: Callable[[], Watched]) -> None:
    """Torch has been imported: start the Session. Never raises."""
    sink: Sink | None = None
    try:
        what = "the plan of this run could not be read"
        sink, settings, options = prepare()
        if not all(hasattr(torch, name) for name in _PYTORCH):
            place = getattr(torch, "__file__", None) or "no file"
            sink.not_checked("training", f"the module called torch ({place}) is not PyTorch")
            sink.flush()
            return
        what = "watching could not start"
        from osler.training.session import Session

        Session(sink, settings, options).install()
    except Exception as error:
        step_aside(f"{what} ({type(error).__name__}: {str(error)[:300]})", sink)
