"""`osler cases`: the faults that osler knows, each reproduced, with its twin that has no fault."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

# What needs pydantic or rich is imported in the functions: every `osler` command loads this module.
if TYPE_CHECKING:
    from osler.cases.execute import BudgetName
    from osler.cases.library import Case, HealthyScript

app = typer.Typer(
    name="cases",
    help="The case library: every fault that osler knows, reproduced, with a clean twin.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _examples(*commands: str) -> str:
    """The end of a command's help; the first character keeps the lines apart."""
    return "\b\nExamples:\n" + "\n".join(f"  osler cases {command}" for command in commands)


class Budget(str, Enum):
    """The budgets under which a case can be verified."""

    NONE = "none"
    DEFAULT = "default"
    BOTH = "both"


class OneBudget(str, Enum):
    """The budgets under which a case can be run."""

    NONE = "none"
    DEFAULT = "default"


def complete_ids(ctx: typer.Context, incomplete: str) -> list[str]:
    """The ids that begin with what has been typed; folders are listed, not read, so that it is quick."""
    from osler.app.errors import UserError
    from osler.cases.library import case_folders

    casebook = ctx.params.get("casebook")
    try:
        names = [folder.name for folder in case_folders(Path(casebook) if casebook else None)]
    except (UserError, OSError):
        return []
    return [name for name in names if name.startswith(incomplete)]


def complete_rules(incomplete: str) -> list[str]:
    """The rules that begin with what has been typed."""
    from osler.catalogue import RULES

    return [name for name in RULES if name.startswith(incomplete)]


Casebook = Annotated[
    Path | None,
    typer.Option("--casebook", metavar="DIR", help="A folder of case folders, instead of those that come with osler."),
]
Id = Annotated[str, typer.Argument(metavar="ID", help="A case.", autocompletion=complete_ids)]


