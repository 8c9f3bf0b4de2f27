"""Each private API of torch switched off in turn: what still works."""

from __future__ import annotations

import traceback
from typing import Any

import torch
import torch.nn.functional as F
from batch import findings_of, main, seed
from torch import nn

import osler
from osler.training import private


def healthy(watched: bool) -> list[Any]:
    seed(1)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.Linear(8, 2))
    opt = torch.optim.Adam(model.parameters())
    losses = []

    def training() -> None:
        for _ in range(20):
            opt.zero_grad()
            with torch.device("cpu"):
                loss = F.mse_loss(model(torch.randn(6, 4)), torch.zeros(6, 2))
            loss.backward()
            opt.step()
            losses.append(loss.item())

    report = None
    if watched:
        with osler.watch(budget="none") as w:
            training()
        report = w.report
    else:
        training()
    weights = [v.tolist() for v in model.state_dict().values()]
    hooks = [k for m in model.modules() for k, v in vars(m).items() if k.endswith("_hooks") and len(v)]
    return [losses, weights, hooks, torch.rand(3).tolist()] + ([] if report is None else [report])


def forward_fault() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Softmax(-1))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(4):
        opt.zero_grad()
        p = model(torch.randn(6, 4)) * float(step < 2)
        p.log().mean().backward()  # here: forward
        opt.step()


def backward_fault() -> None:
    model = nn.Linear(4, 4)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(4):
        opt.zero_grad()
        p = model(torch.randn(6, 4)) * float(step < 2)
        p.pow(2).sqrt().mean().backward()  # here: backward
        opt.step()


def scaled_fault() -> None:
    model = nn.Linear(4, 4)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**40)
    for _ in range(16):
        opt.zero_grad()
        scaler.scale((model(torch.randn(6, 4)) * 0).pow(2).sqrt().mean()).backward()  # here: scaled
        scaler.step(opt)
        scaler.update()


def embedded_fault() -> None:
    """Sparse gradients go through the norms one by one."""
    model = nn.Embedding(5, 3, sparse=True)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(4):
        opt.zero_grad()
        (model(torch.arange(5)) * float(step < 2)).pow(2).sum(1).sqrt().mean().backward()  # here: sparse
        opt.step()


def first(training: Any) -> dict[str, Any]:
    seed()
    facts = findings_of(training)
    found = facts["findings"][0] if facts["findings"] else {"rule": None, "where": {}}
    where = found["where"]
    return {
        "rule": found["rule"],
        "line": where.get("line"),
        "direction": where.get("direction"),
        "step": where.get("step"),
        "notes": facts["notes"],
    }


def gathered(bare: list[Any]) -> dict[str, Any]:
    *seen, report = healthy(True)
    return {
        "status": private.status(),
        "same": seen == bare,
        "findings": [f.rule for f in report.findings],
        "notes": report.notes,
        "forward": first(forward_fault),
        "backward": first(backward_fault),
        "scaled": first(scaled_fault),
        "sparse": first(embedded_fault),
    }


def case_fallbacks() -> dict[str, Any]:
    bare = healthy(False)
    out: dict[str, Any] = {}
    for name in [None, *private.status()]:
        if name is not None:
            private.disable(name)
        try:
            out[name or "all in use"] = gathered(bare)
        except Exception:
            out[name or "all in use"] = {"error": traceback.format_exc()[-2000:]}
        if name is not None:
            private.enable(name)
    return out


if __name__ == "__main__":
    main(globals())
