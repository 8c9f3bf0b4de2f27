"""A report as a bad training leaves it: causes with symptoms, numbers that are none, and strings that mean harm."""

from __future__ import annotations

import math
from pathlib import Path

from osler.core.finding import Confidence, Finding, Severity, Where
from osler.core.report import NotChecked, Report, Series
from osler.core.rule import Rule

ERROR, WARNING, INFO = Severity.ERROR, Severity.WARNING, Severity.INFO

SCRIPT = """\
import torch
from torch import nn

model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=5.0)


def loss_fn(logits, target):
    probabilities = torch.softmax(logits, dim=1)
    picked = probabilities.gather(1, target[:, None])
    return -torch.log(picked).mean()  # </script><script>alert(1)</script> [red]


for step in range(240):
    optimizer.zero_grad()
    loss = loss_fn(model(x), y)
    loss.backward()
    optimizer.step()
"""

HOSTILE = '<script>alert(1)</script> [red]x[/red] \x1b[31mred\x1b[0m \x07 \u202e \udcff \ud800 ]]> & "quoted" \''


def rule(name: str, severity: Severity = ERROR, part: str = "numbers", causes: tuple[str, ...] = ()) -> Rule:
    return Rule(
        name=name,
        part=part,
        severity=severity,
        summary=f"The fault called {name}.",
        why="The logarithm of zero is -inf. Its gradient is infinite: one such element spoils every weight.",
        fix="Use log_softmax, or clamp the argument away from zero.",
        bad="loss = -torch.log(torch.softmax(logits, 1)).mean()",
        good="loss = -torch.log_softmax(logits, 1).mean()",
        limits="Silent inside compiled regions.",
        causes=causes,
        routes=("run", "lint"),
        links=("https://pytorch.org/docs/stable/generated/torch.log.html",),
    )


RULES = {
    r.name: r
    for r in (
        rule("log-of-zero", causes=("nonfinite-parameter", "nonfinite-op", "dead-relu")),
        rule("nonfinite-parameter", causes=("nonfinite-op",)),
        rule("nonfinite-op"),
        rule("dead-relu", WARNING, "gradients"),
        rule("update-ratio", WARNING, "gradients"),
        rule("vanishing-gradient", WARNING, "gradients"),
        rule("half-overflow"),
    )
}


