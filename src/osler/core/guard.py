"""How a part acts inside a process that another part watches: `app` attaches it through this protocol.

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
    from typing import Any, Protocol

    from osler.core.settings import Settings
    from osler.core.sink import Sink

    class Guard(Protocol):
        """Watches one library in the user's process. Nothing that it does may change a result or raise."""

        def attach(self, sink: Sink, settings: Settings, options: Mapping[str, object]) -> None:
            """Start watching; the library has just been imported.

            Args:
                sink: takes what is found, as it is found.
                settings: thresholds.
                options: the plan's options (`docs/design.md`).
            """

        def close(self) -> None:
            """Judge what is left, say what could not be judged, take every patch off. A second call does nothing."""


def when_imported(name: str, then: Callable[[ModuleType], None]) -> None:
    """Call `then` once when the top-level module of that name has run: at once if it has been imported already.

    The import system and the module are left as they would be. What `then` raises is dropped.

    Args:
        name: a top-level module, e.g. `sklearn`.
        then: takes the module.
    """
    finder = _Finder(name, then)
    sys.meta_path.insert(0, finder)
    finder.look()


class _Finder:
    """Stands first on `sys.meta_path` until the module has been imported."""

    def __init__(self, name: str, then: Callable[[ModuleType], None]) -> None:
        self._name = name
        self._then = then
        self._lock = allocate_lock()
        self._done = False
        self._asking: set[int] = set()  # threads in which the other finders are asked

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """For the module the spec that the other finders give, its loader wrapped; for anything else nothing."""
        if name != self._name:
            if self._name in sys.modules:  # loaded by a hook that stood before this one
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
        """Report the module if it has been imported completely."""
        module = sys.modules.get(self._name)
        if module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False):
            self.arrived(module)

    def arrived(self, module: ModuleType) -> None:
        """The module's own code has run. Leaves `sys.meta_path` and reports it, once. Never raises."""
        with self._lock:
            if self._done:
                return
            self._done = True
        try:
            sys.meta_path.remove(self)
        except ValueError:
            pass
        try:
            self._then(module)
        except Exception:
            pass

    def is_current(self, module: ModuleType) -> bool:
        """Whether it is the module that the script will use, and no copy made from the spec by hand."""
        return sys.modules.get(self._name) is module


class _Loader:
    """Runs the module's real loader and puts everything back as that loader would have left it."""

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
        if self._finder.is_current(module):
            self._finder.arrived(module)
