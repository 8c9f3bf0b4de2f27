"""`osler check …`: one verb a check, each of which calls one function of `osler.app.check`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from osler.cli.options import SUB, examples
from osler.cli.wishes import Columns, listed, wishing

app = typer.Typer(
    help="Look at data: splits, labels, drift, missing values, sources. FILE is a file, a glob, a folder or - (stdin).",
    epilog=examples(
        "osler check drift last_month.parquet today.parquet", "osler check splits --train a.csv --eval b.csv"
    ),
    **SUB,  # type: ignore[arg-type]
)

Label = Annotated[str | None, typer.Option("--label", metavar="COL", help="The column that is to be predicted.")]
Time = Annotated[str | None, typer.Option("--time", metavar="COL", help="The column that says when.")]


@app.command(
    epilog=examples(
        "osler check drift last_month.parquet today.parquet",
        "osler check drift reference.profile 'day=*/part-*.parquet' --html drift.html",
        "osler check drift ref.csv log.csv --time ts --window 1h",
    )
)
@wishing
def drift(
    reference: Annotated[str, typer.Argument(metavar="REFERENCE", help="Data, or a profile of it.")],
    current: Annotated[str, typer.Argument(metavar="CURRENT", help="Data, or a profile of it.")],
    columns: Columns = None,
    categorical: Annotated[list[str] | None, typer.Option(metavar="NAME,…", help="Judge these as categories.")] = None,
    numeric: Annotated[list[str] | None, typer.Option(metavar="NAME,…", help="Judge these as numbers.")] = None,
    time: Time = None,
    window: Annotated[
        str | None, typer.Option(metavar="SPAN", help="With --time: judge window by window, 1h, 1d.")
    ] = None,
    *,
    wishes: Any,
) -> int:
    """Say which columns have moved, how far, and since when."""
    from osler.app.check import check
    from osler.data.drift import check_drift

    return check(
        lambda settings, progress: check_drift(
            reference,
            current,
            columns=listed(columns) or None,
            categorical=listed(categorical),
            numeric=listed(numeric),
            time=time,
            window=window,
            settings=settings,
            progress=progress,
        ),
        wishes,
    )
