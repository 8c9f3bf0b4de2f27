"""`osler profile …`: profiles of data, kept and shipped instead of the data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from osler.cli.options import SUB, Config, Json, Set, examples
from osler.cli.wishes import Columns, listed

app = typer.Typer(
    help="Profiles of data: a few KB a column, to keep and ship instead of the data.",
    epilog=examples("osler profile make last_month.parquet -o reference.profile"),
    **SUB,  # type: ignore[arg-type]
)

Output = Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="Where to write it.")]


@app.command(
    epilog=examples(
        "osler profile make last_month.parquet -o reference.profile",
        "osler profile make today.parquet --edges-of reference.profile -o today.profile",
    )
)
def make(
    data: Annotated[str, typer.Argument(metavar="DATA", help="A file, a glob, a folder or - (stdin).")],
    output: Output,
    columns: Columns = None,
    categorical: Annotated[list[str] | None, typer.Option(metavar="NAME,…", help="Take these for categories.")] = None,
    numeric: Annotated[list[str] | None, typer.Option(metavar="NAME,…", help="Take these for numbers.")] = None,
    edges: Annotated[int | None, typer.Option(min=8, max=65536, help="Bins of a column; 256 suit most.")] = None,
    edges_of: Annotated[
        Path | None, typer.Option(metavar="PROFILE", help="Count over this profile's bins, to compare or merge.")
    ] = None,
    set_: Set = None,
    config: Config = None,
) -> None:
    """Count data into a profile."""
    from osler.app.profiles import make as build

    build(
        data,
        output,
        columns=listed(columns) or None,
        categorical=listed(categorical),
        numeric=listed(numeric),
        edges=edges,
        edges_of=edges_of,
        overrides=set_ or [],
        config=config,
    )


@app.command(epilog=examples("osler profile merge monday.profile tuesday.profile -o week.profile"))
def merge(
    profiles: Annotated[list[Path], typer.Argument(metavar="PROFILE …", help="Profiles over the same bins.")],
    output: Output,
) -> None:
    """Add profiles up."""
    from osler.app.profiles import merge as add

    add(profiles, output)


@app.command(epilog=examples("osler profile show reference.profile"))
def show(
    profile: Annotated[Path, typer.Argument(metavar="PROFILE", help="A profile.")],
    json: Json = False,
) -> None:
    """Print what a profile holds."""
    from osler.app.profiles import show as tell

    tell(profile, json)
