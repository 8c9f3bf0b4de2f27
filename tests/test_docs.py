"""The documentation says what the code says: generated pages are up to date, links lead somewhere, examples run."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from osler.catalogue import RULES
from osler.core.settings import options

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "examples" / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
]


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    """scripts/docs.py as a module."""
    spec = importlib.util.spec_from_file_location("osler_docs_generator", ROOT / "scripts" / "docs.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_rules_page_is_up_to_date(generator: ModuleType) -> None:
    written = (ROOT / "docs" / "rules.md").read_text(encoding="utf-8")
    assert written == generator.page(), "run `python scripts/docs.py`"


def test_check_notices_a_stale_page(
    generator: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "rules.md"
    monkeypatch.setattr(generator, "PAGE", page)
    assert generator.main(["--check"]) == 1
    assert "out of date" in capsys.readouterr().err
    assert not page.exists()
    assert generator.main([]) == 0
    assert generator.main(["--check"]) == 0
    page.write_text(page.read_text(encoding="utf-8") + "by hand\n", encoding="utf-8")
    assert generator.main(["--check"]) == 1


def test_rules_page_holds_every_rule_and_setting(generator: ModuleType) -> None:
    text = generator.page()
    for rule in RULES.values():
        assert f"\n### {rule.name}\n" in text
    for option in options():
        assert f"\n| `{option.name}` | " in text
    assert {rule.part for rule in RULES.values()} <= set(generator.PARTS)


def test_tables_are_whole(generator: ModuleType) -> None:
    """A stray `|` in a summary or a source would break its row."""
    width = None
    for line in generator.page().splitlines():
        if not line.startswith("|"):
            width = None
            continue
        cells = len(re.split(r"(?<!\\)\|", line)) - 2
        width = width or cells
        assert cells == width, line


def test_readme_names_every_rule_and_no_other() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    table = text.partition("## What it finds")[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")]
    named = re.findall(r"`([a-z-]+)`", "\n".join(rows))
    assert sorted(named) == sorted(RULES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith(("http://", "https://", "mailto:")):
            continue
        path, _, anchor = target.partition("#")
        file = page if not path else (page.parent / path)
        assert file.exists(), f"{page.name} links to {target}"
        if anchor and file.suffix == ".md":
            titles = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
            slugs = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
            assert anchor in slugs, f"{page.name} links to {target}"


def test_settings_named_in_prose_exist() -> None:
    known = {option.name for option in options()}
    sections = {name.partition(".")[0] for name in known if "." in name}
    pattern = re.compile(rf"`((?:{'|'.join(sorted(sections))})\.[a-z_]+)`")
    for page in PAGES:
        for name in pattern.findall(page.read_text(encoding="utf-8")):
            assert name in known, f"{page.name} speaks of {name}"


def _shown() -> str:
    """The output in the README, without its line breaks."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(r"<!-- output of: osler run examples/first_nan.py -->\n```text\n(.*?)```", text, flags=re.DOTALL)
    assert found is not None
    return " ".join(found[1].split())


def test_example_does_what_the_readme_shows(tmp_path: Path) -> None:
    """The script succeeds, its first NaN has the cause, the line and the step that the README prints."""
    script, out = ROOT / "examples" / "first_nan.py", tmp_path / "report.json"
    command = [sys.executable, "-m", "osler", "run", "--json", str(out), "--no-dump", str(script)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("epoch 1  loss nan")
    findings = json.loads(out.read_text(encoding="utf-8"))["findings"]
    (root,) = [f for f in findings if f["root"]]
    assert root["rule"] == "divide-by-zero"
    assert root["confirmed"] is True
    line = script.read_text(encoding="utf-8").splitlines()[root["where"]["line"] - 1]
    assert line.strip() == "z = z / z.norm(dim=1, keepdim=True)"
    assert root["first_step"] < 60
    shown = _shown()
    assert f"error[{root['rule']}] {root['message']}" in shown
    assert f"examples/first_nan.py:{root['where']['line']} in {root['where']['function']}" in shown


def test_example_knows_nothing_of_osler() -> None:
    source = (ROOT / "examples" / "first_nan.py").read_text(encoding="utf-8")
    assert "osler" not in source
