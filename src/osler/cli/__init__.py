"""The command line: every verb, each of which calls one function of `osler.app`.

Nothing is imported here but typer: `osler --help` and `osler explain` answer within the time of a shell's prompt.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from osler.cli import lint
from osler.cli.light import Light, lightened
from osler.cli.options import (
    HELP,
    SUB,
    All,
    Config,
    HtmlFile,
    Ignore,
    Json,
    JsonFile,
    JunitFile,
    Python,
    RunId,
    SarifFile,
    Select,
    Set,
    Verbose,
    examples,
    rules,
    runs,
)


class _ReaderGone(Exception):
    """Whoever read our output has gone (`osler report | head`)."""


class _Verbs(TyperGroup):
    """Puts a large sub-command in the place of its stand-in when it is asked for, not when it is listed."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the arguments name."""
        if args and args[0] == "cases":
            from osler.cases.command import app as cases_app

            self.commands["cases"] = typer.main.get_group(cases_app)
        elif args and args[0] == "check":
            from osler.cli.check import app as check_app

            self.commands["check"] = typer.main.get_group(check_app)
        elif args and args[0] == "profile":
            from osler.cli.profile import app as profile_app

            self.commands["profile"] = typer.main.get_group(profile_app)
        return super().resolve_command(ctx, args)

    def get_params(self, ctx: Any) -> Any:
        """The parameters of `osler` itself."""
        return lightened(super().get_params(ctx))

    def invoke(self, ctx: Any) -> Any:
        """Run a verb; typer would turn an interrupt or a closed pipe into an exit code of its own."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise _ReaderGone from None
        except KeyboardInterrupt:
            from osler.app.errors import UserError

            raise UserError("interrupted") from None


class _Run(TyperCommand):
    """`-m MODULE` ends osler's options, as it ends Python's."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Hand everything after the module's name on, whatever it looks like."""
        valued = {o for p in self.params if not getattr(p, "is_flag", False) for o in p.opts if o.startswith("-")}
        i = 0
        while i < len(args) and args[i].startswith("-") and args[i] not in ("-", "--"):
            if args[i] == "-m" or (args[i].startswith("-m") and not args[i].startswith("--")):
                end = i + (2 if args[i] == "-m" else 1)
                args = [*args[:end], "--", *args[end:]]
                break
            i += 2 if args[i] in valued else 1
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_Verbs,
    help="Finds what is wrong with a machine-learning model and says why: the cause, the line, the fix.",
    epilog=examples("osler run train.py --epochs 3", "osler report", "osler explain half-overflow"),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings=HELP,
)
runs_app = typer.Typer(help="The runs that are kept: list, show, prune.", **SUB)  # type: ignore[arg-type]
config_app = typer.Typer(help="The settings in force.", **SUB)  # type: ignore[arg-type]
check_stand_in = typer.Typer(help="Look at data: splits, labels, drift, sources …", **SUB)  # type: ignore[arg-type]
profile_stand_in = typer.Typer(help="Profiles of data: make, merge, show.", **SUB)  # type: ignore[arg-type]
cases_stand_in = typer.Typer(help="The case library: every fault, reproduced.", **SUB)  # type: ignore[arg-type]
app.add_typer(config_app, name="config")


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", is_eager=True, help="Print the version and exit.")] = False,
) -> None:
    if version:
        import osler

        typer.echo(f"osler {osler.__version__}")
        raise typer.Exit


