"""The options that every check has, added to a command's own."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from osler.cli.options import All, Config, HtmlFile, Ignore, JsonFile, JunitFile, SarifFile, Select, Set, Verbose


def _common(
    json: JsonFile = None,
    html: HtmlFile = None,
    sarif: SarifFile = None,
    junit: JunitFile = None,
    fail_on: Annotated[
        str | None, typer.Option(metavar="LEVEL", help="Exit 1 from this on: info, warning (default), error.")
    ] = None,
    select: Select = None,
    ignore: Ignore = None,
    set_: Set = None,
    config: Config = None,
    all_: All = False,
    quiet: Annotated[
        bool, typer.Option("-q", "--quiet", help="No progress bar; nothing at all where all is well.")
    ] = False,
    verbose: Verbose = False,
) -> None:
    """Only its signature is used."""


def wishing(command: Callable[..., int]) -> Callable[..., None]:
    """A typer command from a function `f(..., wishes)`: the common options are collected into `wishes`.

    The function returns the exit code.
    """
    common = inspect.signature(_common, eval_str=True).parameters
    own = [p for p in inspect.signature(command, eval_str=True).parameters.values() if p.name != "wishes"]

    @functools.wraps(command)
    def run(**given: Any) -> None:
        from osler.app.check import Wishes
        from osler.app.run import Outputs

        told = {name: given.pop(name) for name in common}
        wishes = Wishes(
            outputs=Outputs(json=told["json"], html=told["html"], sarif=told["sarif"], junit=told["junit"]),
            select=told["select"] or [],
            ignore=told["ignore"] or [],
            overrides=told["set_"] or [],
            config=told["config"],
            fail_on=told["fail_on"],
            all=told["all_"],
            verbose=told["verbose"],
            quiet=told["quiet"],
        )
        raise typer.Exit(command(**given, wishes=wishes))

    keyword = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in [*own, *common.values()]]
    run.__signature__ = inspect.Signature(keyword)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in keyword}
    return run


def listed(words: list[str] | None) -> list[str]:
    """`--columns a,b --columns c` as one list."""
    return [w.strip() for word in words or [] for w in word.split(",") if w.strip()]


Columns = Annotated[list[str] | None, typer.Option("--columns", metavar="NAME,…", help="Only these columns.")]
