"""A command that starts quickly: its texts are taken as they are.

Newer versions of typer hand each value to pydantic, whose import takes longer than a lint run that finds nothing
changed. A text or a list of texts has nothing to be converted; everything else goes the usual way.
"""

from __future__ import annotations

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
        # Versions of typer without this attribute convert on their own, and need no help.
        if getattr(param, "_runtime_param", param) is None:
            param._runtime_param = _AsItIs(param)
    return params


class _AsItIs:
    """Stands in for typer's conversion of one parameter."""

    def __init__(self, param: Any) -> None:
        self.annotation = param.type_descriptor.annotation

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value as the command gets it."""
        several = param.multiple or param.nargs == -1
        if value is None:
            return () if several else None
        if several and self.annotation == list[str] and all(type(v) is str for v in value):
            return list(value)
        if not several and self.annotation is str and type(value) is str:
            return value
        param._runtime_param = None
        return param.get_runtime_param().coerce(value, param=param, ctx=ctx)