@app.command(
    cls=_Run,
    no_args_is_help=True,
    context_settings={"allow_interspersed_args": False},
    epilog=examples(
        "osler run train.py --epochs 3",
        "osler run -m pkg.train --lr 0.1",
        "osler run --budget none --html report.html train.py",
        "osler run torchrun --nproc-per-node 2 train.py",
    ),
)
def run(
    target: Annotated[
        list[str] | None, typer.Argument(metavar="TARGET", help="The script, unchanged, and its arguments.")
    ] = None,
    module: Annotated[
        str | None, typer.Option("-m", metavar="MODULE", help="Run a module; the rest is its own.")
    ] = None,
    python: Python = None,
    budget: Annotated[str | None, typer.Option(metavar="SHARE", help="What watching may cost: 3%, 0.03, none.")] = None,
    fail_on: Annotated[
        str | None, typer.Option(metavar="LEVEL", help="Exit 1 on findings: info, warning, error.")
    ] = None,
    json: JsonFile = None,
    html: HtmlFile = None,
    sarif: SarifFile = None,
    junit: JunitFile = None,
    no_dump: Annotated[bool, typer.Option("--no-dump", help="Keep no bundle of a failing step.")] = False,
    trace_layers: Annotated[bool, typer.Option("--trace-layers", help="Print every layer of the first step.")] = False,
    expect: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Compare the module calls with this graph.")
    ] = None,
    record_graph: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the module calls as a graph.")
    ] = None,
    select: Select = None,
    ignore: Ignore = None,
    set_: Set = None,
    config: Config = None,
    all_: All = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No lines while it runs, only the diagnosis.")] = False,
    verbose: Verbose = False,
) -> None:
    """Run a training script and find its faults.

    The script runs unchanged. Findings go to stderr while it runs, the diagnosis follows; the exit code is its own.
    """
    from osler.app.config import load
    from osler.app.errors import UserError

    if module is None and not target:
        raise UserError("no script to run; e.g. `osler run train.py`")
    loaded = load(
        Path.cwd(), config, set_ or [], budget=budget, select=select or [], ignore=ignore or [], fail_on=fail_on
    )
    from osler.app.run import Outputs
    from osler.app.run import run as watch

    code = watch(
        target or [],
        module=module,
        python=python,
        loaded=loaded,
        outputs=Outputs(json=json, html=html, sarif=sarif, junit=junit),
        dump=not no_dump,
        trace_layers=trace_layers,
        expect=expect,
        record_graph=record_graph,
        all=all_,
        quiet=quiet,
        verbose=verbose,
    )
    raise typer.Exit(code)


app.command(name="lint", cls=Light, epilog=lint.EPILOG)(lint.lint)
app.add_typer(check_stand_in, name="check")
app.add_typer(profile_stand_in, name="profile")


@app.command(epilog=examples("osler explain", "osler explain half-overflow", "osler explain --json"))
def explain(
    rule: Annotated[str | None, typer.Argument(help="A rule; all of them if left out.", autocompletion=rules)] = None,
    json: Json = False,
) -> None:
    """Say what a fault is, why it hurts and how to mend it."""
    from osler.app.explain import show

    show(rule, json)


@app.command(epilog=examples("osler report", "osler report 20250131-120000-1a2b --html page.html --open"))
def report(
    run: RunId = None,
    json: JsonFile = None,
    html: HtmlFile = None,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    sarif: SarifFile = None,
    junit: JunitFile = None,
    config: Config = None,
    share: Annotated[
        Path | None, typer.Option(metavar="FILE.zip", help="A bundle without raw inputs to pass on.")
    ] = None,
    all_: All = False,
    verbose: Verbose = False,
) -> None:
    """Show a kept run again, here or as files."""
    from osler.app.config import load
    from osler.app.kept import show_report
    from osler.app.run import Outputs

    outputs = Outputs(json=json, html=html, sarif=sarif, junit=junit)
    loaded = load(Path.cwd(), config)
    show_report(run, loaded=loaded, outputs=outputs, open_page=open_, bundle=share, all=all_, verbose=verbose)


app.add_typer(runs_app, name="runs")


@runs_app.command("list", epilog=examples("osler runs list --json"))
def runs_list(json: Json = False) -> None:
    """List the runs that are kept, the latest first."""
    from osler.app.kept import list_runs

    list_runs(json)


@runs_app.command("show", epilog=examples("osler runs show 20250131-120000-1a2b"))
def runs_show(run: RunId = None, json: Json = False) -> None:
    """Show what is kept of a run: command, environment, files."""
    from osler.app.kept import show_run

    show_run(run, json)


