"""`osler lint`: its options, handed to `osler.app.lint`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from osler.cli.options import (
    All,
    Config,
    HtmlFile,
    Ignore,
    JsonFile,
    JunitFile,
    SarifFile,
    Select,
    Set,
    examples,
)

EPILOG = examples(
    "osler lint src/ notebooks/",
    "osler lint --fix train.py",
    "osler lint --output-format github --baseline .osler-baseline.json .",
)


def formats(incomplete: str) -> list[str]:
    """Output formats that begin so."""
    from osler.app.lint import FORMATS

    return [name for name in FORMATS if name.startswith(incomplete)]


def lint(
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PATH]...", help="Files and folders; - is stdin. Default: this folder."),
    ] = None,
    fix: Annotated[bool, typer.Option("--fix", help="Make the fixes that are safe.")] = False,
    unsafe_fixes: Annotated[
        bool, typer.Option("--unsafe-fixes", help="Make all fixes; look at what they change.")
    ] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Show what the fixes would change, and change nothing.")] = False,
    output_format: Annotated[
        str, typer.Option(metavar="FORMAT", help="text, concise or github.", autocompletion=formats)
    ] = "text",
    statistics: Annotated[bool, typer.Option("--statistics", help="Count by rule.")] = False,
    baseline: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Findings that are known and not reported.")
    ] = None,
    write_baseline: Annotated[
        bool, typer.Option("--write-baseline", help="Write what is found to the file of --baseline.")
    ] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Go on, and tell what changes.")] = False,
    stdin_filename: Annotated[
        str | None, typer.Option(metavar="NAME", help="The name of what comes from stdin.")
    ] = None,
    warn_unused_ignores: Annotated[
        bool, typer.Option("--warn-unused-ignores", help="Report every ignore comment that ignores nothing.")
    ] = False,
    force_exclude: Annotated[
        bool, typer.Option("--force-exclude", help="Leave excluded files out even if they are named.")
    ] = False,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Look at every file anew.")] = False,
    jobs: Annotated[int | None, typer.Option(min=0, metavar="N", help="Processes; 0: one a core.")] = None,
    server: Annotated[bool, typer.Option("--server", help="Serve an editor on stdin and stdout (LSP).")] = False,
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
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Findings only: no summary, no notes, no bar.")] = False,
) -> None:
    """Find faults in Python files and notebooks before anything runs."""
    from osler.app.lint import Wishes
    from osler.app.lint import lint as look

    wishes = Wishes(
        paths=paths or ["."],
        json=json,
        html=html,
        sarif=sarif,
        junit=junit,
        output_format=output_format,
        select=select or [],
        ignore=ignore or [],
        overrides=set_ or [],
        config=config,
        fail_on=fail_on,
        all=all_,
        quiet=quiet,
        fix=fix,
        unsafe_fixes=unsafe_fixes,
        diff=diff,
        statistics=statistics,
        baseline=baseline,
        write_baseline=write_baseline,
        warn_unused_ignores=warn_unused_ignores,
        stdin_filename=stdin_filename,
        no_cache=no_cache,
        force_exclude=force_exclude,
        jobs=jobs,
        watch=watch,
    )
    if server:
        from osler.integrations.lsp import serve

        serve(wishes)
        return
    raise typer.Exit(look(wishes))
