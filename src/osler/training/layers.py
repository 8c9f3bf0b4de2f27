"""The layer probe: what each layer was given and gave in the first step, and whether the calls are those expected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from osler.core.finding import Finding
from osler.core.jsonable import dumps
from osler.training.recorder import Recorder
from osler.training.trace import ModuleCall, Trace

FORMAT = 1


class LayerProbe:
    """Reports the module calls of one step where `--trace-layers`, `--expect` or `--record-graph` asks for them."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._done = False

    def trace(self, trace: Trace) -> list[Finding]:
        """The first close look with calls in it."""
        if self._done or not trace.calls:
            return []
        self._done = True
        options, sink = self._recorder.options, self._recorder.sink
        if options.get("trace_layers"):
            sink.layers(rows(trace.calls))
        if options.get("record_graph"):
            path = Path(str(options["record_graph"]))
            try:
                path.write_text(dumps(graph(trace.calls), indent=1), encoding="utf-8")
                sink.note(f"the module calls of the first step are in {path}")
            except OSError as error:
                sink.note(f"the module calls could not be written to {path}: {error.strerror}")
        if options.get("expect"):
            self._compare(Path(str(options["expect"])), trace.calls)
        return []

    def _compare(self, path: Path, calls: list[ModuleCall]) -> None:
        sink = self._recorder.sink
        try:
            expected = read(path)
        except (OSError, ValueError) as error:
            sink.not_checked("the expected module calls", f"{path}: {error}")
            return
        differences = compare(expected, graph(calls)["calls"])  # type: ignore[arg-type]
        for text in differences[:20]:
            sink.note(f"module calls: {text}")
        if len(differences) > 20:
            sink.note(f"module calls: {len(differences) - 20} more differences")
        if not differences:
            sink.note(f"module calls: the {len(expected)} calls are those of {path}")


def rows(calls: list[ModuleCall]) -> list[dict[str, object]]:
    """One row a call, in order, with `flags` for mixtures of devices and dtypes among inputs and outputs."""
    out: list[dict[str, object]] = []
    for call in calls:
        tensors = call.inputs + call.outputs
        devices = sorted({str(t["device"]) for t in tensors})
        floats = sorted({str(t["dtype"]) for t in tensors if "float" in str(t["dtype"])})
        flags = []
        if len(devices) > 1:
            flags.append("devices " + ", ".join(devices))
        if len(floats) > 1:
            flags.append("dtypes " + ", ".join(floats))
        if any(not t["contiguous"] for t in call.inputs):
            flags.append("input not contiguous")
        out.append(
            {"module": call.path, "kind": call.kind, "inputs": call.inputs, "outputs": call.outputs, "flags": flags}
        )
    return out


def graph(calls: list[ModuleCall]) -> dict[str, object]:
    """The expectation file's content: module, class and source modules of each call."""
    return {
        "format": FORMAT,
        "calls": [{"module": c.path, "kind": c.kind, "from": c.sources} for c in calls],
    }


def read(path: Path) -> list[dict[str, Any]]:
    """The calls of an expectation file.

    Raises:
        OSError: it cannot be read.
        ValueError: it is not such a file.
    """
    data = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(data, dict) or data.get("format") != FORMAT or not isinstance(data.get("calls"), list):
        raise ValueError("not a file written by --record-graph")
    calls: list[dict[str, Any]] = data["calls"]
    if not all(
        isinstance(c, dict) and isinstance(c.get("module"), str) and isinstance(c.get("from"), list) for c in calls
    ):
        raise ValueError("a call lacks its module or its sources")
    return calls


def compare(expected: list[dict[str, Any]], seen: list[dict[str, Any]]) -> list[str]:
    """Differences in words: what is missing, new, of another class, rewired, or called in another order."""
    want = {_occurrence(expected, i): c for i, c in enumerate(expected)}
    have = {_occurrence(seen, i): c for i, c in enumerate(seen)}
    out = [f"{_name(key)} ({want[key].get('kind')}) was expected and not called" for key in want if key not in have]
    out += [f"{_name(key)} ({have[key].get('kind')}) was called and not expected" for key in have if key not in want]
    common = [key for key in want if key in have]
    for key in common:
        a, b = want[key], have[key]
        if a.get("kind") != b.get("kind"):
            out.append(f"{_name(key)} is a {b.get('kind')}, expected {a.get('kind')}")
        if sorted(a["from"]) != sorted(b["from"]):
            out.append(f"{_name(key)} is fed by {_list(b['from'])}, expected {_list(a['from'])}")
    if not out and common != [key for key in have if key in want]:
        first = next(b for a, b in zip(common, [key for key in have if key in want]) if a != b)
        out.append(f"the calls are in another order, from {_name(first)} on")
    return out


def _occurrence(calls: list[dict[str, Any]], i: int) -> tuple[str, int]:
    path = str(calls[i]["module"])
    return path, sum(1 for c in calls[:i] if c["module"] == path)


def _name(key: tuple[str, int]) -> str:
    return key[0] if key[1] == 0 else f"{key[0]} (call {key[1] + 1})"


def _list(names: list[str]) -> str:
    return ", ".join(names) if names else "the inputs"