@app.command("list", epilog=_examples("list", "list --rule dead-relu", "list --json"))
def list_cases(
    rule: Annotated[
        str | None, typer.Option(metavar="RULE", help="Only the cases of this rule.", autocompletion=complete_rules)
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Machine-readable output on stdout.")] = False,
    casebook: Casebook = None,
) -> None:
    """List the cases and the healthy scripts."""
    with _one_line_errors():
        from osler.cases.library import load_cases, load_healthy

        cases, healthy = load_cases(casebook), load_healthy(casebook)
        if rule is not None:
            from osler.catalogue import rule as known_rule

            name = known_rule(rule).name
            cases, healthy = [c for c in cases if name in c.rules], []
        if json:
            from osler.core.jsonable import dumps

            typer.echo(dumps(_as_data(cases, healthy), indent=2))
        else:
            _print_list(cases, healthy)


@app.command(epilog=_examples("show dead-relu"))
def show(id: Id, casebook: Casebook = None) -> None:
    """Show a case: what it is, the faulty lines, what osler must say about them."""
    with _one_line_errors():
        from osler.cases.present import describe, describe_healthy

        for subject in _chosen([id], casebook):
            typer.echo(describe(subject) if _is_case(subject) else describe_healthy(subject), nl=False)  # type: ignore[arg-type]


@app.command(epilog=_examples("run dead-relu", "run dead-relu --clean --budget none"))
def run(
    id: Id,
    faulty: Annotated[bool, typer.Option("--faulty/--clean", help="Which side to run.")] = True,
    budget: Annotated[OneBudget, typer.Option(help="osler's budget for the run.")] = OneBudget.DEFAULT,
    casebook: Casebook = None,
) -> None:
    """Run one side of a case under osler, in a temporary copy of its folder.

    The exit code is 0 if the script ended as its case says it does, 1 if it did not, 2 if it could not be run.
    """
    with _one_line_errors():
        import subprocess

        from osler.app.errors import UserError
        from osler.cases.execute import OSLER, OSLER_RUN, budget_options, copy_of, environment
        from osler.cases.needs import missing

        subjects = _chosen([id], casebook)
        if len(subjects) != 1:
            raise UserError(f"{id!r} names {len(subjects)} cases; name one: {', '.join(s.id for s in subjects)}")
        subject = subjects[0]
        why = missing(subject.needs)
        if why:
            raise UserError(f"{subject.id} cannot run here: {why}")
        from osler.cases.library import Case

        expected = 0
        if isinstance(subject, Case):
            script, look = subject.script(faulty), subject.look(faulty)
            expected = subject.file.inject.exit_code if faulty else 0
        else:
            script, look = [subject.file.file], subject.look
        name: BudgetName = "none" if budget is OneBudget.NONE else "default"
        start = [sys.executable] if look else [*OSLER_RUN, *budget_options(name)]
        with copy_of(subject.folder) as (copy, _):
            ended = subprocess.run([*start, *script], cwd=copy, env=environment(), check=False)
            if look and ended.returncode == expected:
                looked = subprocess.run([*OSLER, *look], cwd=copy, env=environment(), check=False)
                raise typer.Exit(0 if looked.returncode in (0, 1) else 2)
        if ended.returncode != expected:
            typer.echo(f"osler: the script ended with {ended.returncode}; {subject.id} says {expected}", err=True)
            raise typer.Exit(1)


@app.command(
    epilog=_examples(
        "verify",
        "verify dead-relu --budget none",
        "verify --rule dead-relu",
        "verify 'half-*' -j 2 --junit cases.xml",
        "verify --resume",
        "verify my-fault --casebook my-cases",
    )
)
def verify(
    ids: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ID",
            help="Cases: ids, globs, or rules that are no case's id; all of them by default.",
            show_default=False,
            autocompletion=complete_ids,
        ),
    ] = None,
    rule: Annotated[
        str | None, typer.Option(metavar="RULE", help="Every case of this rule.", autocompletion=complete_rules)
    ] = None,
    budget: Annotated[Budget, typer.Option(help="osler's budget: none also asks for the right line.")] = Budget.BOTH,
    healthy: Annotated[
        bool | None,
        typer.Option(
            "--healthy/--no-healthy",
            help="Also the healthy scripts, on which osler must be silent; by default when no case is named.",
            show_default=False,
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option("-j", "--jobs", min=1, metavar="N", help="How many at once; default: the processors."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Leave out what passed before and has not changed.")] = False,
    bare: Annotated[bool, typer.Option("--bare", help="Run every script in plain Python too, and compare.")] = False,
    timeout: Annotated[
        float | None, typer.Option(min=1.0, metavar="S", help="Seconds allowed to a script; default: by its cost.")
    ] = None,
    json_file: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Write the verdicts as JSON; - for stdout.")
    ] = None,
    junit_file: Annotated[
        str | None, typer.Option("--junit", metavar="FILE", help="Write the verdicts as JUnit XML; - for stdout.")
    ] = None,
    casebook: Casebook = None,
) -> None:
    """Reproduce faults and check that osler names each one, at its line, and stays silent on its clean twin."""
    with _one_line_errors():
        from osler.app.errors import UserError
        from osler.cases.files import check_writable

        if json_file == "-" and junit_file == "-":
            raise UserError("--json - and --junit - cannot share stdout; give one of them a file")
        for path in (json_file, junit_file):
            if path is not None:
                check_writable(path)
        patterns = [*(ids or []), *(_ids_of(rule, casebook) if rule is not None else [])]
        subjects = _chosen(patterns, casebook, healthy)
        if not subjects:
            raise UserError("there is nothing to verify here")
        code = _verify(
            subjects, budget, jobs or os.cpu_count() or 1, resume, bare, timeout, json_file, junit_file, casebook
        )
    raise typer.Exit(code)


@app.command(epilog=_examples("new my-fault --rule dead-relu --dir my-cases"))
def new(
    id: Annotated[str, typer.Argument(metavar="ID", help="Name of the case, in kebab-case.")],
    rule: Annotated[str, typer.Option(metavar="RULE", help="The rule it shows.", autocompletion=complete_rules)],
    dir: Annotated[Path, typer.Option("--dir", metavar="DIR", help="Where to make its folder.")] = Path(),
) -> None:
    """Make the folder of a new case, ready to be filled in."""
    with _one_line_errors():
        import shlex

        from osler.cases.scaffold import scaffold

        folder = scaffold(id, rule, dir)
        typer.echo(
            f"made {folder}; fill in every TODO, then: osler cases verify {id} --casebook {shlex.quote(str(dir))}"
        )


def _ids_of(rule: str, casebook: Path | None) -> list[str]:
    """The ids of the cases that show a rule."""
    from osler.app.errors import UserError
    from osler.cases.library import scan
    from osler.catalogue import rule as known_rule

    name = known_rule(rule).name
    ids = [case.id for case in scan(casebook)[0] if name in case.rules]
    if not ids:
        raise UserError(f"no case shows {name}")
    return ids


def _chosen(ids: Sequence[str], casebook: Path | None, with_healthy: bool | None = None) -> list[Case | HealthyScript]:
    """The cases and healthy scripts that a command is about.

    Args:
        ids: patterns; empty for all cases.
        casebook: where to look; None for the casebook that comes with osler.
        with_healthy: all healthy scripts too, or none; None: all if no pattern is given, else those that are named.
    """
    from osler.cases.library import CasebookError, load_healthy, scan, select

    cases, broken = scan(casebook)
    # A broken folder stops the whole library, but not the verification of another case.
    concerned = [line for name, lines in broken.items() if not ids or name in ids for line in lines]
    if concerned:
        raise CasebookError(concerned)
    scripts = [] if with_healthy is False else load_healthy(casebook)
    if not ids:
        return [*cases, *scripts]
    chosen, quiet = select(cases, ids, scripts)
    return [*chosen, *(scripts if with_healthy else quiet)]


def _verify(
    subjects: Sequence[Case | HealthyScript],
    budget: Budget,
    jobs: int,
    resume: bool,
    bare: bool,
    timeout: float | None,
    json_file: str | None,
    junit_file: str | None,
    casebook: Path | None,
) -> int:
    """Verify, print, write; the exit code."""
    from rich.console import Console

    from osler.cases import files, tables
    from osler.cases.progress import Progress
    from osler.cases.runner import Job, Options, run_all
    from osler.cases.screen import progress_on

    budgets: tuple[BudgetName, ...] = ("none", "default")
    if budget is not Budget.BOTH:
        budgets = ("none",) if budget is Budget.NONE else ("default",)
    # What is looked at when it has run knows no budget: once is enough.
    work = [Job(s, b) for s in subjects for b in (("default",) if _looked_at(s) else budgets)]
    progress = Progress(fresh=not resume)
    with progress_on(sys.stderr, len(work)) as watcher:
        outcomes = run_all(work, Options(jobs, bare, timeout), progress, watcher)
    if progress.problem:
        typer.echo(f"osler: {progress.problem}", err=True)

    # Where a file goes to stdout, what is for people goes to stderr.
    console = Console(stderr="-" in (json_file, junit_file))
    tables.show(outcomes.verdicts, console)
    tables.show_failures(outcomes.failures, console, str(casebook) if casebook else None)
    skipped = [v for v in outcomes.verdicts if v.outcome.value == "SKIPPED"]
    for line in dict.fromkeys(f"skipped {v.id}: {v.reason}" for v in skipped):
        console.print(line, markup=False, soft_wrap=True)
    counts = ", ".join(f"{n} {word}" for word, n in sorted(tables.totals(outcomes.verdicts).items()))
    console.print(f"{len(outcomes.verdicts)} of {outcomes.wanted} verified: {counts or 'none'}", markup=False)
    if json_file is not None:
        files.write(json_file, files.to_json(outcomes))
    if junit_file is not None:
        files.write(junit_file, files.to_junit(outcomes.verdicts))
    if outcomes.interrupted:
        typer.echo("osler: interrupted; the same command with --resume goes on from here", err=True)
    return outcomes.exit_code


def _looked_at(subject: Case | HealthyScript) -> bool:
    from osler.cases.library import Case

    return bool(subject.look(True) if isinstance(subject, Case) else subject.look)


def _is_case(subject: Case | HealthyScript) -> bool:
    from osler.cases.library import Case

    return isinstance(subject, Case)


def _as_data(cases: Sequence[Case], healthy: Sequence[HealthyScript]) -> dict[str, object]:
    import osler

    return {
        "osler": osler.__version__,
        "schema": 1,
        "cases": [
            {
                "id": c.id,
                "title": c.file.case.title,
                "detects": c.file.case.detects,
                "source": c.file.case.source,
                "cost_s": c.cost_s,
                "needs": c.needs,
                "marker": {"file": c.marker.file, "line": c.marker.line},
                "expect": c.file.expect.model_dump(exclude_none=True),
            }
            for c in cases
        ],
        "healthy": [h.file.model_dump() for h in healthy],
    }


def _print_list(cases: Sequence[Case], healthy: Sequence[HealthyScript]) -> None:
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console()
    if not console.is_terminal:
        console.width = max(console.width, 140)
    if not cases and not healthy:
        console.print("no cases")
        return
    table = Table(box=SIMPLE, pad_edge=False, header_style="bold")
    for column in ("case", "rules", "title"):
        table.add_column(column, overflow="fold")
    table.add_column("s", justify="right")
    for c in cases:
        table.add_row(c.id, ", ".join(c.file.case.detects), escape(c.file.case.title), f"{c.cost_s:g}")
    if healthy:
        table.add_section()
        for h in healthy:
            table.add_row(f"_healthy/{h.id}", "none", escape(h.file.title), f"{h.cost_s:g}")
    console.print(table)


@contextmanager
def _one_line_errors() -> Iterator[None]:
    """What the user can mend becomes one line on stderr (one each, where there are several) and exit code 2."""
    from osler.app.errors import UserError

    try:
        yield
    except UserError as err:
        for line in getattr(err, "lines", [str(err)]):
            typer.echo(f"osler: {line}", err=True)
        raise typer.Exit(2) from None
    except ValueError as err:
        from osler.catalogue import UnknownRule

        if not isinstance(err, UnknownRule):
            raise
        typer.echo(f"osler: {err}", err=True)
        raise typer.Exit(2) from None
