"""A command that starts quickly: its texts are taken as they are.

Newer versions of typer hand each value to pydantic, whose import takes longer than a lint run that finds nothing
changed. A text or a list of texts has nothing to be converted; everything else goes the usual way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from typer.core import TyperCommand


class Light(TyperCommand):
    """A typer command whose texts need no pydantic."""

    def get_params(self, ctx: Any) -> Any:
        """The parameters."""
        return lightened(super().get_params(ctx))


def lightened(params: list[Any]) -> list[Any]:
    """The same parameters, whose texts and absent values are taken as they are."""
    for param in params:
        # Versions of typer without this method convert on their own, and need no help.
        usual = getattr(param, "get_runtime_param", None)
        if usual is not None and not isinstance(usual, _Light):
            param.get_runtime_param = _Light(param.type_descriptor.annotation, usual)
    return params


class _Light:
    """Stands in for typer's way to the conversion of one parameter, and for that conversion."""

    def __init__(self, annotation: Any, usual: Callable[[], Any]) -> None:
        self.annotation = annotation
        self.usual = usual

    def __call__(self) -> _Light:
        return self

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value as the command gets it."""
        several = param.multiple or param.nargs == -1
        if value is None:
            return () if several else None
        if several and self.annotation == list[str] and all(type(v) is str for v in value):
            return list(value)
        if not several and self.annotation is str and type(value) is str:
            return value
        return self.usual().coerce(value, param=param, ctx=ctx)
