"""Prints what is kept: a run's report again, the list of runs, what pruning took away, a bundle's step repeated."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path

from rich.console import Console

from osler.app import runs
from osler.app.config import Loaded
from osler.app.errors import UserError
from osler.app.ignores import apply
from osler.app.report import find, load, share
from osler.app.run import Outputs
from osler.core.finding import Severity
from osler.core.jsonable import dumps
from osler.render import words
from osler.render.pen import QUIET, SEVERITY_STYLE, Pen


def show_report(
    run: str | None,
    *,
    loaded: Loaded,
    outputs: Outputs,
    open_page: bool = False,
    bundle: Path | None = None,
    all: bool = False,
    verbose: bool = False,
) -> None:
    """Show a kept run on stdout, or write it in the forms that were asked for.

    Args:
        run: see `osler.app.report.find`.
        loaded: the settings in force, for what is not to be reported.
        outputs: files to write; with any of them, nothing is printed but their names.
        open_page: open the HTML page in the browser; without `outputs.html` it is written into the run's folder.
        bundle: a zip file to pass on (see `osler.app.report.share`).
        all: also show findings that are only possible.
        verbose: every symptom, and why each rule was not checked.

    Raises:
        UserError: there is no such run, or a file cannot be written.
    """
    cwd = Path.cwd()
    folder = find(run, cwd)
    if open_page and outputs.html is None:
        outputs = dataclasses.replace(outputs, html=str(folder / "report.html"))
    if open_page and outputs.html == "-":
        raise UserError("--open needs a file: `--html FILE --open`, or --open alone")
    outputs.check()
    written = [file for file in dataclasses.astuple(outputs) if file]
    pen = Pen(Console(stderr="-" in written))
    if bundle is not None:
        pen.line(f"wrote {words.clean(share(run, bundle, cwd))}")
    if not written and bundle is not None:
        return
    report = apply(load(run, cwd), loaded.settings)
    if not written:
        from osler.catalogue import RULES
        from osler.render.terminal import print_report

        print_report(report, RULES, Console(), all=all, verbose=verbose)
        return
    level = loaded.settings.fail_on
    if troubles := outputs.write(report, Severity.parse(level) if level else None):
        raise UserError("; ".join(troubles))
    for file in written:
        if file != "-":
            pen.line(f"wrote {words.clean(file)}")
    if open_page and outputs.html is not None:
        import webbrowser

        page = Path(outputs.html).absolute()
        if not webbrowser.open(page.as_uri()):
            raise UserError(f"no browser could be started; the page is {page}")


def list_runs(as_json: bool = False) -> None:
    """Print the runs that are kept, the latest first."""
    listed = runs.list_runs(Path.cwd())
    if as_json:
        print(dumps([_summary(run) for run in listed.runs], indent=2))  # noqa: T201
        return
    pen = Pen(Console())
    for line in listed.said:
        pen.line((line, QUIET))
    if not listed.runs:
        pen.line("no runs are kept here; `osler run SCRIPT` makes one")
    for run in listed.runs:
        counts = ((Severity.ERROR, run.errors), (Severity.WARNING, run.warnings), (Severity.INFO, run.infos))
        found = [(f"{n} {severity.label}  ", SEVERITY_STYLE[severity]) for severity, n in counts if n]
        ended = "running" if run.live else "cut short" if run.exit_code is None else f"exit {run.exit_code}"
        facts = [ended, "" if run.seconds is None else f"{run.seconds:.0f} s"]
        facts.append("" if run.steps is None else words.count(run.steps, "step"))
        facts.append("" if run.overhead is None else f"watched at {run.overhead:.2f}×")
        pen.raw((run.id, "bold"), "  ", *(found or [("nothing  ", "green")]), (", ".join(filter(None, facts)), QUIET))
        pen.line(words.one_line(run.command, 400), indent=2)


def show_run(run: str | None, as_json: bool = False) -> None:
    """Print what is kept of a run: how it went, what was found, its files.

    Raises:
        UserError: there is no such run.
    """
    details = runs.show_run(run, Path.cwd())
    found = details.report.findings
    if as_json:
        files = [{"file": name, "bytes": size} for name, size in details.files]
        data = {**_summary(details.summary), "findings": [f.to_dict() for f in found], "files": files}
        print(dumps({**data, "environment": details.report.environment}, indent=2))  # noqa: T201
        return
    pen = Pen(Console())
    for name, value in _summary(details.summary).items():
        pen.line((f"{name:<10}", "bold"), words.clean("unknown" if value is None else value), hang=10)
    for finding in found:
        head = (f"{finding.severity.label:<10}", SEVERITY_STYLE[finding.severity])
        pen.line(head, f"{finding.rule}: {words.one_line(finding.message)}", hang=10)
    for file, size in details.files:
        pen.line(("file".ljust(10), "bold"), f"{words.clean(details.summary.path / file)}  {_bytes(size)}", hang=10)
    pen.line((f"`osler report {details.summary.id}` shows its diagnosis", QUIET))


def prune(
    loaded: Loaded,
    keep: int | None = None,
    older_than: float | None = None,
    dry_run: bool = False,
    as_json: bool = False,
) -> None:
    """Throw away old runs and print which.

    Args:
        loaded: the settings in force; `records` holds the limits where none is given.
        keep: how many of the latest runs stay.
        older_than: age in days from which a run goes.
        dry_run: only say what would go.
        as_json: print JSON.

    Raises:
        UserError: there is nothing to prune in.
    """
    gone = runs.prune_runs(Path.cwd(), keep, older_than, None, dry_run, loaded.settings.records)
    if as_json:
        rows = [{"id": each.id, "bytes": each.bytes, "why": each.why, "deleted": not dry_run} for each in gone]
        print(dumps(rows, indent=2))  # noqa: T201
        return
    pen = Pen(Console())
    for each in gone:
        pen.line((each.id, "bold"), f"  {_bytes(each.bytes)}, {each.why}")
    total = _bytes(sum(each.bytes for each in gone))
    verb = "would be deleted" if dry_run else "deleted"
    pen.line(f"{words.count(len(gone), 'run')} {verb}, {total}" if gone else "no run is old enough to go")


def replay(bundle: Path, verbose: bool = False) -> None:
    """Repeat a dumped step in this process, which has just begun, and print its cause.

    Raises:
        UserError: the bundle cannot be read, or torch is not installed.
    """
    if not bundle.exists():
        raise UserError(f"{bundle} does not exist; a bundle lies in .osler/runs/<run>/dumps/")
    try:
        from osler.training.bundle import replay_bundle
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise UserError("a step can only be repeated where torch is installed: `pip install 'osler[torch]'`") from None
    try:
        report = replay_bundle(bundle)
    except (OSError, ValueError) as error:
        raise UserError(f"{bundle} cannot be replayed: {error}") from None
    from osler.catalogue import RULES
    from osler.render.terminal import print_report

    print_report(report, RULES, Console(), verbose=verbose)


def _summary(run: runs.RunSummary) -> dict[str, object]:
    data = {field.name: getattr(run, field.name) for field in dataclasses.fields(run)}
    started = run.started
    data["started"] = None if started is None else time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(started))
    return data | {"path": str(run.path)}


def _bytes(size: int) -> str:
    return f"{size / 2**20:.1f} MiB" if size >= 2**20 else f"{size / 2**10:.1f} KiB"