@runs_app.command("prune", epilog=examples("osler runs prune --keep 20 --dry-run", "osler runs prune --older-than 30"))
def runs_prune(
    keep: Annotated[int | None, typer.Option(min=0, help="Keep this many of the latest runs.")] = None,
    older_than: Annotated[
        float | None, typer.Option(metavar="DAYS", min=0, help="Delete those older than that.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go, delete nothing.")] = False,
    json: Json = False,
    config: Config = None,
) -> None:
    """Delete old runs, by default those beyond the limits of the settings under `records`."""
    from osler.app.config import load
    from osler.app.kept import prune

    prune(load(Path.cwd(), config), keep, older_than, dry_run, json)


app.add_typer(cases_stand_in, name="cases")


@app.command(epilog=examples("osler env --json > here.json", "osler env --diff here.json there.json"))
def env(
    json: Json = False,
    diff: Annotated[
        tuple[str, str] | None,
        typer.Option(
            metavar="A B", help="Only what differs: files of `osler env --json`, or runs.", autocompletion=runs
        ),
    ] = None,
) -> None:
    """Print versions, torch build and hardware.

    That is what decides a result besides the script and its data; --diff tells two places apart.
    """
    from osler.app import environment

    if diff is None:
        environment.show(environment.fingerprint(), json)
    else:
        environment.show_diff(diff, Path.cwd(), json)


@app.command(epilog=examples("osler schema > osler-report.schema.json"))
def schema() -> None:
    """Print the JSON schema of a report."""
    from osler.app.schema import text

    typer.echo(text(), nl=False)


@app.command(epilog=examples("osler doctor", "osler doctor --python ~/venvs/train/bin/python"))
def doctor(python: Python = None, json: Json = False, config: Config = None, set_: Set = None) -> None:
    """Try whether osler can watch here.

    Asks for torch, the start-up hook, a NaN planted in a small training, a place for records. Exit code 1 if one fails.
    """
    from osler.app import doctor as house
    from osler.app.config import load

    checks = house.examine(load(Path.cwd(), config, set_ or []), Path.cwd(), python)
    house.show(checks, json)
    raise typer.Exit(0 if house.healthy(checks) else 1)


@app.command(epilog=examples("osler replay .osler/runs/20250131-120000-1a2b/dumps/step-40"))
def replay(
    bundle: Annotated[Path, typer.Argument(help="The folder of a dumped step.")], verbose: Verbose = False
) -> None:
    """Repeat a dumped step and print its cause.

    It runs in a fresh process; nothing from the bundle is executed.
    """
    from osler.app.kept import replay as again

    again(bundle, verbose)


@config_app.command("show", epilog=examples("osler config show --set gradients.window=32"))
def config_show(config: Config = None, set_: Set = None, json: Json = False) -> None:
    """Print every setting in force and where its value comes from."""
    from osler.app.config import load, show

    show(load(Path.cwd(), config, set_ or []), json)


def main() -> None:
    """Run the command line; never return, never show a traceback unless `OSLER_DEBUG` asks for it."""
    from osler.app.errors import UserError

    try:
        code = app(prog_name="osler", standalone_mode=False)
        sys.stdout.flush()
    except (BrokenPipeError, _ReaderGone):
        # Nobody reads a message about it either, and the interpreter's own last flush must not complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(2)
    except UserError as err:
        _fail(str(err))
    except KeyboardInterrupt:
        _fail("interrupted")
    except Exception as err:
        if type(err).__name__ == "NoArgsIsHelpError":
            err.show()  # type: ignore[attr-defined]
            sys.exit(2)
        if hasattr(err, "format_message"):  # usage: typer's own exceptions, wherever this version keeps them
            context = getattr(err, "ctx", None)
            hint = f" (see `{context.command_path} --help`)" if context is not None else ""
            _fail(f"{err.format_message().rstrip('.')}{hint}")
        if os.environ.get("OSLER_DEBUG"):
            raise
        _fail(f"{type(err).__name__}: {err}; run with OSLER_DEBUG=1 for the traceback")
    sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str) -> None:
    """One line on stderr, exit code 2."""
    line = " ".join(f"osler: {message}".split())
    print(line.encode("utf-8", "backslashreplace").decode("utf-8"), file=sys.stderr)  # noqa: T201
    sys.exit(2)
