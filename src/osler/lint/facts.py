"""What the checks ask about one file."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from osler.core.settings.lint import Lint
from osler.syntax.module import Module
from osler.syntax.project import Project
from osler.syntax.trace import Event, Loop, Trace


class Facts:
    """One file of a project.

    Attributes:
        module: its survey: imports, calls by name, scopes. Cheap.
        project: the files around it.
        torch: the version of torch to assume as (major, minor); None when nobody knows.
        settings: the thresholds of the rules.
    """

    def __init__(
        self,
        module: Module,
        project: Project,
        torch: tuple[int, int] | None = None,
        settings: Lint | None = None,
    ) -> None:
        self.module = module
        self.project = project
        self.torch = torch
        self.settings = settings or Lint()

    @cached_property
    def traces(self) -> list[Trace]:
        """The file as it runs, then each function that nothing was seen to call. Made when first asked for."""
        return self.project.traces(self.module)

    @cached_property
    def _events(self) -> list[tuple[Trace, dict[str, list[Event]]]]:
        out = []
        for trace in self.traces:
            by_name: dict[str, list[Event]] = {}
            for event in trace.block.events():
                by_name.setdefault(event.name, []).append(event)
            out.append((trace, by_name))
        return out

    def events(self, *names: str) -> Iterator[Event]:
        """The events of these names in all traces: `.step`, `torch.load`, `()` for calling an object."""
        for _, by_name in self._events:
            for name in names:
                yield from by_name.get(name, ())

    def loops(self) -> Iterator[Loop]:
        """Every loop of every trace, outer before inner; one of a function that is called twice comes twice."""
        for trace in self.traces:
            yield from trace.loops()
