from __future__ import annotations

import io
import re
from pathlib import Path
from types import ModuleType

import pytest
from rich.console import Console

from osler.core.finding import Confidence, Finding, Severity, Where
from osler.core.report import NotChecked, Report
from osler.core.settings import options
from osler.render.terminal import live_line, print_explain, print_layers, print_report

ANSI = re.compile(r"\x1b\[[0-9;]*m")


def console(**kwargs: object) -> tuple[Console, io.StringIO]:
    out = io.StringIO()
    return Console(file=out, **kwargs), out  # type: ignore[arg-type]


def test_the_diagnosis_piped(report: Report, sample: ModuleType) -> None:
    c, out = console(width=40)
    print_report(report, sample.RULES, c)
    text = out.getvalue()
    lines = text.splitlines()
    assert lines[:6] == [
        "error[log-of-zero] log of 0 in the loss at step 97: 3 of 32 inputs are 0, so the loss is Infinity and every "
        "gradient NaN.",
        "  --> train.py:11 in loss_fn  (step 97, batch 97, sample 4, forward, aten::log)",
        "     9 | probabilities = torch.softmax(logits, dim=1)",
        "    10 | picked = probabilities.gather(1, target[:, None])",
        "  > 11 | return -torch.log(picked).mean()  # </script><script>alert(1)</script> [red]",
        "  evidence   zeros=3, elements=32, input.min=0, input.max=0.9823, input.dtype=float32, input.shape=[32, 1], "
        "loss=Infinity, gradient_norm=NaN, samples=[4, 9, 30]",
    ]
    assert "  confirmed  the step was run again; with the guard in place the fault is gone" in lines
    assert "  confirmed  no: the step was run again with the guard in place, and the fault is still there" in lines
    assert "    error[nonfinite-parameter] 8 of 8 parameters are NaN before step 98.  train.py:18, step 98" in lines
    assert "      error[nonfinite-op] The output of module 0 is NaN at step 98.  train.py:16, step 98" in lines
    assert "    ... and 3 more (3 errors); --verbose lists them" in lines
    assert lines[-3] == (
        "osler: 9 errors, 1 warning, 1 info from 3 causes; 240 steps watched; watching cost 1.8 %; "
        "1 possible finding held back (--all shows them); stored in .osler/runs/20250301-123000-4f2a "
        "(`osler report 20250301-123000-4f2a` shows it again)"
    )
    assert lines[-2].startswith("not checked: 5 (saturated-activation, dead-relu, exact line of steps 5 to 40, ")
    assert lines[-2].endswith(" and 1 more); --verbose gives the reasons")
    assert "vanishing-gradient" not in text
    assert text.isprintable() or not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", text)
    assert "\x1b" not in text and "[red]x[/red]" in text


def test_all_and_verbose(report: Report, sample: ModuleType) -> None:
    c, out = console()
    print_report(report, sample.RULES, c, all=True, verbose=True)
    text = out.getvalue()
    assert "warning[vanishing-gradient] (possible) The gradient of 2.bias is small." in text
    assert text.count("error[nonfinite-op]") == 7
    assert "  half-overflow: no half precision was used\n" in text
    assert "held back" not in text


def test_a_terminal_has_colour_and_folds_between_words(report: Report, sample: ModuleType) -> None:
    c, out = console(force_terminal=True, width=60, color_system="standard")
    print_report(report, sample.RULES, c)
    text = out.getvalue()
    assert "\x1b[1;31merror[log-of-zero]" in text
    plain = [ANSI.sub("", line) for line in text.splitlines()]
    words_of = [line for line in plain if " " in line.strip()]
    assert all(len(line) <= 60 for line in words_of)
    joined = " ".join(line.strip() for line in plain)
    assert "so the loss is Infinity and every gradient NaN." in joined


def test_no_color(report: Report, sample: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    c, out = console(force_terminal=True, width=100)
    print_report(report, sample.RULES, c)
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]", out.getvalue())


def test_a_path_is_never_broken() -> None:
    path = "/deep" + "/directory" * 12 + "/train.py"
    finding = Finding("r", Severity.ERROR, Confidence.DEFINITE, "It is so.", Where(path, 7, "f", step=1), first_step=1)
    for kwargs in ({}, {"force_terminal": True, "width": 40}):
        c, out = console(**kwargs)
        print_report(Report({}, findings=[finding]), {}, c)
        live_line(finding, c)
        assert ANSI.sub("", out.getvalue()).count(f"{path}:7") == 2


def test_live_line(report: Report, sample: ModuleType) -> None:
    c, out = console()
    live_line(report.findings[0], c)
    assert out.getvalue() == (
        "osler warning[update-ratio] (probable) The steps of 0.weight are 0.42 of its size (median of 16 steps); "
        "0.001 is usual.  train.py:18, step 16\n"
    )
    live_line(report.findings[-1], c)
    assert "\x1b" not in out.getvalue() and out.getvalue().count("\n") == 2


