"""What each layer is given and gives, and whether the calls are those expected."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import torch
from batch import main, seed
from torch import nn

from osler.core.settings import Settings
from osler.records.memory import MemorySink
from osler.training import session


class Net(nn.Module):
    def __init__(self, swap: bool = False, skip: bool = False) -> None:
        super().__init__()
        self.a, self.b, self.act, self.head = nn.Linear(4, 4), nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)
        self.swap, self.skip = swap, skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first, second = (self.b, self.a) if self.swap else (self.a, self.b)
        h = self.act(first(x))
        h = self.act(second(x if self.skip else h))
        return self.head(h.double().float().t().contiguous().t())


def run(model: nn.Module, **options: Any) -> MemorySink:
    sink = MemorySink(None)
    watching = session.Session(sink, Settings(), {"budget_none": True, **options}).install()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        opt.zero_grad()
        model(torch.ones(3, 4)).mean().backward()
        opt.step()
    watching.close()
    return sink


def case_layers() -> dict[str, Any]:
    folder = Path(tempfile.mkdtemp())
    path = folder / "graph.json"
    seed()
    rows = run(Net(), trace_layers=True).report().layers
    recorded = run(Net(), record_graph=str(path)).report().notes
    content = json.loads(path.read_text())
    out: dict[str, Any] = {"rows": rows, "recorded": recorded, "graph": content, "path": str(path)}
    for name, model in {"same": Net(), "swapped": Net(swap=True), "skipped": Net(skip=True)}.items():
        out[name] = run(model, expect=str(path)).report().notes
    broken = folder / "broken.json"
    broken.write_text("{}")
    report = run(Net(), expect=str(broken)).report()
    out["broken"] = [n.why for n in report.not_checked if n.what == "the expected module calls"]
    report = run(Net(), expect=str(folder / "missing.json")).report()
    out["missing"] = [n.why for n in report.not_checked if n.what == "the expected module calls"]
    out["unwritable"] = run(Net(), record_graph=str(folder / "no" / "graph.json")).report().notes
    return out


if __name__ == "__main__":
    main(globals())
