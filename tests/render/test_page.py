from __future__ import annotations

import base64
import hashlib
import json
import math
import random
import re
import shutil
import subprocess
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import pytest

from osler.core.finding import Confidence, Finding, Severity, Where
from osler.core.report import NotChecked, Report, Series
from osler.render.page import MAX_BYTES, page

VOID = {"meta", "link", "br", "img", "input", "hr"}


class Outline(HTMLParser):
    """What the tests ask of a page: its elements, headings, ids, the text outside scripts, and that it nests."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts[-1] = (self.scripts[-1][0], self.scripts[-1][1] + data)
        elif not self.open or self.open[-1] != "style":
            self.words.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [a for t, a in self.elements if t == tag]

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


@pytest.fixture
def text(report: Report, sample: ModuleType) -> str:
    return page(report, sample.RULES)


def test_content(text: str) -> None:
    seen = Outline(text).text
    for expected in (
        "log-of-zero at train.py:11, and 2 more causes",
        "9 errors, 1 warning, 1 info from 3 causes",
        "log of 0 in the loss at step 97: 3 of 32 inputs are 0",
        "return -torch.log(picked).mean() # </script><script>alert(1)</script> [red]",
        "Replace softmax and log by torch.nn.functional.cross_entropy(logits, target).",
        "the step was run again; with the guard in place the fault is gone",
        "Brought about 8 other findings",
        "8 of 8 parameters are NaN before step 98.",
        "1 finding that is only possible",
        "Infinity from step 97, 143 in all",
        "NaN from step 49, 15 in all",
        "Infinity from step 48, 16 in all",
        "50.54 at step 40",
        "the budget of 3 % was used up",
        "1.8 %",
        "2.13.0+cpu",
        "dtype mixed: float32 in, float16 out",
        "The logarithm of zero is -inf.",
    ):
        assert expected in seen or expected in text, expected


def test_hostile_strings_stay_text(text: str, sample: ModuleType) -> None:
    text.encode("utf-8")
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", text)
    outline = Outline(text)
    assert len(outline.scripts) == 2
    assert "alert(1)" not in outline.scripts[1][1]
    assert "<script>alert(1)</script> [red]x[/red]" in outline.text
    # Every tag is one of the template's own: nothing of the report was read as markup.
    assert not {t for t, _ in outline.elements} & {"b1", "lambda", "module", "object", "iframe", "img"}
    data = json.loads(outline.scripts[0][1])
    assert [f["name"] for f in data["figures"]] == ["loss", "learning_rate", "gradient_norm", "layer_gradient_norm"]
    assert data["marks"][0] == {"id": "F2", "rule": "log-of-zero", "step": 97, "severity": "error"}
    assert data["figures"][0]["lines"][0]["values"][97:99] == ["Infinity", "NaN"]
    assert "<" not in outline.scripts[0][1]


def test_nothing_is_fetched_and_only_our_script_may_run(text: str) -> None:
    outline = Outline(text)
    for _, attributes in outline.elements:
        assert "src" not in attributes and "style" not in attributes
        assert not any(name.startswith("on") for name in attributes)
        href = attributes.get("href")
        assert href is None or href.startswith("#") or href == "data:,"
    assert not re.search(r"url\((?!#)", text) and "@import" not in text
    (policy,) = [a["content"] for a in outline.all("meta") if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None and "unsafe" not in policy and "default-src 'none'" in policy
    for source in (outline.scripts[1][1], re.findall(r"<style>(.*?)</style>", text, re.S)[0]):
        digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy


def test_structure_for_keyboards_and_screen_readers(text: str) -> None:
    outline = Outline(text)
    assert [len(outline.all(t)) for t in ("h1", "main", "header", "nav", "footer", "title")] == [1] * 6
    levels = [int(t[1]) for t, _ in outline.elements if re.fullmatch("h[1-6]", t)]
    assert levels[0] == 1 and all(b <= a + 1 for a, b in pairwise(levels))
    ids = [a["id"] for _, a in outline.elements if "id" in a]
    assert len(ids) == len(set(ids))
    for _, attributes in outline.elements:
        for reference in (attributes.get("aria-labelledby"), (attributes.get("href") or "")[1:] or None):
            assert reference is None or reference in ids or reference == "ata:,"
    assert outline.all("a")[0]["class"] == "skip"
    assert outline.all("html")[0]["lang"] == "en"
    figures = outline.all("figure")
    assert len(figures) == 4 and len(outline.all("caption")) == 4
    # What scrolls can be scrolled with the keyboard, and has a name.
    for tag, attributes in outline.elements:
        if "scroll" in (attributes.get("class") or "") or tag == "pre":
            assert attributes.get("tabindex") == "0" and attributes.get("role") == "region"
            assert attributes.get("aria-label") or attributes.get("aria-labelledby")
    for rule in ("prefers-color-scheme: dark", "@media print", "prefers-reduced-motion", ":focus-visible"):
        assert rule in text


def test_the_same_report_gives_the_same_page(report: Report, sample: ModuleType) -> None:
    assert page(report, sample.RULES) == page(report, sample.RULES)


def test_an_empty_report() -> None:
    text = Outline(page(Report({"kind": "run", "steps": 12}, not_checked=[NotChecked("a", "b")]), {})).text
    assert "Nothing found in 12 steps" in text and "1 thing could not be checked" in text
    assert "That is not proof of health" in text
    assert "No optimizer step was seen" in page(Report({"steps": 0}), {})
    Outline(page(Report({}), {}))


def test_curves_of_several_ranks_share_a_figure() -> None:
    series = [Series("loss", "curve", [0, 1], [1.0, 0.5], source=f"rank {r}") for r in range(3)]
    outline = Outline(page(Report({}, series=series), {}))
    (figure,) = json.loads(outline.scripts[0][1])["figures"]
    assert [line["source"] for line in figure["lines"]] == ["rank 0", "rank 1", "rank 2"]
    assert len(outline.all("figure")) == 1


def test_a_long_run_of_a_deep_model_fits(sample: ModuleType) -> None:
    steps = list(range(100_000))
    draw = random.Random(0)
    names = [f"model.decoder.layers.{i}.self_attention.out_projection.weight" for i in range(300)]
    # The columns repeat 64 lists: the page reads every value, and the test needs no gigabytes.
    columns = [[10 ** draw.uniform(-9, 3) for _ in names] for _ in range(64)]
    columns[5][7] = math.nan
    heat = [columns[s % 64] for s in steps]
    report = Report(
        {"kind": "run", "steps": 100_000, "command": "x" * 10_000},
        findings=[
            Finding(
                "log-of-zero",
                Severity.ERROR,
                Confidence.DEFINITE,
                "m" * 5000,
                Where("a.py", i + 1),
                {"x": [1.5] * 1000},
            )
            for i in range(3000)
        ],
        not_checked=[NotChecked(f"thing {i}", "why " * 200) for i in range(2000)],
        series=[
            *(Series(f"curve {i}", "curve", steps, [draw.gauss(0, 1) for _ in steps[:1000]] * 100) for i in range(4)),
            Series("layer_gradient_norm", "heatmap", steps, heat, rows=names),
        ],
        layers=[
            {
                "module": n,
                "kind": "Linear",
                "inputs": [{"shape": [8, 8]}],
                "outputs": [{"shape": [8, 8], "min": 0.0, "max": 1.0}],
            }
            for n in names * 10
        ],
        environment={f"fact {i}": "v" * 500 for i in range(1000)},
    )
    text = page(report, sample.RULES)
    assert len(text.encode()) <= MAX_BYTES
    outline = Outline(text)
    figures = json.loads(outline.scripts[0][1])["figures"]
    assert all(len(line["steps"]) <= 2000 for f in figures[:-1] for line in f["lines"])
    assert len(figures[-1]["first"]) <= 240 and len(figures[-1]["rows"]) <= 300
    assert "100000 steps are drawn in" in outline.text
    assert "more causes are in the JSON report." in outline.text


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--window-size=1200,900"),
    *("--virtual-time-budget=2000", "--enable-logging=stderr", "--dump-dom"),
]


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium to open the page with")
def test_a_browser_draws_every_figure(text: str, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(text, encoding="utf-8")
    for attempt in range(4):  # on a busy machine the page may be dumped before its script has run
        done = subprocess.run(
            [str(CHROMIUM), *FLAGS, f"--user-data-dir={tmp_path / f'profile{attempt}'}", file.as_uri()],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        dom = done.stdout
        if 'class="curve"' in dom:
            break
    assert "CONSOLE" not in done.stderr, [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert dom.count('class="curve"') == 3
    assert dom.count('class="mark error"') == 3 and dom.count('class="mark warning"') == 3
    assert len(re.findall(r'<canvas[^>]*style="height: \d+px', dom)) == 1
    assert dom.count('aria-roledescription="chart"') == 4
    assert "exactly 0" in dom and "Infinity, then not finite" in dom