def report(folder: Path) -> Report:
    """The report of a script written to `folder/train.py`; `folder` is its working directory."""
    script = folder / "train.py"
    script.write_text(SCRIPT)
    file = str(script)
    model = frozenset({"optimizer:0"})
    findings = [
        Finding(
            "update-ratio",
            WARNING,
            Confidence.PROBABLE,
            "The steps of 0.weight are 0.42 of its size (median of 16 steps); 0.001 is usual.",
            Where(file, 18, "<module>", module="0", parameter="0.weight", optimizer="SGD", step=16),
            {"median_ratio": 0.42, "learning_rate": 5.0, "ratios": [0.1 * i for i in range(20)]},
            "Lower the learning rate from 5 to about 0.01.",
            first_step=16,
            last_step=96,
            count=5,
            touches=frozenset({"parameter:0.weight"}),
        ),
        Finding(
            "log-of-zero",
            ERROR,
            Confidence.DEFINITE,
            "log of 0 in the loss at step 97: 3 of 32 inputs are 0, so the loss is Infinity and every gradient NaN.",
            Where(file, 11, "loss_fn", step=97, batch=97, sample=4, direction="forward", op="aten::log"),
            {
                "zeros": 3,
                "elements": 32,
                "input": {"min": 0.0, "max": 0.98231, "dtype": "float32", "shape": [32, 1]},
                "loss": math.inf,
                "gradient_norm": math.nan,
                "samples": [4, 9, 30],
            },
            "Replace softmax and log by torch.nn.functional.cross_entropy(logits, target).",
            confirmed=True,
            first_step=97,
            last_step=97,
            touches=model,
        ),
        Finding(
            "nonfinite-parameter",
            ERROR,
            Confidence.DEFINITE,
            "8 of 8 parameters are NaN before step 98.",
            Where(file, 18, "<module>", optimizer="SGD", step=98),
            {"nan": 8, "parameters": 8},
            "",
            first_step=98,
            last_step=239,
            count=142,
            touches=model,
        ),
        *(
            Finding(
                "nonfinite-op",
                ERROR,
                Confidence.DEFINITE,
                f"The output of module {i} is NaN at step {98 + i}.",
                Where(file, 16, "<module>", module=str(i), step=98 + i, direction="forward"),
                {"nan": 4096},
                first_step=98 + i,
                last_step=98 + i,
                touches=model,
            )
            for i in range(7)
        ),
        Finding(
            "vanishing-gradient",
            WARNING,
            Confidence.POSSIBLE,
            "The gradient of 2.bias is small.",
            Where(module="2", parameter="2.bias"),
            first_step=64,
            touches=frozenset({"parameter:2.bias"}),
        ),
        Finding(
            "no-such-rule",
            INFO,
            Confidence.DEFINITE,
            HOSTILE,
            Where(file=str(folder / "[red]d\udcffta<b>.py"), line=3, function="<lambda>", column=HOSTILE),
            {HOSTILE: HOSTILE, "array": [math.nan, -math.inf, 1]},
            HOSTILE,
            confirmed=False,
            touches=frozenset({"column:x"}),
        ),
    ]
    steps = list(range(240))
    loss = [2.3 * math.exp(-s / 60) + 0.05 * math.sin(s / 3) for s in steps]
    norm = [1.5 + math.sin(s / 9) + (50.0 if s == 40 else 0.0) for s in steps]
    for s in range(97, 240):
        loss[s] = math.inf if s == 97 else math.nan
        norm[s] = math.nan
    rows = [f"encoder.layers.{i}.attn.weight" for i in range(19)] + [HOSTILE]
    heat = [
        [
            math.nan
            if s > 48
            else math.inf
            if s == 48 and j > 10
            else 0.0
            if j == 3
            else 10 ** (-j / 3 + math.sin(s / 5))
            for j in range(20)
        ]
        for s in range(64)
    ]
    return Report(
        subject={
            "kind": "run",
            "command": ["python", "train.py", "--epochs", "3", HOSTILE],
            "cwd": str(folder),
            "exit_code": 0,
            "started": "2025-03-01T12:30:00",
            "seconds": 12.75,
            "steps": 240,
            "run": "20250301-123000-4f2a",
        },
        environment={
            "python": "3.11.7",
            "torch": {"version": "2.13.0+cpu", "cuda": None, "threads": 2},
            "seeds": {"torch": 0, "numpy": "unset"},
            "odd": HOSTILE,
        },
        findings=findings,
        not_checked=[
            NotChecked("saturated-activation", "the model has no sigmoid, tanh or softmax module"),
            NotChecked("dead-relu", "the run ended before a window of 64 looks was full"),
            NotChecked("exact line of steps 5 to 40", "the budget of 3 % was used up", is_rule=False),
            NotChecked(HOSTILE, HOSTILE, is_rule=False),
            NotChecked("half-overflow", "no half precision was used"),
        ],
        overhead={"ratio": 1.018, "seconds": 0.23, "steps": 240, "step_ms": 5.1},
        series=[
            Series("loss", "curve", steps, loss),
            Series("learning_rate", "curve", steps, [5.0] * 240),
            Series("gradient_norm", "curve", steps, norm),
            Series("layer_gradient_norm", "heatmap", list(range(64)), heat, rows=rows),
        ],
        notes=["osler: the disk is full; the rest is kept in memory"],
        layers=[
            {
                "module": f"encoder.layers.{i}.attn",
                "kind": "Linear",
                "inputs": [{"shape": [32, 64], "dtype": "torch.float32", "device": "cpu", "contiguous": True}],
                "outputs": [
                    {
                        "shape": [32, 128],
                        "dtype": "torch.float16" if i == 2 else "torch.float32",
                        "device": "cpu",
                        "contiguous": i != 1,
                        "min": -1.5,
                        "max": math.nan if i == 2 else 2.25,
                    }
                ],
                "flags": ["dtype mixed: float32 in, float16 out"] if i == 2 else [HOSTILE] if i == 1 else [],
            }
            for i in range(4)
        ],
        version="0.1.0",
    )
