from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from osler.catalogue import RULES
from osler.core.finding import Finding
from osler.core.jsonable import dumps
from osler.records.memory import MemorySink
from osler.records.thin import MAX_COLUMNS, MAX_POINTS, Curve, HeatMap


def test_a_report_of_everything(tmp_path: Path, finding: Callable[..., Finding]) -> None:
    rule = next(iter(RULES))
    sink = MemorySink(tmp_path / "out")
    sink.awake("2.13")
    sink.environment({"threads": 2})
    sink.finding(finding(line=1))
    sink.finding(finding(line=1))
    sink.again(finding(line=1).key, 9, 12)
    sink.finding(finding(line=2))
    sink.points("loss", [0, 1], [2.0, 1.0])
    sink.matrix("gradient_norm", ["a", "b"], [0], [[1.0, math.nan]])
    sink.not_checked(rule, "compiled")
    sink.not_checked(rule, "compiled")
    sink.not_checked("validation", "no loop seen")
    sink.overhead({"ratio": 1.5})
    sink.overhead({"ratio": 1.01})
    sink.layers([{"module": "net"}])
    sink.note("n")
    sink.note("n")
    sink.flush()
    sink.close(2)
    report = sink.report()
    assert [(f.where.line, f.count, f.last_step) for f in report.findings] == [(1, 9, 12), (2, 1, 3)]
    assert [(n.what, n.is_rule) for n in report.not_checked] == [(rule, True), ("validation", False)]
    assert (report.overhead, report.notes, report.layers) == ({"ratio": 1.01}, ["n"], [{"module": "net"}])
    assert report.environment == {"torch": "2.13", "threads": 2}
    assert [(s.name, s.kind, s.rows) for s in report.series] == [
        ("loss", "curve", []),
        ("gradient_norm", "heatmap", ["a", "b"]),
    ]
    assert (report.subject["kind"], report.subject["steps"]) == ("watch", 2)
    dumps(report.to_dict(RULES))
    assert sink.folder("dumps") == tmp_path / "out" / "dumps"
    assert MemorySink(None).folder("dumps") is None
    assert sink.folder("../x") is None


def test_a_report_does_not_change_when_more_comes_in(finding: Callable[..., Finding]) -> None:
    sink = MemorySink(None)
    mine = finding()
    sink.finding(mine)
    sink.points("loss", [0], [1.0])
    report = sink.report()
    sink.again(mine.key, 5, 9)
    sink.points("loss", [1], [1.0])
    assert (report.findings[0].count, mine.count, report.series[0].steps) == (1, 1, [0])


def test_any_input_is_survived() -> None:
    sink = MemorySink(None)
    sink.finding(None)  # type: ignore[arg-type]
    sink.again(None, "x", None)  # type: ignore[arg-type]
    sink.points("a", ["x"], [None])  # type: ignore[list-item]
    sink.points("b", [10**30], [1.0])
    sink.matrix("m", ["a"], [0], [[1.0, 2.0]])
    sink.environment(3)  # type: ignore[arg-type]
    sink.layers(3)  # type: ignore[arg-type]
    sink.overhead(3)  # type: ignore[arg-type]
    sink.folder(3)  # type: ignore[arg-type]
    dumps(sink.report().to_dict(RULES))


def test_memory_is_bounded() -> None:
    sink = MemorySink(None)
    rows = [f"layer{i}" for i in range(20)]
    tracemalloc.start()
    for i in range(100_000):
        sink.points("loss", [i], [i / 3])
        if i % 10 == 0:
            sink.matrix("gradient_norm", rows, [i], [[i / 7] * 20])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5e6
    curve, heat = sink.report().series
    assert MAX_POINTS / 2 <= len(curve.steps) <= MAX_POINTS + 1
    assert (curve.steps[0], curve.steps[-1]) == (0, 99_999)
    assert MAX_COLUMNS / 2 <= len(heat.steps) <= MAX_COLUMNS


@pytest.mark.parametrize("n", [0, 1, 8, 9, 10, 15, 16, 17, 31, 32, 33, 100])
def test_a_curve_keeps_evenly_spaced_points_and_the_last(n: int) -> None:
    curve = Curve(limit=8)
    for i in range(n):
        curve.add(i, float(i))
    steps, values = curve.result()
    assert values == [float(s) for s in steps]
    assert len(steps) <= 9
    gaps = {b - a for a, b in pairwise(steps[:-1])}
    assert len(gaps) <= 1
    if n:
        assert (steps[0], steps[-1]) == (0, n - 1)


@pytest.mark.parametrize("n", [1, 8, 9, 10, 17, 33, 50, 100])
def test_a_heat_map_keeps_every_spike(n: int) -> None:
    for spike in range(n):
        heat = HeatMap(limit=8)
        for i in range(n):
            heat.add(["a", "b"], i, [5.0 if i == spike else 0.0, float(i)])
        rows, steps, columns = heat.result()
        assert rows == ["a", "b"]
        assert len(columns) == len(steps) <= 8
        assert [c[0] for c in columns].count(5.0) == 1
        at = [c[0] for c in columns].index(5.0)
        assert steps[at] <= spike < ([*steps, n])[at + 1]
        assert columns[-1][1] == n - 1


def test_not_a_number_outlives_joining() -> None:
    heat = HeatMap(limit=2)
    for i in range(64):
        heat.add(["a"], i, [math.nan if i == 37 else math.inf])
    assert sum(math.isnan(c[0]) for c in heat.result()[2]) == 1


def test_rows_may_change() -> None:
    heat = HeatMap(limit=8)
    heat.add(["a", "b"], 0, [1.0, 2.0])
    heat.add(["c", "a"], 1, [3.0, 4.0])
    rows, _, columns = heat.result()
    assert rows == ["a", "b", "c"]
    assert str(columns) == "[[1.0, 2.0, nan], [4.0, nan, 3.0]]"
