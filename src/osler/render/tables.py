"""Tables and histograms of a report on a terminal or in a pipe."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from osler.core.report import Report, Series, Table
from osler.render import words
from osler.render.distributions import pooled, spark
from osler.render.pen import QUIET, Pen

ROWS_SHOWN = 12
HISTOGRAMS_SHOWN = 6
_MARKS = 40


def print_tables(report: Report, console: Console, verbose: bool = False) -> None:
    """Print the tables, then the histograms; `verbose` prints every row."""
    pen = Pen(console)
    for table in report.tables:
        _table(table, pen, verbose)
    drawn = [s for s in report.series if s.kind == "histogram"]
    shown = drawn if verbose else drawn[:HISTOGRAMS_SHOWN]
    for series in shown:
        _histogram(series, pen)
    if len(drawn) > len(shown):
        pen.line((f"{len(drawn) - len(shown)} more histograms; --verbose shows them", QUIET))
        pen.blank()


def _table(table: Table, pen: Pen, verbose: bool) -> None:
    rows = table.rows if verbose else table.rows[:ROWS_SHOWN]
    told = [i for i in range(len(table.columns)) if any(row[i] is not None for row in rows)]
    if rows and len(told) < len(table.columns):
        # What nothing is known of in any row takes no room.
        table = Table(
            table.name, [table.columns[i] for i in told], [[r[i] for i in told] for r in table.rows], table.note
        )
        rows = [[row[i] for i in told] for row in rows]
    pen.line((words.one_line(table.name, 100), "bold"))
    if table.note:
        pen.line((words.one_line(table.note), QUIET), indent=2)
    if not pen.console.is_terminal:
        for line in plain(table.columns, rows):
            pen.raw(line)
    else:
        grid = Grid(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
        numeric = [_numeric(table, i) for i in range(len(table.columns))]
        for name, right in zip(table.columns, numeric):
            grid.add_column(Text(words.one_line(name, 60)), justify="right" if right else "left", overflow="fold")
        for row in rows:
            grid.add_row(*(Text(cell(value)) for value in row))
        pen.console.print(grid)
    if len(table.rows) > len(rows):
        pen.line((f"{len(table.rows) - len(rows)} more rows; --verbose shows them", QUIET), indent=2)
    pen.blank()


def plain(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """A table in columns of equal width, for a pipe."""
    text = [[words.one_line(c, 60) for c in columns], *([cell(v) for v in row] for row in rows)]
    widths = [max(len(line[i]) for line in text) for i in range(len(columns))]
    return ["  " + "  ".join(v.ljust(w) for v, w in zip(line, widths)).rstrip() for line in text]


def cell(value: object) -> str:
    """A cell's text; None is empty."""
    return "" if value is None else words.figure(value)


def _numeric(table: Table, column: int) -> bool:
    values = [row[column] for row in table.rows if row[column] is not None]
    return bool(values) and all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values)


def _histogram(series: Series, pen: Pen) -> None:
    rows = [row for row in series.values if isinstance(row, list)]
    sums = [pooled([v if isinstance(v, (int, float)) and v > 0 else 0.0 for v in row], _MARKS) for row in rows]
    top = max((v for row in sums for v in row), default=0.0)
    ends = f"{words.figure(series.edges[0])} … {words.figure(series.edges[-1])}" if series.edges else ""
    pen.line((words.one_line(series.name, 100), "bold"), (f"  {ends}", QUIET))
    width = max((len(name) for name in series.rows), default=0)
    for name, row in zip(series.rows, rows):
        pen.raw(f"  {words.one_line(name, 60):<{width}}  ", (spark(row, top, _MARKS), "cyan"))
    pen.blank()
