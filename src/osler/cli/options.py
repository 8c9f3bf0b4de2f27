"""What several verbs share: options, completion, the shape of their help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

HELP = {"help_option_names": ["-h", "--help"]}
SUB = {"no_args_is_help": True, "rich_markup_mode": None, "context_settings": HELP}


def examples(*commands: str) -> str:
    """The end of a verb's help; the first character keeps the lines apart."""
    return "\b\nExamples:\n" + "\n".join(f"  {command}" for command in commands)


def rules(incomplete: str) -> list[str]:
    """Names of rules that begin so."""
    from osler.catalogue import RULES

    return [name for name in RULES if name.startswith(incomplete)]


def runs(incomplete: str) -> list[str]:
    """Kept runs whose names begin so, the latest first."""
    from osler.records.folder import Home

    home = Home.find(Path.cwd())
    return [name for name in reversed(home.ids() if home else []) if name.startswith(incomplete)]


# Options that several verbs share. `-` as FILE is stdout.
Json = Annotated[bool, typer.Option("--json", help="Machine-readable output on stdout.")]
JsonFile = Annotated[str | None, typer.Option("--json", metavar="FILE", help="Write the report as JSON; - is stdout.")]
HtmlFile = Annotated[str | None, typer.Option("--html", metavar="FILE", help="Write the report as one HTML page.")]
SarifFile = Annotated[str | None, typer.Option("--sarif", metavar="FILE", help="Write the findings as SARIF 2.1.0.")]
JunitFile = Annotated[str | None, typer.Option("--junit", metavar="FILE", help="Write the findings as JUnit XML.")]
All = Annotated[bool, typer.Option("--all", help="Also show findings that are only possible.")]
Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="Every symptom, and why each rule was not checked.")]
Config = Annotated[Path | None, typer.Option("--config", metavar="FILE", help="This configuration file.")]
Set = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting, as in the file; repeatable.")
]
RunId = Annotated[
    str | None, typer.Argument(metavar="[RUN]", help="A run; the last one if left out.", autocompletion=runs)
]
Python = Annotated[str | None, typer.Option("--python", metavar="PYTHON", help="The interpreter that has torch.")]
Select = Annotated[list[str] | None, typer.Option(metavar="RULE,…", help="Only these rules.", autocompletion=rules)]
Ignore = Annotated[list[str] | None, typer.Option(metavar="RULE,…", help="Not these rules.", autocompletion=rules)]
