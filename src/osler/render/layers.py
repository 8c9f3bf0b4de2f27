"""The table of `--trace-layers`."""

from __future__ import annotations

from collections.abc import Mapping

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from osler.core.report import Report
from osler.render import words
from osler.render.pen import Pen


def print_layers(report: Report, console: Console) -> None:
    """Print one row per module call of the first step: what went in, what came out, and what is odd about it."""
    pen = Pen(console)
    if not report.layers:
        pen.line("no layers were traced; `osler run --trace-layers` records them in the first step")
        return
    names = ["module", "kind", "in", "out", "range of out", "flags"]
    rows = [cells(row) for row in report.layers]
    if not console.is_terminal:
        # Aligned columns of any width: a table drawn for a terminal would fold module paths.
        widths = [max(len(r[i]) for r in [names, *rows]) for i in range(len(names))]
        for row in [names, *rows]:
            pen.raw("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)))
        return
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    longest = max(len(row[0]) for row in rows)
    for name in names:
        # A module's path is what one looks for: it gives way last.
        width = min(longest, console.width // 2) if name == "module" else None
        table.add_column(name, overflow="fold", min_width=width, style="yellow" if name == "flags" else None)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console.print(table, highlight=False, markup=False, emoji=False)


def cells(row: Mapping[str, object]) -> list[str]:
    """A layer's row as text: module, kind, in, out, range of out, flags."""
    outputs = _tensors(row.get("outputs"))
    flags = row.get("flags")
    return [
        words.one_line(row.get("module") or "(root)", 200),
        words.one_line(row.get("kind") or "", 80),
        "; ".join(_tensor(t) for t in _tensors(row.get("inputs"))),
        "; ".join(_tensor(t) for t in outputs),
        "; ".join(_range(t) for t in outputs if _range(t)),
        ", ".join(words.one_line(f, 200) for f in flags) if isinstance(flags, (list, tuple)) else "",
    ]


def _tensors(value: object) -> list[Mapping[str, object]]:
    return [t for t in value if isinstance(t, Mapping)] if isinstance(value, (list, tuple)) else []


def _tensor(tensor: Mapping[str, object]) -> str:
    parts = [words.shape(tensor.get("shape")) if "shape" in tensor else ""]
    parts.append(words.one_line(tensor.get("dtype") or "", 40).removeprefix("torch."))
    device = words.one_line(tensor.get("device") or "", 40)
    parts.append("" if device == "cpu" else device)
    parts.append("not contiguous" if tensor.get("contiguous") is False else "")
    return " ".join(p for p in parts if p)


def _range(tensor: Mapping[str, object]) -> str:
    low, high = tensor.get("min"), tensor.get("max")
    return "" if low is None and high is None else f"{words.figure(low)} to {words.figure(high)}"
