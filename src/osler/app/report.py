"""`osler report`: a kept run as a report again, and as a bundle to pass on."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

from osler.app.errors import UserError
from osler.core.jsonable import dumps
from osler.core.report import Report
from osler.core.runfolder import SUBJECT
from osler.records.assemble import assemble
from osler.records.folder import Home, NoRun
from osler.records.ingest import catch_up
from osler.records.read import journals
from osler.records.redact import Redactor

_README = """This bundle was made with `osler report --share`.

report.json       findings, what was not checked, curves and heat maps (schema: `osler schema`)
environment.json  packages, torch build, hardware, seeds

It holds no inputs, targets, parameters or dumps. Home folders are written as ~; values of options and variables that
look like secrets, and names of hosts and users, are written as ***. Look through report.json before you pass it on:
paths, names and messages of your own program are in it.
"""


def find(run: str | None, cwd: Path) -> Path:
    """The folder of a run.

    Args:
        run: its id, the beginning of it, its last four digits, or the path of its folder; None and `latest`: the last.
        cwd: where `.osler/` is looked for, there and in the folders above.

    Raises:
        UserError: there is no such run.
    """
    if run is not None and "/" in run:
        path = Path(cwd, run)
        if (path / SUBJECT).is_file() or journals(path):
            return path
        raise UserError(f"{run} is no run's folder: it holds neither {SUBJECT} nor a journal")
    home = Home.find(cwd)
    if home is None:
        raise UserError(f"there is no .osler/ in {cwd} or above it: `osler run SCRIPT` makes one")
    try:
        return home.find_run(run)
    except NoRun as error:
        raise UserError(str(error)) from None


def load(run: str | None, cwd: Path) -> Report:
    """The report of a run, after runs that were cut short have been taken in; see `find` for the arguments.

    Lines that taking them in had to say stand in the report's notes. A run that still goes on gives what is known of
    it so far.

    Raises:
        UserError: there is no such run.
    """
    run_dir = find(run, cwd)
    said = catch_up(Home(run_dir.parent.parent)) if run_dir.parent.name == "runs" else []
    report = assemble(run_dir)
    report.notes.extend(line.removeprefix("osler: ") for line in said)
    return report


def share(run: str | None, out: Path, cwd: Path | None = None) -> Path:
    """Write a bundle of a run to pass on: `report.json`, `environment.json`, `README.txt` in a zip file, mode 0600.

    Args:
        run: see `find`.
        out: the file to write, or a folder for `osler-<run>.zip`.
        cwd: where `.osler/` is looked for; the working directory unless given.

    Returns:
        The file.

    Raises:
        UserError: there is no such run, or the file cannot be written.
    """
    from osler.catalogue import RULES

    cwd = Path.cwd() if cwd is None else cwd
    report = load(run, cwd)
    path = Path(cwd, out)
    if path.is_dir():
        path = path / f"osler-{report.subject.get('run')}.zip"
    data = Redactor().value(report.to_dict(RULES))
    assert isinstance(data, dict)
    files = {"report.json": dumps(data, 1), "environment.json": dumps(data["environment"], 1), "README.txt": _README}
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(fd, "wb") as f, zipfile.ZipFile(f, "w", zipfile.ZIP_DEFLATED) as bundle:  # noqa: PTH123
            for name, text in files.items():
                bundle.writestr(zipfile.ZipInfo(name), text, zipfile.ZIP_DEFLATED)
        temporary.replace(path)
    except OSError as error:
        try:
            temporary.unlink(missing_ok=True)
        except OSError:
            pass
        raise UserError(f"{path} cannot be written: {error.strerror or error}") from None
    return path
