"""`osler profile …`: profiles of data, kept and shipped instead of the data."""

from __future__ import annotations

import typer

from osler.cli.options import SUB

app = typer.Typer(help="Profiles of data: make, merge, show.", **SUB)  # type: ignore[arg-type]
