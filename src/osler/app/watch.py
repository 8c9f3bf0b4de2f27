"""`osler.watch()`: the same watching inside a notebook or a test, with the report in memory."""

from __future__ import annotations

import html
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from osler.core.finding import Confidence, Finding, Severity
from osler.core.report import NotChecked, Report
from osler.core.settings import Settings

if TYPE_CHECKING:
    from osler.training.session import Session


class FaultsFound(AssertionError):
    """Raised at the end of a `watch(fail_on=…)` block in which there were findings of that severity."""


class Watch:
    """What `osler.watch()` gives. Use it as a context manager; afterwards `report` holds what was found.

    Attributes:
        report: the report so far; final once the block has ended.
    """

    def __init__(
        self, settings: Settings, options: dict[str, Any], folder: Path | None, fail_on: Severity | None
    ) -> None:
        self._settings = settings
        self._options = options
        self._folder = folder
        self._fail_on = fail_on
        self._session: Session | None = None
        self._sink: Any = None
        self._report: Report | None = None
        self._began = 0.0
        self._passive = False

    def __enter__(self) -> Watch:
        import osler
        from osler.records.memory import MemorySink
        from osler.training import session

        self._began = time.time()
        if session.active():
            # Under `osler run` the whole process is watched; the block belongs to that report.
            self._passive = True
            return self
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
        self._sink = MemorySink(self._folder)
        self._session = session.Session(self._sink, self._settings, self._options).install()
        self._version = osler.__version__
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None
            self._report = self._finish()
        if kind is None and self._fail_on is not None:
            bad = self.report.at_least(self._fail_on)
            if bad:
                raise FaultsFound("\n".join(f"{f.rule}: {f.message}" for f in bad))

    def _finish(self) -> Report:
        report: Report = self._sink.report()
        report.version = self._version
        report.subject = {
            "kind": "watch",
            "command": [str(a) for a in sys.argv[:1]],
            "started": self._began,
            "seconds": round(time.time() - self._began, 3),
            **{k: v for k, v in report.subject.items() if k not in ("kind", "command")},
        }
        if self._session is None and not report.subject.get("steps") and not report.findings:
            report.not_checked.append(
                NotChecked("everything", "no optimizer was stepped while it watched", is_rule=False)
            )
        from osler.app.ignores import apply

        return apply(report, self._settings)

    @property
    def report(self) -> Report:
        """The report; while the block runs, what there is so far."""
        if self._report is not None:
            return self._report
        if self._sink is not None:
            return self._finish()
        notes = (
            ["this process is watched already (osler run, or an outer watch): that report holds these findings"]
            if self._passive
            else []
        )
        return Report({"kind": "watch", "command": []}, notes=notes)

    @property
    def findings(self) -> list[Finding]:
        """The findings, `possible` ones left out."""
        return self.report.at_least(Severity.INFO, Confidence.PROBABLE)

    def show(self, *, all: bool = False) -> None:
        """Print the diagnosis on stdout."""
        from rich.console import Console

        from osler.catalogue import RULES
        from osler.render.terminal import print_report

        print_report(self.report, RULES, Console(), all=all)

    def save(self, path: str | Path) -> Path:
        """Write the report as a self-contained HTML page (or JSON, by the ending) and return its path."""
        from osler.catalogue import RULES

        path = Path(path)
        if path.suffix == ".json":
            from osler.render.json_ import to_json

            path.write_text(to_json(self.report, RULES), encoding="utf-8")
        else:
            from osler.render.page import page

            path.write_text(page(self.report, RULES), encoding="utf-8")
        return path

    def _repr_html_(self) -> str:
        from osler.catalogue import RULES
        from osler.render.page import page

        inside = html.escape(page(self.report, RULES), quote=True)
        return f'<iframe srcdoc="{inside}" style="width:100%;height:640px;border:0" title="osler report"></iframe>'


def watch(
    *,
    budget: str | float = "3%",
    fail_on: str | None = None,
    settings: Settings | None = None,
    folder: str | Path | None = None,
    trace_layers: bool = False,
) -> Watch:
    """Watch the training inside a `with` block.

        with osler.watch() as w:
            train(model)
        w.show()

    Args:
        budget: share of the training's time that watching may take, or `"none"` for exact lines at any cost.
        fail_on: `info`, `warning` or `error`: raise `FaultsFound` at the end of the block if there are findings of that
            severity or above (for tests).
        settings: the settings tree; by default that of the project's configuration file.
        folder: where dumps of failing steps go; by default none are written.
        trace_layers: keep a table of each layer's inputs and outputs in the first step.

    Raises:
        osler.app.errors.UserError: the budget, `fail_on` or the configuration file is malformed.
        ModuleNotFoundError: torch is not installed.
    """
    from osler.app.config import load
    from osler.app.errors import UserError

    loaded = load(Path.cwd(), budget=str(budget))
    try:
        level = Severity.parse(fail_on) if fail_on else None
    except ValueError as error:
        raise UserError(str(error)) from None
    options = {"budget_none": loaded.budget_none, "dump": folder is not None, "trace_layers": trace_layers}
    return Watch(settings or loaded.settings, options, Path(folder) if folder is not None else None, level)