@pytest.mark.parametrize(
    ("report_", "expected"),
    [
        (
            Report({"steps": 40}, not_checked=[NotChecked("a", "b"), NotChecked("c", "d")], overhead={"ratio": 1.01}),
            "osler: nothing found in 40 steps; 2 things were not checked; watching cost 1.0 %\n"
            "not checked: 2 (a, c); --verbose gives the reasons\n",
        ),
        (Report({"steps": 1}), "osler: nothing found in 1 step; nothing is listed as unchecked\n"),
        (
            Report({"steps": 0}, not_checked=[NotChecked("a", "b")]),
            "osler: no optimizer step was seen, so nothing could be said about a training; 1 thing was not checked\n"
            "not checked: 1 (a); --verbose gives the reasons\n",
        ),
    ],
)
def test_silence_does_not_look_like_health(report_: Report, expected: str) -> None:
    c, out = console()
    print_report(report_, {}, c)
    assert out.getvalue() == expected


def test_a_sure_symptom_shows_its_possible_cause(sample: ModuleType) -> None:
    touches = frozenset({"optimizer:0"})
    findings = [
        Finding("log-of-zero", Severity.WARNING, Confidence.POSSIBLE, "Perhaps.", first_step=1, touches=touches),
        Finding("nonfinite-op", Severity.ERROR, Confidence.DEFINITE, "Surely.", first_step=2, touches=touches),
        Finding("dead-relu", Severity.WARNING, Confidence.POSSIBLE, "Maybe.", first_step=3, touches=touches),
    ]
    c, out = console()
    print_report(Report({}, findings=findings), sample.RULES, c)
    assert "warning[log-of-zero] (possible) Perhaps." in out.getvalue()
    assert "    error[nonfinite-op] Surely.  step 2" in out.getvalue()
    assert "Maybe." not in out.getvalue()


def test_an_ascii_stream_gets_escapes_instead_of_an_error(report: Report, sample: ModuleType) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii", errors="strict")
    c = Console(file=stream)
    report.findings[0].message = "größer als π"
    print_report(report, sample.RULES, c)
    print_layers(report, c)
    stream.flush()
    assert b"gr\\xf6\\xdfer als \\u03c0" in raw.getvalue()


def test_layers(report: Report) -> None:
    c, out = console(width=40)
    print_layers(report, c)
    lines = out.getvalue().splitlines()
    assert lines[0].split() == ["module", "kind", "in", "out", "range", "of", "out", "flags"]
    assert lines[1] == "encoder.layers.0.attn  Linear  32x64 float32  32x128 float32                 -1.5 to 2.25"
    assert "32x128 float32 not contiguous" in lines[2] and "[red]x[/red]" in lines[2]
    assert lines[3].endswith("-1.5 to NaN   dtype mixed: float32 in, float16 out")
    c, out = console(force_terminal=True, width=120)
    print_layers(report, c)
    assert "encoder.layers.0.attn" in ANSI.sub("", out.getvalue())
    c, out = console()
    print_layers(Report({}), c)
    assert out.getvalue().startswith("no layers were traced")


def test_explain(sample: ModuleType) -> None:
    c, out = console()
    print_explain(sample.RULES["half-overflow"], c, options())
    text = out.getvalue()
    for expected in (
        "half-overflow  error, numbers\n",
        "Why it hurts\n  The logarithm of zero is -inf.",
        "Faulty\n    loss = -torch.log(torch.softmax(logits, 1)).mean()\n",
        "Mended\n    loss = -torch.log_softmax(logits, 1).mean()\n",
        "Noticed by\n  osler run, osler lint\n",
        "  numbers.scaler_skips = 12\n",
        "Limits\n  Silent inside compiled regions.\n",
        "  https://pytorch.org/docs/stable/generated/torch.log.html\n",
        "  # osler: ignore[half-overflow] reason    on the line\n",
        '  [tool.osler] ignore = ["half-overflow"]    in pyproject.toml\n',
    ):
        assert expected in text
    assert "max_replays" not in text
    c, out = console(force_terminal=True, color_system="standard", width=100)
    print_explain(sample.RULES["log-of-zero"], c, options())
    assert "Brings about" in out.getvalue() and "\x1b[" in out.getvalue()
    assert "loss = -torch.log(torch.softmax(logits, 1)).mean()" in ANSI.sub("", out.getvalue())


def test_a_removed_working_directory(
    report: Report, sample: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    c, out = console()
    print_report(report, sample.RULES, c)
    assert "log-of-zero" in out.getvalue()
