"""Tables and histograms in a pipe, on a terminal and on the page."""

from __future__ import annotations

import io
import json
from html.parser import HTMLParser

import pytest
from rich.console import Console

from osler.catalogue import RULES
from osler.core.report import Report, Series, Table
from osler.render.distributions import drawing, pooled, spark
from osler.render.json_ import to_json
from osler.render.page import page
from osler.render.schema import ReportModel
from osler.render.terminal import print_report


def a_report(rows: int = 3) -> Report:
    table = Table(
        "features", ["column", "KS", "moved"], [[f"c{i}", 0.125 * i, i > 0] for i in range(rows)], "KS is a distance"
    )
    histogram = Series(
        "income",
        "histogram",
        [],
        [[0.5, 0.25, 0.25], [0.0, 0.5, 0.5]],
        ["reference", "current"],
        edges=[0.0, 1.0, 2.0, 3.0],
    )
    return Report({"kind": "check", "check": "drift"}, tables=[table], series=[histogram])


def shown(report: Report, terminal: bool = False, verbose: bool = False) -> str:
    out = io.StringIO()
    print_report(report, RULES, Console(file=out, width=100, force_terminal=terminal, no_color=True), verbose=verbose)
    return out.getvalue()


def test_in_a_pipe_columns_stand_below_each_other() -> None:
    lines = shown(a_report()).splitlines()
    at = lines.index("features")
    assert lines[at + 1] == "  KS is a distance"
    assert lines[at + 2 : at + 6] == [
        "  column  KS     moved",
        "  c0      0      no",
        "  c1      0.125  yes",
        "  c2      0.25   yes",
    ]
    assert "income  0 … 3" in lines


def test_on_a_terminal_it_is_a_table() -> None:
    assert "features" in shown(a_report(), terminal=True)
    assert "0.125" in shown(a_report(), terminal=True)


def test_long_tables_are_cut_unless_verbose() -> None:
    assert "18 more rows; --verbose shows them" in shown(a_report(30))
    assert "more rows" not in shown(a_report(30), verbose=True)


def test_a_cell_cannot_write_escape_sequences() -> None:
    report = a_report()
    report.tables[0].rows[0][0] = "\x1b[31mred\x1b[0m<b>"
    assert "\x1b" not in shown(report)
    assert "red&lt;b&gt;" in page(report, RULES)


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))


def test_the_page_draws_both_sides() -> None:
    parser = _Elements()
    parser.feed(page(a_report(), RULES))
    bars = [a for tag, a in parser.seen if tag == "rect"]
    assert [a["class"] for a in bars] == ["bar-0", "bar-0", "bar-0", "bar-1", "bar-1"]
    assert [float(str(a["height"])) for a in bars] == [180.0, 90.0, 90.0, 180.0, 180.0]


def test_bins_of_unequal_width_are_drawn_by_area() -> None:
    series = Series("x", "histogram", [], [[0.5, 0.5]], ["all"], edges=[0.0, 1.0, 3.0])
    one = drawing(series)
    assert one is not None
    parser = _Elements()
    parser.feed(one.svg)
    heights = [float(str(a["height"])) for tag, a in parser.seen if tag == "rect"]
    assert heights[0] == pytest.approx(2 * heights[1])


def test_nothing_is_drawn_of_nothing() -> None:
    assert drawing(Series("x", "histogram", [], [[0.0, 0.0]], ["all"], edges=[0.0, 1.0, 2.0])) is None
    assert drawing(Series("x", "histogram", [], [], [])) is None


def test_marks() -> None:
    assert spark([0.0, 0.01, 1.0], 1.0) == " ▁█"
    assert len(pooled([1.0] * 100, 40)) == 40
    assert sum(pooled([0.5] * 7, 3)) == pytest.approx(3.5)


def test_json_fits_the_schema() -> None:
    data = json.loads(to_json(a_report(), RULES))
    assert data["tables"][0]["rows"][1] == ["c1", 0.125, True]
    assert data["series"][0]["edges"] == [0.0, 1.0, 2.0, 3.0]
    ReportModel.model_validate(data)


def test_a_column_of_which_nothing_is_known_takes_no_room() -> None:
    report = a_report()
    report.tables[0].columns.append("JS")
    for row in report.tables[0].rows:
        row.append(None)
    assert "JS" not in shown(report)
    assert json.loads(to_json(report, RULES))["tables"][0]["columns"][-1] == "JS"
