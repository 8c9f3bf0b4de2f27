"""`osler profile`: profiles of data made, merged and shown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from osler.app.check import bar, understood
from osler.app.config import load
from osler.app.errors import UserError


def make(
    data: str,
    output: Path,
    *,
    columns: Sequence[str] | None,
    categorical: Sequence[str],
    numeric: Sequence[str],
    edges: int | None,
    edges_of: Path | None,
    overrides: Sequence[str],
    config: Path | None,
) -> None:
    """Count data into a profile and write it.

    Raises:
        UserError: the data cannot be read, or the file cannot be written.
    """
    from osler.data.drift import Profile, build_profile

    settings = load(Path.cwd(), config, overrides).settings
    _writable(output)
    more: dict[str, Any] = {} if edges is None else {"edges": edges}
    with understood(), bar() as progress:
        if edges_of is not None:
            more["profile_of"] = Profile.load(edges_of)
        profile = build_profile(
            data,
            columns=columns,
            categorical=categorical,
            numeric=numeric,
            settings=settings,
            progress=progress,
            **more,
        )
        _save(profile, output)


def merge(paths: Sequence[Path], output: Path) -> None:
    """Add profiles up and write the sum.

    Raises:
        UserError: one cannot be read, or their bins differ.
    """
    from osler.data.drift import Profile

    _writable(output)
    with understood():
        whole = Profile.load(paths[0])
        for path in paths[1:]:
            whole += Profile.load(path)
        _save(whole, output)


def show(path: Path, as_json: bool = False) -> None:
    """Print a profile's columns, kinds and counts.

    Raises:
        UserError: it cannot be read.
    """
    from osler.core.jsonable import dumps
    from osler.core.report import Report, Table
    from osler.data.drift import Profile

    with understood():
        profile = Profile.load(path)
    rows: list[list[Any]] = [
        [name, state.kind.value, state.form, state.rows, state.missing] for name, state in profile.columns.items()
    ]
    if as_json:
        keys = ("column", "kind", "form", "rows", "missing")
        print(dumps({"rows": profile.rows, "columns": [dict(zip(keys, row)) for row in rows]}, indent=2))  # noqa: T201
        return
    from rich.console import Console

    from osler.render.tables import print_tables

    table = Table(f"{profile.rows:,} rows", ["column", "kind", "counted as", "rows", "missing"], rows)
    print_tables(Report({}, tables=[table]), Console(highlight=False), verbose=True)


def _save(profile: Any, output: Path) -> None:
    try:
        profile.save(output)
    except OSError as error:
        raise UserError(f"{output} cannot be written: {error.strerror or error}") from None


def _writable(output: Path) -> None:
    if not output.absolute().parent.is_dir():
        raise UserError(f"{output} cannot be written: there is no folder {output.parent}")
