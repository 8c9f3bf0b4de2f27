"""What wakes up inside the user's process: waits for `import torch`, then starts a Session.

Standard library only, and of that next to nothing, because every Python process of a watched run comes through here.
"""

from __future__ import annotations

import sys
from _thread import allocate_lock, get_ident

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any, TypeAlias

    from osler.core.settings import Settings
    from osler.core.sink import Sink

    Watched: TypeAlias = tuple[Sink, Settings, Mapping[str, object]]

_PYTORCH = ("__version__", "Tensor", "nn", "autograd", "optim")  # what a module called torch must have to be PyTorch

_finder: _Finder | None = None


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
    global _finder
    if _finder is not None:
        return
    _finder = _Finder(prepare)
    sys.meta_path.insert(0, _finder)
    _finder.look()


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


class _Finder:
    """Stands first on `sys.meta_path` until torch has been imported."""

    def __init__(self, prepare: Callable[[], Watched]) -> None:
        self._prepare = prepare
        self._lock = allocate_lock()
        self._started = False
        self._asking: set[int] = set()  # threads in which the other finders are asked

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """For torch the spec that the other finders give, its loader wrapped; for anything else nothing."""
        if name != "torch":
            # Where another import hook stood before us and loaded torch by itself, this is the next chance.
            if "torch" in sys.modules:
                self.look()
            return None
        thread = get_ident()
        if thread in self._asking:
            return None
        self._asking.add(thread)
        try:
            spec = self._real_spec(name, path, target)
        finally:
            self._asking.discard(thread)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _Loader(spec.loader, self)  # type: ignore[assignment]
        return spec

    def _real_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None) -> ModuleSpec | None:
        for finder in list(sys.meta_path):
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(name, path, target) if find is not None else None
            if spec is not None:
                return spec
        return None

    def look(self) -> None:
        """Start if torch has been imported completely."""
        module = sys.modules.get("torch")
        if module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False):
            self.arrived(module)

    def arrived(self, module: ModuleType) -> None:
        """Torch's own code has run. Leaves `sys.meta_path` and starts the Session, once. Never raises."""
        with self._lock:
            if self._started:
                return
            self._started = True
        try:
            sys.meta_path.remove(self)
        except ValueError:
            pass
        sink: Sink | None = None
        try:
            what = "the plan of this run could not be read"
            sink, settings, options = self._prepare()
            if not all(hasattr(module, name) for name in _PYTORCH):
                place = getattr(module, "__file__", None) or "no file"
                sink.not_checked("training", f"the module called torch ({place}) is not PyTorch")
                sink.flush()
                return
            what = "watching could not start"
            from osler.training.session import Session

            Session(sink, settings, options).install()
        except Exception as error:
            step_aside(f"{what} ({type(error).__name__}: {str(error)[:300]})", sink)


class _Loader:
    """Runs torch's real loader and puts everything back as that loader would have left it."""

    def __init__(self, real: object, finder: _Finder) -> None:
        self._real = real
        self._finder = finder

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """Code that only looks a spec up and asks what kind of loader it has sees the real one's class."""
        return type(self._real)

    def __getattr__(self, name: str) -> object:
        return getattr(self._real, name)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module's code; the script sees whatever it raises, and the next attempt is awaited then."""
        real: Any = self._real
        for holder, name in ((module.__spec__, "loader"), (module, "__loader__")):
            if getattr(holder, name, None) is self:
                setattr(holder, name, real)
        real.exec_module(module)
        # A copy that somebody makes from the spec by hand is not the torch that the script will use.
        if sys.modules.get("torch") is module:
            self._finder.arrived(module)
