"""The verdicts as tables for people."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from osler.cases.library import HEALTHY
from osler.cases.verdict import Outcome, Verdict

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_NO_TERMINAL_WIDTH = 140  # columns for a file or a pipe, where nobody has said how wide it may be


def show(verdicts: Sequence[Verdict], console: Console) -> None:
    """Print a table of the cases and one of the healthy scripts, each with a row of totals."""
    if not console.is_terminal:
        console.width = max(console.width, _NO_TERMINAL_WIDTH)
    for kind, make in (("case", _cases), ("healthy", _healthy)):
        rows = [v for v in verdicts if v.kind == kind]
        if rows:
            console.print(make(rows))


def show_failures(failures: Sequence[Verdict], console: Console, casebook: str | None) -> None:
    """Print the failures in the order given, each with its reason and the command that repeats it."""
    from rich.markup import escape

    for verdict in failures:
        head = f"{verdict.outcome.value} {verdict.id} (budget {verdict.budget})"
        others = len(verdict.reasons) - 1
        more = f" (and {others} more)" if others > 0 else ""
        console.print(f"[bold red]{escape(head)}[/]: {escape(verdict.reason)}{more}", soft_wrap=True, highlight=False)
        console.print(f"    {escape(repeat_command(verdict, casebook))}", soft_wrap=True, highlight=False)


def repeat_command(verdict: Verdict, casebook: str | None) -> str:
    """The command that verifies this one again."""
    name = f"{HEALTHY}/{verdict.id}" if verdict.kind == "healthy" else verdict.id
    words = ["osler", "cases", "verify", name, "--budget", verdict.budget]
    if casebook is not None:
        words += ["--casebook", casebook]
    return shlex.join(words)


def totals(verdicts: Iterable[Verdict]) -> dict[str, int]:
    """How many verdicts there are of each outcome that occurs."""
    out: dict[str, int] = {}
    for verdict in verdicts:
        out[verdict.outcome.value] = out.get(verdict.outcome.value, 0) + 1
    return out


def _cases(verdicts: Sequence[Verdict]) -> Table:
    budgets = _budgets(verdicts)
    table = _table(["case", "rule"], budgets, ["rule", "line", "step", "twin", "s"])
    for id, by_budget in _by_id(verdicts).items():
        rule = next(iter(by_budget.values())).rule
        row = [id, "same" if rule == id else rule]
        for budget in budgets:
            v = by_budget.get(budget)
            row += _case_cells(v) if v else [""] * 5
        table.add_row(*row)
    total = ["total", ""]
    for budget in budgets:
        ran = [v for v in verdicts if v.budget == budget and v.outcome is not Outcome.SKIPPED]
        total += [
            _share(ran, lambda v: v.rule_right),
            _share(ran, lambda v: v.line_right),
            "",
            _share(ran, lambda v: v.silent),
            f"{sum(v.seconds for v in ran):.0f}",
        ]
    table.add_section()
    table.add_row(*total, style="bold")
    return table


def _case_cells(v: Verdict) -> list[str]:
    if v.outcome is Outcome.SKIPPED:
        return ["skipped", "", "", "", ""]
    rule = _word(v.rule_right)
    if v.outcome in (Outcome.INVALID, Outcome.CRASHED):
        rule = f"[red]{v.outcome.value.lower()}[/]"
    step = "–" if v.step is None else str(v.step)
    if Outcome.LATE is v.outcome:
        step = f"[red]{step} late[/]"
    twin = "[red]LOUD[/]" if v.silent is False else _word(v.silent, "silent")
    return [rule, _word(v.line_right), step, twin, f"{v.seconds:.1f}"]


def _healthy(verdicts: Sequence[Verdict]) -> Table:
    budgets = _budgets(verdicts)
    table = _table(["healthy script"], budgets, ["silent", "s"])
    for id, by_budget in _by_id(verdicts).items():
        row = [id]
        for budget in budgets:
            v = by_budget.get(budget)
            row += _healthy_cells(v) if v else ["", ""]
        table.add_row(*row)
    total = ["total"]
    for budget in budgets:
        ran = [v for v in verdicts if v.budget == budget and v.outcome is not Outcome.SKIPPED]
        total += [_share(ran, lambda v: v.silent), f"{sum(v.seconds for v in ran):.0f}"]
    table.add_section()
    table.add_row(*total, style="bold")
    return table


def _healthy_cells(v: Verdict) -> list[str]:
    if v.outcome is Outcome.SKIPPED:
        return ["skipped", ""]
    if v.outcome in (Outcome.CRASHED, Outcome.INVALID):
        return [f"[red]{v.outcome.value.lower()}[/]", f"{v.seconds:.1f}"]
    return [_word(v.silent), f"{v.seconds:.1f}"]


def _table(names: Sequence[str], budgets: Sequence[str], columns: Sequence[str]) -> Table:
    from rich.box import SIMPLE
    from rich.table import Table

    table = Table(box=SIMPLE, pad_edge=False, header_style="bold")
    for name in names:
        table.add_column(name, overflow="fold")
    for budget in budgets:
        for i, column in enumerate(columns):
            head = f"budget {budget}\n{column}" if i == 0 else f"\n{column}"
            table.add_column(head, justify="right" if column in ("step", "s") else "left", no_wrap=i > 0)
    return table


def _budgets(verdicts: Iterable[Verdict]) -> list[str]:
    present = {v.budget for v in verdicts}
    return [b for b in ("none", "default") if b in present]


def _by_id(verdicts: Iterable[Verdict]) -> dict[str, dict[str, Verdict]]:
    out: dict[str, dict[str, Verdict]] = {}
    for v in verdicts:
        out.setdefault(v.id, {})[v.budget] = v
    return out


def _share(verdicts: Sequence[Verdict], right: Callable[[Verdict], bool | None]) -> str:
    return f"{sum(bool(right(v)) for v in verdicts)}/{len(verdicts)}"


def _word(value: bool | None, yes: str = "right") -> str:
    if value is None:
        return "–"
    return yes if value else "[red]WRONG[/]"
