"""What the interpreter holds while it goes through a function, and how far it goes."""

from __future__ import annotations

from dataclasses import dataclass, field

from osler.syntax.module import Module
from osler.syntax.values import Definition, Value

DEPTH = 8  # functions inside functions
SHALLOW = 3  # the same for functions in which no rule is interested
EVENTS = 4_000  # of one trace
REPEATS = 4  # of one function in one trace


class TooMuch(Exception):
    """The trace has as many events as it may have."""


@dataclass(slots=True, eq=False)
class Frame:
    """A function (or a module's body) that is being gone through.

    Attributes:
        module: where its code stands.
        names: its own names.
        scope: the scopes around it, innermost first, the module's last.
        definition: of a function.
        owner: of a method: the object.
        returns: what it may return.
        yields: what it may yield.
        shared: names declared global or nonlocal, and the scope that they belong to.
    """

    module: Module
    names: dict[str, Value]
    scope: tuple[dict[str, Value], ...]
    definition: Definition | None = None
    owner: Value | None = None
    returns: list[Value] = field(default_factory=list)
    yields: list[Value] = field(default_factory=list)
    shared: dict[str, dict[str, Value]] = field(default_factory=dict)

    @property
    def top(self) -> dict[str, Value]:
        """The names of the module, as this frame's code sees them."""
        return self.scope[-1]
